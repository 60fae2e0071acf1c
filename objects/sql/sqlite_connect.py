"""Connections to a SQLite file, set up alike on every replica."""

import sqlite3
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import URL, create_engine
from sqlalchemy.pool import NullPool, PoolProxiedConnection

from objects.sql import values
from objects.sql.errors import from_sqlite
from objects.sql.sqlite_functions import Functions, Given

BUSY: Final = 5.0  # seconds to wait for a stranger who holds the file locked
_STATEMENTS: Final = 512  # kept prepared, on each connection
_WAL: Final = 64 << 20  # bytes that it keeps of its log when that begins anew: one large statement makes it large

#: The same on every replica, whatever its SQLite was built with: a statement fails everywhere or nowhere. ATTACHED 0:
#: no second file.
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1 << 28,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 2000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 1000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 500,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 50_000,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 32_766,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1000,
}


class Connection:
    """``raw`` is the driver's. ``converting``: values come back by the declared type of their column."""

    def __init__(self, url: URL, given: Given, converting: bool = True) -> None:
        values.register()
        arguments: dict[str, Any] = {
            "check_same_thread": False,  # one thread at a time, not always the same
            "isolation_level": None,  # no BEGIN behind our back
            "timeout": BUSY,
            "cached_statements": _STATEMENTS,
            "detect_types": sqlite3.PARSE_DECLTYPES if converting else 0,
        }
        self._engine = create_engine(url, poolclass=NullPool, connect_args=arguments)
        try:
            self._held: PoolProxiedConnection = self._engine.raw_connection()
        except Exception as error:
            raise from_sqlite(cast(Exception, getattr(error, "orig", error)), f"[opening {url.database}]") from error
        self.raw = cast(sqlite3.Connection, self._held.driver_connection)
        self._version = 0  # of the schema that it knows
        self.functions = Functions(given)
        self.functions.install(self.raw)
        for limit, value in _LIMITS.items():
            self.raw.setlimit(limit, value)

    def renew(self, version: int) -> None:
        """Look at the schema, if it has another version by now. SQLite compares what it remembers of the schema with
        the file only when a statement runs; one that does not compile by what it remembers would fail for ever."""
        if self._version != version:
            self.raw.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
            self._version = version

    def close(self) -> None:
        self._held.close()
        self.functions.close()
        self._engine.dispose()


def writer(url: URL, given: Given, relaxed: bool) -> Connection:
    made = Connection(url, given)
    _run(
        made,
        url,
        "PRAGMA journal_mode = WAL",
        f"PRAGMA synchronous = {'NORMAL' if relaxed else 'FULL'}",
        "PRAGMA foreign_keys = ON",
        "PRAGMA temp_store = MEMORY",
        f"PRAGMA journal_size_limit = {_WAL}",
    )
    return made


def glancing(url: URL, given: Given) -> Connection:
    """One that waits for no stranger."""
    made = reader(url, given)
    _run(made, url, "PRAGMA busy_timeout = 0")
    return made


def reader(url: URL, given: Given, converting: bool = True) -> Connection:
    if not Path(url.database or "").exists():
        raise from_sqlite(FileNotFoundError(url.database), "[opening]")
    made = Connection(url, given, converting)
    _run(made, url, "PRAGMA query_only = ON")
    return made


def _run(made: Connection, url: URL, *texts: str) -> None:
    try:
        for text in texts:
            made.raw.execute(text)
    except sqlite3.Error as error:
        made.close()
        raise from_sqlite(error, f"[opening {url.database}]") from error
