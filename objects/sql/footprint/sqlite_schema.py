"""The schema of a SQLite database, and a copy of it without rows that can be asked what a statement touches."""

import sqlite3
from typing import Any, Final

from objects.sql.footprint.same import Sort
from objects.sql.footprint.schema import Action, Column, Reference, Schema, Table, Unique
from objects.sql.refuse import RESERVED
from objects.sql.tokens import folded, tokens

Connection = sqlite3.Connection

_ACTIONS: Final[dict[str, Action]] = {"CASCADE": "change", "SET NULL": "change", "SET DEFAULT": "default"}


def read_sqlite(connection: Connection, version: int) -> Schema:
    """``version``: what the database says of itself; read it in the same transaction."""
    made = [
        (kind, name, text)
        for kind, name, text in connection.execute("SELECT type, name, sql FROM sqlite_schema")
        if not folded(name).startswith((RESERVED, "sqlite_")) and text is not None
    ]
    try:
        bare = _bare(made)
    except sqlite3.Error:  # say, an index on a function that only the database itself has: then nothing can be told
        return Schema(version, "sqlite", {}, {}, templates={})
    plain = {folded(name): _table(bare, name, text) for kind, name, text in made if kind == "table"}
    references = [r for name in plain for r in _references(bare, name, plain)]
    tables = {
        name: _related(table, [r for r in references if r.child == name], [r for r in references if r.parent == name])
        for name, table in plain.items()
    }
    views = {folded(name): frozenset[str]() for kind, name, _ in made if kind == "view"}
    return Schema(version, "sqlite", tables, views, bare, templates={})


def _bare(made: list[tuple[str, str, str]]) -> Connection:
    """Built from the texts that the database itself keeps. Triggers come last: they may name any table."""
    bare = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=0)
    for kind in ("table", "index", "view", "trigger"):
        for _, _, text in (m for m in made if m[0] == kind):
            bare.execute(text)
    bare.execute("PRAGMA foreign_keys = ON")
    bare.execute("PRAGMA recursive_triggers = ON")  # REPLACE may then set off triggers, too: more is on the safe side
    return bare


def _related(table: Table, up: list[Reference], down: list[Reference]) -> Table:
    return Table(
        table.name, table.columns, table.order, table.key, table.given, table.numbered, table.odd, table.opaque,
        table.uniques, tuple(up), tuple(down),
    )  # fmt: skip


def _table(bare: Connection, name: str, text: str) -> Table:
    info = bare.execute("SELECT * FROM pragma_table_xinfo(?)", (name,)).fetchall()
    columns = {folded(c[1]): _column(c) for c in info}
    key = tuple(folded(c[1]) for c in sorted(info, key=lambda c: c[5]) if c[5])
    indexes = bare.execute('SELECT name, origin, partial FROM pragma_index_list(?) WHERE "unique"', (name,)).fetchall()
    clustered = bool(bare.execute("SELECT wr FROM pragma_table_list(?) WHERE schema = 'main'", (name,)).fetchone()[0])
    own_number = len(key) == 1 and not clustered and not any(origin == "pk" for _, origin, _ in indexes)
    uniques = [_unique(bare, index, partial) for index, origin, partial in indexes if origin != "pk"]
    odd = "a unique index on an expression, or on some of the rows" if None in uniques else ""
    if _replaces(text):
        odd = "ON CONFLICT REPLACE in its definition"
    return Table(
        folded(name),
        columns,
        tuple(folded(c[1]) for c in info if not c[6]),
        key,
        given=key[0] if own_number else None,
        numbered=not clustered and not own_number,
        odd=odd,
        uniques=tuple(u for u in uniques if u is not None),
    )


def _column(info: Any) -> Column:
    _, name, kind, _, default, _, hidden = info
    return Column(folded(name), _affinity(kind or ""), default is not None, hidden in (2, 3))


def _affinity(kind: str) -> Sort:
    """Rules of SQLite (Datatypes, 3.1), in its order."""
    kind = kind.upper()
    if "INT" in kind:
        return "integer"
    if any(part in kind for part in ("CHAR", "CLOB", "TEXT")):
        return "text"
    if not kind or "BLOB" in kind:
        return "blob"
    return "real" if any(part in kind for part in ("REAL", "FLOA", "DOUB")) else "numeric"


def _unique(bare: Connection, index: str, partial: int) -> Unique | None:
    found = bare.execute("SELECT cid, name FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno", (index,)).fetchall()
    if partial or any(cid < 0 for cid, _ in found):
        return None
    columns = tuple(folded(name) for _, name in found)
    return Unique(",".join(columns), columns)


def _replaces(text: str) -> bool:
    found = tokens(text, "sqlite")
    return any(
        a.is_("on") and b.is_("conflict") and c.is_("replace")
        for a, b, c in zip(found, found[1:], found[2:], strict=False)
    )


def _references(bare: Connection, name: str, tables: dict[str, Table]) -> list[Reference]:
    rows = bare.execute(
        'SELECT id, "table", "from", "to", on_delete, on_update FROM pragma_foreign_key_list(?) ORDER BY id, seq',
        (name,),
    ).fetchall()
    out = []
    for number in dict.fromkeys(r[0] for r in rows):
        parts = [r for r in rows if r[0] == number]
        parent = folded(parts[0][1])
        to = tuple(folded(p[3]) for p in parts if p[3] is not None)
        if not to and parent in tables:
            to = tables[parent].key
        out.append(
            Reference(name, tuple(folded(p[2]) for p in parts), parent, to, _action(parts[0][4]), _action(parts[0][5]))
        )
    return out


def _action(word: str) -> Action:
    return _ACTIONS.get(word.upper(), "refuse")
