"""What a database is made of, as far as footprints need it. Names are as keys use them: of SQLite in lower case, of
PostgreSQL with the schema where it is not ``public``."""

import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from objects.sql.footprint.same import Sort
from objects.sql.tokens import Dialect

if TYPE_CHECKING:
    from objects.sql.footprint.template import Template

#: What happens to children when the parent goes or gets another key. default: they get another parent.
Action = Literal["refuse", "change", "default"]


class Column(msgspec.Struct, frozen=True):
    name: str
    sort: Sort
    default: bool = False  # does it get a value when INSERT gives none?
    computed: bool = False  # from other columns
    sequence: str | None = None  # what numbers it when INSERT gives no value


class Unique(msgspec.Struct, frozen=True):
    """A constraint besides the primary key. ``nulls``: are two NULLs equal for it?"""

    name: str
    columns: tuple[str, ...]
    nulls: bool = False


class Reference(msgspec.Struct, frozen=True):
    """A foreign key. ``to`` are columns of the parent, in the order of ``columns``."""

    child: str
    columns: tuple[str, ...]
    parent: str
    to: tuple[str, ...]
    on_delete: Action = "refuse"
    on_update: Action = "refuse"


class Table(msgspec.Struct, frozen=True):
    """``key``: the columns of the primary key; none: its rows have no names.

    ``numbered``: SQLite numbers its rows as they come, besides the primary key, so the order of INSERTs matters.
    ``given``: a column of the key that the database numbers when INSERT gives no value, or NULL.
    ``odd``: why every change of it is a change of the whole table, such as a unique index on an expression.
    ``opaque``: why nobody knows what a change of it does, such as a trigger with code.
    """

    name: str
    columns: Mapping[str, Column]
    order: tuple[str, ...]  # of the columns that INSERT without a list of columns fills
    key: tuple[str, ...] = ()
    given: str | None = None
    numbered: bool = False
    odd: str = ""
    opaque: str = ""
    uniques: tuple[Unique, ...] = ()
    references: tuple[Reference, ...] = ()
    referrers: tuple[Reference, ...] = ()


class Schema(msgspec.Struct, eq=False):
    """``bare``: SQLite: a database in memory with this schema and no rows, to ask what a statement touches."""

    version: int
    dialect: Dialect
    tables: Mapping[str, Table]
    views: Mapping[str, frozenset[str]]  # to the tables that they read; SQLite tells this itself
    bare: sqlite3.Connection | None = None
    unknown: frozenset[str] = frozenset()  # PostgreSQL: functions of users: what they read is not known
    volatile: frozenset[str] = frozenset()  # PostgreSQL: functions that give another value each time
    templates: "dict[str, Template]" = {}
