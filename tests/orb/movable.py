"""Objects with all kinds of state, for the tests of moving it."""

import sqlite3
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, Flag, IntEnum
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from framework import Object, method


class Colour(Enum):
    RED = "r"
    GREEN = "g"


class Size(IntEnum):
    SMALL = 1
    LARGE = 1 << 70


class Right(Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: Any


@dataclass
class Order:
    name: str
    lines: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    number: int = 0


class Row(msgspec.Struct):
    cells: dict[str, Any]
    colour: Colour = Colour.RED


class FrozenRow(msgspec.Struct, frozen=True, kw_only=True):
    cells: tuple[int, ...]


class Plain:
    """Nothing but attributes; making one asks for an argument."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value",)


def pair() -> list[int]:
    return [0, 0]


class Anything(Object):
    """Takes what a test puts in."""

    def __init__(self) -> None:
        self.value: Any = None
        self.waiting: defaultdict[str, Any] = defaultdict(lambda: ["made by the object"])


class Store(Object):
    """Ordinary containers."""

    def __init__(self) -> None:
        self.by: dict[str, list[int]] = {}
        self.tags: set[str] = set()
        self.recent: deque[int] = deque(maxlen=3)
        self.ordered: OrderedDict[str, int] = OrderedDict()
        self.counted: Counter[str] = Counter()
        self.groups: defaultdict[str, set[int]] = defaultdict(set)

    @method
    def put(self, name: str, value: int, then_fail: bool = False) -> None:
        self.by.setdefault(name, []).append(value)
        self.tags.add(name)
        self.recent.append(value)
        self.ordered[name] = value
        self.counted[name] += 1
        self.groups[name].add(value)
        if then_fail:
            raise ValueError("on purpose")


class Locked(Object):
    def __init__(self) -> None:
        self.parts: dict[str, list[Any]] = {"a": [1, Order("x", [Lock()])]}


class Own(Object):
    """Brings its state to others in its own way."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.rows: list[bytes] = []

    def get_state(self) -> Iterator[bytes]:
        rows = tuple(self.rows)
        yield b"%d rows" % len(rows)
        yield from rows

    def set_state(self, chunks: Iterable[bytes]) -> None:
        head, *rows = chunks
        if head != b"%d rows" % len(rows):
            raise ValueError(f"{head!r}, but there are {len(rows)}")
        self.rows = rows


class Ledger(Object):
    """The one of docs/state.md: its rows are in a database, not in attributes."""

    def __init__(self) -> None:
        self.directory = TemporaryDirectory()
        self.path = f"{self.directory.name}/ledger.db"
        self.database = sqlite3.connect(self.path, check_same_thread=False)
        self.database.execute("PRAGMA journal_mode=WAL")
        with self.database:
            self.database.execute("CREATE TABLE ledger (name, amount)")

    def add(self, rows: Iterable[tuple[str, int]]) -> None:
        with self.database:
            self.database.executemany("INSERT INTO ledger VALUES (?, ?)", rows)

    def all(self) -> list[tuple[str, int]]:
        return self.database.execute("SELECT name, amount FROM ledger ORDER BY name").fetchall()

    def get_state(self) -> Iterator[bytes]:
        reader = sqlite3.connect(self.path, check_same_thread=False)
        rows = reader.execute("SELECT name, amount FROM ledger")
        yield b"ledger 1"
        while some := rows.fetchmany(5000):
            yield msgspec.msgpack.encode(some)
        reader.close()

    def set_state(self, chunks: Iterable[bytes]) -> None:
        _, *rest = chunks
        with self.database:
            self.database.execute("DELETE FROM ledger")
            for chunk in rest:
                self.database.executemany("INSERT INTO ledger VALUES (?, ?)", msgspec.msgpack.decode(chunk))
