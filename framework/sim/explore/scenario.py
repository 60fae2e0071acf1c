"""What the explorer tries: a few nodes and objects, clients with short scripts, and what may happen at any moment.

A scenario is a small text, one thing on each line; ``#`` begins a comment::

    nodes n1 n2 n3
    transactions
    object f on n1 n2 conflicts w/w,r/w reads r
    object g on n2 n3 conflicts w/w

    method f.w
      sync crec g.w(x)
      fails

    client a@n1
      begin
      sync crec f.w
      commit

    choose veto a/1 by n2

Requests are written ``object.method(keys)@nodes``: a key is written ``x``, or ``x:r`` if it is only read; without
``@nodes`` the request goes to all replicas; several of them are one pcast. What stands between ``begin`` and ``commit``
or ``abort`` is part of the transaction, but for one-way calls and lines that begin with ``outside``.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import msgspec

from framework.com.messages import Kind
from framework.com.receipt import Receipt, majority
from framework.com.view import Directory, Placement, View, tran
from framework.errors import BadRequest
from framework.footprint import Footprint, Keys, Mode, Relation
from framework.ids import Invocation, Node, Replica, check_name

Deed = Literal["sync", "async", "oneway", "begin", "commit", "abort"]

_HERE: Final = Path(__file__).parent / "scenarios"
_KINDS: Final = get_args(Kind)
_REQUEST = re.compile(r"(\w+)\.(\w+)(?:\(([^)]*)\))?(?:@([\w,]+))?\Z")
_MODES: Final[dict[str, Mode]] = {"": "w", "w": "w", "r": "r"}
_RECEIPT = re.compile(r"(srec|crec|drec|quorum|majority)(?:\(([^)]+)\))?\Z")


class Target(NamedTuple):
    """What one part of a transmission does, and where."""

    object: str
    method: str
    keys: Keys | None
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        inside = "" if self.keys is None else f"({','.join(k if m == 'w' else f'{k}:{m}' for k, m in self.keys)})"
        return f"{self.object}.{self.method}{inside}@{','.join(self.nodes)}"


class Act(msgspec.Struct, frozen=True):
    """One line of a script."""

    deed: Deed
    targets: tuple[Target, ...] = ()
    receipt: Receipt | None = None
    inside: bool = False  # part of the transaction that its client has begun

    def __str__(self) -> str:
        words = [self.deed, *([str(self.receipt)] if self.receipt else []), *map(str, self.targets)]
        return " ".join(words)


class Script(msgspec.Struct, frozen=True):
    """What every instance of a method does."""

    acts: tuple[Act, ...] = ()
    fails: bool = False  # it raises at its end


class Client(msgspec.Struct, frozen=True):
    name: str
    home: str
    acts: tuple[Act, ...] = ()


class Thing(msgspec.Struct, frozen=True):
    """An object: where it is, and which of its methods conflict."""

    name: str
    nodes: tuple[str, ...]
    conflicts: tuple[tuple[str, str], ...] = ()
    reads: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = ["object", self.name, "on", *self.nodes]
        words += ["conflicts", ",".join(f"{a}/{b}" for a, b in self.conflicts)] if self.conflicts else []
        words += ["reads", ",".join(self.reads)] if self.reads else []
        return " ".join(words)


class Choices(msgspec.Struct, frozen=True):
    """What may happen at any moment, beside the arrival of messages and the acts of clients."""

    ticks: tuple[tuple[str, int], ...] = ()  # node, how often time may pass there
    evicts: tuple[tuple[str, str], ...] = ()  # who is to go, at whose request
    vetoes: tuple[tuple[str, str], ...] = ()  # transaction, at which node
    cancels: tuple[tuple[str, int], ...] = ()  # client, number of its call
    moves: tuple[tuple[str, str], ...] = ()  # client, node that it goes to: when it likes, or its home is lost
    crashes: tuple[str, ...] = ()
    most: int = 1  # so many of these crash
    returns: tuple[str, ...] = ()  # come back as a new life when they have crashed or were left out
    losses: int = 0  # frames
    ends: bool = False  # when an instance ends; else at once
    sends: tuple[str, ...] = ()  # nodes whose links take frames when that is chosen; others take them at once

    def lines(self) -> list[str]:
        out = [f"choose tick {node} {count}" for node, count in self.ticks]
        out += [f"choose evict {node} by {by}" for node, by in self.evicts]
        out += [f"choose veto {name} by {by}" for name, by in self.vetoes]
        out += [f"choose cancel {client}/{call}" for client, call in self.cancels]
        out += [f"choose move {client} to {node}" for client, node in self.moves]
        out += [f"choose crash {self.most} of {' '.join(self.crashes)}"] if self.crashes else []
        out += [f"choose return {' '.join(self.returns)}"] if self.returns else []
        out += [f"choose lose {self.losses}"] if self.losses else []
        out += ["choose end"] if self.ends else []
        out += [f"choose send {' '.join(self.sends)}"] if self.sends else []
        return out


class Scenario(msgspec.Struct, frozen=True):
    name: str
    nodes: tuple[str, ...]
    things: tuple[Thing, ...]
    clients: tuple[Client, ...] = ()
    scripts: dict[tuple[str, str], Script] = {}  # by object and method
    choices: Choices = Choices()
    transactions: bool = False
    outside: tuple[str, ...] = ()  # nodes that are no members at first; ``choose return`` lets them join
    rounds: int = 80  # of ticks in which all must come to an end; 0: it need not
    about: tuple[str, ...] = ()  # lines for people

    def directory(self) -> Directory:
        placements = [Placement(t.name, Relation(t.conflicts), t.nodes) for t in self.things]
        more = [tran(self.nodes)] if self.transactions else []
        every = tuple(map(Node, self.nodes))
        return Directory(View(1, tuple(n for n in every if n not in self.outside)), [*placements, *more], every)

    def text(self) -> str:
        """The scenario as ``read`` takes it."""
        lines = [*(f"# {line}".rstrip() for line in self.about), f"nodes {' '.join(self.nodes)}"]
        lines += [f"outside {' '.join(self.outside)}"] if self.outside else []
        lines += ["transactions"] if self.transactions else []
        lines += map(str, self.things)
        for (name, method), script in self.scripts.items():
            lines += ["", f"method {name}.{method}", *_indented(script.acts), *(["  fails"] if script.fails else [])]
        for client in self.clients:
            lines += ["", f"client {client.name}@{client.home}", *_indented(client.acts)]
        more = self.choices.lines() + ([f"rounds {self.rounds}"] if self.rounds != 80 else [])
        return "\n".join([*lines, *([""] if more else []), *more]) + "\n"


def _indented(acts: Sequence[Act]) -> list[str]:
    """The lines of a script; what is not part of the transaction around it says so."""
    out, within = [], False
    for act in acts:
        within = act.deed == "begin" or (within and act.deed not in ("commit", "abort"))
        stray = within and act.deed in ("sync", "async") and not act.inside
        out.append(f"  {'outside ' if stray else ''}{act}")
    return out


def names() -> list[str]:
    """The scenarios that come with OBO."""
    return sorted(path.stem for path in _HERE.glob("*.txt"))


def load(name: str) -> Scenario:
    """The scenario of this name, or that in a file."""
    path = Path(name) if "/" in name or name.endswith(".txt") else _HERE / f"{name}.txt"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadRequest(f"no scenario {name!r}: name a file, or one of {', '.join(names())}") from None
    return read(path.stem, text)


def read(name: str, text: str) -> Scenario:
    """The scenario in a text. BadRequest that names the line if it is none."""
    return _Reader(name).read(text)


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: tuple[str, ...] = ()
        self.things: dict[str, Thing] = {}
        self.clients: dict[str, Client] = {}
        self.scripts: dict[tuple[str, str], Script] = {}
        self.choices = Choices()
        self.transactions = False
        self.outside: tuple[str, ...] = ()
        self.rounds = 80
        self.about: list[str] = []
        self._add: Callable[[list[str]], None] | None = None  # takes the lines of the block that is being read
        self._within = False  # a transaction

    def read(self, text: str) -> Scenario:
        """Line by line; an indented one belongs to the block above."""
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split("#")[0].split()
            if line.startswith("#") and not self.nodes:
                self.about.append(line[1:].strip())
            if not words:
                continue
            try:
                self._line(words, line[0].isspace())
            except BadRequest as error:
                raise BadRequest(f"{self.name}:{number}: {error}") from None
        if not self.nodes or not self.things:
            raise BadRequest(f"{self.name}: a scenario names its nodes and objects: nodes n1 n2, object f on n1 n2")
        scenario = Scenario(
            self.name,
            self.nodes,
            tuple(self.things.values()),
            tuple(self.clients.values()),
            self.scripts,
            self.choices,
            self.transactions,
            self.outside,
            self.rounds,
            tuple(self.about),
        )
        scenario.directory()
        return scenario

    def _line(self, words: list[str], indented: bool) -> None:
        if indented:
            if self._add is None:
                raise BadRequest(f"{' '.join(words)!r} belongs to no client and no method")
            self._add(words)
            return
        word, rest = words[0], words[1:]
        takes: dict[str, Callable[[list[str]], None]] = {
            "nodes": self._take_nodes,
            "outside": self._take_outside,
            "transactions": self._take_transactions,
            "object": self._take_object,
            "client": self._take_client,
            "method": self._take_method,
            "choose": self._take_choice,
            "rounds": self._take_rounds,
        }
        if word not in takes:
            raise BadRequest(f"{word!r} begins no line; there are {', '.join(takes)}")
        self._add, self._within = None, False
        takes[word](rest)

    def _take_nodes(self, words: list[str]) -> None:
        self.nodes = tuple(check_name(word, "node") for word in words)

    def _take_outside(self, words: list[str]) -> None:
        self.outside = tuple(self._node(word) for word in words)

    def _take_transactions(self, words: list[str]) -> None:
        self.transactions = True

    def _take_rounds(self, words: list[str]) -> None:
        self.rounds = _whole(words[0] if words else "")

    def _take_object(self, words: list[str]) -> None:
        fields: dict[str, list[str]] = {"on": [], "conflicts": [], "reads": []}
        if len(words) < 3 or words[1] != "on":
            raise BadRequest("write object NAME on NODE..., then conflicts a/a,a/b and reads r, if any")
        key = "on"
        for word in words[2:]:
            if word in fields:
                key = word
            else:
                fields[key] += word.split(",")
        pairs = [tuple(pair.split("/")) for pair in fields["conflicts"]]
        if wrong := [pair for pair in pairs if len(pair) != 2]:
            raise BadRequest(f"conflicts are pairs of methods such as w/w, not {'/'.join(wrong[0])}")
        nodes = tuple(self._node(n) for n in fields["on"])
        name = check_name(words[0], "object name")
        self.things[name] = Thing(name, nodes, tuple([(p[0], p[1]) for p in pairs]), tuple(fields["reads"]))

    def _take_client(self, words: list[str]) -> None:
        name, at, home = "".join(words).partition("@")
        if not at or len(words) != 1:
            raise BadRequest("write client NAME@NODE")
        client = Client(check_name(name, "client name"), self._node(home))
        self.clients[name] = client

        def add(line: list[str]) -> None:
            self.clients[name] = msgspec.structs.replace(client, acts=(*self.clients[name].acts, self._act(line, True)))

        self._add = add

    def _take_method(self, words: list[str]) -> None:
        name, dot, method = "".join(words).partition(".")
        if not dot or name not in self.things:
            raise BadRequest(f"write method OBJECT.METHOD, of {', '.join(self.things) or 'an object declared before'}")
        key = name, method
        self.scripts[key] = Script()

        def add(line: list[str]) -> None:
            script = self.scripts[key]
            if line == ["fails"]:
                self.scripts[key] = msgspec.structs.replace(script, fails=True)
            else:
                self.scripts[key] = msgspec.structs.replace(script, acts=(*script.acts, self._act(line, False)))

        self._add = add

    def _act(self, words: list[str], is_client: bool) -> Act:
        outside = words[0] == "outside"
        word, *rest = words[1:] if outside else words
        if word in ("begin", "commit", "abort"):
            if not is_client or not self.transactions:
                raise BadRequest(f"only a client has a {word}, and only in a scenario with transactions")
            self._within = word == "begin"
            return Act(word)  # type: ignore[arg-type]
        if word not in _KINDS:
            more = ", begin, commit, abort" if is_client else ", fails"
            raise BadRequest(f"{word!r} is nothing to do; there are {', '.join(_KINDS)}{more}")
        receipt = rest.pop(0) if word != "oneway" and rest else ""
        targets = tuple(self._target(text) for text in rest)
        if not targets:
            raise BadRequest(f"write {word} {'' if word == 'oneway' else 'RECEIPT '}OBJECT.METHOD(KEYS)@NODES")
        return Act(
            word,  # type: ignore[arg-type]
            targets,
            self._receipt(receipt, targets) if word != "oneway" else None,
            self._within and not outside and word != "oneway",
        )

    def _receipt(self, text: str, targets: Sequence[Target]) -> Receipt:
        found = _RECEIPT.match(text)
        if found is None:
            raise BadRequest(f"{text!r} is no receipt; there are srec, srec(f@n1), crec, drec, quorum(2), majority")
        way, inside = found.groups()
        if way == "majority":
            return majority(len(targets[0].nodes))
        if way == "quorum":
            return Receipt("quorum", _whole(inside or ""))
        return Receipt(way, source=Replica(inside) if inside else None)  # type: ignore[arg-type]

    def _target(self, text: str) -> Target:
        found = _REQUEST.match(text)
        if found is None:
            raise BadRequest(f"{text!r} is no request; write f.w, f.w(x,y:r) or f.w(x)@n1,n2")
        name, method, inside, nodes = found.groups()
        if name not in self.things:
            raise BadRequest(f"no object {name!r}; there are {', '.join(self.things)}")
        to = tuple(self._node(n) for n in nodes.split(",")) if nodes else self.things[name].nodes
        if strange := [n for n in to if n not in self.things[name].nodes]:
            raise BadRequest(f"{name} has no replica on {', '.join(strange)}")
        return Target(name, method, None if inside is None else _keys(inside), to)

    def _node(self, name: str) -> str:
        if name not in self.nodes:
            raise BadRequest(f"no node {name!r}; there are {', '.join(self.nodes) or 'none: nodes come first'}")
        return name

    def _take_choice(self, words: list[str]) -> None:
        now = self.choices
        change: dict[str, object]
        match words:
            case ["tick", node, count]:
                change = {"ticks": (*now.ticks, (self._node(node), _whole(count)))}
            case ["evict", node, "by", by]:
                change = {"evicts": (*now.evicts, (self._node(node), self._node(by)))}
            case ["veto", name, "by", by]:
                Invocation.parse(name)
                change = {"vetoes": (*now.vetoes, (name, self._node(by)))}
            case ["cancel", call] if call.partition("/")[0] in self.clients:
                change = {"cancels": (*now.cancels, (call.partition("/")[0], _whole(call.partition("/")[2])))}
            case ["move", client, "to", node] if client in self.clients:
                if any(act.deed == "begin" for act in self.clients[client].acts):
                    raise BadRequest(f"{client} has a transaction, which does not move with it")
                change = {"moves": (*now.moves, (client, self._node(node)))}
            case ["crash", most, "of", *nodes]:
                change = {"crashes": tuple(map(self._node, nodes)), "most": _whole(most)}
            case ["return", *nodes]:
                change = {"returns": tuple(map(self._node, nodes))}
            case ["lose", count]:
                change = {"losses": _whole(count)}
            case ["end"]:
                change = {"ends": True}
            case ["send", *nodes]:
                change = {"sends": tuple(map(self._node, nodes))}
            case _:
                raise BadRequest(
                    f"choose {' '.join(words)}: write tick NODE N, evict NODE by NODE, veto CLIENT/N by NODE, cancel "
                    "CLIENT/N or move CLIENT to NODE, of a client named before, crash N of NODES, return NODES, "
                    "lose N, end, or send NODES"
                )
        self.choices = msgspec.structs.replace(now, **change)


def _keys(inside: str) -> Keys:
    out: list[tuple[str, Mode]] = []
    for word in inside.split(","):
        key, _, mode = word.strip().partition(":")
        if mode not in _MODES:
            raise BadRequest(f"key {word!r}: write x to write it, x:r to read it")
        out.append((key, _MODES[mode]))
    return tuple(out)


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise BadRequest(f"{text!r} is no whole number")
    return int(text)


def footprint(scenario: Scenario, target: Target) -> Footprint:
    thing = next(t for t in scenario.things if t.name == target.object)
    return Footprint(target.method, target.keys, target.method in thing.reads)
