"""From a statement to its effects, for each kind: which rows, where these can be told, and which tables otherwise."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from objects.sql.footprint.effects import NULL, Effects, Row, Source
from objects.sql.footprint.schema import Table
from objects.sql.footprint.tree import alias_of, column_of, conjuncts, name_of, named, part, source_of, table_name
from objects.sql.statement import Statement
from objects.sql.tokens import Token, folded, tokens

#: More rows than this count as the whole table: that only orders more, and keeps footprints small.
MOST = 64

NO_KEY = "no constant or parameter for each column of its primary key"
UNREAD = "the statement is too long, or written in a way that is not understood"


class Judge:
    """One statement. ``tree`` is None where it is not understood: then it touches whole tables."""

    def __init__(self, statement: Statement, tree: exp.Expression | None, effects: Effects) -> None:
        self.statement = statement
        self.dialect = statement.dialect
        self.tree = tree
        self.effects = effects
        self.tables = effects.schema.tables
        self.nodes = [] if tree is None else list(tree.find_all(exp.Table))
        self.seen: set[int] = set()  # tables in the tree whose rows are told
        self.target = ""  # the table that is changed
        self.why = "a subquery, or a form of statement that rows are not told of"

    def judge(self) -> None:
        tree = self.tree
        if tree is None or part(tree, "with") is not None:
            self.why = UNREAD if tree is None else "a common table expression"
            return self._rest()
        if isinstance(tree, exp.Select) and self.statement.kind == "select":
            self._select(tree)
        elif isinstance(tree, exp.Insert) and self.statement.kind == "insert":
            self._insert(tree)
        elif isinstance(tree, exp.Update | exp.Delete) and self.statement.kind in ("update", "delete"):
            self._change(tree)
        self._rest()

    def names(self) -> set[str]:
        """All tables that the tree has."""
        return {table_name(n, self.dialect) for n in self.nodes}

    def ctes(self) -> set[str]:
        """Names that are none of tables, but of common table expressions; and what is no name, but a function."""
        found = [] if self.tree is None else list(self.tree.find_all(exp.CTE))
        return {name_of(c.args["alias"].this, self.dialect) for c in found} | {""}

    def overlooked(self) -> set[str]:
        """Names that are more often in the text than in the tree; and those after IN, which SQLite takes for tables and
        the parser for columns."""
        words = tokens(self.statement.plain, self.dialect)
        found = Counter(self._folded(t) for t in words if t.names())
        if self.tree is not None:
            found.subtract(name_of(i, self.dialect) for i in self.tree.find_all(exp.Identifier))
        return {name for name, count in found.items() if count > 0} | set(self._after_in(words))

    def _folded(self, token: Token) -> str:
        return folded(token.value) if self.dialect == "sqlite" else token.value

    def _after_in(self, words: Sequence[Token]) -> Iterator[str]:
        """``x IN t``, ``x IN main.t``, and SQLite also takes a string for the name."""
        for i, token in enumerate(words):
            if token.is_("in"):
                at = i + 3 if i + 2 < len(words) and words[i + 2].value == "." else i + 1
                if at < len(words) and words[at].sort in ("word", "name", "string"):
                    yield self._folded(words[at])

    def _rest(self) -> None:
        for node in self.nodes:
            name = table_name(node, self.dialect)
            if id(node) not in self.seen and name in self.tables:
                self.effects.read(name, self.why)

    # where

    def _select(self, tree: exp.Select) -> None:
        first = part(tree, "from")
        sources = [] if first is None else [first.this]
        sources += [j.this for j in tree.args.get("joins") or []]
        for node in sources:
            if isinstance(node, exp.Table) and not node.args.get("joins"):
                self._read(node, tree.args.get("where"), len(sources) == 1)

    def _read(self, node: exp.Table, where: object, alone: bool) -> None:
        table = self.tables.get(table_name(node, self.dialect))
        if table is None:
            return
        self.seen.add(id(node))
        found = self._rows(node, table, where, alone)
        if found is None:
            self.effects.read(table.name, NO_KEY)
        else:
            self.effects.rows += [Row(table, "r", row) for row in found]

    def _rows(self, node: exp.Table, table: Table, where: object, alone: bool) -> list[tuple[Source, ...]] | None:
        """The rows that a condition leaves, by the primary key; None: any."""
        fixed = self._fixed(node, table, where, alone)
        if not table.key or any(k not in fixed for k in table.key):
            return None
        out: list[tuple[Source, ...]] = [()]
        for column in table.key:
            out = [(*row, source) for row in out for source in fixed[column]]
            if len(out) > MOST:
                return None
        return out

    def _fixed(self, node: exp.Table, table: Table, where: object, alone: bool) -> dict[str, Sequence[Source]]:
        """What columns are equal to."""
        out: dict[str, Sequence[Source]] = {}
        alias = alias_of(node, self.dialect)
        for fact in conjuncts(where):
            column: str | None = None
            values: list[Source | None] = []
            if isinstance(fact, exp.EQ):
                for one, other in ((fact.this, fact.expression), (fact.expression, fact.this)):
                    if column is None:
                        column = column_of(one, table, alias, alone, self.dialect)
                        values = [self._source(other, table, column)]
            elif isinstance(fact, exp.In) and fact.expressions:
                column = column_of(fact.this, table, alias, alone, self.dialect)
                values = [self._source(e, table, column) for e in fact.expressions]
            known = [v for v in values if v is not None]
            if column is not None and known and len(known) == len(values):
                if column not in out or len(known) < len(out[column]):
                    out[column] = known
        return out

    def _source(self, node: object, table: Table, column: str | None) -> Source | None:
        return None if column is None else source_of(node, self.statement, table.columns[column].sort)

    # changes

    def _target(self, node: object) -> Table | None:
        if isinstance(node, exp.Schema):
            node = node.this
        if not isinstance(node, exp.Table):
            return None
        self.seen.add(id(node))
        self.target = table_name(node, self.dialect)
        return self.tables.get(self.target)

    def _change(self, tree: exp.Update | exp.Delete) -> None:
        node = tree.this
        table = self._target(node)
        if table is None:
            return
        joined = part(tree, "from") or tree.args.get("using") or node.args.get("joins")
        rows = self._rows(node, table, tree.args.get("where"), not joined)
        if isinstance(tree, exp.Delete):
            self._gone(table)
            return self._changed(table, rows, table.odd)
        values = self._assignments(tree.expressions, table)
        if values is None:
            return self.effects.anything(table, "it is not told which columns get new values")
        self._follow(table, values)
        why = table.odd or ("UPDATE OR: other rows may have to go" if self._update_or() else "")
        if rows is not None and any(k in values for k in table.key):
            new = self._moved(table, values, rows)
            if new is None:
                why = why or "the primary key gets a value that is not known before"
            else:
                rows = [*rows, *new]
        self._changed(table, rows, why)

    def _update_or(self) -> bool:
        return self.statement.plain.lower().split(None, 2)[1:2] == ["or"]

    def _changed(self, table: Table, rows: Sequence[tuple[Source, ...]] | None, why: str) -> None:
        if why or rows is None:
            return self.effects.write(table, why or NO_KEY)
        self.effects.touch(table)
        self.effects.rows += [Row(table, "w", row) for row in rows]

    def _gone(self, table: Table) -> None:
        for unique in table.uniques:
            self.effects.give_back(table, unique)
        for reference in table.referrers:
            self.effects.children(reference, reference.on_delete)

    def _follow(self, table: Table, values: Mapping[str, Source | None]) -> None:
        for unique in table.uniques:
            if any(c in values or table.columns[c].computed for c in unique.columns):
                self.effects.moved.add((table.name, unique.name))
        for up in table.references:
            if any(c in values or table.columns[c].computed for c in up.columns):
                self.effects.parent(up, table, tuple(values.get(c) for c in up.columns))
        for down in table.referrers:
            if any(c in values or c not in table.columns or table.columns[c].computed for c in down.to):
                self.effects.children(down, down.on_update)

    def _assignments(self, nodes: Sequence[exp.Expression], table: Table) -> dict[str, Source | None] | None:
        """The new value of each column, None where it is computed; None if the columns are not told."""
        out: dict[str, Source | None] = {}
        for node in nodes:
            if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
                return None
            column = named(name_of(node.this.this, self.dialect), table)
            if column is None or column in out:
                return None
            out[column] = self._source(node.expression, table, column)
        return out

    def _moved(
        self, table: Table, values: Mapping[str, Source | None], rows: Sequence[tuple[Source, ...]]
    ) -> list[tuple[Source, ...]] | None:
        out = []
        for row in rows:
            new = [values.get(k, old) for k, old in zip(table.key, row, strict=True)]
            known = tuple(s for s in new if s is not None)
            if len(known) < len(new):
                return None
            out.append(known)
        return out

    # insert

    def _insert(self, tree: exp.Insert) -> None:
        table = self._target(tree.this)
        if table is None:
            return
        rows = self._given(tree, table)
        for name, column in table.columns.items():
            if column.sequence and (rows is None or any(row.get(name) is None for row in rows)):
                self.effects.sequences.add(column.sequence)
        if self._replaces(tree):
            self._gone(table)
        conflict = tree.args.get("conflict")
        if conflict is not None and conflict.expressions:
            values = self._assignments(conflict.expressions, table)
            if values is None:
                return self.effects.anything(table, "it is not told which columns get new values")
            self._follow(table, values)
        why = self._why_whole(tree, table, rows)
        if rows is None:
            for up in table.references:
                self.effects.parent(up, table, (None,))
        for row in rows or ():
            self._inserted(table, row, not why)
        if why:
            self.effects.write(table, why)
        self.effects.touch(table)

    def _replaces(self, tree: exp.Insert) -> bool:
        return str(tree.args.get("alternative") or "").upper() == "REPLACE"

    def _given(self, tree: exp.Insert, table: Table) -> list[dict[str, Source | None]] | None:
        """The values of each row by column, None for one that is computed. Columns that get none are left out."""
        values = tree.expression
        if not isinstance(values, exp.Values) or tree.args.get("default") or len(values.expressions) > MOST:
            return None
        columns: Sequence[str | None] = table.order
        if isinstance(tree.this, exp.Schema):
            columns = [named(name_of(c, self.dialect), table) for c in tree.this.expressions]
        if None in columns or len(set(columns)) < len(columns):
            return None
        out = []
        for row in values.expressions:
            if not isinstance(row, exp.Tuple) or len(row.expressions) != len(columns):
                return None
            pairs = zip(map(str, columns), row.expressions, strict=True)
            out.append({c: self._source(v, table, c) for c, v in pairs})
        return out

    def _why_whole(self, tree: exp.Insert, table: Table, rows: list[dict[str, Source | None]] | None) -> str:
        if table.odd:
            return table.odd
        if isinstance(tree.expression, exp.Query) and not isinstance(tree.expression, exp.Values):
            return "INSERT ... SELECT"
        if table.numbered:
            return "SQLite numbers its rows as they come: make it WITHOUT ROWID, or with INTEGER PRIMARY KEY"
        if not table.key or rows is None:
            return "INSERT does not say the primary key of each row"
        if any(row.get(k) is None or row[k] == NULL for row in rows for k in table.key):
            return "INSERT does not say the primary key of each row"
        if self._replaces(tree) and table.uniques:
            return "REPLACE may remove other rows, by a unique constraint"
        conflict = tree.args.get("conflict")
        return "" if conflict is None or not conflict.expressions else self._why_upsert(conflict, table)

    def _why_upsert(self, conflict: exp.Expression, table: Table) -> str:
        target = [c.this if isinstance(c, exp.Ordered) else c for c in conflict.args.get("conflict_keys") or []]
        names = sorted(name_of(c.this if isinstance(c, exp.Column) else c, self.dialect) for c in target)
        if names != sorted(table.key) and (target or conflict.args.get("constraint") or table.uniques):
            return "ON CONFLICT may update a row that is found by a unique constraint"
        values = self._assignments(conflict.expressions, table) or {}
        if any(k in values for k in table.key):
            return "ON CONFLICT may give a new primary key"
        return ""

    def _inserted(self, table: Table, row: Mapping[str, Source | None], told: bool) -> None:
        """``told``: the row is known by its primary key."""

        def got(column: str) -> Source | None:
            if column in row:
                return row[column]
            known = table.columns[column]
            return None if known.default or known.computed else NULL

        if told:
            self.effects.rows.append(Row(table, "w", tuple(s for k in table.key if (s := row[k]) is not None)))
            for unique in table.uniques:
                self.effects.take(table, unique, tuple(got(c) for c in unique.columns))
        for up in table.references:
            self.effects.parent(up, table, tuple(got(c) for c in up.columns))
