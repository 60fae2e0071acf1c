"""A database in a SQLite file.

One connection writes, in batches: BEGIN IMMEDIATE, calls, notes of the framework, COMMIT. In WAL mode others read
beside it what is committed. Each call that writes has a savepoint of its own: SQLite does not take back all that a
failing statement did where it sees no constraint that could fail (OR IGNORE, a value that is too long).
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL

from framework import BadRequest, Broken, Recalled
from objects.sql import digest, sqlite_bytes, sqlite_notes, sqlite_rowids
from objects.sql.engine import Step
from objects.sql.errors import from_sqlite, own
from objects.sql.footprint import Schema, read_sqlite
from objects.sql.options import Options
from objects.sql.readers import Readers
from objects.sql.result import Params, Result, fetched, summed
from objects.sql.sqlite_connect import Connection, glancing, reader, writer
from objects.sql.sqlite_files import Files
from objects.sql.sqlite_functions import Given
from objects.sql.sqlite_glance import Glance
from objects.sql.sqlite_moving import arrive, leaving
from objects.sql.sqlite_reach import Reaches
from objects.sql.statement import Statement
from objects.sql.tokens import Dialect
from objects.sql.values import adapted

T = TypeVar("T")
_own = own(sqlite3.Error)


class Sqlite:
    dialect: Dialect = "sqlite"

    def __init__(self, url: URL, options: Options, given: Given) -> None:
        self._url, self._options, self._given = url, options, given
        self.version = 0
        self.known: Schema
        self._files = Files(Path(url.database or ""))
        self._writer: Connection | None = None
        self._position = 0
        self._inside: int | None = None  # the thread that is in what is provisional
        self._reaches: Reaches | None = None
        self._keyed: frozenset[str] = frozenset()  # tables whose rows have a number, in lower case
        self._glance = Glance(lambda: glancing(url, given), self._result)
        self._readers: Readers[Connection] = Readers(options.pool, self._reader, Connection.close)
        self._used: dict[int, sqlite3.Connection] = {}  # for a statement that may be ended, by thread

    # its life

    @_own
    def open(self) -> None:
        self._files.lock()
        try:
            self._files.tidy()
            if self._files.arriving.exists():
                self._start_afresh()
            self._connect()
            if sqlite_notes.recall(self._raw) is None:  # a state without notes was not taken over to its end
                self._disconnect()
                self._start_afresh()
                self._connect()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with self._readers.none():
            self._disconnect()
        self._files.unlock()

    @property
    def _raw(self) -> sqlite3.Connection:
        if self._writer is None:
            raise Broken(f"{self._url.database} is not open")
        return self._writer.raw

    def _reader(self, converting: bool = True) -> Connection:
        """Of this very file: one that took its place is another database."""
        made = reader(self._url, self._given, converting)
        try:
            self._files.check()
        except BaseException:
            made.close()
            raise
        return made

    def _connect(self) -> None:
        try:
            self._files.database.parent.mkdir(parents=True, exist_ok=True)
            self._writer = writer(self._url, self._given, self._options.durability == "relaxed")
            self._files.opened()
            if not sqlite_notes.are_there(self._raw) and sqlite_notes.others_are_there(self._raw):
                raise BadRequest(
                    f"{self._url.database} has tables that this object did not make: begin with a new file, and bring "
                    "them in with obo sql"
                )
            sqlite_notes.make(self._raw)
            self._position = sqlite_notes.last_position(self._raw)
            self._reaches = Reaches(self._raw)
            self._look_at_schema()
            self._publish()
            self._glance.open()
        except (sqlite3.Error, OSError) as error:
            raise self._broken(error, f"[opening {self._url.database}]") from error

    def _disconnect(self) -> None:
        self._glance.close()
        if self._writer is not None:
            raw = self._writer.raw
            try:
                if raw.in_transaction:
                    raw.execute("ROLLBACK")
                self._writer.close()
            except sqlite3.Error:
                pass  # nothing that is lost with it was committed
            self._writer = self._reaches = None

    def _start_afresh(self) -> None:
        self._files.clear()
        self._files.arriving.unlink(missing_ok=True)

    def _look_at_schema(self) -> None:
        self.version = sqlite_notes.schema_version(self._raw)
        assert self._reaches is not None
        self._reaches.look()
        sqlite_bytes.guard(self._raw)
        self._keyed = frozenset(self._reaches.keys)

    def _publish(self) -> None:
        """The schema as it is now, for those who judge what calls will touch."""
        self.known = read_sqlite(self._raw, self.version)

    # batches

    @_own
    def recall(self) -> Recalled | None:
        return sqlite_notes.recall(self._raw)

    @_own
    def begin(self) -> None:
        self._raw.execute("BEGIN IMMEDIATE")

    @_own
    def commit(self, entries: Sequence[bytes], head: bytes | None) -> None:
        self._files.check()
        if not self._raw.in_transaction:
            raise Broken("the batch was rolled back before its commit")
        sqlite_notes.write(self._raw, self._position + 1, entries, head)
        self._raw.execute("COMMIT")
        if self.version != self.known.version:
            self._publish()
        self._position += 1

    @_own
    def rollback(self) -> None:
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")
        self._look_at_schema()

    @contextmanager
    def provisional(self) -> Iterator[None]:
        self._savepoint()
        self._inside = threading.get_ident()
        try:
            yield
        finally:
            self._inside = None
        self._back_to_savepoint()

    @_own
    def _savepoint(self) -> None:
        self._check_batch()
        self._raw.execute("SAVEPOINT obo_part")

    @_own
    def _back_to_savepoint(self) -> None:
        self._check_batch()
        self._raw.execute("ROLLBACK TO obo_part")
        self._raw.execute("RELEASE obo_part")

    @property
    def inside(self) -> bool:
        return self._inside == threading.get_ident()

    def _check_batch(self) -> None:
        if not self._raw.in_transaction:
            raise Broken("no batch is open: it was rolled back, or never begun")

    def _broken(self, error: Exception, what: str) -> Exception:
        found = from_sqlite(error, what)
        return found if isinstance(found, Broken) else Broken(f"{self._url.database}: {found}")

    # calls

    def adapt(self, params: Params) -> Params:
        return adapted(params)

    def interrupt(self, thread: int) -> None:
        used = self._used.get(thread)
        if used is not None:
            used.interrupt()

    @contextmanager
    def _endable(self, raw: sqlite3.Connection) -> Iterator[None]:
        thread = threading.get_ident()
        self._used[thread] = raw
        try:
            yield
        finally:
            del self._used[thread]

    @_own
    def perform(self, steps: Sequence[Step]) -> list[Result]:
        self._check_batch()
        with self._endable(self._raw):
            return self._perform(self._raw, steps)

    def _perform(self, raw: sqlite3.Connection, steps: Sequence[Step]) -> list[Result]:
        if len(steps) == 1 and not steps[0][0].writes:
            return [self._result(self._writer, *steps[0])]
        version = self.version
        raw.execute("SAVEPOINT obo")
        try:
            out = [self._run(raw, statement, params) for statement, params in steps]
            raw.execute("RELEASE obo")
            return out
        except BaseException as error:
            self._take_back(raw, version, error)
            raise

    def perform_many(self, steps: Sequence[Step]) -> Result:
        return summed(self.perform(steps))

    def _run(self, raw: sqlite3.Connection, statement: Statement, params: Params) -> Result:
        if not statement.writes:
            return self._result(self._writer, statement, params)
        assert self._reaches is not None
        reach = self._reaches.of(statement)
        if statement.kind == "ddl":
            sqlite_bytes.let_go(raw)
        result = self._result(self._writer, statement, params)
        if reach.keyed and (not reach.given or sqlite_rowids.is_far(_values(adapted(params)))):
            sqlite_rowids.check(raw, reach.keyed, self._reaches.keys)
        if statement.kind == "ddl":
            sqlite_notes.next_schema_version(raw)
            self._look_at_schema()
        return result

    def _take_back(self, raw: sqlite3.Connection, version: int, error: BaseException) -> None:
        """After some errors SQLite has rolled back everything by itself: then the batch is lost."""
        if not raw.in_transaction:
            if isinstance(error, Broken):
                raise error
            raise Broken(f"SQLite rolled back the whole batch: {error}") from error
        raw.execute("ROLLBACK TO obo")
        raw.execute("RELEASE obo")
        if self.version != version:
            self._look_at_schema()

    def _result(self, connection: Connection | None, statement: Statement, params: Params) -> Result:
        assert connection is not None
        connection.functions.complaint = None
        try:
            if connection is not self._writer:
                connection.renew(self.known.version)
            cursor = connection.raw.execute(statement.run, adapted(params))
            rows: list[tuple[Any, ...]] = fetched(cursor, statement.text)
        except (sqlite3.Error, OverflowError, UnicodeError, MemoryError) as error:
            complaint = connection.functions.complaint
            raise (complaint or from_sqlite(error, statement.text, connection is not self._writer)) from error
        columns = [d[0] for d in cursor.description] if cursor.description else []
        if statement.kind == "select":
            return Result(columns, rows, len(rows))
        count = max(cursor.rowcount, 0)
        numbered = statement.kind == "insert" and count and sqlite_rowids.into(statement.run) in self._keyed
        return Result(columns, rows, count, cursor.lastrowid if numbered else None)

    # reading

    def query(self, statement: Statement, params: Params) -> Result:
        return self._reading(lambda connection: self._query(connection, statement, params))

    def _query(self, connection: Connection, statement: Statement, params: Params) -> Result:
        if self.inside:  # it can be ended, and the batch with it
            return self.perform([(statement, params)])[0]
        with self._endable(connection.raw):
            return self._result(connection, statement, params)

    def glance(self, statement: Statement, params: Params) -> Result | None:
        return self._glance.read(statement, params)

    def _reading(self, work: Callable[[Connection], T]) -> T:
        if self.inside:
            assert self._writer is not None
            return work(self._writer)
        return self._readers.use(work)

    def tables(self) -> list[str]:
        found = self._reading(lambda connection: self._told(connection, digest.sqlite_tables))
        return [name for name in found if name != "sqlite_sequence"]

    def schema(self) -> list[str]:
        return self._reading(lambda connection: self._told(connection, sqlite_notes.schema))

    def _told(self, connection: Connection, ask: Callable[[sqlite3.Connection], list[str]]) -> list[str]:
        try:
            return ask(connection.raw)
        except sqlite3.Error as error:
            raise self._broken(error, "[schema]") from error

    def digests(self) -> dict[str, str]:
        found, _ = self._digests()
        return found

    def fingerprint(self) -> str:
        found, schema = self._digests()
        return digest.all_of({**found, "_obo": schema})

    def fingerprint_of_batch(self) -> str:
        self._check_batch()
        try:
            found, schema = _digests(self._raw)
        except sqlite3.Error as error:
            raise self._broken(error, "[digest]") from error
        return digest.all_of({**found, "_obo": schema})

    def _digests(self) -> tuple[dict[str, str], str]:
        """Of all tables at one moment, and of the schema."""
        connection = self._reader(converting=False)
        try:
            connection.raw.execute("BEGIN")
            return _digests(connection.raw)
        except sqlite3.Error as error:
            raise self._broken(error, "[digest]") from error
        finally:
            connection.close()

    # state

    @_own
    def set_aside(self, path: Path) -> None:
        """Also of a file that could not be opened. What is there then is empty, and open if it was."""
        with self._readers.none():
            was_open = self._writer is not None
            self._disconnect()
            if not was_open:
                self._files.lock()
            try:
                self._files.keep(path)
                if was_open:
                    self._start_afresh()
                    self._connect()
            finally:
                if not was_open:
                    self._files.unlock()

    def get_state(self) -> Iterable[bytes]:
        return leaving(self._reader(converting=False), self._files.copy())

    @_own
    def set_state(self, chunks: Iterable[bytes]) -> None:
        try:
            some = arrive(chunks, self._files.arriving)
            with self._readers.none():
                self._disconnect()
                if some:
                    self._files.replace()
                else:
                    self._start_afresh()
                self._connect()
        except BaseException:
            with self._readers.none():
                self._disconnect()
                self._start_afresh()
                self._connect()
            raise


def _digests(raw: sqlite3.Connection) -> tuple[dict[str, str], str]:
    found = {name: digest.sqlite_table(raw, name) for name in digest.sqlite_tables(raw)}
    texts = raw.execute("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE '!_obo%' ESCAPE '!'")
    schema = digest.in_any_order(texts.fetchall())
    return found, f"{schema} {sqlite_notes.schema_version(raw)}"


def _values(params: Params) -> Iterable[Any]:
    return params.values() if type(params) is not tuple and isinstance(params, Mapping) else params
