"""Bytes in a column whose values come back by its declared type: b'12' in a NUMERIC would be read as the number 12, as
the driver does not tell a converter whether SQLite has kept a number, a text or bytes. So bytes are refused on the way
in, whatever writes them: by triggers that only the writing connection has, and no file.
"""

import sqlite3
from typing import Final
from zlib import crc32

from objects.sql.errors import BYTES
from objects.sql.values import CONVERTED, quote

_PREFIX: Final = "_obo_bytes_"


def guard(raw: sqlite3.Connection) -> None:
    """The schema is another one, or may be."""
    wanted = {f"{_PREFIX}{crc32(text.encode()):x}": text for text in _triggers(raw)}
    there = _there(raw)
    for name in there - wanted.keys():
        raw.execute(f"DROP TRIGGER temp.{name}")
    for name in wanted.keys() - there:
        raw.execute(wanted[name].format(name=name))


def let_go(raw: sqlite3.Connection) -> None:
    """A change of the schema would fail for what a trigger names."""
    for name in _there(raw):
        raw.execute(f"DROP TRIGGER temp.{name}")


def _there(raw: sqlite3.Connection) -> set[str]:
    found = raw.execute("SELECT name FROM sqlite_temp_schema WHERE type = 'trigger'").fetchall()
    return {name for (name,) in found if name.startswith(_PREFIX)}


def _triggers(raw: sqlite3.Connection) -> list[str]:
    out = []
    tables = raw.execute("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'").fetchall()
    for table in [name for (name,) in tables if not name.lower().startswith(("sqlite_", "_obo"))]:
        columns = raw.execute("SELECT name, type FROM pragma_table_xinfo(?) WHERE NOT hidden", (table,)).fetchall()
        for name, declared in columns:
            word = declared.split("(")[0].split(" ")[0].upper()
            if word in CONVERTED:
                out += [_trigger(event, table, name, word) for event in ("INSERT", f"UPDATE OF {_braced(name)}")]
    return out


def _trigger(event: str, table: str, column: str, kind: str) -> str:
    return (
        f"CREATE TEMP TRIGGER {{name}} AFTER {event} ON {_braced(table)} WHEN typeof(new.{_braced(column)}) = 'blob' "
        f"BEGIN SELECT RAISE(ABORT, '{BYTES} {kind}: they would come back as something else, use BLOB'); END"
    )


def _braced(name: str) -> str:
    """Ready for ``format``."""
    return quote(name).replace("{", "{{").replace("}", "}}")
