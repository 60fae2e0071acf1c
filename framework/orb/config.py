"""``cluster.toml``: the nodes, the objects, and where each object lives.

    [nodes]
    n1 = "127.0.0.1:7401"
    n2 = "127.0.0.1:7402"

    [objects.bank]
    class = "objects.bank:Bank"
    on = ["n1", "n2"]             # left out: on all nodes
    options = { pool = 4 }        # of classes that have some, such as objects.sql:Database

    [serve]                       # optional; flags and OBO_... in the environment go before it
    trace = "out/trace"
    workers = 256
    max_message = 67108864        # bytes; arguments and results must fit into one message
    in_flight = 10000             # calls of one client that are not answered
    in_flight_node = 100000       # and of all clients of a node
    waiting = 2048                # requests that wait at a replica before clients are held back
    behind = 100000               # the same where a replica waits for its state: what the others keep for it
    waiting_bytes = 268435456     # of what waits or is kept, of an object
    gather = 0.004                # seconds for which short calls wait for others to leave with them; 0: each alone
    schedule = "batch"            # of threads, by Linux; "normal": who wakes may interrupt who runs
    bind = "0.0.0.0"              # where to listen, if not at the address in [nodes]
    data = "data"                 # where durable objects are kept, relative to this file: node n1 in data/n1

    [group]                       # optional
    suspect_after = 0.75          # seconds of silence after which a member is left out, at least
    compare_every = 3600          # seconds after which replicas are compared again; 0: only when one gets its state

    [security]                    # optional on loopback; docs/security.md
    ca = "certs/ca.pem"           # relative to this file
    cert = "certs/{node}.pem"
    key = "certs/{node}.key"
    tokens = "certs/tokens.toml"
    client = "certs/client"       # for obo call and other commands

Everything that can be wrong is found before a node starts, and the error names the file and the entry.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from framework.com.limits import BEHIND, BYTES, WAITING
from framework.com.limits import Limits as ComLimits
from framework.com.view import Directory, Placement, View, tran
from framework.declare import Backed, Declaration, Object, declaration
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest, OboError
from framework.footprint import Relation
from framework.ids import TRAN, Node, ObjectName, check_name
from framework.net.options import LEAST_EVER, MAX_MESSAGE, MOST_EVER
from framework.net.security import Security, loopback
from framework.orb.limits import IN_FLIGHT, IN_FLIGHT_NODE, Limits
from framework.orb.load import load_class
from framework.orb.own import with_verdicts

SUSPECT_AFTER = 0.2, 300.0
GATHER = 0.004  # a third of what a call takes on busy nodes (docs/bench.md)


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    class_: str = msgspec.field(name="class")
    on: list[str] | None = None
    options: dict[str, Any] = {}


class Serve(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    trace: str | None = None
    workers: int = 256  # threads for methods that are a plain def
    max_message: int = MAX_MESSAGE
    in_flight: int = IN_FLIGHT
    in_flight_node: int = IN_FLIGHT_NODE
    waiting: int = WAITING
    behind: int = BEHIND
    waiting_bytes: int = BYTES
    gather: float = GATHER
    schedule: Literal["batch", "normal"] = "batch"
    bind: str | None = None
    data: str | None = None

    @property
    def limits(self) -> Limits:
        return Limits(self.max_message, self.in_flight, self.in_flight_node)

    @property
    def com(self) -> ComLimits:
        return ComLimits(waiting=self.waiting, behind=self.behind, bytes=self.waiting_bytes)


class Group(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    suspect_after: float = 0.75
    compare_every: float = 3600.0


class _File(msgspec.Struct, forbid_unknown_fields=True):
    nodes: dict[str, str]
    objects: dict[str, _Entry] = {}
    serve: Serve = Serve()
    group: Group = Group()
    security: Security = Security()


class Config:
    """A cluster: addresses, the directory of the com layer, and the class of each object."""

    def __init__(
        self,
        addresses: Mapping[Node, str],
        classes: Mapping[ObjectName, type[Object]],
        on: Mapping[ObjectName, list[str]],
        serve: Serve,
        security: Security,
        group: Group = Group(),  # noqa: B008  # it never changes
        options: Mapping[ObjectName, Mapping[str, Any]] = MappingProxyType({}),
    ) -> None:
        self.options = options
        self.addresses = addresses
        self.classes = classes
        self.serve = serve
        self.security = security
        self.group = group
        self.declarations: dict[ObjectName, Declaration] = {n: declaration(c) for n, c in classes.items()}
        placements = [
            Placement(n, _relation(classes[n], d), on[n], classes[n].durable, _loose(classes[n]))
            for n, d in self.declarations.items()
        ]
        if TRAN in classes:
            raise BadRequest(f"objects.{TRAN}: the name of the object that knows about transactions; take another one")
        lasting = any(p.durable and not p.loose for p in placements)
        self.directory = Directory(View(1, tuple(sorted(addresses))), [*placements, tran(list(addresses), lasting)])

    def address(self, node: str) -> str:
        found = self.addresses.get(Node(node))
        if found is None:
            raise BadRequest(f"no node {node!r}; {did_you_mean(node, self.addresses)}")
        return found

    def listens(self, node: str) -> str:
        """Where a node listens: at its address, or at the same port of another interface."""
        address = self.address(node)
        return address if self.serve.bind is None else f"{self.serve.bind}:{split_address(address, node)[1]}"

    def listen_on(self, bind: str) -> None:
        """Instead of what [serve] says."""
        self.serve = msgspec.structs.replace(self.serve, bind=bind)
        _check_serve(self.serve)

    def keep_in(self, data: str) -> None:
        """Instead of what [serve] says."""
        self.serve = msgspec.structs.replace(self.serve, data=data)
        _check_serve(self.serve)

    def exposed(self, node: str, insecure: bool) -> str:
        """What of this node's traffic crosses a network without TLS and tokens; empty if nothing does.

        BadRequest unless that is what is wanted."""
        away = [a for a in (self.listens(node), *self.addresses.values()) if not loopback(a)]
        lacks = [what for what, there in (("TLS", self.security.ca), ("tokens", self.security.tokens)) if not there]
        if not away or not lacks:
            return ""
        if not insecure:
            raise BadRequest(
                f"{away[0]} is not on loopback, so nodes need TLS and clients tokens: run obo certs init and name its "
                f"files in [security], or give --insecure; missing: {' and '.join(lacks)}"
            )
        return f"{away[0]} is not on loopback and there are no {' and no '.join(lacks)}"


def read(path: Path) -> Config:
    """The cluster that a file describes, or BadRequest that names file and entry."""
    try:
        return parse(path.read_text(encoding="utf-8"), path.parent)
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadRequest(f"{path}: not UTF-8") from None
    except BadRequest as error:
        raise BadRequest(f"{path}: {error}") from None


def parse(text: str, base: Path = Path()) -> Config:
    """``base`` is where the paths in it begin."""
    try:
        raw: dict[str, Any] = tomllib.loads(text)
        file = msgspec.convert(raw, _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadRequest(str(error)) from None
    if not file.nodes:
        raise BadRequest('[nodes] is empty: name at least one, for example n1 = "127.0.0.1:7401"')
    addresses: dict[Node, str] = {}
    for name, address in file.nodes.items():
        check_name(name, "node name")
        _check_address(name, address, addresses)
        addresses[Node(name)] = address
    classes: dict[ObjectName, type[Object]] = {}
    on: dict[ObjectName, list[str]] = {}
    options: dict[ObjectName, Mapping[str, Any]] = {}
    for name, entry in file.objects.items():
        where = f"[objects.{name}]"
        check_name(name, "object name")
        if name == TRAN:
            raise BadRequest(f"{where}: the name {name!r} belongs to the framework")
        on[ObjectName(name)] = _places(where, entry.on, file.nodes)
        classes[ObjectName(name)] = _class(where, entry.class_)
        options[ObjectName(name)] = check_options(f"{where} options", classes[ObjectName(name)], entry.options)
    _check_serve(file.serve)
    serve = file.serve
    if serve.data is not None:
        serve = msgspec.structs.replace(serve, data=str(base / serve.data))
    check_group(file.group)
    return Config(addresses, classes, on, serve, file.security.at(base), file.group, options)


def _check_serve(serve: Serve) -> None:
    bounds = {
        "workers": (1, 4096),
        "max_message": (LEAST_EVER, MOST_EVER),
        "in_flight": (1, 1_000_000),
        "in_flight_node": (1, 10_000_000),
        "waiting": (1, 10_000_000),
        "behind": (1, 10_000_000),
        "waiting_bytes": (1 << 20, 1 << 40),
        "gather": (0.0, 1.0),
    }
    for name, (least, most) in bounds.items():
        value = getattr(serve, name)
        if not least <= value <= most:
            raise BadRequest(f"[serve] {name} = {value}: from {least} to {most}")
    if serve.data == "":
        raise BadRequest('[serve] data = "": name a directory, or leave it out')
    if serve.bind is not None and (not serve.bind or (":" in serve.bind and not serve.bind.startswith("["))):
        raise BadRequest(f"[serve] bind = {serve.bind!r}: an address without a port, for example 0.0.0.0 or [::]")


def check_group(group: Group) -> None:
    least, most = SUSPECT_AFTER
    if not least <= group.suspect_after <= most:
        raise BadRequest(
            f"[group] suspect_after = {group.suspect_after:g}: from {least:g} to {most:g} seconds; nodes say something "
            "every 0.05 s, and a member that is silent for longer than this is left out of the group"
        )
    if group.compare_every < 0:
        raise BadRequest(f"[group] compare_every = {group.compare_every:g}: seconds, or 0 for never")


def _check_address(name: str, address: str, others: Mapping[Node, str]) -> None:
    host, port = split_address(address, f"[nodes] {name}")
    for other, taken in others.items():
        if split_address(taken, other) == (host, port):
            raise BadRequest(f"[nodes] {name} and {other} have the same address {address}")


def split_address(address: str, where: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadRequest(f"{where}: {address!r} is no address: write host:port, for example 127.0.0.1:7401")
    return host, int(port)


def _places(where: str, on: list[str] | None, nodes: Mapping[str, str]) -> list[str]:
    if on is None:
        return list(nodes)
    if not on:
        raise BadRequest(f"{where} on = []: name at least one node, or leave it out for all")
    for name in on:
        if name not in nodes:
            raise BadRequest(f"{where} on: no node {name!r}; {did_you_mean(name, nodes)}")
    if len(set(on)) != len(on):
        raise BadRequest(f"{where} on: a node is named twice")
    return on


def check_options(where: str, cls: type[Object], options: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        if issubclass(cls, Backed):
            cls.check_options(options)
        elif options:
            raise BadRequest(f"{cls.__name__} takes none: only objects with a store of their own do")
    except BadRequest as error:
        raise BadRequest(f"{where}: {error}") from None
    return options


def _relation(cls: type[Object], declared: Declaration) -> Relation:
    return with_verdicts(declared.relation) if issubclass(cls, Backed) else declared.relation


def _loose(cls: type[Object]) -> bool:
    return issubclass(cls, Backed) and not cls.transactions


def _class(where: str, target: str) -> type[Object]:
    try:
        found = load_class(target)
    except OboError as error:
        raise BadRequest(f"{where} class: {error}") from None
    try:
        found()
    except Exception as error:
        raise BadRequest(f"{where} class: {target}() cannot be made: {type(error).__name__}: {error}") from error
    return found
