"""Plain SQLite in one process: one connection, one commit for each statement, on disk before the next begins.

More clients would not make it faster: SQLite has one writer at a time, and they would wait for its lock. The pragmas
are those of a replica (objects/sql/sqlite_connect.py).
"""

import sqlite3
from collections.abc import Callable
from typing import Any

from framework.bench.load import Measured, Order, lone
from framework.testing.sql_work import FILL, HOT, INSERT, MAKE, SELECT, UPDATE, Work, fill

PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "temp_store = MEMORY")


def rows(where: str) -> dict[str, Callable[[Order], Measured]]:
    """``where``: the file, and the bytes of a body."""
    path, _, payload = where.rpartition(",")
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=512)
    run = connection.execute
    for pragma in PRAGMAS:
        run(f"PRAGMA {pragma}")
    for text in MAKE:
        run(text)
    run("BEGIN")
    connection.executemany(FILL, fill(int(payload)))
    run("COMMIT")
    work = Work()

    def mix() -> Any:
        if work.writes():
            return run(UPDATE, work.thing())
        return run(SELECT, work.thing()).fetchall()

    return {
        "insert": lambda o: lone(lambda: run(INSERT, work.insert(o.payload)), o.seconds),
        "update": lambda o: lone(lambda: run(UPDATE, work.thing()), o.seconds),
        "hot": lambda o: lone(lambda: run(UPDATE, (HOT,)), o.seconds),
        "select": lambda o: lone(lambda: run(SELECT, work.thing()).fetchall(), o.seconds),
        "mix": lambda o: lone(mix, o.seconds),
    }
