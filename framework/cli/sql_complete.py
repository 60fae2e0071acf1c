"""Completion in the SQL shell: keywords, tables, columns, and the shell's own commands."""

import re
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from framework.cli.sql_commands import COMMANDS
from framework.cli.sql_show import MODES
from framework.cli.sql_split import quoted
from framework.errors import OboError

if TYPE_CHECKING:
    from objects.sql.client import Sql

KEYWORDS = re.findall(
    r"\w+",
    "ALTER ANALYZE AND AS ASC BEGIN BETWEEN BY CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT "
    "CONSTRAINT COUNT CREATE CURRENT_TIMESTAMP DEFAULT DELETE DESC DISTINCT DO DROP ELSE END EXCEPT "
    "EXISTS FOREIGN FROM FULL GROUP HAVING IF IN INDEX INNER INSERT INTEGER INTERSECT INTO IS JOIN "
    "KEY LEFT LIKE LIMIT NOT NOTHING NULL OFFSET ON OR ORDER OUTER PRIMARY REFERENCES RETURNING "
    "ROLLBACK SELECT SET SUM TABLE TEXT THEN TRIGGER UNION UNIQUE UPDATE USING VALUES VIEW WHEN "
    "WHERE WITH",
)

_MOST_TABLES = 200  # whose columns are asked for
_WORD = re.compile(r"[\w.]*$")
_TABLE_NEXT = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE|ON)\s+[\w.]*$", re.I)
_LEVELS = ("any", "session", "linearizable", "majority")
_CHOICES: dict[str, Iterable[str]] = {".mode": MODES, ".read": _LEVELS, ".timing": ("on", "off")}


class Names:
    """The tables and their columns, as they were when somebody last looked. Looked up in the background."""

    def __init__(self, db: "Sql") -> None:
        self.columns: dict[str, list[str]] = {}
        self._db = db

    def refresh(self) -> None:
        threading.Thread(target=self._look, name="obo-sql-names", daemon=True).start()

    def _look(self) -> None:
        try:
            tables = self._db.tables()
            found = {table: self.columns.get(table, []) for table in tables}
            for table in tables[:_MOST_TABLES]:
                found[table] = self._db.query(f"SELECT * FROM {quoted(table)} LIMIT 0").columns
        except OboError:
            return  # nothing to complete is no reason to complain
        self.columns = found


class SqlCompleter(Completer):
    def __init__(self, names: Names) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.lstrip().startswith("."):
            yield from self._commands(before.lstrip())
            return
        found = _WORD.search(before)
        word = found[0] if found else ""
        if not word and not complete_event.completion_requested:
            return
        if "." in word:
            table, _, word = word.rpartition(".")
            yield from _matching(word, self._names.columns.get(table, ()), "column")
            return
        yield from _matching(word, self._names.columns, "table")
        if not _TABLE_NEXT.search(before):
            columns = sorted({column for each in self._names.columns.values() for column in each})
            yield from _matching(word, columns, "column")
            yield from _keywords(word)

    def _commands(self, before: str) -> Iterator[Completion]:
        name, space, rest = before.partition(" ")
        if not space:
            for command, takes, does in COMMANDS:
                if command.startswith(name):
                    yield Completion(command, -len(name), display_meta=f"{takes} {does}".strip())
        elif name == ".schema":
            yield from _matching(rest, self._names.columns, "table")
        elif name in _CHOICES:
            yield from _matching(rest, _CHOICES[name], "")


def _matching(word: str, names: Iterable[str], what: str) -> Iterator[Completion]:
    for name in names:
        if name.lower().startswith(word.lower()):
            text = name if name.isidentifier() else quoted(name)
            yield Completion(text, -len(word), display=name, display_meta=what)


def _keywords(word: str) -> Iterator[Completion]:
    """In the letters that the user types."""
    for keyword in KEYWORDS:
        if word and keyword.startswith(word.upper()):
            yield Completion(keyword.lower() if word.islower() else keyword, -len(word))
