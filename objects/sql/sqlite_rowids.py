"""Keys that SQLite gives by itself: what may be said about the last one, and where they would end.

After the largest integer SQLite picks keys by chance, or says that the disk is full and takes back the whole batch. So
no row gets a key that is near to it.

``Result.lastrowid`` must not tell of an earlier statement of the connection: what was there before differs from replica
to replica.
"""

import re
import sqlite3
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from typing import Any, Final

from objects.sql.errors import DataError
from objects.sql.statement import Statement
from objects.sql.tokens import tokens
from objects.sql.values import quote

END: Final = (1 << 63) - (1 << 20)

_FAR: Final = 9.2e18  # so that no rounding matters
_INTO: Final = re.compile(
    r"""\s*(?:insert(?:\s+or\s+\w+)?|replace)\s+into\s+(?:main\s*\.\s*)?(?:"((?:[^"]|"")+)"|`([^`]+)`|\[([^]]+)\]|(\w+))""",
    re.IGNORECASE,
)
_UPSERT: Final = re.compile(r"\bdo\s+update\b", re.IGNORECASE)
_NAMES: Final = ("rowid", "_rowid_", "oid")
_SEQUENCE: Final = "sqlite_sequence"


@lru_cache(2048)
def into(text: str) -> str:
    """The table of an INSERT, in lower case, if all that is told about the last key can be told."""
    found = _INTO.match(text) if not _UPSERT.search(text) else None
    return next((n for n in found.groups() if n), "").replace('""', '"').lower() if found else ""


def is_far(values: Iterable[Any]) -> bool:
    """Could one of the values be such a key? SQLite turns texts and floats into integers where a key is wanted."""
    for value in values:
        kind = type(value)
        if kind is int:
            if value >= END:
                return True
        elif (kind is float and value >= _FAR) or (kind is str and _is_far(value)):
            return True
    return False


def _is_far(value: str) -> bool:
    start = value.lstrip()[:1]
    if not start or start not in "+.0123456789":
        return False
    try:
        return float(value) >= _FAR
    except ValueError:
        return False


def is_given(statement: Statement, keyed: Set[str]) -> bool:
    """Is this an INSERT of values and parameters, into one table?"""
    found = tokens(statement.plain, "sqlite")
    table = into(statement.run)
    computed = any(t.sort == "op" and t.value not in "(),.;?" for t in found)
    words = any(t.is_("select", "case", "update", "cast") for t in found)
    literals = (t.value for t in found if t.sort in ("string", "number", "blob"))
    return (
        keyed == {table}
        and not computed
        and not words
        and statement.calls <= {table, "values"}
        and not is_far(literals)
    )


def keys(connection: sqlite3.Connection) -> dict[str, str]:
    """Tables whose rows have numbers, in lower case, each with a name of the number that no other column has."""
    found = connection.execute("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT wr")
    out = {}
    for name in [name for (name,) in found.fetchall()]:
        if name.lower().startswith(("sqlite_", "_obo")):
            continue
        columns = connection.execute("SELECT lower(name), type, pk FROM pragma_table_xinfo(?)", (name,)).fetchall()
        primary = [(column, kind.upper()) for column, kind, pk in columns if pk]
        if len(primary) == 1 and primary[0][1] == "INTEGER":
            out[name.lower()] = primary[0][0]
        else:
            taken = {column for column, _, _ in columns}
            free = [n for n in _NAMES if n not in taken]
            if free:  # else no statement can give such a key
                out[name.lower()] = free[0]
    return out


def check(connection: sqlite3.Connection, names: Iterable[str], of: Mapping[str, str]) -> None:
    """DataError if the statement that was just performed has put a row there. ``of``: what ``keys`` gave."""
    for name in names:
        key = "CAST(seq AS INTEGER)" if name == _SEQUENCE else quote(of[name])
        largest = connection.execute(f"SELECT max({key}) FROM {quote(name)}").fetchone()[0]
        if isinstance(largest, int) and largest >= END:
            raise DataError(
                f"a row of {name} would have the key {largest}: after the largest integer SQLite picks keys by chance; "
                f"keys are less than {END}"
            )
