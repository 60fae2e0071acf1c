"""SQLite itself tells what a statement touches: its authorizer is asked while it compiles the statement, on a database
with the same schema and no rows. It names what triggers, views and foreign keys reach, too."""

import sqlite3
from threading import Lock
from typing import Final, NamedTuple

from objects.sql.footprint.effects import Access
from objects.sql.statement import Statement
from objects.sql.tokens import folded

_WRITES: Final = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})

_one_at_a_time = Lock()  # the authorizer belongs to the connection


class Told(NamedTuple):
    table: str
    access: Access
    by: str | None  # the trigger, view or common table expression that does it


def asked(bare: sqlite3.Connection, statement: Statement) -> list[Told] | str:
    """What it touches; or why SQLite would not compile it. That is an error that all replicas will give alike."""
    told: dict[Told, None] = {}

    def listen(action: int, first: str | None, _: str | None, __: str | None, by: str | None) -> int:
        if action in _WRITES or action == sqlite3.SQLITE_READ:
            told[Told(folded(first or ""), "w" if action in _WRITES else "r", by)] = None
        return sqlite3.SQLITE_OK

    with _one_at_a_time:
        bare.set_authorizer(listen)
        try:
            bare.execute(f"EXPLAIN {statement.run}", _nulls(statement)).close()
        except sqlite3.Error as error:
            return str(error)
        finally:
            bare.set_authorizer(None)
    return list(told)


def _nulls(statement: Statement) -> list[None] | dict[str, None]:
    if statement.named:
        return dict.fromkeys(map(str, statement.params))
    return [None] * (1 + max((int(p) for p in statement.params), default=-1))
