"""sqlglot's tree of a statement: the few forms that are needed of it. Whatever has another form is not understood."""

import logging
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import sqlglot
from sqlglot import exp

from objects.sql.footprint.effects import Constant, Parameter, Source
from objects.sql.footprint.same import Sort
from objects.sql.footprint.schema import Table
from objects.sql.statement import Statement
from objects.sql.tokens import folded

#: Casts that leave a value as a column of this sort has it. SQLAlchemy writes them.
_CASTS: Final[Mapping[str, Sort]] = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT"), "pg int"),
    **dict.fromkeys(("TEXT", "VARCHAR"), "pg text"),
    "UUID": "pg uuid",
    "BOOLEAN": "pg bool",
    "DATE": "pg date",
}

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of each statement that it does not know; we fail closed

_LONGEST = 5_000  # characters: a parse takes a millisecond for two hundred, and calls wait meanwhile


def parsed(statement: Statement) -> exp.Expression | None:
    """None: the parser does not know it, or it is too long to ask."""
    if len(statement.plain) > _LONGEST:
        return None
    try:
        found = sqlglot.parse(_for_parser(statement), dialect=statement.dialect, error_level=sqlglot.ErrorLevel.RAISE)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError, KeyError, AttributeError, TypeError, IndexError):
        return None  # its own faults count as not understood
    root = found[0] if len(found) == 1 else None
    return root if isinstance(root, exp.Expression) else None


def _for_parser(statement: Statement) -> str:
    """What sqlglot cannot read, written in another way: REPLACE INTO, UPDATE OR IGNORE."""
    text = statement.plain
    words = text.split(None, 3)
    first = words[0].lower()
    if statement.dialect == "sqlite" and first == "replace":
        return "INSERT OR REPLACE" + text[len(first) :]
    if first == "update" and len(words) == 4 and words[1].lower() == "or":
        return f"UPDATE {words[3]}"
    return text


def part(node: exp.Expression, name: str) -> Any:
    """Of a node; sqlglot calls those whose names are words of Python ``from_`` or ``from``, by its version."""
    return node.args.get(f"{name}_") or node.args.get(name)


def name_of(node: exp.Expression | None, dialect: str) -> str:
    """The name that an identifier means."""
    if isinstance(node, exp.Identifier):
        text = str(node.this)
        return folded(text) if dialect == "sqlite" or not node.args.get("quoted") else text
    return ""


def table_name(node: exp.Table, dialect: str) -> str:
    """As in Schema.tables; empty for a function."""
    if not isinstance(node.this, exp.Identifier) or node.args.get("catalog") is not None:
        return ""
    name, space = name_of(node.this, dialect), name_of(node.args.get("db"), dialect)
    if space in ("", "main" if dialect == "sqlite" else "public"):
        return name
    return f"{space}.{name}"


def alias_of(node: exp.Table, dialect: str) -> str:
    """By what name columns of it are called."""
    alias = node.args.get("alias")
    return name_of(alias.this if isinstance(alias, exp.TableAlias) else node.this, dialect)


def conjuncts(node: Any) -> Iterator[exp.Expression]:
    """What must all be true."""
    if isinstance(node, exp.Where | exp.Paren):
        yield from conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from conjuncts(node.this)
        yield from conjuncts(node.expression)
    elif isinstance(node, exp.Expression):
        yield node


def column_of(node: Any, table: Table, alias: str, alone: bool, dialect: str) -> str | None:
    """The column of the table that is meant. ``alone``: no other table can be."""
    if isinstance(node, exp.Paren):
        return column_of(node.this, table, alias, alone, dialect)
    if not isinstance(node, exp.Column) or node.args.get("db") is not None:
        return None
    qualifier = name_of(node.args.get("table"), dialect)
    if qualifier != alias and (qualifier or not alone):
        return None
    return named(name_of(node.this, dialect), table)


def named(name: str, table: Table) -> str | None:
    if name in table.columns:
        return name
    if name in ("rowid", "oid", "_rowid_"):
        return table.given  # SQLite: another name of INTEGER PRIMARY KEY
    return None


def source_of(node: Any, statement: Statement, sort: Sort) -> Source | None:
    """A constant or a parameter, or None. ``sort``: of the column that gets it or is compared with it."""
    if isinstance(node, exp.Paren):
        return source_of(node.this, statement, sort)
    if isinstance(node, exp.Cast) and type(node) is exp.Cast and statement.dialect == "postgres":
        kind = node.args.get("to")
        plain = isinstance(kind, exp.DataType) and not kind.expressions and _CASTS.get(str(kind.this.value)) == sort
        return source_of(node.this, statement, sort) if plain else None
    if isinstance(node, exp.Placeholder):
        name = str(node.this or "")
        number = int(name[1:]) if name[:1] == "p" and name[1:].isdecimal() else len(statement.params)
        return Parameter(statement.params[number]) if number < len(statement.params) else None
    if isinstance(node, exp.Null):
        return Constant(None)
    if isinstance(node, exp.Boolean) and statement.dialect == "postgres":  # for SQLite it may be a column of that name
        return Constant(bool(node.this))
    if isinstance(node, exp.Literal):
        if node.is_string:
            return None if "\\" in str(node.this) and statement.dialect == "postgres" else Constant(str(node.this))
        return _number(str(node.this), statement.dialect)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        found = _number(str(node.this.this), statement.dialect)
        return None if found is None else Constant(-found.value)  # type: ignore[operator]
    return None


def _number(text: str, dialect: str) -> Constant | None:
    try:
        if text.isdecimal() and text.isascii():
            return Constant(int(text)) if int(text) < 1 << 63 else None
        return Constant(float(text) if dialect == "sqlite" else Decimal(text))
    except (ValueError, ArithmeticError):
        return None
