"""A database on a PostgreSQL server.

One connection writes, in batches: BEGIN, calls, notes of the framework, COMMIT. A statement that fails would end the
whole transaction, so each call begins with a savepoint; in the same message go its time and its seed, and the release
of the savepoint before. Other connections read what is committed.
"""

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import psycopg
from sqlalchemy import URL

from framework import BadRequest, Broken, Interrupted, Recalled
from objects.sql import digest, postgres_catalog, postgres_moving, postgres_notes
from objects.sql.engine import Step
from objects.sql.errors import OperationalError, ProgrammingError, from_postgres, own, shown
from objects.sql.footprint import Schema, read_postgres
from objects.sql.options import Options
from objects.sql.postgres_connect import Raw, alone, reader, writer
from objects.sql.postgres_order import PLANNER, Plan, Plans, values
from objects.sql.postgres_values import adapted
from objects.sql.readers import Readers
from objects.sql.result import Params, Result, fetched, summed
from objects.sql.sqlite_functions import Given
from objects.sql.statement import Statement
from objects.sql.tokens import Dialect

T = TypeVar("T")
_own = own(psycopg.Error)
_CANCEL: Final = 5.0  # seconds to reach the server for that
_LATE: Final = 0.2  # seconds in which a server that was reached ends what there is to end
log = logging.getLogger(__name__)
_pack = msgspec.msgpack.Encoder().encode


class Postgres:
    dialect: Dialect = "postgres"

    def __init__(self, url: URL, options: Options, given: Given, name: str) -> None:
        self._url, self._options, self._given, self._name = url, options, given, name
        self.version = 0
        self.known: Schema
        self._writer: Raw | None = None
        self._sequences = postgres_notes.Sequences()
        self._plans = Plans()
        self._position = 0
        self._saved = False  # there is a savepoint
        self._inside: int | None = None  # the thread that is in what is provisional
        self._renewed = False  # the schema has changed in this batch
        self._used: dict[int, Raw] = {}  # for a statement that may be ended, by thread
        self._ended: set[Raw] = set()  # those for which the server was asked to end one
        self._readers: Readers[Raw] = Readers(options.pool, lambda: reader(url, name), psycopg.Connection.close)

    # its life

    @_own
    def open(self) -> None:
        try:
            self._connect()
            raw = self._raw
            if not postgres_notes.are_there(raw) and postgres_catalog.others_are_there(raw):
                raise BadRequest(
                    f"{self._shown()} has tables that this object did not make: begin with an empty database, and "
                    "bring them in with obo sql"
                )
            if postgres_notes.recall(raw) is None:  # a state without notes was not taken over to its end
                postgres_catalog.wipe(raw)
            postgres_notes.make(raw)  # also the functions that an older version did not have
            self._look()
            self._readers.use(lambda raw: None)  # it can be read, too
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with self._readers.none():
            if self._writer is not None:
                self._writer.close()  # the server rolls back
                self._writer = None

    def _connect(self) -> None:
        self._writer = writer(self._url, self._name, self._options.durability == "relaxed")
        if not alone(self._raw):
            raise Broken(
                f"{self._shown()} is in use by another replica, or by a connection that is not closed yet: each "
                "replica needs a database of its own, for example with {node} in the url"
            )
        encoding = self._raw.execute("SHOW server_encoding").fetchone()
        if encoding is None or encoding[0] != "UTF8":
            raise BadRequest(f"{self._shown()}: its encoding must be UTF8")

    @property
    def _raw(self) -> Raw:
        if self._writer is None:
            raise Broken(f"{self._shown()} is not open")
        return self._writer

    def _shown(self) -> str:
        return self._url.render_as_string(hide_password=True)

    def _look(self) -> None:
        """What the last commit left."""
        self._position = postgres_notes.last_position(self._raw)
        self.version = postgres_notes.schema_version(self._raw)
        self._sequences.look(self._raw)
        self._plans.forget()
        self._publish()

    def _publish(self) -> None:
        """The schema as it is now, for those who judge what calls will touch."""
        self.known = read_postgres(self._raw, self.version)

    def _broken(self, error: "psycopg.Error", what: str) -> Exception:
        found = from_postgres(error, what)
        return found if isinstance(found, Broken) else Broken(f"{self._shown()}: {found}")

    # batches

    @_own
    def recall(self) -> Recalled | None:
        return postgres_notes.recall(self._raw)

    @_own
    def begin(self) -> None:
        self._raw.execute("BEGIN")
        self._saved = self._renewed = False

    @_own
    def commit(self, entries: Sequence[bytes], head: bytes | None) -> None:
        self._sequences.write(self._raw, self._renewed)
        postgres_notes.write(self._raw, self._position + 1, entries, head)
        self._raw.execute("COMMIT")
        if self._renewed:
            self._publish()
        self._position += 1

    @_own
    def rollback(self) -> None:
        self._raw.execute("ROLLBACK")
        self._look()

    @contextmanager
    def provisional(self) -> Iterator[None]:
        raw = self._raw
        marks = self._at_server(lambda: self._sequences.marks(raw, self._renewed), "[sequences]")
        self._run(raw, f"{'RELEASE obo; ' if self._saved else ''}SAVEPOINT obo_part", "[savepoint]")
        self._saved = False
        self._inside = threading.get_ident()
        try:
            yield
        finally:
            self._inside = None
        self._run(raw, "ROLLBACK TO obo_part; RELEASE obo_part", "[take back]")
        self._saved = False
        self._at_server(lambda: self._sequences.restore(raw, marks), "[sequences]")

    @property
    def inside(self) -> bool:
        return self._inside == threading.get_ident()

    def _at_server(self, work: Callable[[], T], what: str) -> T:
        try:
            return work()
        except psycopg.Error as error:
            raise self._broken(error, what) from error

    # calls

    def adapt(self, params: Params) -> Params:
        return params

    def interrupt(self, thread: int) -> None:
        """Ask the server. It may come to that late, and meet the next statement: see ``_endable``."""
        used = self._used.get(thread)
        if used is not None:
            self._ended.add(used)
            try:
                used.cancel_safe(timeout=_CANCEL)
            except psycopg.Error as error:
                log.warning("%s does not end a statement: %s", self._shown(), " ".join(str(error).split()))

    @contextmanager
    def _endable(self, raw: Raw) -> Iterator[None]:
        thread = threading.get_ident()
        self._used[thread] = raw
        try:
            yield
        finally:
            del self._used[thread]
            if raw in self._ended:
                self._ended.discard(raw)
                time.sleep(_LATE)  # the server ends nothing where nothing goes on

    def perform(self, steps: Sequence[Step]) -> list[Result]:
        with self._endable(self._raw):
            return self._perform(steps)

    @_own
    def _perform(self, steps: Sequence[Step]) -> list[Result]:
        raw = self._raw
        version, renewed = self.version, self._renewed
        self._run(raw, self._before(), "[savepoint]")
        self._saved = True
        try:
            return [self._step(raw, statement, params) for statement, params in steps]
        except Broken:
            raise
        except BaseException:
            self._run(raw, "ROLLBACK TO obo", "[savepoint]")
            if self.version != version:
                self._plans.forget()
            self.version, self._renewed = version, renewed
            raise

    def perform_many(self, steps: Sequence[Step]) -> Result:
        return summed(self.perform(steps))

    def _before(self) -> str:
        """The end of the last call and the beginning of the next. Nothing in it comes from a client."""
        return f"{'RELEASE obo; ' if self._saved else ''}SAVEPOINT obo; {self._settings('SET LOCAL')}"

    def _settings(self, how: str) -> str:
        moment = dt.datetime.fromtimestamp(self._given.now(), dt.UTC).isoformat()
        return f"{how} obo.given = '{moment} {self._given.uuid().hex}'; {how} obo.draw = '0'"

    def _run(self, raw: Raw, text: str, what: str) -> None:
        try:
            raw.execute(text)
        except psycopg.Error as error:
            raise self._broken(error, what) from error

    def _step(self, raw: Raw, statement: Statement, params: Params) -> Result:
        plan = self._planned(raw, statement)
        result = _result(raw, statement, params) if plan is None else _performed(raw, statement, params, plan)
        if statement.kind == "ddl":
            try:
                self._after_ddl(raw)
            except psycopg.Error as error:
                raise from_postgres(error, statement.text) from error
        return result

    def _planned(self, raw: Raw, statement: Statement) -> Plan | None:
        try:
            return self._plans.of(raw, statement)
        except psycopg.Error as error:
            raise self._broken(error, "[catalogue]") from error

    def _after_ddl(self, raw: Raw) -> None:
        self._renewed = True
        self._plans.forget()
        shared = postgres_catalog.shared_sequences(raw)
        if shared:
            raise ProgrammingError(
                f"two tables would draw from the sequence {shared[0]}: give each its own (LIKE ... INCLUDING DEFAULTS "
                "copies the default: use INCLUDING IDENTITY with identity columns)"
            )
        postgres_catalog.stop_caching(raw)
        postgres_notes.next_schema_version(raw)
        self.version = postgres_notes.schema_version(raw)

    # reading

    def query(self, statement: Statement, params: Params) -> Result:
        if self.inside:
            return self.perform([(statement, params)])[0]
        return self._readers.use(lambda raw: self._beside(raw, statement, params))

    def _beside(self, raw: Raw, statement: Statement, params: Params) -> Result:
        with self._endable(raw):
            try:
                return self._query(raw, statement, params)
            except Interrupted as error:  # in one of our own statements
                raise OperationalError(str(error)) from error

    def glance(self, statement: Statement, params: Params) -> Result | None:
        return None  # it is another process

    def _query(self, raw: Raw, statement: Statement, params: Params) -> Result:
        try:
            self._run(raw, self._settings("SET"), "[settings]")
            return _result(raw, statement, params, True)
        except ProgrammingError as error:
            if "cached plan" not in str(error):
                raise
            self._run(raw, "DEALLOCATE ALL", "[prepared statements]")  # the schema has changed
            return _result(raw, statement, params, True)

    def tables(self) -> list[str]:
        return self._reading(postgres_catalog.tables)

    def schema(self) -> list[str]:
        return self._reading(postgres_catalog.schema)

    def _reading(self, ask: Callable[[Raw], T]) -> T:
        if self.inside:
            return self._told(self._raw, ask)
        return self._readers.use(lambda raw: self._told(raw, ask))

    def _told(self, raw: Raw, ask: Callable[[Raw], T]) -> T:
        try:
            return ask(raw)
        except psycopg.Error as error:
            raise self._broken(error, "[reading]") from error

    def digests(self) -> dict[str, str]:
        return self._digests()[0]

    def fingerprint(self) -> str:
        found, rest = self._digests()
        return digest.all_of({**found, "obo": rest})

    def fingerprint_of_batch(self) -> str:
        raw = self._raw

        def ask() -> tuple[dict[str, str], str]:
            self._sequences.write(raw, True)  # as before a commit
            return _digests(raw)

        found, rest = self._at_server(ask, "[digest]")
        return digest.all_of({**found, "obo": rest})

    def _digests(self) -> tuple[dict[str, str], str]:
        """Of all tables at one moment; and of the schema and the sequences."""

        def ask(raw: Raw) -> tuple[dict[str, str], str]:
            with raw.transaction():
                raw.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                return _digests(raw)

        return self._readers.use(lambda raw: self._told(raw, ask))

    # state

    @_own
    def set_aside(self, path: Path) -> None:
        """What pg_dump writes, for pg_restore. The database stays as it is: the state that comes replaces it."""
        raw = reader(self._url, self._name)
        try:
            postgres_moving.dump(postgres_moving.place_of(raw, self._options.tools), path)
        finally:
            raw.close()

    @_own
    def get_state(self) -> Iterable[bytes]:
        raw = reader(self._url, self._name)
        try:
            return postgres_moving.leaving(raw, postgres_moving.place_of(raw, self._options.tools), self._about(raw))
        except BaseException:
            raw.close()
            raise

    @_own
    def set_state(self, chunks: Iterable[bytes]) -> None:
        try:
            with self._readers.none():
                raw = self._raw
                place = postgres_moving.place_of(raw, self._options.tools)
                postgres_catalog.wipe(raw)  # from here on there is no state
                postgres_moving.arrive(chunks, place, self._about(raw))
                postgres_notes.make(raw)
                self._look()
        except BaseException:
            self._start_afresh()
            raise

    def _start_afresh(self) -> None:
        postgres_catalog.wipe(self._raw)
        postgres_notes.make(self._raw)
        self._look()

    def _about(self, raw: Raw) -> bytes:
        """What two servers must have in common: how they compare texts."""
        found = raw.execute(
            "SELECT datcollate, datctype FROM pg_database WHERE datname = current_database()"
        ).fetchall()
        return ("collation {}, ctype {}".format(*found[0])).encode()


def _digests(raw: Raw) -> tuple[dict[str, str], str]:
    found = postgres_catalog.digests(raw)
    marks = raw.execute("SELECT name, value, called FROM obo._obo_sequences").fetchall()
    texts = [[text] for text in postgres_catalog.schema(raw)]
    return found, digest.in_any_order([*marks, *texts, [postgres_notes.schema_version(raw)]])


def _result(raw: Raw, statement: Statement, params: Params, reads: bool = False) -> Result:
    try:
        cursor = raw.execute(statement.run, adapted(statement, params))
        return _told(cursor, statement)
    except psycopg.Error as error:
        raise from_postgres(error, statement.text, reads) from error


def _performed(raw: Raw, statement: Statement, params: Params, plan: Plan) -> Result:
    """With what is needed to be the same everywhere, however rows lie on disk."""
    given = values(statement, adapted(statement, params))
    try:
        if plan.probe and raw.execute(plan.probe, given).fetchone():
            raise ProgrammingError(
                "two rows of FROM match one row, and the server would take either: let the condition leave one, or "
                f"use a subquery; in: {shown(statement.text)}"
            )
        if plan.ordered:
            raw.execute("; ".join(f"SET LOCAL {name} = off" for name in PLANNER))
        cursor = raw.execute(plan.run, given)
        result = _told(cursor, statement)
        if plan.ordered:
            raw.execute("; ".join(f"SET LOCAL {name} TO DEFAULT" for name in PLANNER))
        return result
    except psycopg.Error as error:
        raise from_postgres(error, statement.text) from error


def _told(cursor: "psycopg.Cursor[tuple[Any, ...]]", statement: Statement) -> Result:
    rows = fetched(cursor, statement.text) if cursor.description else []
    if statement.single and cursor.rowcount > 1:
        raise ProgrammingError(
            f"random() in an UPDATE of {cursor.rowcount} rows: they would draw numbers in the order in which they lie "
            f"on disk: update one row at a time; in: {shown(statement.text)}"
        )
    columns = [column.name for column in cursor.description or ()]
    if statement.kind in ("update", "delete") and len(rows) > 1:
        rows.sort(key=_pack)  # they come as they lie on disk, which is no order
    return Result(columns, rows, max(cursor.rowcount, 0))
