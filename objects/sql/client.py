"""``Sql``: a database as its callers see it, with the choice how much a read has to see.

    with connect("localhost:7401,localhost:7402,localhost:7403") as orb:
        db = Sql(orb, "db")
        db.execute("INSERT INTO t VALUES (?, ?)", [1, "one"])
        db.query("SELECT * FROM t").rows
        db.query("SELECT * FROM t", read="linearizable").rows

Four levels, per connection and per call:

    any            the replica of the home node, as it is now; also where too few replicas are heard
    session        one replica, which has seen all that this session has written and seen (the default)
    linearizable   ordered with the writes of everybody: it sees all that was acknowledged before it began
    majority       the same, asked of a majority, whose answers must be equal

Writes go to all replicas, whatever the level. Inside ``with orb.transaction():`` so do reads: they are ordered, and see
what the transaction has done; ``majority`` compares besides.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

import msgspec

from framework import BadRequest, NoSuchObject, OboError, Orb
from objects.sql.database import Database
from objects.sql.result import Result

Level = Literal["any", "session", "linearizable", "majority"]
LEVELS: tuple[Level, ...] = get_args(Level)

#: By position, or by name.
Values = Sequence[Any] | Mapping[str, Any]
R = TypeVar("R")


class Diverged(OboError):
    """Replicas gave different answers to the same question at the same point of the order. ``answers`` says which."""

    def __init__(self, text: str, answers: Mapping[str, Any]) -> None:
        super().__init__(text)
        self.answers = answers


class Digests(msgspec.Struct, frozen=True):
    """The tables of all replicas at one point of the order: per replica, a digest of each table."""

    replicas: dict[str, dict[str, str]]
    missing: tuple[str, ...] = ()  # replicas that are not there now

    @property
    def differing(self) -> dict[str, dict[str, str | None]]:
        """Tables that are not the same everywhere: what each replica has; None where there is no such table."""
        tables = sorted({table for digests in self.replicas.values() for table in digests})
        found = {table: {r: digests.get(table) for r, digests in self.replicas.items()} for table in tables}
        return {table: each for table, each in found.items() if len(set(each.values())) > 1}

    @property
    def equal(self) -> bool:
        return not self.differing


def odd_ones(answers: Mapping[str, Any]) -> list[str]:
    """Who differs from the majority; everybody, if there is none."""
    (common, times), *_ = Counter(answers.values()).most_common(1)
    return sorted(r for r, answer in answers.items() if answer != common or 2 * times <= len(answers))


class Sql:
    """``name`` is the object; ``read`` the level of reads that do not say otherwise. May be used by many threads."""

    def __init__(self, orb: Orb, name: str, read: Level = "session", timeout: float | None = None) -> None:
        self.orb = orb
        self.name = name
        self.read = check_level(read)
        self._timeout = timeout
        self._db = orb.object(Database, name)
        self._replicas: tuple[str, ...] = ()

    @property
    def replicas(self) -> tuple[str, ...]:
        """Those that are declared, whether they are there or not."""
        if not self._replicas:
            about = next((o for o in self.orb.look("objects") if o["name"] == self.name), None)
            if about is None:
                raise NoSuchObject(f"no object {self.name!r}")
            self._replicas = tuple(about["replicas"])
        return self._replicas

    # writes

    def execute(self, sql: str, params: Values = ()) -> Result:
        """One statement of any kind."""
        return self._db.execute.with_(timeout=self._timeout)(sql, checked_params(params))

    def executemany(self, sql: str, rows: Sequence[Values]) -> Result:
        """One statement for many rows, all or none."""
        return self._db.executemany.with_(timeout=self._timeout)(sql, [checked_params(row) for row in rows])

    def transaction(self, statements: Sequence[tuple[str, Values]]) -> list[Result]:
        """All of them or none."""
        return self._db.transaction.with_(timeout=self._timeout)(
            [(sql, checked_params(values)) for sql, values in statements]
        )

    # reads

    def query(self, sql: str, params: Values = (), read: Level | None = None) -> Result:
        """One statement that changes nothing."""
        return self._read(self._db.query, (sql, checked_params(params)), read, rows_alike)

    def tables(self, read: Level | None = None) -> list[str]:
        return self._read(self._db.tables, (), read, msgspec.msgpack.encode)

    def schema(self, read: Level | None = None) -> list[str]:
        """What would make these tables, indexes, views and triggers again."""
        return self._read(self._db.schema, (), read, msgspec.msgpack.encode)

    def explain(self, sql: str, params: Values = ()) -> Any:
        """What the statement touches. It is not performed."""
        return self._db.explain.with_(timeout=self._timeout)(sql, checked_params(params))

    def digest(self, read: Level | None = None) -> dict[str, str]:
        """Of each table, at one replica."""
        return self._read(self._db.digest, (), read, msgspec.msgpack.encode)

    def digests(self) -> Digests:
        """Of every replica that is there, at one point of the order."""
        sent = self.orb.mcast(self._db.digest.request())
        found = {str(r.replica): r.value for r in self.orb.crec(sent, self._timeout)}
        return Digests(dict(sorted(found.items())), tuple(r for r in self.replicas if r not in found))

    def _read(self, method: Any, args: tuple[Any, ...], read: Level | None, alike: Callable[[R], Any]) -> R:
        """``method`` at that level. ``alike``: what must be equal in the answers of a majority."""
        level = self.read if read is None else check_level(read)
        if level == "majority":
            return self._compared(method, args, alike)
        method = method.with_(timeout=self._timeout)
        if self.orb.in_transaction:
            level = "session"  # a call of a transaction goes to all replicas
        if level == "any":
            method = method.with_(stale=True)
        elif level == "linearizable":  # to all replicas, as a write goes
            method = method.with_(to=self.replicas)
        found: R = method(*args)
        return found

    def _compared(self, method: Any, args: tuple[Any, ...], alike: Callable[[R], Any]) -> R:
        replies = self.orb.quorum(self.orb.mcast(method.request(*args)), len(self.replicas) // 2 + 1, self._timeout)
        if is_equal(answers_of(replies, alike)):
            found: R = replies[-1].value
            return found
        everybody = self.orb.crec(self.orb.mcast(method.request(*args)), self._timeout)
        raise diverged(self.name, replies, everybody, alike)


def diverged(name: str, replies: Sequence[Any], everybody: Sequence[Any], alike: Callable[[R], Any]) -> Diverged:
    """Answers of a majority were not equal; ``everybody`` was asked then, to tell who is the odd one."""
    answers = answers_of(everybody, alike)
    if is_equal(answers):
        answers = answers_of(replies, alike)
    return Diverged(
        f"{name}: {' and '.join(odd_ones(answers))} gave another answer than the other replicas; "
        "obo sql check names the table",
        answers,
    )


def answers_of(replies: Sequence[Any], alike: Callable[[R], Any]) -> dict[str, Any]:
    """An error is an answer, too."""
    return {str(r.replica): alike(r.value) if r.ok else f"{type(r.error).__name__}: {r.error}" for r in replies}


def is_equal(answers: Mapping[str, Any]) -> bool:
    return len(set(answers.values())) == 1


def check_level(level: object) -> Level:
    if level not in LEVELS:
        raise BadRequest(f"read={level!r:.80}: the levels are {', '.join(LEVELS)}")
    return level


def checked_params(values: Values) -> Any:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | Mapping):
        raise BadRequest(f"parameters {values!r:.80}: give a list, or a dict for :name")
    return dict(values) if isinstance(values, Mapping) else tuple(values)


def rows_alike(result: Result) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A SELECT without ORDER BY promises no order: replicas may give the rows in different ones."""
    return tuple(result.columns), tuple(sorted(repr(row) for row in result.rows))
