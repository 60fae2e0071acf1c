"""The question that all of this is about: may statements change places that are said to be compatible?

An *image* is a schema with rows in a real database. Many statements are performed on one image, and each pair of them
that is compatible is performed in both orders, by the code of the product: each statement takes the way of a call
(``objects.sql.sqlite``, ``objects.sql.postgres``). The same results and the same state must come out, down to the
numbers that the database gives to rows, and to what it keeps of them.

Nothing is built twice. A statement is performed once after a savepoint; then each of its partners is, and is rolled
back. So an order of a pair costs one statement and one look at the state. Of the state only a digest is kept.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import msgspec
from sqlalchemy import URL

from framework import Footprint, Keys, OboError
from framework.footprint import Relation
from objects.sql import sqlite_bytes
from objects.sql.errors import SqlError
from objects.sql.footprint import Schema, read_sqlite, touches
from objects.sql.options import Options
from objects.sql.sqlite import Sqlite as Engine
from objects.sql.statement import Statement, understand
from objects.sql.tokens import Dialect
from objects.sql.values import adapted

RELATION = Relation([("e", "e")], intentions=True)
NOW = 1_700_000_000.123
_pack = msgspec.msgpack.Encoder().encode  # tells 1 from 1.0

Call = tuple[str, Sequence[Any]]


class Made(Protocol):
    """A schema as statements, rows, and statements that may be compatible."""

    @property
    def schema(self) -> Sequence[str]: ...
    @property
    def rows(self) -> Sequence[Call]: ...
    @property
    def calls(self) -> Sequence[Call]: ...


class Taken(NamedTuple):
    """A statement that is not refused. ``number``: its place; from it come time and chance, as from a request."""

    number: int
    statement: Statement
    params: Sequence[Any]
    keys: Keys | None


class Outcome(NamedTuple):
    """``result`` is compared: rows, or an error, as a client would get them."""

    good: bool
    result: Any


class Images(Protocol):
    """Makes images, one after the other, in one database."""

    dialect: Dialect

    def make(self, schema: Sequence[str]) -> Schema:
        """An empty one. A statement that the database refuses is left out."""

    def fill(self, rows: Sequence[Call]) -> None:
        """These rows instead of those that are there. A row that cannot be there is left out."""

    def after(self, first: Taken, others: Sequence[Taken]) -> tuple[Outcome, list[tuple[Outcome, Any]]]:
        """What ``first`` gives; and of each of the others what it gives after ``first``, with the state that both
        leave. The image stays as it was."""

    def shown(self, first: Taken, second: Taken) -> str:
        """The rows that both leave."""


class Tally(msgspec.Struct):
    """What a campaign has done."""

    worlds: int = 0
    texts: int = 0  # statements by their text
    refused: int = 0  # of these: not accepted by the product
    everything: int = 0  # of these: they conflict with all others
    statements: int = 0  # with parameters, on one image
    good: int = 0  # of these: without an error
    asked: int = 0  # pairs of which one changes something
    pairs: int = 0  # of these: compatible, and performed in both orders
    meeting: int = 0  # of these: they share a table
    failing: int = 0  # of these: one of both fails, alone

    def add(self, other: "Tally") -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def __str__(self) -> str:
        def share(part: int, whole: int) -> str:
            return f"{100 * part / whole:.1f}%" if whole else "-"

        return (
            f"{self.pairs} compatible pairs of {self.asked} ({share(self.pairs, self.asked)}), of which "
            f"{share(self.meeting, self.pairs)} share a table and {share(self.failing, self.pairs)} have one that "
            f"fails; {self.texts} texts ({share(self.refused, self.texts)} refused, "
            f"{share(self.everything, self.texts)} conflict with everything), {self.statements} statements, of which "
            f"{share(self.good, self.statements)} succeed; {self.worlds} schemas"
        )


def take(calls: Sequence[Call], schema: Schema, tally: Tally) -> list[Taken]:
    """Judge statements as the node does that takes a call."""
    out = []
    for number, (text, params) in enumerate(calls):
        try:
            statement = understand(text, schema.dialect)
            keys = touches(statement, adapted(params) if schema.dialect == "sqlite" else params, schema)
        except (OboError, SqlError):
            tally.refused += 1
            continue
        tally.everything += keys is None
        out.append(Taken(number, statement, params, keys))
    return out


def compatible(taken: Sequence[Taken], tally: Tally) -> list[tuple[Taken, Taken]]:
    """Pairs of which one changes something."""
    prints = [Footprint("e", one.keys) for one in taken]
    out = []
    for (i, a), (k, b) in combinations(enumerate(taken), 2):
        if not (a.statement.writes or b.statement.writes):
            continue
        tally.asked += 1
        if not RELATION.conflict(prints[i], prints[k]):
            tally.meeting += not {key for key, _ in a.keys or ()}.isdisjoint(key for key, _ in b.keys or ())
            out.append((a, b))
    return out


def disorder(on: Images, made: Made, tally: Tally | None = None, images: Sequence[Any] | None = None) -> str:
    """Two statements that are said to be compatible, and are not, in words; empty if there are none. ``images``: more
    than one set of rows and parameters, for one schema and the same texts."""
    tally = Tally() if tally is None else tally
    schema = on.make(made.schema)
    tally.worlds += 1
    for image in images or [made]:
        counted = Tally() if image is not (images or [made])[0] else tally
        taken = take(image.calls, schema, counted)
        tally.texts += len(image.calls) if counted is tally else 0
        try:
            found = _compare(on, image.rows, taken, tally)
        except Damage as error:
            found = str(error)
        if found:
            return "\n".join(map(str, [*made.schema, *image.rows, found]))
    return ""


def in_both_orders(on: Images, made: Made) -> str:
    """What differs if the first two statements change places, compatible or not."""
    schema = on.make(made.schema)
    a, b, *_ = (one._replace(keys=()) for one in take(made.calls, schema, Tally()))
    return _compare(on, made.rows, [a, b], Tally())


def _compare(on: Images, rows: Sequence[Call], taken: Sequence[Taken], tally: Tally) -> str:
    on.fill(rows)
    pairs = compatible(taken, tally)
    partners: dict[int, list[Taken]] = {}
    for a, b in pairs:
        partners.setdefault(a.number, []).append(b)
        partners.setdefault(b.number, []).append(a)
    alone: dict[int, Outcome] = {}
    later: dict[tuple[int, int], tuple[Outcome, Any]] = {}
    for one in taken:
        others = partners.get(one.number, [])
        alone[one.number], found = on.after(one, others)
        later.update(((one.number, other.number), f) for other, f in zip(others, found, strict=True))
    tally.statements += len(alone)
    tally.good += sum(outcome.good for outcome in alone.values())
    for a, b in pairs:
        b_after, state = later[a.number, b.number]
        a_after, other = later[b.number, a.number]
        tally.pairs += 1
        tally.failing += not (alone[a.number].good and alone[b.number].good)
        if (alone[a.number], b_after, state) != (a_after, alone[b.number], other):
            return "\n".join(map(str, [
                _told(a), _told(b),
                "the first one, then the second:", alone[a.number].result, b_after.result, on.shown(a, b),
                "the other way round:", a_after.result, alone[b.number].result, on.shown(b, a),
            ]))  # fmt: skip
    return ""


def _told(one: Taken) -> str:
    return f"{one.statement.text}\n    with {list(one.params)}, touches {one.keys}"


class Damage(Exception):
    """By a statement."""


class Request:
    """What a call brings along: time and chance of its own, the same in both orders."""

    def __init__(self) -> None:
        self.number = 0
        self._chance: Random | None = None

    def begin(self, number: int) -> None:
        self.number, self._chance = number, None

    def now(self) -> float:
        return NOW + self.number

    def random(self) -> float:
        return self._drawn().random()

    def uuid(self) -> UUID:
        return UUID(int=self._drawn().getrandbits(128), version=4)

    def _drawn(self) -> Random:
        if self._chance is None:
            self._chance = Random(self.number)
        return self._chance


class Sqlite:
    """Images in a file that nothing is ever committed to."""

    dialect: Dialect = "sqlite"

    def __init__(self, directory: Path) -> None:
        self._request = Request()
        url = URL.create("sqlite", database=str(directory / "images.sqlite"))
        self._engine = Engine(url, Options(durability="relaxed"), self._request)
        self._engine.open()
        self._raw = self._engine._raw
        self._state = ""
        self._schema: list[str] = []

    def close(self) -> None:
        self._engine.rollback()
        self._engine.close()

    def make(self, schema: Sequence[str]) -> Schema:
        self._begin()
        self._schema = [text for text in schema if self._perform(understand(text, "sqlite"), ()).good]
        self._state = self._question()
        return read_sqlite(self._raw, self._engine.version)

    def fill(self, rows: Sequence[Call]) -> None:
        """All of it anew: SQLite keeps what it needs to take back for as long as there is an outer savepoint, and looks
        through all of that for an inner one."""
        self._begin()
        sqlite_bytes.let_go(self._raw)
        for text in self._schema:
            self._raw.execute(text)
        self._engine._look_at_schema()
        for text, params in rows:
            self._perform(understand(text, "sqlite"), params)

    def _begin(self) -> None:
        self._engine.rollback()
        self._engine.begin()

    def after(self, first: Taken, others: Sequence[Taken]) -> tuple[Outcome, list[tuple[Outcome, Any]]]:
        raw, out = self._raw, []
        raw.execute("SAVEPOINT one")
        try:
            begun = self._outcome(first)
            self._check(first)
            if others:
                raw.execute("SAVEPOINT two")
                for other in others:
                    found = self._outcome(other)
                    out.append((found, _pack(raw.execute(self._state).fetchall())))
                    raw.execute("ROLLBACK TO two")
        finally:
            raw.execute("ROLLBACK TO one")
            raw.execute("RELEASE one")
        return begun, out

    def shown(self, first: Taken, second: Taken) -> str:
        self._raw.execute("SAVEPOINT one")
        self._outcome(first)
        self._outcome(second)
        found = "\n".join(map(str, self._raw.execute(self._state).fetchall()))
        self._raw.execute("ROLLBACK TO one")
        self._raw.execute("RELEASE one")
        return found

    def _outcome(self, call: Taken) -> Outcome:
        self._request.begin(call.number)
        return self._perform(call.statement, call.params)

    def _perform(self, statement: Statement, params: Sequence[Any]) -> Outcome:
        try:
            (found,) = self._engine.perform([(statement, params)])
        except SqlError as error:
            return Outcome(False, (type(error).__name__, str(error)))
        return Outcome(True, repr((found.columns, found.rows, found.rowcount, found.lastrowid)))

    def _check(self, call: Taken) -> None:
        """No statement may damage what SQLite keeps besides the rows."""
        found = [text for (text,) in self._raw.execute("PRAGMA integrity_check").fetchall()]
        if any(" in index " in text or " from index " in text or "malformed" in text for text in found):
            raise Damage(f"{_told(call)}\nhas damaged the database: {'; '.join(found)}")

    def _question(self) -> str:
        """All rows of all tables, with their numbers, as they are kept: a + hides the type that would convert them."""
        tables = self._raw.execute(
            "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
            "AND name NOT LIKE '!_obo%' ESCAPE '!' "
            "AND (name = 'sqlite_sequence' OR name NOT LIKE 'sqlite!_%' ESCAPE '!') ORDER BY name"
        ).fetchall()
        columns: dict[str, list[str]] = {}
        for name, clustered in tables:
            found = self._raw.execute("SELECT name FROM pragma_table_xinfo(?)", (name,)).fetchall()
            columns[name] = [*([] if clustered else ["rowid"]), *(f'+"{c}"' for (c,) in found)]
        width = max(map(len, columns.values()), default=1)
        return " UNION ALL ".join(
            f"SELECT '{name}', {', '.join([*of, *['NULL'] * (width - len(of))])} FROM "
            + ("(SELECT rowid, * FROM sqlite_sequence ORDER BY name)" if name == "sqlite_sequence" else f'"{name}"')
            for name, of in columns.items()
        )


@contextmanager
def sqlite() -> Iterator[Sqlite]:
    """In memory where the machine has a place for that."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="obo-images-", dir=memory if memory.is_dir() else None) as directory:
        made = Sqlite(Path(directory))
        try:
            yield made
        finally:
            made.close()
