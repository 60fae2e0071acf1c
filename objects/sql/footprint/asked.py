"""SQLite itself tells what a statement touches: its authorizer is asked while it compiles the statement, on a database
with the same schema and no rows. It names what triggers, views and foreign keys reach, too.

It is asked twice, without foreign keys and with them. The first answer is what the text names; what the second one adds
belongs to foreign keys. Told together, a table that the text reads could not be told from a parent that is looked up.
"""

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
    column: str = ""  # that is read


class Answer(NamedTuple):
    named: list[Told]  # what the text names, and what triggers and views make of it
    linked: list[Told]  # what foreign keys add


def asked(bare: sqlite3.Connection, statement: Statement) -> Answer | str:
    """What it touches; or why SQLite would not compile it. That is an error that all replicas will give alike."""
    named: dict[Told, None] = {}
    linked: dict[Told, None] = {}
    with _one_at_a_time:
        try:
            if statement.writes:
                bare.execute("PRAGMA foreign_keys = OFF")
                _compile(bare, statement, named)
                bare.execute("PRAGMA foreign_keys = ON")
                _compile(bare, statement, linked)
            else:
                _compile(bare, statement, named)
        except sqlite3.Error as error:
            return str(error)
    return Answer(list(named), [one for one in linked if one not in named])


def _compile(bare: sqlite3.Connection, statement: Statement, told: dict[Told, None]) -> None:
    def listen(action: int, first: str | None, second: str | None, _: str | None, by: str | None) -> int:
        if action in _WRITES:
            told[Told(folded(first or ""), "w", by)] = None
        elif action == sqlite3.SQLITE_READ:
            told[Told(folded(first or ""), "r", by, folded(second or ""))] = None
        return sqlite3.SQLITE_OK

    bare.set_authorizer(listen)
    try:
        bare.execute(f"EXPLAIN {statement.run}", nulls(statement)).close()
    finally:
        bare.set_authorizer(None)


def nulls(statement: Statement) -> list[None] | dict[str, None]:
    """Parameters for a statement that is only explained."""
    if statement.named:
        return dict.fromkeys(map(str, statement.params))
    return [None] * (1 + max((int(p) for p in statement.params), default=-1))
