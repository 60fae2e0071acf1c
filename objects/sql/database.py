"""``Database``: a database at each replica, and statements that are performed at all of them.

Statements that conflict are performed in one order everywhere, others as they come: see ``touched``. Time, chance and
keys that the database gives are the same at each replica. What a call did is on disk with the framework's note that it
did so, or not at all. docs/sql.md is the guide.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework import (
    LATER,
    Backed,
    BadRequest,
    Broken,
    Keys,
    Outdated,
    Place,
    Recalled,
    Touched,
    conflict_matrix,
    method,
)
from objects.sql.engine import Engine, Step
from objects.sql.errors import OperationalError, SqlError, shown
from objects.sql.footprint import Explained, Schema, explain, single_rows, touches, union
from objects.sql.options import read_options, url_of
from objects.sql.result import Params, Result
from objects.sql.several import Each, each
from objects.sql.sqlite import Sqlite
from objects.sql.statement import understand

if TYPE_CHECKING:
    from objects.sql.postgres import Postgres


_READS = ("query", "queries", "tables", "schema", "digest")


@conflict_matrix(
    execute=("execute", "executemany", "transaction", "several", *_READS),
    executemany=("executemany", "transaction", "several", *_READS),
    transaction=("transaction", "several", *_READS),
    several=("several", *_READS),
)
class Database(Backed):
    """SQLite in a file (the default), or PostgreSQL: [objects.NAME.options] url."""

    compares = "digest"
    transactions = True

    def __init__(self) -> None:
        """Without a database until it is opened."""
        self._engine: Engine | None = None
        self._unopened: Engine | None = None  # the same, also if it could not be opened

    # for clients

    @method
    def execute(self, sql: str, params: Params = ()) -> Result:
        """One statement of any kind."""
        return self._open_engine().perform([self._step(sql, params)])[0]

    @method
    def executemany(self, sql: str, rows: Sequence[Params]) -> Result:
        """One statement for each of the rows, all or nothing."""
        if not rows:
            return Result([], [], 0)
        return self._open_engine().perform_many([self._step(sql, row) for row in rows])

    @method
    def transaction(self, statements: Sequence[tuple[str, Params]]) -> list[Result]:
        """All of the statements or none."""
        if not statements:
            return []
        return self._open_engine().perform([self._step(sql, params) for sql, params in statements])

    @method
    def several(self, statements: Sequence[tuple[str, Params]]) -> list[Each]:
        """Statements that have nothing to do with each other but the way: each is performed by itself (several.py)."""
        engine = self._open_engine()
        self._check_basis(engine.version)
        return each(statements, lambda sql, params: self._by_itself(engine, sql, params))

    @method(readonly=True)
    def queries(self, statements: Sequence[tuple[str, Params]]) -> list[Each]:
        """The same of statements that only read."""
        self._check_basis(self._open_engine().known.version)
        return each(statements, self._read)

    @method(readonly=True)
    def query(self, sql: str, params: Params = ()) -> Result:
        """One statement that only reads."""
        self._check_basis(self._open_engine().known.version)
        return self._read(sql, params)

    def _read(self, sql: str, params: Params) -> Result:
        engine = self._open_engine()
        statement = understand(sql, engine.dialect)
        if statement.writes:
            raise BadRequest(f"query only reads; use execute for: {shown(sql)}")
        statement.check(params)
        return engine.query(statement, params)

    @method(readonly=True)
    def explain(self, sql: str, params: Params = ()) -> Explained:
        """What a statement touches, in words."""
        engine = self._open_engine()
        return explain(understand(sql, engine.dialect), engine.adapt(params), engine.known)

    @method(readonly=True)
    def tables(self) -> list[str]:
        return self._open_engine().tables()

    @method(readonly=True)
    def schema(self) -> list[str]:
        """The statements that make it."""
        return self._open_engine().schema()

    @method(readonly=True)
    def digest(self) -> dict[str, str]:
        """Of each table: equal at two replicas iff the rows are."""
        engine = self._open_engine()
        if engine.inside:
            raise BadRequest(
                "digest reads what is committed: ask before the transaction changes something, or after it"
            )
        return engine.digests()

    # for the framework

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        read_options(options)

    def open(self, place: Place) -> None:
        options = read_options(place.options)
        url = url_of(options, place)
        engine: Engine
        if url.get_backend_name() == "sqlite":
            engine = Sqlite(url, options, self)
        else:
            engine = _postgres()(url, options, self, f"obo {place.replica}")
        self._unopened = engine
        engine.open()
        self.limit = options.statement_limit
        self._engine = engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def recall(self) -> Recalled | None:
        return self._open_engine().recall()

    def begin(self) -> None:
        self._open_engine().begin()

    def commit(self, entries: Sequence[bytes], head: bytes | None = None) -> None:
        self._open_engine().commit(entries, head)

    def rollback(self) -> None:
        self._open_engine().rollback()

    def provisional(self) -> AbstractContextManager[None]:
        return self._open_engine().provisional()

    def fingerprint(self) -> str:
        return self._open_engine().fingerprint()

    def fingerprint_of_batch(self) -> str:
        return self._open_engine().fingerprint_of_batch()

    def beside(self, place: Place) -> Path:
        """A SQLite file is renamed, so what is kept lies beside it; PostgreSQL writes to the directory of the node."""
        url = url_of(read_options(place.options), place)
        if url.get_backend_name() == "sqlite":
            return Path(url.database or "")
        return place.directory / "postgres"

    def set_aside(self, path: Path) -> bool:
        if self._unopened is None:
            raise Broken("the database is not open")
        self._unopened.set_aside(path)
        return True

    def touched(self, method: str, values: tuple[Any, ...]) -> Touched:
        schema = self._open_engine().known
        if method in ("execute", "query"):
            return Touched(self._touches(schema, [values]), schema.version)
        if method == "executemany":
            sql, rows = values
            return Touched(self._touches(schema, [(sql, row) for row in rows]), schema.version)
        if method in ("transaction", "several", "queries"):
            return Touched(self._touches(schema, values[0]), schema.version)
        # digest reads everything; the schema is changed only by what touches everything
        return Touched(() if method in ("tables", "schema") else None, schema.version)

    def _touches(self, schema: Schema, parts: Iterable[tuple[Any, ...]]) -> Keys | None:
        adapt = self._open_engine().adapt
        try:
            found = [touches(understand(sql, schema.dialect), adapt(params), schema) for sql, params in parts]
        except SqlError as error:
            raise BadRequest(str(error)) from None
        return found[0] if len(found) == 1 else union(found)

    def at_once(self, method: str, values: tuple[Any, ...], keys: Keys | None) -> Any:
        """A row by its key, for example."""
        engine = self._engine
        if method != "query" or not keys or engine is None or not single_rows(keys):
            return LATER
        found = engine.glance(understand(values[0], engine.dialect), values[1])
        return LATER if found is None else found

    def interrupt(self, thread: int) -> None:
        engine = self._engine
        if engine is not None:
            engine.interrupt(thread)

    def ended(self, why: str) -> Exception:
        return OperationalError(f"nothing of it was done, at no replica: {why}")

    def get_state(self) -> Iterable[bytes]:
        return self._open_engine().get_state()

    def set_state(self, chunks: Iterable[bytes]) -> None:
        self._open_engine().set_state(chunks)

    def _open_engine(self) -> Engine:
        if self._engine is None:
            raise Broken("the database is not open")
        return self._engine

    def _step(self, sql: str, params: Params) -> Step:
        """For a call that is being performed: what was said of it when it was taken must still hold."""
        engine = self._open_engine()
        self._check_basis(engine.version)
        statement = understand(sql, engine.dialect)
        statement.check(params)
        if statement.kind == "ddl" and engine.inside:
            raise BadRequest(
                f"in a transaction with other calls the schema stays as it is: before or after it, or with_("
                f"independent=True), do: {shown(sql)}"
            )
        return statement, params

    def _by_itself(self, engine: Engine, sql: str, params: Params) -> Result:
        statement = understand(sql, engine.dialect)
        statement.check(params)
        if statement.kind == "ddl":  # the footprints of those after it would not be right any more
            raise BadRequest(f"execute alone what changes the schema: {shown(sql)}")
        return engine.perform([(statement, params)])[0]

    def _check_basis(self, version: int) -> None:
        basis = self.basis
        if basis is not None and basis != version:
            raise Outdated(f"the schema has version {version} now, not {basis}")


def _postgres() -> "type[Postgres]":
    try:
        from objects.sql.postgres import Postgres
    except ImportError as error:
        raise BadRequest(f"PostgreSQL needs psycopg: pip install 'obo[postgres]' ({error})") from None
    return Postgres
