"""What a test asks for: which objects of which classes, on which nodes. Mistakes are told before anything starts."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from framework.declare import Object
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest
from framework.ids import TRAN, Node, ObjectName, check_name
from framework.net.issue import issue, issued
from framework.net.security import Access, Security
from framework.orb.config import Config, Group, Serve, check_group, check_options, parse
from framework.orb.load import load_class

MOST_NODES = 32
DATA = "data"  # of durable objects, in the directory of the cluster
CERTS = "certs"  # in the directory of the cluster


class Plan:
    def __init__(
        self,
        objects: Mapping[str, type[Object] | str],
        nodes: int | Sequence[str],
        on: Mapping[str, Sequence[str]] | None,
        tls: bool = False,
        suspect_after: float | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.tls = tls
        self.group = Group() if suspect_after is None else Group(suspect_after)
        check_group(self.group)
        self.nodes = _names(nodes)
        if not objects:
            raise BadRequest('a cluster without objects: give some, for example cluster({"bank": Bank})')
        self.classes: dict[ObjectName, type[Object]] = {}
        for name, cls in objects.items():
            check_name(name, "object name")
            if name == TRAN:
                raise BadRequest(f"the name {name!r} belongs to the framework")
            self.classes[ObjectName(name)] = _class(name, cls)
        self.on = {name: self._places(name, on) for name in self.classes}
        for what, given in (("on", on), ("options", options)):
            for name in given or {}:
                if name not in self.classes:
                    raise BadRequest(f"{what}: no object {name!r}; {did_you_mean(name, self.classes)}")
        self.options = {
            n: check_options(f"options of {n!r}", c, (options or {}).get(n, {})) for n, c in self.classes.items()
        }

    @property
    def durable(self) -> bool:
        return any(cls.durable for cls in self.classes.values())

    def _places(self, name: str, on: Mapping[str, Sequence[str]] | None) -> list[str]:
        if on is None or name not in on:
            return list(self.nodes)
        places = on[name]
        if isinstance(places, str) or not places:
            raise BadRequest(f"on: {name!r} is on {places!r}: give a list of nodes, for example {list(self.nodes)[:2]}")
        for node in places:
            if node not in self.nodes:
                raise BadRequest(f"on: no node {node!r} for {name!r}; {did_you_mean(node, self.nodes)}")
        if len(set(places)) != len(places):
            raise BadRequest(f"on: a node is named twice for {name!r}")
        return list(places)

    def config(self, addresses: Mapping[str, str], directory: Path) -> Config:
        """For a node in this process: it takes the classes as they are."""
        security = issued(directory / CERTS) if self.tls else Security()
        serve = Serve(data=str(directory / DATA)) if self.durable else Serve()
        nodes = {Node(n): a for n, a in addresses.items()}
        return Config(nodes, self.classes, self.on, serve, security, self.group, self.options)

    def certify(self, directory: Path) -> None:
        if self.tls:
            issue(dict.fromkeys(self.nodes, "127.0.0.1"), directory / CERTS, 1)

    def access(self, directory: Path) -> Access:
        """What a client needs."""
        return {"credentials": directory / CERTS / "client"} if self.tls else {}

    def toml(self, addresses: Mapping[str, str]) -> str:
        """For a node in a process of its own: it imports the classes. Checked here, where the error is easy to see."""
        lines = ["[nodes]", *(f'{_quoted(n)} = "{a}"' for n, a in addresses.items())]
        for name, cls in self.classes.items():
            places = ", ".join(map(_quoted, self.on[name]))
            lines += [f"[objects.{_quoted(name)}]", f"class = {_quoted(_importable(name, cls))}", f"on = [{places}]"]
            lines += [f"options = {_inline(self.options[name])}"] if self.options[name] else []
        if self.durable:
            lines += ["[serve]", f'data = "{DATA}"']
        lines += ["[group]", f"suspect_after = {self.group.suspect_after}"]
        if self.tls:
            lines += ["[security]", *(f'{k} = "{v}"' for k, v in msgspec.structs.asdict(issued(CERTS)).items())]
        text = "\n".join(lines) + "\n"
        parse(text)
        return text


def _names(nodes: int | Sequence[str]) -> tuple[str, ...]:
    if isinstance(nodes, str):
        raise BadRequest(f'nodes={nodes!r}: give a number, or a list of names such as ["n1", "n2"]')
    names = tuple(f"n{i}" for i in range(1, nodes + 1)) if isinstance(nodes, int) else tuple(nodes)
    if not 1 <= len(names) <= MOST_NODES:
        raise BadRequest(f"nodes={nodes!r}: from 1 to {MOST_NODES}")
    for name in names:
        check_name(name, "node name")
    if len(set(names)) != len(names):
        raise BadRequest(f"nodes={nodes!r}: a node is named twice")
    return names


def _class(name: str, cls: type[Object] | str) -> type[Object]:
    if isinstance(cls, str):
        return load_class(cls)
    if not isinstance(cls, type) or not issubclass(cls, Object):
        raise BadRequest(f"object {name!r}: {cls!r} is no Object class; give the class itself, or module:Class")
    return cls


def _importable(name: str, cls: type[Object]) -> str:
    """``module:Class``, if another process finds the same class under it."""
    where = f"object {name!r}: {cls.__module__}.{cls.__qualname__}"
    remedy = "a node with processes=True imports its classes: define it at the top of a module, or use processes=False"
    if cls.__module__ == "__main__":
        raise BadRequest(f"{where} belongs to the program that was started; {remedy}")
    if "." in cls.__qualname__:
        raise BadRequest(f"{where} is defined inside a function or class; {remedy}")
    if getattr(import_module(cls.__module__), cls.__name__, None) is not cls:
        raise BadRequest(f"{where} is not what its module has under that name; {remedy}")
    return f"{cls.__module__}:{cls.__name__}"


def _inline(value: Any) -> str:
    """As TOML on one line. Texts, numbers and booleans of JSON are TOML, too."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    return f'"{text}"'
