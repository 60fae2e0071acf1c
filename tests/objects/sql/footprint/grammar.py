"""Random schemas and statements from a grammar that covers what SQLite and PostgreSQL let one write.

world.py and world_postgres.py are dense: few forms, many meetings. This is broad: every clause and every way to name a
table, in text that databases read in their own ways. A statement that is refused, or wrong, costs nothing.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from objects.sql.tokens import Dialect

Call = tuple[str, list[Any]]

#: Columns that hold integers; ``n`` holds a text. The first ones are the primary key.
TABLES: dict[str, tuple[str, ...]] = {
    "s": ("id",),
    "q": ("id", "x"),
    "a": ("id", "x", "n"),
    "b": ("id", "x", "n"),
    "ch": ("id", "c", "d", "x", "n"),
    "nd": ("id", "up", "x"),
    "w": ("k", "m", "c", "x"),
    "l": ("id", "x"),
}
KEYS = {name: columns[: 2 if name == "w" else 1] for name, columns in TABLES.items()}
VIEWS = {"v": ("id", "x"), "vj": ("id", "x")}
CLUSTERS = [
    "s",
    "q",
    "sq",
    "a",
    "ab",
    "ab+ch",
    "ab+ch",
    "a+ch",
    "b+ch",
    "nd",
    "nd",
    "w",
    "a+w",
    "q+l",
    "ab+ch+w+nd+sql",
]
ACTIONS = ["", "", "ON DELETE CASCADE", "ON UPDATE CASCADE", "ON DELETE CASCADE ON UPDATE CASCADE",
           "ON DELETE SET NULL ON UPDATE CASCADE", "ON UPDATE SET NULL", "ON DELETE SET DEFAULT",
           "ON UPDATE SET DEFAULT", "ON DELETE RESTRICT"]  # fmt: skip
_MARK = re.compile("\1([0-9]+)\1")


class Grammar:
    """``schema``, ``rows`` and ``calls`` of one world."""

    def __init__(self, chance: Random, dialect: Dialect) -> None:
        self.chance, self.dialect = chance, dialect
        self.lite = dialect == "sqlite"
        self.odd = chance.choice([0.0, 0.05, 0.2])
        self.theme = chance.choice(
            ["", "", "members", "keys"]
        )  # of what there is much: all of it, and too little meets
        keys = [c for c in CLUSTERS if "+ch" in c]
        cluster = chance.choice({"keys": keys, "members": ["s", "q", "sq", "a+ch"]}.get(self.theme, CLUSTERS))
        self.tables = [t for part in cluster.split("+") for t in ([part] if part in TABLES else part)]
        self.top = chance.choice([2, 3, 3, 5])  # the largest of the usual integers
        self.schema = list(filter(None, self._schema()))
        self.rows = list(self._rows())
        self.calls = [self._call() for _ in range(8)]

    # chance

    def one(self, *of: Any) -> Any:
        return self.chance.choice(of)

    def some(self, text: str, share: float = 0.3) -> str:
        return text if self.chance.random() < share else ""

    def rare(self, text: str) -> str:
        return self.some(text, self.odd)

    # schema

    def _schema(self) -> Iterator[str]:
        auto = "INTEGER PRIMARY KEY" if self.lite else "int PRIMARY KEY"
        serial = self.one(auto, auto + " AUTOINCREMENT") if self.lite else "serial PRIMARY KEY"
        tail = self.one("", "", "STRICT", "WITHOUT ROWID") if self.lite else ""
        key = self.one("INTEGER PRIMARY KEY", "INT PRIMARY KEY") if self.lite else auto
        yield f"CREATE TABLE s (id {key}) {tail}"
        yield f"CREATE TABLE q (id {key}, x int {self.some('UNIQUE')}) {self.one('', tail)}"
        for name in "ab":
            made = self.rare(", g int GENERATED ALWAYS AS (x + 1) STORED UNIQUE")
            replace = "ON CONFLICT REPLACE" if self.lite and self.rare("x") else ""
            unique = f"UNIQUE {replace}" if replace else self.some("UNIQUE")
            yield f"CREATE TABLE {name} (id {auto}, x int {unique}, n text {self.some('UNIQUE', 0.2)}{made})"
        yield (
            f"CREATE TABLE ch (id {serial}, c int {self._parents()}, d int {self._parents()}, "
            f"x int {self.some('DEFAULT 1')} {self.some('UNIQUE', 0.2)}, n text{self.some(', UNIQUE (c, d)', 0.2)}"
            f"{self.some(', FOREIGN KEY (c) REFERENCES a ' + self._action(), 0.2)})"
        )
        up = f"up int {self.some('DEFAULT 1')} REFERENCES nd {self._action()}"
        yield f"CREATE TABLE nd (id {auto}, {up}, x int {self.some('UNIQUE')})"
        clustered = self.one("", "WITHOUT ROWID") if self.lite else ""
        yield (
            f"CREATE TABLE w (k int, m int, c int {self._parents()}, x int {self.some('UNIQUE')}, PRIMARY KEY (k, m)) "
            f"{clustered}"
        )
        yield f"CREATE TABLE l (id {serial}, x int)"
        yield "CREATE VIEW v AS SELECT id, x FROM q WHERE x > 0"
        yield "CREATE VIEW vj AS SELECT a.id AS id, ch.x AS x FROM a JOIN ch ON ch.c = a.id"
        yield self.rare("CREATE UNIQUE INDEX part ON ch (x) WHERE n = 'a'")
        yield self.rare("CREATE UNIQUE INDEX expr ON a (abs(x))")
        yield self.some("CREATE INDEX ix ON ch (c)")
        if self.lite:
            yield from self._triggers()

    def _action(self) -> str:
        return self.chance.choice(ACTIONS)

    def _parents(self) -> str:
        """Foreign keys of a column: none, one, or to two parents."""
        parents = self.chance.sample(["a", "b"], 2 if self.theme == "keys" else self.one(0, 1, 1, 2, 2))
        return self.some("DEFAULT 2", 0.2) + " " + " ".join(f"REFERENCES {p}(id) {self._action()}" for p in parents)

    def _triggers(self) -> Iterator[str]:
        for name in ("a", "ch", "q", "nd"):
            event = self.one("INSERT", "UPDATE", "UPDATE OF x", "DELETE")
            row = "old" if event == "DELETE" else "new"
            does = self.one(
                f"INSERT INTO l (x) VALUES ({row}.x)",
                "UPDATE b SET x = NULL WHERE n = 'a'",
                f"DELETE FROM ch WHERE c = {row}.id",
                f"SELECT RAISE(ABORT, 'no') WHERE {row}.id IN s",
            )
            yield self.rare(f"CREATE TRIGGER t{name} {self.one('AFTER', 'BEFORE')} {event} ON {name} BEGIN {does}; END")
        yield self.rare("CREATE TRIGGER tv INSTEAD OF INSERT ON v BEGIN INSERT INTO q VALUES (new.id, new.x); END")

    def _rows(self) -> Iterator[Call]:
        for i in (1, 2):
            for name in ("s", "q", "a", "b", "nd", "ch", "w"):
                columns = TABLES[name]
                given = {"id": i, "k": i, "m": 1, "n": self.one("a", "b", None), "x": self.one(i, i, None)}
                row = [given.get(c, self.one(1, 2, i, None)) for c in columns]
                yield f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(row))})", row

    # values

    def _call(self) -> Call:
        make = self.one(self._insert, self._insert, self._insert, self._update, self._update, self._delete, self._query)
        self._given_values: list[Any] = []
        text = " ".join(make().split())
        params = [self._given_values[int(n)] for n in _MARK.findall(text)]
        return _MARK.sub("?", text), params

    def _param(self, value: Any) -> str:
        """A mark, since not all pieces that are made are used."""
        self._given_values.append(value)
        return f"\1{len(self._given_values) - 1}\1"

    def _int(self) -> Any:
        if self.lite and self.rare("x"):
            return self.one("1", 1.0, "a", 2.5, b"1", -1)
        return self.one(*range(self.top + 1), *range(1, self.top + 1), None if self.chance.random() < 0.3 else 1)

    def value(self) -> str:
        found = self._int()
        if self.chance.random() < 0.6 or isinstance(found, bytes):
            return self._param(found) + ("" if self.lite else "::int")
        return "NULL" if found is None else f"'{found}'" if isinstance(found, str) else str(found)

    def text(self) -> str:
        found = self.one("a", "b", "A", "a ", None)
        if self.chance.random() < 0.5:
            return self._param(found) + ("" if self.lite else "::text")
        return "NULL" if found is None else f"'{found}'"

    def number(self, scope: Sequence[tuple[str, str]], depth: int = 2) -> str:
        """An expression that gives an integer."""
        plain: list[Callable[[], str]] = [self.value, self.value, lambda: self.column(scope)]
        if depth <= 0 or self.chance.random() < 0.6:
            return str(self.one(*plain)())
        more: list[Callable[[], str]] = [
            lambda: f"{self.number(scope, depth - 1)} {self.one('+', '-', '*')} {self.number(scope, 0)}",
            lambda: f"coalesce({self.number(scope, depth - 1)}, {self.number(scope, 0)})",
            lambda: f"abs({self.number(scope, depth - 1)})",
            lambda: f"CAST({self.number(scope, depth - 1)} AS int)",
            lambda: (
                f"CASE WHEN {self.condition(scope, depth - 1)} THEN {self.number(scope, 0)} ELSE {self.value()} END"
            ),
            lambda: f"({self.single(scope, depth - 1)})",
            lambda: f"({self.number(scope, depth - 1)})",
        ]
        if self.lite:
            more += [
                lambda: f"({self.condition(scope, depth - 1)})",
                self.member,
                self.member,
                self.member,
                lambda: f"iif({self.member()}, {self.number(scope, 0)}, {self.value()})",
            ]
        else:
            more += [
                lambda: f"({self.condition(scope, depth - 1)})::int",
                lambda: f"ARRAY_LENGTH(ARRAY({self.list(scope, depth - 1)}), 1)",
            ]
        return str(self.one(*more)())

    def member(self) -> str:
        """The short form of SQLite: (...) IN table."""
        name = self.table(all_=self.theme != "members")
        width = len((TABLES | VIEWS)[name])
        left = ", ".join(self.text() if c == "n" else self.value() for c in (TABLES | VIEWS)[name])
        shown = self.one(name, name, f"main.{name}", f'"{name}"', f"[{name.upper()}]", f"'{name}'")
        return f"({f'({left})' if width > 1 else left} {self.one('IN', 'IN', 'NOT IN', 'in')} {shown})"

    def column(self, scope: Sequence[tuple[str, str]]) -> str:
        if not scope:
            return self.value()
        alias, name = self.chance.choice(scope)
        columns = [c for c in (TABLES | VIEWS).get(name, ("x",)) if c != "n"]
        column = self.chance.choice(columns)
        if self.lite and self.rare("x") and name in TABLES:
            column = self.one("rowid", "_rowid_", "oid")
        return f"{alias}.{column}" if len(scope) > 1 or self.chance.random() < 0.4 else column

    def condition(self, scope: Sequence[tuple[str, str]], depth: int = 2) -> str:
        kind = self.chance.random()
        if self.lite and self.theme == "members" and kind < 0.5:
            return self.member()
        if depth <= 0 or kind < 0.4:
            return f"{self.column(scope)} {self.one('=', '=', '<', '>=', '<>')} {self.value()}"
        forms: list[Callable[[], str]] = [
            lambda: f"{self.condition(scope, depth - 1)} {self.one('AND', 'OR')} {self.condition(scope, 0)}",
            lambda: f"NOT ({self.condition(scope, depth - 1)})",
            lambda: f"{self.column(scope)} IN ({self.value()}, {self.value()})",
            lambda: f"{self.column(scope)} {self.one('IN', 'NOT IN')} ({self.list(scope, depth - 1)})",
            lambda: f"{self.one('EXISTS', 'NOT EXISTS')} ({self.list(scope, depth - 1)})",
            lambda: f"{self.column(scope)} BETWEEN {self.value()} AND {self.value()}",
            lambda: f"{self.column(scope)} IS {self.one('NULL', 'NOT NULL')}",
            lambda: f"{self.column(scope)} IS {self.some('NOT')} DISTINCT FROM {self.value()}",
            lambda: f"({self.column(scope)}, {self.value()}) = ({self.value()}, {self.number(scope, 0)})",
        ]
        if self.lite:
            forms += [self.member, lambda: f"{self.column(scope)} IS {self.value()}"]
        else:
            forms += [lambda: f"{self.column(scope)} = {self.one('ANY', 'ALL')} ({self.list(scope, depth - 1)})",
                      lambda: f"{self.column(scope)} = ANY (ARRAY[{self.value()}, {self.value()}])"]  # fmt: skip
        return str(self.one(*forms)())

    def where(self, scope: Sequence[tuple[str, str]], name: str, alias: str) -> str:
        """Mostly rows by their key: what touches whole tables is compatible with little."""
        if self.chance.random() < 0.08:
            return ""
        if self.chance.random() < 0.15 or name not in KEYS:
            return f"WHERE {self.condition(scope)}"
        dot = f"{alias}." if len(scope) > 1 or self.chance.random() < 0.3 else ""
        parts = [self._equals(f"{dot}{k}") for k in KEYS[name]]
        if self.chance.random() < (0.7 if self.theme == "members" else 0.2):
            parts.append(f"({self.condition(scope, 1)})")
        return "WHERE " + " AND ".join(parts)

    def _equals(self, column: str) -> str:
        form = self.one("{0} = {1}", "{0} = {1}", "{0} = {1}", "{1} = {0}", "{0} IN ({1}, {2})", "({0} = {1})")
        first = self.value()
        return str(form).format(column, first, self.value() if "{2}" in form else "")

    # sources

    def table(self, all_: bool = False) -> str:
        names = [*self.tables, *self.tables, *(VIEWS if all_ else ()), *(TABLES if all_ and self.odd else ())]
        return str(self.one(*names))

    def shown(self, name: str) -> str:
        if self.lite:
            return str(self.one(name, name, name, f"main.{name}", f'"{name}"', name.upper(), f"`{name}`"))
        return str(self.one(name, name, name, f"public.{name}", f'"{name}"', name.upper()))

    def source(self, depth: int) -> tuple[str, list[tuple[str, str]]]:
        name = self.table(all_=True)
        kind = self.chance.random()
        alias = self.one("a", "z", "z", "b") + self.some("1")
        if kind < 0.4 or depth <= 0:
            return self.shown(name), [(name, name)]
        if kind < 0.55:
            return f"{self.shown(name)} {self.some('AS')} {alias}", [(alias, name)]
        if kind < 0.65:
            inner, scope = self.source(depth - 1)
            return f"(SELECT {self.column(scope)} AS x FROM {inner}) AS {alias}", [(alias, "")]
        if kind < 0.72:
            return f"(VALUES ({self.value()})) AS {alias}" + ("" if self.lite else "(x)"), []
        if kind < 0.77 and self.lite:
            return f"json_each('[1, 2]') AS {alias}", []
        if kind < 0.77:
            return self.one(
                f"generate_series(1, 2) AS {alias}(x)", f"ROWS FROM (generate_series(1, 2)) AS {alias}(x)"
            ), [(alias, "")]
        if kind < 0.82 and not self.lite:
            return f"ONLY {self.shown(name)} AS {alias}", [(alias, name)]
        other = self.table()
        if kind < 0.9:
            how = self.one("JOIN", "LEFT JOIN", "CROSS JOIN", "INNER JOIN", "FULL JOIN", "NATURAL JOIN", ",")
            on = (
                ""
                if how in ("CROSS JOIN", "NATURAL JOIN", ",")
                else f"ON y.{KEYS[other][0]} = {alias}.{(TABLES | VIEWS)[name][0]}"
            )
            return f"{self.shown(name)} AS {alias} {how} {self.shown(other)} AS y {on}", [(alias, name), ("y", other)]
        lateral = "" if self.lite else "LATERAL "
        return f"{self.shown(name)} AS {alias}, {lateral}(SELECT * FROM {self.shown(other)}) AS y", [
            (alias, name),
            ("y", other),
        ]

    def single(self, scope: Sequence[tuple[str, str]], depth: int) -> str:
        """A query that gives one value at most."""
        inner, own = self.source(depth)
        seen = [*own, *scope] if self.chance.random() < 0.3 else own
        what = self.one("count(*)", f"max({self.column(own)})", f"min({self.column(own)})")
        return f"SELECT {what} FROM {inner} {self.some('WHERE ' + self.condition(seen, depth - 1), 0.6)}"

    def list(self, scope: Sequence[tuple[str, str]], depth: int) -> str:
        """A query that gives one column."""
        inner, own = self.source(depth)
        where = self.some("WHERE " + self.condition(own, depth - 1), 0.6)
        text = f"SELECT {self.some('DISTINCT', 0.1)} {self.column(own)} FROM {inner} {where}"
        if depth > 0 and self.chance.random() < 0.15:
            text += f" {self.one('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT')} {self.list(scope, depth - 1)}"
        return text

    def before(self) -> str:
        """WITH."""
        if self.chance.random() > 0.06:
            return ""
        name = self.one("x1", "x1", "a", "q")
        recursive = self.some("RECURSIVE")
        body = f"SELECT 1 AS x UNION ALL SELECT x + 1 FROM {name} WHERE x < 3" if recursive else self.list([], 1)
        if not self.lite and self.chance.random() < 0.2:
            table = self.table()
            recursive, body = (
                "",
                f"DELETE FROM {table} {self.where([(table, table)], table, table)} RETURNING {KEYS[table][0]}",
            )
        return f"WITH {recursive} {name}(x) AS {self.one('', '', 'MATERIALIZED', 'NOT MATERIALIZED')} ({body})"

    # statements

    def _query(self) -> str:
        if self.lite and self.chance.random() < 0.15:
            return f"SELECT {self.member()}"
        if not self.lite and self.chance.random() < 0.1:
            return f"TABLE {self.shown(self.table(all_=True))}"
        name, alias = self.table(), self.one("", "z")
        scope = [(alias or name, name)]
        if self.chance.random() < 0.3:
            inner, scope = self.source(2)
            where = self.some("WHERE " + self.condition(scope), 0.7)
        else:
            inner, where = f"{self.shown(name)} {alias}", self.where(scope, name, alias or name)
        what = self.one(
            "*",
            "count(*)",
            self.number(scope),
            f"max({self.column(scope)})",
            f"{self.column(scope)}, {self.number(scope)}",
        )
        group = self.some(f"GROUP BY {self.column(scope)} HAVING count(*) > 0", 0.05) if "count" in what else ""
        more = self.rare(f"UNION ALL SELECT {self.value()}")
        return f"{self.before()} SELECT {what} FROM {inner} {where} {group} {more}"

    def _insert(self) -> str:
        name = self.table()
        if self.rare("x"):
            name = "v"
        columns = list((TABLES | VIEWS)[name])
        if self.chance.random() < 0.35:
            columns = [c for c in columns if c in KEYS.get(name, ()) or self.chance.random() < 0.6]
            self.chance.shuffle(columns)
        if self.chance.random() < 0.12 and len(columns) > 1:
            columns = [c for c in columns if c != "id"]
        if self.rare("x"):
            values, columns = "DEFAULT VALUES", []
        elif self.chance.random() < 0.08:
            inner, scope = self.source(1)
            given = ", ".join(self.text() if c == "n" else self.number(scope, 1) for c in columns)
            values = f"SELECT {given} FROM {inner} {self.some('WHERE ' + self.condition(scope))}"
            if not self.lite:
                values += " ORDER BY 1"
        else:
            values = "VALUES " + ", ".join(
                f"({', '.join(self._given(c) for c in columns)})" for _ in range(self.one(1, 1, 1, 2))
            )
        verb = "INSERT"
        if self.lite:
            verb = self.one(
                "INSERT", "INSERT", "INSERT", "REPLACE", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR ABORT"
            )
        alias = self.some("AS t1", 0.1)
        over = "" if self.lite else self.some(self.one("OVERRIDING USER VALUE", "OVERRIDING SYSTEM VALUE"), 0.05)
        shown = f"({', '.join(columns)})" if columns else ""
        return (
            f"{self.before()} {verb} INTO {self.shown(name)} {alias} {shown} {over} {values} "
            f"{self._upsert(name) if verb == 'INSERT' else ''} {self._returning(name)}"
        )

    def _given(self, column: str) -> str:
        if not self.lite and self.chance.random() < 0.05:
            return "DEFAULT"
        if column == "n":
            return self.text()
        return self.value() if self.chance.random() < 0.85 else self.number([], 2)

    def _upsert(self, name: str) -> str:
        if self.chance.random() > 0.35 or name in VIEWS:
            return ""
        out = []
        for _ in range(self.one(1, 1, 2) if self.lite else 1):
            others = [c for c in TABLES[name] if c not in KEYS[name]]
            target = self.one(f"({', '.join(KEYS[name])})", f"({', '.join(KEYS[name])})", "(x)", "")
            if not self.lite and self.rare("x"):
                target = f"ON CONSTRAINT {name}_pkey"
            does = "NOTHING"
            if others and self.chance.random() < 0.7:
                column = self.one(*others)
                new = self.one("excluded." + column, f"{name}.{column}", self._new(column, [(name, name)]))
                does = f"UPDATE SET {column} = {new} {self.some('WHERE ' + self.condition([(name, name)], 1), 0.2)}"
            out.append(f"ON CONFLICT {target} DO {does}")
        return " ".join(out)

    def _new(self, column: str, scope: Sequence[tuple[str, str]]) -> str:
        if not self.lite and self.rare("x"):
            return "DEFAULT"
        if column == "n":
            return self.text()
        return self.value() if self.chance.random() < 0.65 else self.number(scope, 2)

    def _returning(self, name: str) -> str:
        if self.chance.random() > 0.2:
            return ""
        return "RETURNING " + self.one("*", self.number([(name, name)], 1), f"{(TABLES | VIEWS)[name][0]} AS z")

    def _update(self) -> str:
        name = self.table()
        alias = self.one("", "", "AS t1")
        own = "t1" if alias else name
        scope, sources = [(own, name)], ""
        if self.chance.random() < 0.1:
            inner, more = self.source(1)
            sources, scope = f"FROM {inner}", [*scope, *more]
        columns = self.chance.sample(list(TABLES[name]), min(len(TABLES[name]), self.one(1, 1, 2)))
        if self.theme == "keys" and self.chance.random() < 0.6:
            columns = [KEYS[name][0]]
        if self.chance.random() < 0.1:
            value = ", ".join(self._new(c, scope) for c in columns)
            sets = f"({', '.join(columns)}) = ROW ({value})" if not self.lite else f"({', '.join(columns)}) = ({value})"
        else:
            sets = ", ".join(f"{c} = {self._new(c, scope)}" for c in columns)
        way = self.some("OR " + self.one("IGNORE", "REPLACE", "ABORT"), 0.15) if self.lite else self.some("ONLY", 0.05)
        index = self.rare("NOT INDEXED") if self.lite and not alias else ""
        return (
            f"{self.before()} UPDATE {way} {self.shown(name)} {alias} {index} SET {sets} {sources} "
            f"{self.where(scope, name, own)} {self._returning(own if own == name else name)}"
        )

    def _delete(self) -> str:
        name = self.table()
        if not self.lite and self.rare("x"):
            return f"TRUNCATE {name} {self.some('CASCADE')}"
        alias = self.one("", "", "AS t1")
        own = "t1" if alias else name
        scope, using = [(own, name)], ""
        if not self.lite and self.chance.random() < 0.1:
            inner, more = self.source(1)
            using, scope = f"USING {inner}", [*scope, *more]
        return (
            f"{self.before()} DELETE FROM {self.shown(name)} {alias} {using} {self.where(scope, name, own)} "
            f"{self._returning(name)}"
        )
