"""One plain database, without anything of ours: what the replicated one must give and be."""

import sqlite3
from typing import Any, NamedTuple

import psycopg


class Outcome(NamedTuple):
    """What a statement gave. Rows that have no order are sorted; of an error only the kind counts."""

    error: str = ""  # IntegrityError, or "error"
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    rowcount: int = 0
    lastrowid: int | None = None


def kind(error: str) -> str:
    return error if error in ("", "IntegrityError") else "error"


def in_order(sql: str, rows: Any) -> tuple[tuple[Any, ...], ...]:
    found = [tuple(row) for row in rows]
    return tuple(found if "order by" in sql.lower() else sorted(found, key=repr))


class Model:
    """``perform`` does what ``Database`` says it does, with statements of the driver alone."""

    def __init__(self, raw: Any, integrity: type[Exception], fault: tuple[type[Exception], ...]) -> None:
        self._raw = raw
        self._integrity, self._fault = integrity, fault

    def close(self) -> None:
        self._raw.close()

    def perform(self, method: str, values: tuple[Any, ...]) -> list[Outcome]:
        """One outcome for each statement; or one that tells the error, and nothing happened."""
        if method == "transaction":
            steps = [(sql, params) for sql, params in values[0]]
        elif method == "executemany":
            steps = [(values[0], row) for row in values[1]]
        else:
            steps = [(values[0], values[1])]
        self._raw.execute("BEGIN")
        try:
            out = [self._one(sql, params) for sql, params in steps]
        except self._fault as error:
            self._raw.execute("ROLLBACK")
            return [Outcome("IntegrityError" if isinstance(error, self._integrity) else "error")]
        self._raw.execute("COMMIT")
        return [_sum(out)] if method == "executemany" else out

    def _one(self, sql: str, params: Any) -> Outcome:
        cursor = self._run(sql, params)
        rows = cursor.fetchall() if cursor.description else []
        columns = tuple(d[0] for d in cursor.description) if cursor.description else ()
        count = len(rows) if sql.startswith("SELECT") else max(cursor.rowcount, 0)
        return Outcome("", columns, in_order(sql, rows), count, self._given(cursor, sql) if count else None)

    def _run(self, sql: str, params: Any) -> Any:
        raise NotImplementedError

    def _given(self, cursor: Any, sql: str) -> int | None:
        """The key that the database gave."""
        return None


class SqliteModel(Model):
    def __init__(self) -> None:
        raw = sqlite3.connect(":memory:", isolation_level=None)
        super().__init__(raw, sqlite3.IntegrityError, (sqlite3.Error,))
        raw.execute("PRAGMA foreign_keys = ON")

    def _run(self, sql: str, params: Any) -> Any:
        return self._raw.execute(sql, params)

    def _given(self, cursor: Any, sql: str) -> int | None:
        """None where nobody can tell whether the row is new."""
        found: int = cursor.lastrowid
        return found if sql.startswith("INSERT") and "DO UPDATE" not in sql else None


class PostgresModel(Model):
    def __init__(self, url: str) -> None:
        raw = psycopg.connect(url, autocommit=True)
        super().__init__(raw, psycopg.IntegrityError, (psycopg.Error,))

    def _run(self, sql: str, params: Any) -> Any:
        return self._raw.execute(sql.replace("?", "%s"), params)


def _sum(out: list[Outcome]) -> Outcome:
    """What ``executemany`` gives."""
    rows = tuple(row for one in out for row in one.rows)
    return Outcome("", out[0].columns, tuple(sorted(rows, key=repr)), sum(one.rowcount for one in out))


def outcomes(method: str, values: tuple[Any, ...], value: Any, error: str) -> list[Outcome]:
    """What ``Database`` gave, in the words of the model."""
    if error:
        return [Outcome(kind(error))]
    texts = [sql for sql, _ in values[0]] if method == "transaction" else [values[0]]
    results = value if method == "transaction" else [value]
    return [
        Outcome("", tuple(r.columns), in_order(sql, r.rows), r.rowcount, r.lastrowid)
        for sql, r in zip(texts, results, strict=True)
    ]
