"""What a statement that writes will read and change, told by SQLite itself on the connection that performs it.

The authorizer is asked while SQLite compiles the statement, once for each text and schema: it knows of views, triggers
and foreign keys, and no way of writing a name hides anything from it. Two things follow:

    places on the disk      ``rootpage``, dbstat and other tables that SQLite makes up of one file are refused
    keys                    which tables may get a row with another key than the one that SQLite gives (sqlite_rowids)
"""

import sqlite3
from typing import Final, NamedTuple

from objects.sql import sqlite_rowids
from objects.sql.errors import ProgrammingError, from_sqlite, shown
from objects.sql.footprint.asked import nulls
from objects.sql.statement import Statement
from objects.sql.tokens import folded

_REMEMBERED: Final = 4096
_ROWID: Final = "rowid"

#: What is made up of nothing but its arguments.
_MADE_UP: Final = frozenset({"json_each", "json_tree"})
_SCHEMA: Final = frozenset({"sqlite_master", "sqlite_schema", "sqlite_sequence"})


class Reach(NamedTuple):
    """``keyed``: tables that may get rows with keys of any kind. ``given``: these keys are values of the statement, or
    parameters, and nothing that is computed."""

    keyed: tuple[str, ...]
    given: bool


_NOTHING: Final = Reach((), True)


class Reaches:
    """Of the statements that one connection has performed, for the schema as it is in the open batch."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._raw = connection
        self._told: set[tuple[int, str, str]] | None = None
        self._reaches: dict[str, Reach] = {}
        self.keys: dict[str, str] = {}  # of each table whose rows have numbers, in lower case: the column, or rowid
        self._own: frozenset[str] = frozenset()  # tables and views of users
        self._strange: frozenset[str] = frozenset()  # tables that SQLite makes up
        connection.set_authorizer(self._listen)

    def _listen(self, action: int, first: str | None, second: str | None, _: str | None, __: str | None) -> int:
        if self._told is not None:
            self._told.add((action, folded(first or ""), folded(second or "")))
        return sqlite3.SQLITE_OK

    def look(self) -> None:
        """The schema is another one, or may be."""
        self._reaches.clear()
        self.keys = sqlite_rowids.keys(self._raw)
        found = self._raw.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')").fetchall()
        self._own = frozenset(folded(name) for (name,) in found if not folded(name).startswith("sqlite_"))
        modules = self._raw.execute("SELECT name FROM pragma_module_list").fetchall()
        self._strange = frozenset(folded(name) for (name,) in modules) - _MADE_UP

    def of(self, statement: Statement) -> Reach:
        """ProgrammingError if replicas would read different things."""
        found = self._reaches.get(statement.text)
        if found is None:
            found = self._ask(statement)
            if len(self._reaches) >= _REMEMBERED:
                self._reaches.clear()
            self._reaches[statement.text] = found
        return found

    def _ask(self, statement: Statement) -> Reach:
        if statement.kind == "analyze" or (statement.kind == "ddl" and statement.plain[:6].lower() != "create"):
            return _NOTHING
        told = self._told = set()
        try:
            self._raw.execute(f"EXPLAIN {statement.run}", nulls(statement)).close()
        except sqlite3.Error as error:
            raise from_sqlite(error, statement.text) from error
        finally:
            self._told = None
        for action, table, column in told:
            if action == sqlite3.SQLITE_READ:
                self._check(table, column, statement)
        if statement.kind == "ddl":
            return _NOTHING
        keyed = {table for action, table, column in told if self._gives_key(action, table, column)}
        return Reach(tuple(sorted(keyed)), statement.kind == "insert" and sqlite_rowids.is_given(statement, keyed))

    def _gives_key(self, action: int, table: str, column: str) -> bool:
        key = self.keys.get(table)
        if key is None:
            return table == "sqlite_sequence" and action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE)
        return action == sqlite3.SQLITE_INSERT or (action == sqlite3.SQLITE_UPDATE and column in (_ROWID, key))

    def _check(self, table: str, column: str, statement: Statement) -> None:
        strange = table in self._strange or table.startswith(("pragma_", "sqlite_"))
        if table in self._own or not (strange or column == "rootpage"):
            return
        if table not in _SCHEMA or column == "rootpage":
            raise ProgrammingError(
                f"{table}{'.' if column else ''}{column} is refused in a statement that changes data: it tells of one "
                f"file, and replicas need not store rows at the same place; in: {shown(statement.text)}"
            )
