"""What a statement does, before its parameters are known; and what follows from that by foreign keys.

Rows are told by their primary key only. A table that is touched as a whole needs nothing else: all who touch rows of
it say so at the table. For unique constraints the values matter, too, and the old ones are not known:

    INSERT takes a value that is known            constraint iw, value w
    DELETE gives back one that is not             constraint r      (two of these do not disturb each other)
    UPDATE does both; or the value is computed    constraint w
"""

from typing import Literal

import msgspec

from objects.sql.footprint.schema import Action, Reference, Schema, Table, Unique

Access = Literal["r", "w"]


class Constant(msgspec.Struct, frozen=True):
    value: object  # as the driver would give it


class Parameter(msgspec.Struct, frozen=True):
    at: int | str


#: What a column is compared with or gets.
Source = Constant | Parameter

NULL = Constant(None)


class Row(msgspec.Struct, frozen=True):
    """A row of ``table``, by a source for each column of its key. ``of``: the columns where the values come from, if
    these are others (a foreign key); then NULL means that there is no row."""

    table: Table
    access: Access
    sources: tuple[Source, ...]
    of: tuple[Table, tuple[str, ...]] | None = None


class Taken(msgspec.Struct, frozen=True):
    table: Table
    unique: Unique
    sources: tuple[Source, ...]


class Effects:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.whole: dict[str, Access] = {}
        self.why: dict[str, str] = {}  # a table is touched as a whole
        self.rows: list[Row] = []
        self.taken: list[Taken] = []
        self.given_back: set[tuple[str, str]] = set()  # table, constraint
        self.moved: set[tuple[str, str]] = set()
        self.sequences: set[str] = set()
        self.followed: set[str] = (
            set()
        )  # children that change with their parents, and whose own children were looked at
        self.spared: set[tuple[str, str]] = set()  # columns of parents that nobody looks at: the child's value is NULL
        self.unknown = ""  # why it conflicts with everything

    def everything(self, why: str) -> None:
        self.unknown = self.unknown or why

    def read(self, name: str, why: str) -> None:
        if name not in self.whole:
            self.whole[name] = "r"
            self.why[name] = why

    def write(self, table: Table, why: str) -> None:
        """The whole table. What follows from that depends on what is done to it."""
        self.touch(table)
        if self.whole.get(table.name) != "w":
            self.whole[table.name] = "w"
            self.why[table.name] = why

    def anything(self, table: Table, why: str) -> None:
        """The whole table, and all that may follow from whatever is done to it."""
        self.write(table, why)
        for up in table.references:
            self.parent(up, table, (None,))
        for down in table.referrers:
            self.children(down, down.on_delete)
            self.children(down, down.on_update)

    def reaches(self, name: str, column: str) -> bool:
        """Return whether something is told of the table, or that this column of it is not looked at."""
        return name in self.whole or any(r.table.name == name for r in self.rows) or (name, column) in self.spared

    def touch(self, table: Table) -> None:
        """Some change of it."""
        if table.opaque:
            self.everything(f"{table.name}: {table.opaque}")

    def children(self, reference: Reference, action: Action) -> None:
        """The parent's row goes, or gets another key."""
        child = self.schema.tables.get(reference.child)
        if action == "refuse" or child is None:
            self.read(reference.child, f"it refers to {reference.parent}")
            return
        if action == "default":
            self.read(reference.parent, f"{reference.child} may refer to another row of it")
        # the child's columns get new values, which its other parents must have
        for up in child.references:
            if up != reference and any(c in reference.columns or child.columns[c].computed for c in up.columns):
                self.parent(up, child, (None,))
        if child.name not in self.followed:
            self.followed.add(child.name)
            self.write(child, f"it changes with {reference.parent}")
            for down in child.referrers:
                self.children(down, down.on_delete)
                self.children(down, down.on_update)

    def parent(self, reference: Reference, child: Table, sources: "tuple[Source | None, ...]") -> None:
        """The child's row gets these values, or ones that are not known."""
        parent = self.schema.tables.get(reference.parent)
        known = tuple(s for s in sources if s is not None)
        if NULL in known:
            self.spared |= {(reference.parent, column) for column in reference.to}
            return
        if parent is None or len(known) < len(sources) or sorted(reference.to) != sorted(parent.key):
            self.read(reference.parent, f"{reference.child} refers to it, by a value that is not known before")
            return
        by_name = dict(zip(reference.to, zip(reference.columns, known, strict=True), strict=True))
        columns = tuple(by_name[k][0] for k in parent.key)
        self.rows.append(Row(parent, "r", tuple(by_name[k][1] for k in parent.key), (child, columns)))

    def take(self, table: Table, unique: Unique, sources: "tuple[Source | None, ...]") -> None:
        known = tuple(s for s in sources if s is not None)
        if NULL in known and not unique.nulls:
            return
        if len(known) < len(sources):
            self.moved.add((table.name, unique.name))
        else:
            self.taken.append(Taken(table, unique, known))

    def give_back(self, table: Table, unique: Unique) -> None:
        """A value that is not known."""
        self.given_back.add((table.name, unique.name))
