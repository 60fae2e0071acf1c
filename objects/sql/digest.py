"""Digests of tables: equal iff the rows are, wherever the database has put them."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

import msgspec

from objects.sql.values import quote

_BLOCK = 1000
_SIZE = 16
_HIDDEN = 1  # a column of a virtual table that ``SELECT *`` leaves out
_pack = msgspec.msgpack.Encoder().encode

Rows = Iterable[Sequence[Any]]


def in_order(rows: Rows) -> str:
    """Of rows that come in an order of their own: by a key."""
    found = blake2b(digest_size=_SIZE)
    each = iter(rows)
    while block := list(islice(each, _BLOCK)):
        found.update(_pack(block))
    return found.hexdigest()


def in_any_order(rows: Rows) -> str:
    """The sum of the digests of the rows: whatever their order, and two equal rows are not one."""
    total = count = 0
    for row in rows:
        total += int.from_bytes(blake2b(_pack(row), digest_size=_SIZE).digest())
        count += 1
    return blake2b(f"{count} {total}".encode(), digest_size=_SIZE).hexdigest()


def all_of(parts: Mapping[str, str]) -> str:
    return blake2b(_pack(sorted(parts.items())), digest_size=_SIZE).hexdigest()


# SQLite


def sqlite_tables(connection: sqlite3.Connection) -> list[str]:
    """Those of the user, and where AUTOINCREMENT stands."""
    found = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name NOT LIKE 'sqlite!_%' ESCAPE '!' "
        "OR name = 'sqlite_sequence') AND name NOT LIKE '!_obo%' ESCAPE '!' ORDER BY name"
    )
    return [name for (name,) in found.fetchall()]


def sqlite_table(connection: sqlite3.Connection, table: str) -> str:
    """The values as they are, whether or not ``connection`` converts them by the types of columns: an expression has no
    such type."""
    quoted = quote(table)
    columns = connection.execute(f"PRAGMA table_xinfo({quoted})").fetchall()
    keys = [(place, name, kind) for _, name, kind, _, _, place, _ in columns if place]
    values = ", ".join(f"+{quote(name)}" for _, name, _, _, _, _, hidden in columns if hidden != _HIDDEN)
    without_rowid = not _has_rowid(connection, quoted)
    ordered = without_rowid or (len(keys) == 1 and keys[0][2].upper() == "INTEGER")
    order = ", ".join(quote(name) for _, name, _ in sorted(keys))
    text = f"SELECT {values} FROM {quoted}" + (f" ORDER BY {order}" if ordered else "")
    return (in_order if ordered else in_any_order)(_rows(connection, text))


def _has_rowid(connection: sqlite3.Connection, quoted: str) -> bool:
    try:
        connection.execute(f"SELECT rowid FROM {quoted} LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def _rows(connection: sqlite3.Connection, text: str) -> Iterator[Sequence[Any]]:
    """SQLite keeps whatever bytes somebody has cast to text."""
    connection.text_factory = _text
    try:
        yield from connection.execute(text)
    finally:
        connection.text_factory = str


def _text(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return [data]
