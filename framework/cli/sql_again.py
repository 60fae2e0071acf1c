"""A schema, made again: in which order, and with which words.

Tables come first, then their rows, then indexes, views and triggers: that is quicker, and a trigger must not act a
second time. PostgreSQL tells of SERIAL as of a sequence and a default that asks it; said like this it could not be
replicated, so it becomes SERIAL again. Sequences then go on behind the highest key there is.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_NAME = r'"(?:[^"]|"")+"|\w+'
_FIRST = re.compile(r"\s*CREATE\s+(?:\w+\s+)*?(?:TABLE|TYPE|DOMAIN|SCHEMA|EXTENSION|SEQUENCE)\b", re.I)
_TABLE = re.compile(rf"\s*CREATE\s+(?:\w+\s+)*?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?({_NAME})\s*\(", re.I)
_VIEW = re.compile(rf"\s*CREATE\s+(?:\w+\s+)*?VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?({_NAME})", re.I)
_SEQUENCE = re.compile(rf"\s*CREATE\s+SEQUENCE\s+({_NAME})", re.I)
_SERIAL = re.compile(rf"[(,] ?({_NAME}) (smallint|integer|bigint) DEFAULT nextval\('({_NAME})'::regclass\)")
_IDENTITY = re.compile(rf"[(,] ?({_NAME}) \w+ GENERATED (?:ALWAYS|BY DEFAULT) AS IDENTITY")
_KINDS = {"smallint": "smallserial", "integer": "serial", "bigint": "bigserial"}


class Numbered(NamedTuple):
    """A column whose values the database counts. Names are written as in SQL."""

    table: str
    column: str
    sequence: str = ""  # empty: it is the column's own

    def restart(self, number: int) -> str:
        if self.sequence:
            return f"ALTER SEQUENCE {self.sequence} RESTART WITH {number}"
        return f"ALTER TABLE {self.table} ALTER COLUMN {self.column} RESTART WITH {number}"


def before_rows(schema: Sequence[str]) -> list[str]:
    """What rows need."""
    own = {name for text in schema for _, _, name in _serials(text)}
    found = [text for text in schema if _FIRST.match(text)]
    return [_with_serial(text) for text in found if not ((s := _SEQUENCE.match(text)) and s[1] in own)]


def after_rows(schema: Sequence[str]) -> list[str]:
    return [text for text in schema if not _FIRST.match(text)]


def drops(schema: Iterable[str]) -> list[str]:
    """What takes it away again; some may need others to go first."""
    kinds = ((_VIEW, "VIEW"), (_TABLE, "TABLE"), (_SEQUENCE, "SEQUENCE IF EXISTS"))
    return [f"DROP {what} {found[1]}" for form, what in kinds for text in schema if (found := form.match(text))]


def numbered(schema: Iterable[str]) -> list[Numbered]:
    """Of PostgreSQL: SQLite goes on behind the highest by itself."""
    found: list[Numbered] = []
    for text in schema:
        if table := _TABLE.match(text):
            found += [Numbered(table[1], column, sequence) for column, _, sequence in _serials(text)]
            found += [Numbered(table[1], identity[1]) for identity in _IDENTITY.finditer(text)]
    return found


def _serials(text: str) -> Iterator[tuple[str, str, str]]:
    """Column, type and sequence, where the sequence has the name that SERIAL gives."""
    table = _TABLE.match(text)
    for found in _SERIAL.finditer(text) if table else ():
        assert table is not None
        if _bare(found[3]) == f"{_bare(table[1])}_{_bare(found[1])}_seq":
            yield found[1], found[2], found[3]


def _with_serial(text: str) -> str:
    for column, kind, sequence in _serials(text):
        text = text.replace(f"{column} {kind} DEFAULT nextval('{sequence}'::regclass)", f"{column} {_KINDS[kind]}", 1)
    return text


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
