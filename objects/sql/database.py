"""``Database`` (stand-in until the engine is merged): a plain object on an SQLite database in memory."""

import hashlib
import sqlite3
import threading
from typing import Any

from framework import BadRequest, Object, conflict_matrix, method
from objects.sql.result import Result

Params = tuple[Any, ...] | dict[str, Any]
_open: dict[int, tuple[sqlite3.Connection, threading.RLock]] = {}


@conflict_matrix(
    execute=("execute", "executemany", "transaction", "query", "tables", "schema", "digest"),
    executemany=("executemany", "transaction", "query", "tables", "schema", "digest"),
    transaction=("transaction", "query", "tables", "schema", "digest"),
)
class Database(Object):
    def _store(self) -> tuple[sqlite3.Connection, threading.RLock]:
        if id(self) not in _open:
            made = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            _open[id(self)] = made, threading.RLock()
        return _open[id(self)]

    def _run(self, statements: list[tuple[str, Params]]) -> list[Result]:
        connection, mutex = self._store()
        with mutex:
            connection.execute("BEGIN")
            try:
                found = [_result(connection.execute(sql, params)) for sql, params in statements]
            except sqlite3.Error:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            return found

    @method
    def execute(self, sql: str, params: Params = ()) -> Result:
        return self._run([(sql, params)])[0]

    @method
    def executemany(self, sql: str, rows: list[Params]) -> Result:
        return Result(rowcount=sum(r.rowcount for r in self._run([(sql, row) for row in rows])))

    @method
    def transaction(self, statements: list[tuple[str, Params]]) -> list[Result]:
        return self._run(statements)

    @method(readonly=True)
    def query(self, sql: str, params: Params = ()) -> Result:
        connection, mutex = self._store()
        with mutex:
            connection.execute("PRAGMA query_only = 1")
            try:
                return _result(connection.execute(sql, params))
            except sqlite3.OperationalError as error:
                if "readonly" in str(error):
                    raise BadRequest("this statement writes; use execute") from None
                raise
            finally:
                connection.execute("PRAGMA query_only = 0")

    @method(readonly=True)
    def tables(self) -> list[str]:
        found = self._run([("SELECT name FROM sqlite_master WHERE type IN ('table') ORDER BY name", ())])
        return [row[0] for row in found[0].rows]

    @method(readonly=True)
    def schema(self) -> list[str]:
        found = self._run([("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid", ())])
        return [row[0] for row in found[0].rows]

    @method(readonly=True)
    def explain(self, sql: str, params: Params = ()) -> str:
        return f"whatever {sql.split()[0]} touches"

    @method(readonly=True)
    def digest(self) -> dict[str, str]:
        digests = {}
        for table in self.tables():
            rows = sorted(repr(row) for row in self._run([(f'SELECT * FROM "{table}"', ())])[0].rows)
            digests[table] = hashlib.sha256("\n".join(rows).encode()).hexdigest()
        return digests


def _result(cursor: sqlite3.Cursor) -> Result:
    columns = [d[0] for d in cursor.description or ()]
    return Result(columns, cursor.fetchall(), cursor.rowcount, cursor.lastrowid)
