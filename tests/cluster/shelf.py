"""A backed object for tests of real nodes: numbers under names, in SQLite, with as little code as possible."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from framework import Backed, BadRequest, Broken, Outdated, Place, Recalled, Touched, conflict_matrix, method

_TABLES = """
create table if not exists numbers (name text primary key, number integer not null);
create table if not exists notes (position integer primary key, body blob not null);
create table if not exists head (id integer primary key, body blob not null, epoch integer not null);
"""


@conflict_matrix(add=("get", "all"), swap="*", change="*", fail=("get", "all"))
class Shelf(Backed):
    """``add``s are compatible; ``swap`` conflicts with all that have its name; ``change`` moves the basis."""

    compares = "all"
    transactions = True

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        if unknown := set(options) - {"pages"}:
            raise BadRequest(f"{sorted(unknown)[0]!r} is not known: pages")

    def open(self, place: Place) -> None:
        place.directory.mkdir(parents=True, exist_ok=True)
        self.path = place.directory / "shelf.sqlite"
        self.pages = place.options.get("pages", {}).get(place.node)
        self.epoch = 0
        self.mine = threading.local()
        self.inside: int | None = None
        self.writer = self._connect()
        self.writer.executescript(_TABLES)
        self._look()

    def _connect(self) -> sqlite3.Connection:
        made = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5)
        made.execute("pragma journal_mode=wal")
        made.execute("pragma synchronous=full")
        if self.pages:
            made.execute(f"pragma max_page_count={self.pages}")
        return made

    def _look(self) -> None:
        found = self.writer.execute("select epoch from head").fetchone()
        self.epoch = found[0] if found else 0

    def close(self) -> None:
        self.writer.close()

    def recall(self) -> Recalled | None:
        head = self.writer.execute("select body from head").fetchone()
        if head is None:
            return None
        rows = self.writer.execute("select body from notes order by position").fetchall()
        return Recalled(head[0], [entry for (body,) in rows for entry in msgspec.msgpack.decode(body)])

    def begin(self) -> None:
        self.writer.execute("begin immediate")

    def commit(self, entries: Sequence[bytes], head: bytes | None = None) -> None:
        try:
            if head is not None:
                self.writer.execute("delete from notes")
                self.writer.execute("replace into head values (1, ?, ?)", (head, self.epoch))
            if entries:
                self.writer.execute("insert into notes (body) values (?)", (msgspec.msgpack.encode(list(entries)),))
            self.writer.execute("update head set epoch = ?", (self.epoch,))
            self.writer.execute("commit")
        except sqlite3.OperationalError as error:
            raise Broken(str(error)) from error

    def rollback(self) -> None:
        if self.writer.in_transaction:
            self.writer.execute("rollback")
        self._look()

    @contextmanager
    def provisional(self) -> Iterator[None]:
        self.writer.execute("savepoint part")
        self.inside, epoch = threading.get_ident(), self.epoch
        try:
            yield
        finally:
            self.inside, self.epoch = None, epoch
            self.writer.execute("rollback to part")
            self.writer.execute("release part")

    def fingerprint(self) -> str:
        return repr(self._read("select * from numbers order by name"))

    def _read(self, sql: str, *params: Any) -> list[Any]:
        if self.inside == threading.get_ident():
            return self.writer.execute(sql, params).fetchall()
        if getattr(self.mine, "of", None) is not self.writer:
            self.mine.of, self.mine.connection = self.writer, self._connect()
        return self.mine.connection.execute(sql, params).fetchall()  # type: ignore[no-any-return]

    def touched(self, method: str, values: tuple[Any, ...]) -> Touched:
        if method in ("add", "get", "fail"):
            return Touched(((values[0], "r" if method == "get" else "w"),), self.epoch)
        if method == "swap":
            return Touched(tuple((name, "w") for name in sorted({values[0], values[1]})), self.epoch)
        return Touched(None)

    def get_state(self) -> Iterable[bytes]:
        reading = self._connect()
        reading.execute("begin")
        rows = reading.execute("select name, number from numbers")
        yield msgspec.msgpack.encode([self.epoch])
        while some := rows.fetchmany(1000):
            yield msgspec.msgpack.encode(some)
        reading.close()

    def set_state(self, chunks: Iterable[bytes]) -> None:
        self.writer.execute("begin immediate")
        for table in ("numbers", "notes", "head"):
            self.writer.execute(f"delete from {table}")
        self.epoch = 0
        try:
            for number, chunk in enumerate(chunks):
                rows = msgspec.msgpack.decode(chunk)
                if number == 0:
                    self.epoch = rows[0]
                else:
                    self.writer.executemany("insert into numbers values (?, ?)", rows)
            self.writer.execute("commit")
        except sqlite3.OperationalError as error:
            raise Broken(str(error)) from error

    def _write(self, sql: str, *params: Any) -> None:
        if self.basis is not None and self.basis != self.epoch:
            raise Outdated(f"it was judged at {self.basis}, this is {self.epoch}")
        try:
            self.writer.execute(sql, params)
        except sqlite3.OperationalError as error:
            raise Broken(str(error)) from error

    @method
    def add(self, name: str, number: int) -> None:
        self._write(
            "insert into numbers values (?, ?) on conflict (name) do update set number = number + excluded.number",
            name,
            number,
        )

    @method
    def fail(self, name: str) -> None:
        raise ValueError(f"no {name}")

    @method
    def swap(self, one: str, other: str) -> None:
        found = dict(self.writer.execute("select name, number from numbers where name in (?, ?)", (one, other)))
        for name, number in ((one, found.get(other, 0)), (other, found.get(one, 0))):
            self._write("replace into numbers values (?, ?)", name, number)

    @method
    def change(self) -> int:
        self.epoch += 1
        return self.epoch

    @method(readonly=True)
    def get(self, name: str) -> int:
        found = self._read("select number from numbers where name = ?", name)
        return int(found[0][0]) if found else 0

    @method(readonly=True)
    def all(self) -> dict[str, int]:
        return dict(self._read("select name, number from numbers order by name"))
