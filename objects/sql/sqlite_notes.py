"""Tables of the framework in the database of a replica: their names begin with _obo.

_obo_head, _obo_log   notes of the framework: what was committed, see framework/declare/backed.py
_obo_meta             the version of the schema; part of the state
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from framework import Recalled

_MAKE: Final = (
    "CREATE TABLE IF NOT EXISTS _obo_head (id INTEGER PRIMARY KEY CHECK (id = 1), body BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS _obo_log (position INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS _obo_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT OR IGNORE INTO _obo_meta VALUES ('schema', 1)",
)
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[bytes]).decode


def make(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for text in _MAKE:
        connection.execute(text)
    connection.execute("COMMIT")


def are_there(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = '_obo_head'").fetchone())


def others_are_there(connection: sqlite3.Connection) -> bool:
    """Tables that somebody else made."""
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name NOT LIKE '!_obo%' ESCAPE '!'")
    return bool(found.fetchone())


def recall(connection: sqlite3.Connection) -> Recalled | None:
    head = connection.execute("SELECT body FROM _obo_head").fetchone()
    if head is None:
        return None
    bodies = connection.execute("SELECT body FROM _obo_log ORDER BY position")
    return Recalled(head[0], [entry for (body,) in bodies for entry in _unpack(body)])


def write(connection: sqlite3.Connection, position: int, entries: Sequence[bytes], head: bytes | None) -> None:
    if head is not None:
        connection.execute("DELETE FROM _obo_log")
        connection.execute("INSERT OR REPLACE INTO _obo_head VALUES (1, ?)", (head,))
    if entries:
        connection.execute("INSERT INTO _obo_log VALUES (?, ?)", (position, _pack(entries)))


def erase(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM _obo_head")
    connection.execute("DELETE FROM _obo_log")


def last_position(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("SELECT coalesce(max(position), 0) FROM _obo_log").fetchone()[0]
    return found


def schema_version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("SELECT value FROM _obo_meta WHERE name = 'schema'").fetchone()[0]
    return found


def next_schema_version(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE _obo_meta SET value = value + 1 WHERE name = 'schema'")


def schema(connection: sqlite3.Connection) -> list[str]:
    """The statements that make what users have made."""
    found = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!' "
        "AND name NOT LIKE '!_obo%' ESCAPE '!' ORDER BY type <> 'table', type, name"
    )
    return [text for (text,) in found.fetchall()]
