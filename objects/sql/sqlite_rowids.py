"""Keys that SQLite gives by itself: what may be said about the last one, and where they would end.

After the largest integer SQLite picks keys by chance, or says that the disk is full and takes back the whole batch. So
no row gets a key that is near to it.

``Result.lastrowid`` must not tell of an earlier statement of the connection: what was there before differs from replica
to replica.
"""

import re
import sqlite3
from functools import lru_cache
from typing import Any, Final, NamedTuple

from objects.sql.errors import DataError
from objects.sql.values import quote

END: Final = (1 << 63) - (1 << 20)

_INTO: Final = re.compile(
    r"""\s*(?:insert(?:\s+or\s+\w+)?|replace)\s+into\s+(?:main\s*\.\s*)?(?:"((?:[^"]|"")+)"|`([^`]+)`|\[([^]]+)\]|(\w+))""",
    re.IGNORECASE,
)
_UPSERT: Final = re.compile(r"\bdo\s+update\b", re.IGNORECASE)
_COMPUTED: Final = re.compile(r"[-+*/|&~<>]|\bselect\b", re.IGNORECASE)
_NEAR: Final = str(END)[:12]


class Insight(NamedTuple):
    """``into``: the table, if all that is told about the last key can be told; ``far``: keys may be too large."""

    into: str
    far: bool


@lru_cache(2048)
def insight(text: str, inserts: bool) -> Insight:
    found = _INTO.match(text) if inserts and not _UPSERT.search(text) else None
    name = next((n for n in found.groups() if n), "").replace('""', '"').lower() if found else ""
    return Insight(name, _NEAR in text or (inserts and _COMPUTED.search(text) is not None))


def is_far(values: Any) -> bool:
    """Is one of the parameters a number that could be such a key?"""
    for value in values:  # noqa: SIM110  # quicker than any(...), and every statement is asked
        if type(value) is int and value >= END:
            return True
    return False


def tables(connection: sqlite3.Connection) -> list[str]:
    """Tables that have such keys, as they are written."""
    found = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%WITHOUT%ROWID%' "
        "AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE '!_obo%' ESCAPE '!'"
    )
    return [name for (name,) in found.fetchall()]


def check(connection: sqlite3.Connection, names: list[str]) -> None:
    """DataError if the statement that was just performed has put a row there."""
    for name in names:
        largest = connection.execute(f"SELECT max(_rowid_) FROM {quote(name)}").fetchone()[0]
        if isinstance(largest, int) and largest >= END:
            raise DataError(
                f"a row of {name} would have the key {largest}: after the largest integer SQLite picks keys by chance; "
                f"keys are less than {END}"
            )
