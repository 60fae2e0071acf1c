"""Random schemas, rows and statements from a grammar that covers what SQLite and PostgreSQL let one write.

Every clause, every way to name a table, and every kind of constraint, in text that databases read in their own ways:
the syntax diagrams of SQLite, and PostgreSQL's synopses of INSERT, UPDATE, DELETE, SELECT and CREATE TABLE.
Keys and values are few, so that statements meet; most statements give the primary key, so that many are compatible.

    Grammar(chance, "sqlite")      one schema; ``texts`` of statements; ``images``: rows, and parameters for the texts
    Grammar.call()                 one more statement with parameters, for a load that goes on

What cannot be replicated is left out (MERGE, rules, ATTACH, LIMIT in what changes data): that it is refused has tests
of its own. A statement that is refused, or wrong, costs nothing but time.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from decimal import Decimal
from random import Random
from typing import Any, Literal, NamedTuple

Dialect = Literal["sqlite", "postgres"]
Call = tuple[str, list[Any]]
Scope = Sequence[tuple[str, str]]

#: i: integer, t: text, and of PostgreSQL r: a range, a: an array, j: JSON. The first columns are the primary key.
TABLES: Mapping[str, Mapping[str, str]] = {
    "s": {"id": "i"},
    "q": {"id": "i", "x": "i"},
    "a": {"id": "i", "x": "i", "n": "t"},
    "b": {"id": "i", "x": "i", "n": "t"},
    "ch": {"id": "i", "c": "i", "d": "i", "x": "i", "n": "t"},
    "gr": {"id": "i", "c": "i", "x": "i"},
    "nd": {"id": "i", "up": "i", "x": "i"},
    "w": {"k": "i", "m": "i", "c": "i", "x": "i"},
    "f": {"id": "i", "k": "i", "m": "i", "x": "i"},
    "u": {"id": "i", "code": "i", "x": "i"},
    "r": {"id": "i", "code": "i", "n": "t"},
    "t": {"k": "t", "x": "i", "n": "t"},
    "tc": {"id": "i", "k": "t", "x": "i"},
    "e": {"id": "i", "x": "i", "n": "t", "y": "i"},
    "l": {"id": "i", "x": "i"},
}
OF_POSTGRES: Mapping[str, Mapping[str, str]] = {
    "z": {"id": "i", "during": "r", "x": "i"},
    "y": {"id": "i", "tags": "a", "doc": "j", "mood": "m"},
    "pt": {"id": "i", "x": "i"},
    "pc": {"id": "i", "c": "i"},
}
ALL: Mapping[str, Mapping[str, str]] = {**TABLES, **OF_POSTGRES}
KEYS = {name: tuple(columns)[: 2 if name == "w" else 1] for name, columns in ALL.items()}
VIEWS: Mapping[str, Mapping[str, str]] = {"v": {"id": "i", "x": "i"}, "vj": {"id": "i", "x": "i"}}
CLUSTERS: tuple[str, ...] = (
    "s", "q", "s q", "a", "a b", "a b ch", "a b ch", "a ch", "a ch gr", "a b ch gr", "nd", "nd", "w", "a w", "w f",
    "w f", "u r", "u r", "t", "t tc", "e", "e a", "q l", "a b ch w nd s q l", "e t u r",
)  # fmt: skip
CLUSTERS_OF_POSTGRES: tuple[str, ...] = ("z", "y", "z y", "pc pt", "e z")
THEMES = ("", "", "", "members", "keys", "rows", "rows")
ACTIONS = ("", "", "ON DELETE CASCADE", "ON UPDATE CASCADE", "ON DELETE CASCADE ON UPDATE CASCADE",
           "ON DELETE SET NULL ON UPDATE CASCADE", "ON UPDATE SET NULL", "ON DELETE SET DEFAULT",
           "ON UPDATE SET DEFAULT ON DELETE SET DEFAULT", "ON DELETE RESTRICT", "ON UPDATE NO ACTION ON DELETE CASCADE",
           )  # fmt: skip
_MADE = re.compile(r"CREATE (TABLE|VIEW|FUNCTION|TYPE|DOMAIN) (\w+)")
_MARK = re.compile("\1([a-z])\1")


class Image(NamedTuple):
    rows: Sequence[Call]
    calls: Sequence[Call]


class Grammar:
    """One world. ``schema``, ``texts`` with the kinds of their parameters, and ``images``."""

    def __init__(
        self, chance: Random, dialect: Dialect, texts: int = 32, images: int = 4, cluster: str | None = None
    ) -> None:
        self.chance, self.dialect = chance, dialect
        self.lite = dialect == "sqlite"
        self.odd = chance.choice([0.0, 0.05, 0.2])
        self.theme = chance.choice(THEMES)  # of what there is much: all of it, and too little meets
        clusters = CLUSTERS if self.lite or chance.random() < 0.75 else CLUSTERS_OF_POSTGRES
        if self.theme == "keys":
            clusters = tuple(c for c in CLUSTERS if "ch" in c or "w f" in c or "u r" in c)
        self.tables = (cluster or chance.choice(clusters)).split()
        self.focus = chance.choice(self.tables)
        self.top = chance.choice([2, 3, 3, 5])  # the largest of the usual integers
        self.bounded = False  # INSERT ... SELECT gives keys, else it would double a table
        self.indexes: dict[str, str] = {}
        self.uniques: dict[str, list[str]] = {name: [f"({', '.join(key)})"] for name, key in KEYS.items()}
        self.changes_views = not self.lite
        self.schema = [" ".join(text.split()) for text in self._schema() if text]
        self.texts = [self._text() for _ in range(texts)]
        self.images = [
            Image(list(self._rows()), [(text, self._draw(kinds)) for text, kinds in self.texts]) for _ in range(images)
        ]

    @property
    def rows(self) -> Sequence[Call]:
        return self.images[0].rows

    @property
    def calls(self) -> Sequence[Call]:
        return self.images[0].calls

    def call(self) -> Call:
        text, kinds = self._text()
        return text, self._draw(kinds)

    def fork(self, chance: Random) -> "Grammar":
        """For another client of the same schema: it draws by itself."""
        made = copy(self)
        made.chance = chance
        return made

    def removal(self) -> Sequence[str]:
        """Statements that remove the schema."""
        found = [_MADE.match(text) for text in reversed(self.schema)]
        cascade = "" if self.lite else " CASCADE"
        return [f"DROP {f.group(1)} IF EXISTS {f.group(2)}{cascade}" for f in found if f]

    def trim(self) -> Call:
        """Removes rows that the database has numbered: without it tables would grow, and joins of them without end."""
        name = self.one(*(t for t in self.tables if ALL[t][KEYS[t][0]] == "i"), "l")
        return f"DELETE FROM {name} WHERE {KEYS[name][0]} > ?", [9]

    # chance

    def one(self, *of: Any) -> Any:
        return self.chance.choice(of)

    def some(self, text: str, share: float = 0.3) -> str:
        return text if self.chance.random() < share else ""

    def rare(self, text: str) -> str:
        return self.some(text, self.odd)

    def odds(self, share: float) -> bool:
        return self.chance.random() < share

    # schema

    def _schema(self) -> Iterator[str]:
        lite, some, one, rare = self.lite, self.some, self.one, self.rare
        auto = "INTEGER PRIMARY KEY" if lite else one("int", "int", "bigint", "numeric", "smallint") + " PRIMARY KEY"
        plain = "INTEGER PRIMARY KEY" if lite else "int PRIMARY KEY"
        own = ("serial PRIMARY KEY", "int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
               "int GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "bigserial PRIMARY KEY")  # fmt: skip
        serial = one(auto, auto + " AUTOINCREMENT") if lite else one(*own[:2], one(*own))
        key = one("INTEGER PRIMARY KEY", "INT PRIMARY KEY", "INTEGER PRIMARY KEY DESC") if lite else auto
        tail = one("", "", "STRICT", "WITHOUT ROWID", "STRICT, WITHOUT ROWID") if lite else ""
        for name in (t for t in ALL if t in self.tables or t in "sqabl"):
            make = getattr(self, f"_table_{name}", None)
            if make is not None:
                yield from make(plain, serial)
            elif name == "s":
                yield f"CREATE TABLE s (id {key}) {tail}"
            elif name == "q":
                yield f"CREATE TABLE q (id {key}, x int {self._unique('q')}) {one('', tail)}"
            elif name in "ab":
                stored = "STORED" if not lite else one("STORED", "VIRTUAL", "")
                made = rare(f", g int GENERATED ALWAYS AS (x + 1) {stored} {some('UNIQUE', 0.7)}")
                text = f"text {some('COLLATE NOCASE', 0.2)}" if lite else one("text", "text", "varchar(3)", "char(2)")
                check = rare(", CHECK (x < 4)")
                columns = f"x int {self._unique(name)}, n {text} {self._unique(name, 'n')}"
                yield f"CREATE TABLE {name} (id {auto}, {columns}{made}{check})"
            elif name == "l":
                yield f"CREATE TABLE l (id {serial}, x int)"
        yield "CREATE VIEW v AS SELECT id, x FROM q WHERE x > 0" + ("" if lite else some(" WITH CHECK OPTION"))
        if "ch" in self.tables:
            yield "CREATE VIEW vj AS SELECT a.id AS id, ch.x AS x FROM a JOIN ch ON ch.c = a.id"
        else:
            yield "CREATE VIEW vj AS SELECT id, max(x) AS x FROM a GROUP BY id"
        yield from self._indexes()
        yield from self._triggers() if lite else self._code()

    def _table_ch(self, plain: str, serial: str) -> Iterator[str]:
        some = self.some
        default = some("DEFAULT 1") or self.rare("DEFAULT (1 + 1)")
        extra = some(", UNIQUE (c, d)", 0.2) + some(", FOREIGN KEY (c) REFERENCES a " + self._action(), 0.2)
        if self.rare("x"):
            extra = f", g int GENERATED ALWAYS AS (c + 1) STORED REFERENCES b (id) {extra}"
        yield (
            f"CREATE TABLE ch (id {serial}, c int {self._parents('ab')}, d int {self._parents('ab')}, "
            f"x int {default} {self._unique('ch')}, n text {extra})"
        )

    def _table_gr(self, plain: str, serial: str) -> Iterator[str]:
        yield f"CREATE TABLE gr (id {plain}, c int {self.some('DEFAULT 1')} REFERENCES ch (id) {self._action()}, x int)"

    def _table_nd(self, plain: str, serial: str) -> Iterator[str]:
        up = f"up int {self.some('DEFAULT 1')} REFERENCES nd {self._action()}"
        yield f"CREATE TABLE nd (id {plain}, {up}, x int {self._unique('nd')})"

    def _table_w(self, plain: str, serial: str) -> Iterator[str]:
        clustered = self.one("", "WITHOUT ROWID") if self.lite else ""
        kind = self.one("int", "int", "text") if self.lite else "int"
        yield (
            f"CREATE TABLE w (k {kind}, m int, c int {self._parents('ab')}, x int {self._unique('w')}, "
            f"PRIMARY KEY ({self.one('k, m', 'k, m', 'm, k')})) {clustered}"
        )

    def _table_f(self, plain: str, serial: str) -> Iterator[str]:
        match = "" if self.lite else self.one("", "", "MATCH FULL", "MATCH SIMPLE")
        action = self._action()
        if not self.lite and not match and "SET" not in action and self.odds(0.3):
            action = f"ON DELETE SET {self.one('NULL', 'DEFAULT')} ({self.one('k', 'm')})"
        yield (
            f"CREATE TABLE f (id {serial}, k int {self.some('DEFAULT 1')}, m int {self.some('DEFAULT 1')}, x int, "
            f"FOREIGN KEY (k, m) REFERENCES w (k, m) {match} {action} {self._deferrable()} "
            f"{self.some(', UNIQUE (k, m)', 0.2)})"
        )

    def _table_u(self, plain: str, serial: str) -> Iterator[str]:
        replace = self.rare("ON CONFLICT REPLACE") if self.lite else ""
        self.uniques["u"].append("(code)")
        yield f"CREATE TABLE u (id {plain}, code int NOT NULL UNIQUE {replace}, x int {self._unique('u')})"

    def _table_r(self, plain: str, serial: str) -> Iterator[str]:
        default = self.some("DEFAULT 1")
        parent = f"{default} REFERENCES u (code) {self._action()}"
        yield f"CREATE TABLE r (id {plain}, code int {parent}, n text {self._unique('r', 'n')})"

    def _table_t(self, plain: str, serial: str) -> Iterator[str]:
        kind = "TEXT" if self.lite else self.one("text", "text", "varchar(2)", "char(2)")
        folds = self.one("", "COLLATE NOCASE", "COLLATE RTRIM") if self.lite else ""
        tail = self.one("", "WITHOUT ROWID", "WITHOUT ROWID") if self.lite else ""
        columns = f"x int {self._unique('t')}, n text {self._unique('t', 'n')}"
        yield f"CREATE TABLE t (k {kind} {folds} PRIMARY KEY, {columns}) {tail}"
        self._text_kind = kind

    def _table_tc(self, plain: str, serial: str) -> Iterator[str]:
        yield (
            f"CREATE TABLE tc (id {plain}, "
            f"k {self._text_kind} {self.some('UNIQUE', 0.2)} REFERENCES t {self._action()}, x int)"
        )

    def _table_e(self, plain: str, serial: str) -> Iterator[str]:
        ignore = self.rare("ON CONFLICT IGNORE") if self.lite else ""
        null = f"NOT NULL {ignore or self.rare('ON CONFLICT REPLACE')}" if self.lite else "NOT NULL"
        tail = self.one("", "", "STRICT", "WITHOUT ROWID") if self.lite else ""
        small = "int" if self.lite else self.one("int", "small")
        if not self.lite:
            yield "CREATE DOMAIN small AS int CHECK (VALUE < 5)"
        stored = self.one("STORED", "VIRTUAL") if self.lite else "STORED"
        yield (
            f"CREATE TABLE e (id {plain}, x {small} {self.one('', null)} DEFAULT 1 {self.some('CHECK (x <> 4)')}, "
            f"n text DEFAULT 'a' {self._unique('e', 'n')}, y int {self._unique('e', 'y')}, "
            f"h int GENERATED ALWAYS AS (y + 10) {stored} {self.some('UNIQUE')}) {tail}"
        )

    def _table_z(self, plain: str, serial: str) -> Iterator[str]:
        yield f"CREATE TABLE z (id {serial}, during int4range, x int, EXCLUDE USING gist (during WITH &&))"

    def _table_y(self, plain: str, serial: str) -> Iterator[str]:
        yield "CREATE TYPE mood AS ENUM ('a', 'b')"
        unique = [self._unique("y", column) for column in ("tags", "doc", "mood")]
        yield f"CREATE TABLE y (id {plain}, tags int[] {unique[0]}, doc jsonb {unique[1]}, mood mood {unique[2]})"

    def _table_pt(self, plain: str, serial: str) -> Iterator[str]:
        yield "CREATE TABLE pt (id int PRIMARY KEY, x int) PARTITION BY RANGE (id)"
        yield "CREATE TABLE pt1 PARTITION OF pt FOR VALUES FROM (MINVALUE) TO (2)"
        yield "CREATE TABLE pt2 PARTITION OF pt FOR VALUES FROM (2) TO (MAXVALUE)"

    def _table_pc(self, plain: str, serial: str) -> Iterator[str]:
        yield f"CREATE TABLE pc (id {plain}, c int REFERENCES pt {self._action()})"

    def _unique(self, name: str, column: str = "x") -> str:
        """Of one column, in most cases none."""
        if self.odds(0.6):
            return ""
        self.uniques[name].append(f"({column})")
        if self.lite:
            return "UNIQUE " + self.rare(self.one("ON CONFLICT REPLACE", "ON CONFLICT IGNORE"))
        return str(self.one("UNIQUE", "UNIQUE NULLS NOT DISTINCT", "UNIQUE DEFERRABLE"))

    def _action(self) -> str:
        return self.chance.choice(ACTIONS)

    def _deferrable(self) -> str:
        return self.rare(self.one("DEFERRABLE", "DEFERRABLE INITIALLY IMMEDIATE", "NOT DEFERRABLE"))

    def _parents(self, names: str) -> str:
        """Foreign keys of a column: none, one, or to two parents."""
        parents = self.chance.sample(names, 2 if self.theme == "keys" else self.one(0, 1, 1, 2, 2))
        keys = " ".join(f"REFERENCES {p}(id) {self._action()} {self._deferrable()}" for p in parents)
        return f"{self.some('DEFAULT 2', 0.2)} {keys}"

    def _indexes(self) -> Iterator[str]:
        for name, columns in ALL.items():
            if name not in self.tables or name in ("z", "y", "pt"):
                continue
            if self.odds(0.25):
                column = self.one(*columns)
                self.indexes[name] = f"ix{name}"
                folds = self.rare("COLLATE NOCASE") if self.lite else ""
                yield f"CREATE INDEX ix{name} ON {name} ({column} {folds} {self.some('DESC', 0.2)})"
        if "ch" in self.tables:
            yield self.rare(f"CREATE UNIQUE INDEX part ON ch (x) WHERE n {self.one('= ' + repr('a'), 'IS NOT NULL')}")
        if "a" in self.tables:
            yield self.rare("CREATE UNIQUE INDEX expr ON a (abs(x))")
        if "b" in self.tables:
            yield self.rare(f"CREATE UNIQUE INDEX low ON b ({'n COLLATE NOCASE' if self.lite else 'lower(n)'})")
        if "b" in self.tables and not self.lite:
            yield self.rare("CREATE UNIQUE INDEX incl ON b (x) INCLUDE (n)")

    def _triggers(self) -> Iterator[str]:
        for name in ("a", "ch", "q", "nd", "w", "t", "u"):
            if name not in self.tables:
                continue
            event = self.one("INSERT", "UPDATE", "UPDATE OF x", "DELETE")
            row = "old" if event == "DELETE" else "new"
            key = KEYS[name][0]
            does = self.one(
                f"INSERT INTO l (x) VALUES ({row}.x)",
                f"INSERT OR IGNORE INTO q VALUES ({row}.x, {row}.x)",
                "UPDATE b SET x = NULL WHERE n = 'a'",
                f"DELETE FROM b WHERE id = {row}.x",
                f"SELECT RAISE(ABORT, 'no') WHERE {row}.{key} IN s",
                "SELECT RAISE(IGNORE) WHERE (SELECT count(*) FROM q) > 1",
                f"UPDATE {name} SET x = x WHERE {key} = {row}.{key}; DELETE FROM q WHERE id = {row}.x",
            )
            when = self.some(f"WHEN {row}.x > 1", 0.2)
            yield self.rare(
                f"CREATE TRIGGER t{name} {self.one('AFTER', 'BEFORE')} {event} ON {name} {self.some('FOR EACH ROW')} "
                f"{when} BEGIN {does}; END"
            )
        if self.rare("x"):
            self.changes_views = True
            yield "CREATE TRIGGER tv1 INSTEAD OF INSERT ON v BEGIN INSERT INTO q VALUES (new.id, new.x); END"
            yield "CREATE TRIGGER tv2 INSTEAD OF UPDATE ON v BEGIN UPDATE q SET x = new.x WHERE id = old.id; END"
            yield "CREATE TRIGGER tv3 INSTEAD OF DELETE ON v BEGIN DELETE FROM q WHERE id = old.id; END"

    def _code(self) -> Iterator[str]:
        """A trigger of PostgreSQL: only a table that it does not stand on, and nothing reaches, has much to show."""
        if self.rare("x"):
            body = f"BEGIN UPDATE {self.one('q', 'l')} SET x = x + 1 WHERE id = 1; RETURN NULL; END"
            name = self.one(*(t for t in self.tables if t not in ("pt", "pc")), "q")
            yield f"CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"
            yield (
                f"CREATE TRIGGER noted AFTER {self.one('INSERT', 'UPDATE', 'DELETE')} ON {name} FOR EACH ROW "
                "EXECUTE FUNCTION note()"
            )
        if self.rare("x"):
            body = "SELECT max(x) FROM q"
            yield f"CREATE FUNCTION most(int) RETURNS int LANGUAGE sql STABLE AS $$ {body} $$"

    def _rows(self) -> Iterator[Call]:
        count = self.one(2, 2, self.top, self.top + 1)
        for i in range(1, count + 1):
            for name in (t for t in ALL if t in self.tables or t in ("s", "q", "a", "b")):
                columns = ALL[name]
                one = self.one
                near = one(1, 2, i, i)
                given = {"id": i, "k": chr(96 + i) if columns.get("k") == "t" else i if name == "w" else near, "m": 1,
                         "n": one("ab"[i % 2], None, f"n{i}"), "x": one(i, i, None), "y": one(i, None), "code": i,
                         "during": f"[{2 * i},{2 * i + 1})", "tags": [i], "doc": None,
                         "mood": one("a", None)}  # fmt: skip
                if name == "tc":
                    given["k"] = one("a", "b", None)
                if name == "e":
                    given["x"] = i
                row = [given.get(c, one(near, near, None)) for c in columns]
                over = "" if self.lite else "OVERRIDING SYSTEM VALUE"
                yield f"INSERT INTO {name} ({', '.join(columns)}) {over} VALUES ({', '.join('?' * len(row))})", row

    # values

    def _text(self) -> tuple[str, list[str]]:
        makers = [self._insert] * 3 + [self._update] * 3 + [self._delete, self._delete, self._query]
        return self._marked(self.one(*makers)())

    def _marked(self, text: str) -> tuple[str, list[str]]:
        text = " ".join(text.split())
        return _MARK.sub("?", text), _MARK.findall(text)

    def _draw(self, kinds: Sequence[str]) -> list[Any]:
        return [self._value(kind) for kind in kinds]

    def _value(self, kind: str) -> Any:
        if kind == "t":
            return self.one("a", "b", "c", "A", "a ", None if self.odds(0.3) else "b")
        if kind == "r":
            low = self.one(*range(0, 8))
            return f"[{low},{low + self.one(1, 1, 2)})"
        if kind == "a":
            return [self.one(1, 2, 3) for _ in range(self.one(1, 1, 2))]
        if kind == "j":
            return {"x": self.one(1, 2)}
        if kind == "m":
            return self.one("a", "b")
        if self.lite and self.rare("x"):
            return self.one("1", 1.0, "a", 2.5, b"1", -1, True, Decimal(1), 1 << 53, (1 << 53) + 1, float(1 << 53))
        if not self.lite and self.rare("x") and self.odds(0.3):
            return self.one("1", "2", Decimal("1.0"), Decimal("1.5"), -1)
        if kind == "k":
            return self.one(*range(1, self.top + 6))
        return self.one(*range(self.top + 1), *range(1, self.top + 1), None if self.odds(0.3) else 1)

    def given(self, kind: str) -> str:
        """A parameter or a constant."""
        if self.odds(0.65) or kind not in "itk":
            cast = {"t": "::text", "r": "::int4range", "a": "::int[]", "j": "::jsonb", "m": "::mood"}.get(kind, "::int")
            return f"\1{kind}\1" + ("" if self.lite or self.odds(0.1) else cast)
        found = self._value(kind)
        if found is None:
            return "NULL"
        if isinstance(found, bytes):
            return "x'31'"
        if isinstance(found, str):
            return f'"{found}"' if self.lite and self.rare("x") and self.odds(0.1) else f"'{found}'"
        if found is True or isinstance(found, Decimal):
            return "1" if self.lite else str(found)
        if self.odds(0.03) and isinstance(found, int) and found >= 0:
            return str(
                self.one(f"{found}e0", f"+{found}", f"({found})", f"{found}.0", hex(found) if self.lite else f"{found}")
            )
        return str(found)

    def value(self) -> str:
        return self.given("i")

    def text(self) -> str:
        return self.given("t")

    def number(self, scope: Scope, depth: int = 2) -> str:
        """An expression that gives an integer."""
        plain: list[Callable[[], str]] = [self.value, self.value, lambda: self.column(scope)]
        if depth <= 0 or self.odds(0.6):
            return str(self.one(*plain)())

        def inner() -> str:
            return self.number(scope, depth - 1)

        more: list[Callable[[], str]] = [
            lambda: f"{inner()} {self.one('+', '-', '*', '%', '&', '|')} {self.number(scope, 0)}",
            lambda: f"coalesce({inner()}, {self.number(scope, 0)})",
            lambda: f"nullif({inner()}, {self.value()})",
            lambda: f"abs({inner()})",
            lambda: f"length({self.string(scope)})",
            lambda: f"CAST({inner()} AS int)",
            lambda: f"- {inner()}" if self.odds(0.3) else f"({inner()} << 1)",
            lambda: (
                f"CASE WHEN {self.condition(scope, depth - 1)} THEN {self.number(scope, 0)} ELSE {self.value()} END"
            ),
            lambda: f"CASE {self.column(scope)} WHEN {self.value()} THEN {self.number(scope, 0)} END",
            lambda: f"({self.single(scope, depth - 1)})",
            lambda: f"({self.single(scope, depth - 1)})",
            lambda: f"({inner()})",
        ]
        if self.lite:
            more += [
                lambda: f"({self.condition(scope, depth - 1)})",
                self.member,
                self.member,
                lambda: f"iif({self.member()}, {self.number(scope, 0)}, {self.value()})",
                lambda: f"max({inner()}, {self.value()})",
                lambda: f"('[1, 2]' ->> {self.value()})",
                lambda: f"json_extract('[1, 2]', '$[0]') + {inner()}",
                lambda: self.one("random() * 0", "1 + CAST(strftime('%s', 'now') AS int) * 0"),
            ]
        else:
            more += [
                lambda: f"({self.condition(scope, depth - 1)})::int",
                lambda: f"ARRAY_LENGTH(ARRAY({self.list(scope, depth - 1)} ORDER BY 1), 1)",
                lambda: f"greatest({inner()}, {self.value()})",
                lambda: f"(ARRAY[{inner()}, {self.value()}])[1]",
                lambda: f"(SELECT max(y) FROM unnest(ARRAY[{self.value()}, 2]) AS y)",
                lambda: f"extract(epoch FROM now())::int * 0 + {inner()}",
                lambda: f"floor(random())::int + {inner()}" if not scope else inner(),
            ]
        return str(self.one(*more)())

    def string(self, scope: Scope) -> str:
        forms = [
            self.text,
            lambda: f"upper({self.text()})",
            lambda: f"{self.text()} || {self.text()}",
            lambda: f"replace({self.text()}, 'a', 'b')",
            lambda: f"substr({self.text()}, 1, 1)",
            lambda: f"CAST({self.number(scope, 0)} AS text)",
        ]
        return str(self.one(self.text, self.text, *forms)())

    def member(self) -> str:
        """The short form of SQLite: (...) IN table; and of what makes a table."""
        if self.odds(0.1):
            return f"({self.value()} {self.one('IN', 'NOT IN')} (SELECT value FROM json_each('[1, 2]')))"
        name = self.table(views=self.theme != "members")
        columns = self._columns(name)
        left = ", ".join(self.given("t" if kind == "t" else "i") for kind in columns.values())
        shown = self.one(name, name, f"main.{name}", f'"{name}"', f"[{name.upper()}]", f"'{name}'", f"main.'{name}'")
        many = f"({left})" if len(columns) > 1 else left
        return f"({many} {self.one('IN', 'IN', 'NOT IN', 'in')} {shown})"

    def _columns(self, name: str) -> Mapping[str, str]:
        return ALL.get(name) or VIEWS.get(name) or {"x": "i"}

    def column(self, scope: Scope, kind: str = "i") -> str:
        if not scope:
            return self.given(kind)
        alias, name = self.chance.choice(scope)
        columns = [c for c, k in self._columns(name).items() if k == kind]
        if not columns:
            return self.given(kind)
        column = self.chance.choice(columns)
        if self.lite and kind == "i" and self.rare("x") and name in TABLES:
            column = self.one("rowid", "_rowid_", "oid")
        return f"{alias}.{column}" if len(scope) > 1 or self.odds(0.4) else column

    def condition(self, scope: Scope, depth: int = 2) -> str:
        kind = self.chance.random()
        if self.lite and self.theme == "members" and kind < 0.5:
            return self.member()
        if depth <= 0 or kind < 0.35:
            return f"{self.column(scope)} {self.one('=', '=', '<', '>=', '<>', '!=')} {self.value()}"

        def inner() -> str:
            return self.condition(scope, depth - 1)

        forms: list[Callable[[], str]] = [
            lambda: f"{inner()} {self.one('AND', 'OR')} {self.condition(scope, 0)}",
            lambda: f"NOT ({inner()})",
            lambda: f"{self.column(scope)} {self.one('IN', 'NOT IN')} ({self.value()}, {self.value()})",
            lambda: f"{self.column(scope)} {self.one('IN', 'NOT IN')} ({self.list(scope, depth - 1)})",
            lambda: f"{self.one('EXISTS', 'NOT EXISTS')} ({self.list(scope, depth - 1)})",
            lambda: f"{self.column(scope)} {self.some('NOT')} BETWEEN {self.value()} AND {self.value()}",
            lambda: f"{self.column(scope)} {self.one('IS NULL', 'IS NOT NULL', 'ISNULL', 'NOTNULL')}",
            lambda: f"{self.column(scope)} IS {self.some('NOT')} DISTINCT FROM {self.value()}",
            lambda: f"({self.column(scope)}, {self.value()}) {self.one('=', '<', '<>')} "
                    f"({self.value()}, {self.number(scope, 0)})",
            lambda: f"({self.column(scope)}, {self.value()}) IN (({self.value()}, 1), (2, {self.value()}))",
            lambda: f"({self.column(scope)}, 1) IN (SELECT {self.column([])}, count(*) FROM {self.source(0)[0]})",
            lambda: f"{self.column(scope, 't')} {self.some('NOT')} LIKE {self.one(repr('a%'), repr('_'))}",
            lambda: f"{self.column(scope, 't')} = {self.string(scope)}",
        ]  # fmt: skip
        if self.lite:
            forms += [
                self.member,
                lambda: f"{self.column(scope)} IS {self.some('NOT')} {self.value()}",
                lambda: f"{self.column(scope, 't')} {self.one('GLOB', 'NOT GLOB')} 'a*'",
                lambda: f"{self.column(scope, 't')} = {self.text()} COLLATE {self.one('NOCASE', 'RTRIM', 'BINARY')}",
                lambda: f"{self.column(scope)} == {self.value()}",
                lambda: f"{self.column(scope)} IN ()",
            ]
        else:
            forms += [
                lambda: f"{self.column(scope)} = {self.one('ANY', 'SOME', 'ALL')} ({self.list(scope, depth - 1)})",
                lambda: f"{self.column(scope)} = ANY (ARRAY[{self.value()}, {self.value()}])",
                lambda: f"{self.column(scope, 't')} {self.one('ILIKE', '~', '!~*', 'SIMILAR TO')} 'a'",
                lambda: f"({inner()}) IS {self.one('TRUE', 'NOT TRUE', 'UNKNOWN')}",
                lambda: f"int4range(0, {self.number([], 0)}) @> {self.column(scope)}",
            ]
        return str(self.one(*forms)())

    def where(self, scope: Scope, name: str, alias: str) -> str:
        """Mostly rows by their key: what touches whole tables is compatible with little."""
        if self.odds(0.04):
            return ""
        if self.odds(0.1) or name not in KEYS:
            return f"WHERE {self.condition(scope)}"
        dot = f"{alias}." if len(scope) > 1 or self.odds(0.3) else ""
        if dot and alias == name and self.odds(0.1):
            dot = f"{'main' if self.lite else 'public'}.{dot}"
        keys = {k: self._columns(name)[k] for k in KEYS[name]}
        if self.lite and keys == {"id": "i"} and self.rare("x"):
            keys = {self.one("rowid", "_rowid_", "oid"): "i"}
        parts = [self._equals(f"{dot}{k}", kind) for k, kind in keys.items()]
        if self.odds(0.6 if self.theme == "members" else 0.2):
            parts.append(f"({self.condition(scope, 1)})")
        if self.odds(0.1):
            self.chance.shuffle(parts)
        return "WHERE " + " AND ".join(parts)

    def _equals(self, column: str, kind: str) -> str:
        form = self.one("{0} = {1}", "{0} = {1}", "{0} = {1}", "{0} = {1}", "{1} = {0}", "{0} IN ({1}, {2})",
                        "({0} = {1})", "{0} IN ({1})")  # fmt: skip
        if self.lite and self.odds(0.05):
            form = self.one("{0} IS {1}", "{0} == {1}")
        kind = self.one("k", "i", "i", "i") if kind == "i" else kind
        if kind in "ik" and self.odds(0.01):
            return f"{column} IN ({', '.join(map(str, range(3, self.one(60, 66, 70))))})"
        return str(form).format(column, self.given(kind), self.given(kind) if "{2}" in form else "")

    # sources

    def table(self, views: bool = False) -> str:
        more = (*VIEWS, *("s", "q", "a", "b")) if views and self.odds(0.2) else ()
        return str(self.one(*more)) if more else self.focus if self.odds(0.4) else str(self.one(*self.tables))

    def shown(self, name: str) -> str:
        if self.odds(0.6):
            return name
        if self.lite:
            return str(self.one(f"main.{name}", f'"{name}"', name.upper(), f"`{name}`", f"[{name}]"))
        return str(self.one(f"public.{name}", f'"{name}"', name.upper()))

    def source(self, depth: int) -> tuple[str, list[tuple[str, str]]]:
        name = self.table(views=True)
        kind = self.chance.random()
        alias = self.one("a", "z", "z", "b") + self.some("1")
        if kind < 0.4 or depth <= 0:
            if self.lite and kind < 0.08 and name in self.indexes:
                return f"{self.shown(name)} {self.one('INDEXED BY ' + self.indexes[name], 'NOT INDEXED')}", [
                    (name, name)
                ]
            return self.shown(name), [(name, name)]
        if kind < 0.55:
            return f"{self.shown(name)} {self.some('AS')} {alias}", [(alias, name)]
        if kind < 0.65:
            inner, scope = self.source(depth - 1)
            return f"(SELECT {self.column(scope)} AS x FROM {inner}) AS {alias}", [(alias, "")]
        if kind < 0.72:
            rows = f"(VALUES ({self.value()}), (2)) AS {alias}"
            return rows + ("" if self.lite else "(x)"), [] if self.lite else [(alias, "")]
        if kind < 0.77 and self.lite:
            return self.one(f"json_each('[1, 2]') AS {alias}", f"json_tree('[1]') AS {alias}"), []
        if kind < 0.77:
            return self.one(
                f"generate_series(1, 2) AS {alias}(x)",
                f"ROWS FROM (generate_series(1, 2)) WITH ORDINALITY AS {alias}(x, y)",
                f"unnest(ARRAY[1, 2]) AS {alias}(x)",
            ), [(alias, "")]
        if kind < 0.82 and not self.lite:
            return f"ONLY {self.shown(name)} AS {alias}", [(alias, name)]
        other = self.table()
        if kind < 0.92:
            how = self.one("JOIN", "LEFT JOIN", "CROSS JOIN", "INNER JOIN", "FULL OUTER JOIN", "NATURAL JOIN", ",",
                           "RIGHT JOIN")  # fmt: skip
            on = f"ON y.{KEYS[other][0]} = {alias}.{next(iter(self._columns(name)))}"
            if how in ("CROSS JOIN", "NATURAL JOIN", ","):
                on = ""
            elif self.odds(0.15) and "x" in self._columns(name) and "x" in self._columns(other):
                return f"{self.shown(name)} AS {alias} {how} {self.shown(other)} AS y USING (x)", [(alias, name)]
            return f"{self.shown(name)} AS {alias} {how} {self.shown(other)} AS y {on}", [(alias, name), ("y", other)]
        if kind < 0.95:
            return f"({self.shown(name)} AS {alias} CROSS JOIN {self.shown(other)} AS y)", [(alias, name), ("y", other)]
        lateral = "" if self.lite else "LATERAL "
        return f"{self.shown(name)} AS {alias}, {lateral}(SELECT * FROM {self.shown(other)}) AS y", [
            (alias, name),
            ("y", other),
        ]

    def single(self, scope: Scope, depth: int) -> str:
        """A query that gives one value at most."""
        inner, own = self.source(depth)
        seen = [*own, *scope] if self.odds(0.3) else own
        what = self.one(
            "count(*)",
            f"max({self.column(own)})",
            f"min({self.column(own)})",
            f"count(DISTINCT {self.column(own)})",
            f"sum({self.column(own)}) FILTER (WHERE {self.condition(own, 0)})",
            "max(1) OVER ()" if self.lite else "count(*)",
        )
        tail = " LIMIT 1" if "OVER" in what and self.odds(0.0) else ""
        return f"SELECT {what} FROM {inner} {self.some('WHERE ' + self.condition(seen, depth - 1), 0.6)}{tail}"

    def list(self, scope: Scope, depth: int) -> str:
        """A query that gives one column."""
        inner, own = self.source(depth)
        where = self.some("WHERE " + self.condition(own, depth - 1), 0.6)
        text = f"SELECT {self.some(self.one('DISTINCT', 'ALL'), 0.1)} {self.column(own)} FROM {inner} {where}"
        if depth > 0 and self.odds(0.15):
            text += f" {self.one('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT')} {self.list(scope, depth - 1)}"
        elif self.odds(0.05):
            text = f"VALUES ({self.value()}), ({self.value()})"
        return text

    def before(self) -> str:
        """WITH."""
        if not self.odds(0.06):
            return ""
        name = self.one("x1", "x1", "a", "q")
        recursive = self.some("RECURSIVE")
        body = f"SELECT 1 AS x UNION ALL SELECT x + 1 FROM {name} WHERE x < 3" if recursive else self.list([], 1)
        kind = self.one("", "", "MATERIALIZED", "NOT MATERIALIZED")
        if not self.lite and self.odds(0.2):
            table = self.table()
            where = self.where([(table, table)], table, table)
            changes = self.one(f"DELETE FROM {table}", f"UPDATE {table} SET {KEYS[table][0]} = {KEYS[table][0]}")
            recursive, kind, body = "", "", f"{changes} {where} RETURNING {KEYS[table][0]}"
        return f"WITH {recursive} {name}(x) AS {kind} ({body})"

    # statements

    def _query(self) -> str:
        if self.lite and self.odds(0.15):
            return f"SELECT {self.member()}"
        if self.lite and self.odds(0.02):
            return str(self.one("SELECT name FROM sqlite_schema ORDER BY 1", "PRAGMA table_info(a)",
                                "SELECT name, pk FROM pragma_table_info('a')"))  # fmt: skip
        if self.odds(0.04):
            return f"VALUES ({self.value()}, {self.text()}), ({self.number([], 1)}, 'a')"
        if not self.lite and self.odds(0.06):
            return f"TABLE {self.shown(self.table(views=True))}"
        name, alias = self.table(), self.one("", "z")
        scope: Scope = [(alias or name, name)]
        wide = self.odds(0.2)
        if wide:
            inner, scope = self.source(2)
            where = self.some("WHERE " + self.condition(scope), 0.7)
        else:
            inner, where = f"{self.shown(name)} {alias}", self.where(scope, name, alias or name)
        column = self.column(scope)
        what = self.one(
            "*",
            f"{scope[0][0]}.*" if scope else "*",
            "count(*)",
            self.number(scope),
            f"max({column})",
            f"{column} AS y, {self.number(scope)}",
            f"row_number() OVER (ORDER BY {column})",
            f"sum({column}) OVER (PARTITION BY {column} ORDER BY {column} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            f"lag({column}) OVER w1",
            f"DISTINCT {column}",
            *([] if self.lite else [f"DISTINCT ON ({column}) {column}"]),
        )
        if "w1" in what:
            where += f" WINDOW w1 AS (ORDER BY {column})"
        group = ""
        if what == "count(*)" and self.odds(0.3):
            sets = column if self.lite else self.one(column, f"ROLLUP ({column})", f"GROUPING SETS (({column}), ())")
            group = f"GROUP BY {sets} {self.some('HAVING count(*) > 0')}"
        more = ""
        if self.rare("x"):
            more = self.one(
                f"UNION ALL SELECT {self.value()}" if what != "*" and "AS y" not in what and ".*" not in what else "",
                "ORDER BY 1",
                f"ORDER BY 1 {self.one('DESC', 'NULLS FIRST')} LIMIT 2 OFFSET {self.one('0', '1')}",
            )
        return f"{self.before()} SELECT {what} FROM {inner} {where} {group} {more}"

    def _changed(self) -> str:
        """What a statement changes."""
        through = self.odds(0.15) if self.changes_views else self.odds(0.002)
        return "v" if through and (self.lite or "q" in self.tables) else self.table()

    def _insert(self) -> str:
        name = self._changed()
        kinds = self._columns(name)
        columns = list(kinds)
        if self.odds(0.35):
            columns = [c for c in columns if c in KEYS.get(name, ()) or c == "code" or self.odds(0.6)]
            self.chance.shuffle(columns)
        if self.odds(0.12) and len(columns) > 1:
            columns = [c for c in columns if c != "id"]
        if self.lite and columns[:1] == ["id"] and self.rare("x") and self.odds(0.3) and len(columns) < len(kinds):
            columns[0] = self.one("rowid", "oid")
        if self.rare("x") and self.odds(0.3):
            values, columns = "DEFAULT VALUES", []
        elif self.odds(0.08):
            inner, scope = self.source(1)
            if self.bounded:
                columns = [c for c in columns if c not in ("rowid", "oid")]
                columns += [key for key in KEYS.get(name, ("id",)) if key not in columns]
            given = ", ".join(
                self.given(kinds.get(c, "i")) if kinds.get(c, "i") != "i" else self.number(scope, 1) for c in columns
            )  # fmt: skip
            values = f"SELECT {given} FROM {inner} {self.some('WHERE ' + self.condition(scope))}"
            values += "" if self.lite else " ORDER BY 1"
            if self.lite:
                values += " WHERE true" if "WHERE" not in values and self.odds(0.5) else ""
        else:
            rows = (
                f"({', '.join(self._given(c, kinds.get(c, 'i'), name) for c in columns)})" for _ in range(self._count())
            )
            values = "VALUES " + ", ".join(rows)
        verb = "INSERT"
        if self.lite:
            verb = self.one(*["INSERT"] * 5, "REPLACE", "INSERT OR REPLACE", "INSERT OR IGNORE",
                            "INSERT OR ABORT")  # fmt: skip
        alias = self.some("AS t1", 0.1)
        over = "" if self.lite else self.some(self.one("OVERRIDING USER VALUE", "OVERRIDING SYSTEM VALUE"), 0.05)
        shown = f"({', '.join(columns)})" if columns and (len(columns) < len(kinds) or self.odds(0.6)) else ""
        if (columns and columns != list(kinds)) or name in ("a", "b", "ch", "e"):
            shown = f"({', '.join(columns)})" if columns else ""
        upsert = self._upsert(name, alias) if verb == "INSERT" and columns else ""
        if upsert and self.lite and values.startswith("SELECT") and "WHERE" not in values:
            values += " WHERE true"
        return (
            f"{self.before()} {verb} INTO {self.shown(name)} {alias} {shown} {over} {values} {upsert} "
            f"{self._returning(name if not alias else 't1', name)}"
        )

    def _count(self) -> int:
        """Of rows that an INSERT has."""
        return int(self.one(65, 70)) if self.odds(0.001) else int(self.one(1, 1, 1, 2))

    def _given(self, column: str, kind: str, name: str) -> str:
        if not self.lite and self.odds(0.05):
            return "DEFAULT"
        if kind != "i":
            return self.string([]) if kind == "t" and self.odds(0.15) else self.given(kind)
        if column in KEYS.get(name, ()):
            kind = "k"
        return self.given(kind) if self.odds(0.85) else self.number([], 2)

    def _upsert(self, name: str, alias: str) -> str:
        if not self.odds(0.35) or name in VIEWS:
            return ""
        known = list(dict.fromkeys(self.uniques[name]))
        targets = self.chance.sample(known, min(len(known), self.one(1, 1, 2) if self.lite else 1))
        targets += targets[:1] * self.odds(0.01)
        if self.odds(0.3):
            targets[-1] = ""
        elif not self.lite and self.odds(0.1):
            targets[-1] = f"ON CONSTRAINT {name}_pkey"
        elif name == "ch" and self.rare("x"):
            targets[-1] = "(x) WHERE n = 'a'"
        elif self.odds(0.02):
            targets[-1] = "(x)"
        return " ".join(
            f"ON CONFLICT {target} DO {self._does(name, 't1' if alias else name, target)}" for target in targets
        )

    def _does(self, name: str, own: str, target: str) -> str:
        kinds = self._columns(name)
        others = [c for c in kinds if c not in KEYS[name]] + list(KEYS[name]) * self.odds(0.03)
        if not others or self.odds(0.3) or not (target or self.lite):
            return "NOTHING"
        column = self.one(*others)
        new = self.one(
            "excluded." + column,
            f"{own}.{column}",
            self._new(column, kinds[column], [(own, name)]),
            f"coalesce(excluded.{column}, {own}.{column})",
        )
        sets = f"{column} = {new}" if self.odds(0.8) else f"({column}) = {'' if self.lite else 'ROW '}({new})"
        return f"UPDATE SET {sets} {self.some('WHERE ' + self.condition([(own, name)], 1), 0.2)}"

    def _new(self, column: str, kind: str, scope: Scope) -> str:
        if not self.lite and self.rare("x") and self.odds(0.2):
            return "DEFAULT"
        if kind != "i":
            return self.string(scope) if kind == "t" and self.odds(0.2) else self.given(kind)
        if self.odds(0.1):
            return f"{scope[0][0]}.{column} + 1" if scope else f"{column} + 1"
        return self.value() if self.odds(0.6) else self.number(scope, 2)

    def _returning(self, own: str, name: str) -> str:
        if not self.odds(0.2):
            return ""
        key = next(iter(self._columns(name)))
        some = f"{key}, {self.number([], 1)}"
        return f"RETURNING {self.one('*', self.number([(own, name)], 1), f'{key} AS z', some)}"

    def _update(self) -> str:
        name = self._changed()
        kinds = self._columns(name)
        alias = self.one("", "", "AS t1", *([] if self.lite else ["t1"]))
        own = "t1" if alias else name
        scope, sources = [(own, name)], ""
        if self.odds(0.08):
            inner, more = self.source(1)
            sources, scope = f"FROM {inner}", [*scope, *more]
        columns = self.chance.sample(list(kinds), min(len(kinds), self.one(1, 1, 2)))
        if self.theme == "keys" and self.odds(0.6) and name in KEYS:
            columns = [KEYS[name][0]]
        elif self.odds(0.6):
            columns = [c for c in columns if c not in KEYS.get(name, ())] or columns
        if self.odds(0.1):
            value = ", ".join(self._new(c, kinds[c], scope) for c in columns)
            if self.odds(0.3) and all(kinds[c] == "i" for c in columns):
                value = f"SELECT {', '.join(self.one('max', 'min') + '(x)' for _ in columns)} FROM {self.one('q', 'a')}"
            row = "" if self.lite or value.startswith("SELECT") else "ROW "
            sets = f"({', '.join(columns)}) = {row}({value})"
        else:
            sets = ", ".join(f"{c} = {self._new(c, kinds[c], scope)}" for c in columns)
        way = self.some("OR " + self.one("IGNORE", "REPLACE", "ABORT"), 0.15) if self.lite else self.some("ONLY", 0.05)
        index = ""
        if self.lite and not alias and self.rare("x"):
            index = f"INDEXED BY {self.indexes[name]}" if name in self.indexes and self.odds(0.3) else "NOT INDEXED"
        return (
            f"{self.before()} UPDATE {way} {self.shown(name)} {alias} {index} SET {sets} {sources} "
            f"{self.where(scope, name, own)} {self._returning(own, name)}"
        )

    def _delete(self) -> str:
        name = self._changed()
        if not self.lite and self.rare("x") and self.odds(0.2) and name != "v":
            return f"TRUNCATE {name} {self.some('CASCADE')}"
        alias = self.one("", "", "AS t1")
        own = "t1" if alias else name
        scope, using = [(own, name)], ""
        if not self.lite and self.odds(0.08):
            inner, more = self.source(1)
            using, scope = f"USING {inner}", [*scope, *more]
        index = "NOT INDEXED" if self.lite and self.rare("x") and not alias else ""
        only = "" if self.lite else self.some("ONLY", 0.05)
        return (
            f"{self.before()} DELETE FROM {only} {self.shown(name)} {alias} {index} {using} "
            f"{self.where(scope, name, own)} {self._returning(own, name)}"
        )
