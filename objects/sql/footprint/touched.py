"""What a statement touches: judged once for each text and schema, then only keys are computed."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from framework import Keys, Mode
from objects.sql.footprint.asked import asked
from objects.sql.footprint.effects import Effects
from objects.sql.footprint.judge import Judge
from objects.sql.footprint.schema import Schema
from objects.sql.footprint.template import (
    CONSTRAINT,
    MOST_KEYS,
    ROW,
    SEQUENCE,
    Params,
    Template,
    both,
    everything,
    template,
)
from objects.sql.footprint.tree import parsed
from objects.sql.kinds import PRAGMAS, Kind
from objects.sql.statement import Statement

_REMEMBERED: Final = 4096
_NOTHING: Final = Template((), (), (), {})

#: What SQLite makes up from arguments, and its own list of tables, which only DDL changes.
_MADE_UP: Final = frozenset({"json_each", "json_tree", "sqlite_master", "sqlite_schema"})

#: PostgreSQL's own, which only DDL changes.
_CATALOGUE: Final = ("pg_", "information_schema.")


def touches(statement: Statement, params: Params, schema: Schema) -> Keys | None:
    """The keys of one statement; None: it conflicts with everything. ``params`` as the driver gets them."""
    statement.check(params)
    found = schema.templates.get(statement.text)
    if found is None:
        found = _remember(statement, schema)
    return found.keys(params)


def single_rows(keys: Keys) -> bool:
    """Are these rows told one by one, which are read, and nothing else?"""
    return all(mode == "ir" or (mode == "r" and ROW in key) for key, mode in keys)


def union(parts: Iterable[Keys | None]) -> Keys | None:
    """Of several statements that are performed as one."""
    out: dict[str, Mode] = {}
    for keys in parts:
        if keys is None:
            return None
        for key, mode in keys:
            out[key] = both(mode, out[key]) if key in out else mode
    return tuple(_fewer(out).items())


def _fewer(keys: dict[str, Mode]) -> dict[str, Mode]:
    """Whole tables instead of too many rows; and no rows of tables that are touched as a whole."""
    many = len(keys) > MOST_KEYS
    out: dict[str, Mode] = {}
    for key, mode in keys.items():
        table = key.partition(ROW)[0].partition(CONSTRAINT)[0]
        if key == table and many and not key.startswith(SEQUENCE):
            out[key] = "w" if mode in ("w", "iw") else "r"
        elif key == table or (not many and keys.get(table) in ("ir", "iw")):
            out[key] = mode
    return out


def _remember(statement: Statement, schema: Schema) -> Template:
    found = _judged(statement, schema)
    if len(statement.text) <= MOST_TEXT:
        if len(schema.templates) >= _REMEMBERED:
            schema.templates.clear()
        schema.templates[statement.text] = found
    return found


MOST_TEXT: Final = 20_000


def _judged(statement: Statement, schema: Schema) -> Template:
    if statement.kind in ("ddl", "analyze"):
        return everything("it changes the schema, or what plans are made from")
    first = statement.plain.split(None, 1)[0].lower()
    if first == "explain":
        return _NOTHING
    if first == "pragma":
        name = statement.plain[len(first) :].partition("(")[0].split(".")[-1].strip().lower()
        return _NOTHING if PRAGMAS.get(name) == "schema" else everything("it reads all tables")
    effects = Effects(schema)
    judge = Judge(statement, parsed(statement), effects)
    judge.judge()
    if schema.dialect == "sqlite":
        _compare(judge, effects, schema)
    else:
        _look_up(judge, effects, schema)
    return template(effects)


def _compare(judge: Judge, effects: Effects, schema: Schema) -> None:
    """What SQLite tells is never dropped: a table of which nothing else gives account is touched as a whole."""
    told = "the schema cannot be copied" if schema.bare is None else asked(schema.bare, judge.statement)
    if isinstance(told, str):
        return effects.everything(told)
    names, overlooked, why = judge.names(), judge.overlooked(), judge.why
    for table, access, by, _ in told.named:
        known = schema.tables.get(table)
        if known is None:
            _of_its_own(table, effects, schema)
        elif access == "w" and (by or table != judge.target):
            effects.anything(known, f"through {by}" if by else why)
        elif access == "r" and (by or table not in names or table in overlooked):
            effects.read(table, f"through {by}" if by else why)
    for table, access, by, column in told.linked:
        known = schema.tables.get(table)
        if known is None:
            _of_its_own(table, effects, schema)
        elif access == "w" and (by or effects.whole.get(table) != "w"):
            effects.anything(known, f"through {by or 'a foreign key'}")
        elif access == "r" and (by or not effects.reaches(table, column)):
            effects.read(table, f"through {by or 'a foreign key'}")
    if judge.statement.writes and not any(one.access == "w" for one in told.named):
        effects.everything("SQLite does not tell what it changes")


def _of_its_own(table: str, effects: Effects, schema: Schema) -> None:
    """What is no table of users: a view, which is told by what it reads, or something of SQLite's."""
    made_up = table in schema.views or table in _MADE_UP
    if not made_up and PRAGMAS.get(table.removeprefix("pragma_")) != "schema":
        effects.everything(f"{table} is a table of SQLite's own")


def _look_up(judge: Judge, effects: Effects, schema: Schema) -> None:
    """PostgreSQL does not tell: the catalogue has to. A table whose name the parser has overlooked is read."""
    statement, names = judge.statement, judge.names()
    code = statement.names & schema.unknown
    if code:
        return effects.everything(f"it calls {min(code)}(), and what that reads is not known")
    if statement.writes and judge.target not in schema.tables:
        return effects.everything("it is not understood what it changes")
    for name in sorted(names - judge.ctes()):
        if name not in schema.tables and name not in schema.views and not name.startswith(_CATALOGUE):
            return effects.everything(f"{name} is not known, or has rules of its own")
    overlooked = judge.overlooked()
    for name in schema.tables:
        if name.rpartition(".")[2] in overlooked:
            effects.read(name, "its name is in the statement")
    for name, tables in schema.views.items():
        if name in names or name.rpartition(".")[2] in overlooked:
            for table in tables:
                effects.read(table, f"through {name}")


class Explained(msgspec.Struct, frozen=True):
    """A footprint in words. ``keys``: what is touched, to how it is; ``whole``: why a table is touched as a whole."""

    kind: Kind
    keys: dict[str, str]
    whole: dict[str, str]
    everything: str  # why it conflicts with everything; empty if it does not
    schema: int


_WORDS: Final[Mapping[Mode, str]] = {
    "r": "reads",
    "w": "writes",
    "ir": "reads rows of",
    "iw": "writes rows of",
}


def explain(statement: Statement, params: Params, schema: Schema) -> Explained:
    keys = touches(statement, params, schema)
    found = schema.templates.get(statement.text) or _judged(statement, schema)
    whole = {}
    for key, mode in keys or ():
        if mode in ("r", "w") and not any(sign in key for sign in (ROW, CONSTRAINT, SEQUENCE)):
            whole[in_words(key)] = found.why.get(key, "a value that cannot be told")
    words = {in_words(key): _WORDS[mode] for key, mode in keys or ()}
    return Explained(statement.kind, words, whole, found.unknown if keys is None else "", schema.version)


def in_words(key: str) -> str:
    """A key, for people."""
    table, of_row, row = key.partition(ROW)
    table, of_constraint, name = table.partition(CONSTRAINT)
    if key.startswith(SEQUENCE):
        return f"sequence {key[1:]}"
    if of_constraint:
        return f"{table}, unique {name}" + (f" {row}" if of_row else "")
    return f"{table} row {row}" if of_row else f"table {table}"
