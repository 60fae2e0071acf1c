"""Random schemas, rows and statements of SQLite: few forms, many meetings. The grammar (framework.testing.sql_grammar)
has many forms, and images.py asks whether compatible statements may change places."""

from collections.abc import Iterator
from random import Random
from typing import Any

USUAL: list[list[Any]] = [[1, 2], [1, 2], [1, 2], ["a", "A"], ["a", "a "], [1, "1"], [1, 1.0]]
VALUES: list[Any] = [0, 3, "a", "A", "b", "1", "a ", 1.0, 2.5, None, -1, b"a"]
ACTIONS = [
    "",
    "ON DELETE CASCADE",
    "ON DELETE SET NULL ON UPDATE CASCADE",
    "ON UPDATE CASCADE",
    "ON DELETE SET DEFAULT",
]
COLUMNS = {"p": ("id", "n", "v"), "c": ("id", "pid", "n", "v"), "g": ("x", "y", "cid", "v"), "l": ("id", "t")}
KEYS = {"p": ("id",), "c": ("id",), "g": ("x", "y"), "l": ("id",)}

Call = tuple[str, list[Any]]


class World:
    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.odd = chance.choice([0.0, 0.0, 0.1, 0.4])  # how often something is out of the ordinary
        self.usual = chance.choice(USUAL)
        self.tables = chance.choice(["p", "c", "g", "pc", "pc", "cg", "pcgl"])
        self.schema = list(filter(None, self._schema()))
        self.rows = [*self._first(), *(self._insert() for _ in range(chance.randint(0, 4)))]
        self.calls = [self._call() for _ in range(7)]

    def _first(self) -> Iterator[Call]:
        for i in (1, 2):
            yield "INSERT INTO p VALUES (?, ?, ?)", [i, self.chance.choice([i, "a", None]), i]
            yield "INSERT INTO c VALUES (?, ?, ?, ?)", [i, self.chance.choice([1, 2, None]), 1, i]
            yield "INSERT INTO g VALUES (?, ?, ?, ?)", [1, i, self.chance.choice([1, 2, None]), i]

    # the schema

    def _schema(self) -> Iterator[str]:
        some, one, odd = self._some, self.chance.choice, self._odd
        key = one(
            [
                "INTEGER PRIMARY KEY",
                "TEXT PRIMARY KEY",
                "TEXT COLLATE NOCASE PRIMARY KEY",
                "PRIMARY KEY",
                "INT PRIMARY KEY",
            ]
        )
        rowid = "" if "INTEGER" in key else one(["", "WITHOUT ROWID", "WITHOUT ROWID"])
        yield f"CREATE TABLE p (id {key}, n {some('TEXT')} {some('COLLATE NOCASE')} {some('UNIQUE')}, v) {rowid}"
        unique = some("UNIQUE") or odd("UNIQUE ON CONFLICT REPLACE")
        yield (
            f"CREATE TABLE c (id INTEGER PRIMARY KEY {some('AUTOINCREMENT')}, pid REFERENCES p(id) {one(ACTIONS)}, "
            f"n {some('DEFAULT 1')}, v INT {unique} {some(', UNIQUE (n, v)')})"
        )
        yield (
            f"CREATE TABLE g (x {some('TEXT')}, y, cid {some('INT')} REFERENCES c {one(ACTIONS)}, v {some('UNIQUE')}, "
            f"PRIMARY KEY (x, y)) {one(['', 'WITHOUT ROWID', 'WITHOUT ROWID'])}"
        )
        yield "CREATE TABLE l (id INTEGER PRIMARY KEY, t)"
        yield "CREATE VIEW w AS SELECT c.id, p.n FROM c JOIN p ON c.pid = p.id"
        yield some("CREATE UNIQUE INDEX pv ON p (v)")
        for index in ("part ON c (v) WHERE n = 1", "up ON p (upper(n))"):
            yield odd(f"CREATE UNIQUE INDEX {index}")
        for name in "pcg":
            event = one(["INSERT", "UPDATE", "DELETE"])
            row = "old" if event == "DELETE" else "new"
            does = one(
                [f"INSERT INTO l (t) VALUES ({row}.v)", "UPDATE p SET v = 3 WHERE n = 'a'", "DELETE FROM g WHERE v = 2"]
            )
            yield odd(f"CREATE TRIGGER t{name} AFTER {event} ON {name} BEGIN {does}; END")

    def _some(self, text: str) -> str:
        return text if self.chance.random() < 0.4 else ""

    def _odd(self, text: str) -> str:
        return text if self.chance.random() < self.odd else ""

    # statements

    def _call(self) -> Call:
        make = self.chance.choice([self._insert, self._insert, self._update, self._update, self._delete, self._select])
        return make()

    def _value(self, params: list[Any]) -> str:
        value = self.chance.choice(VALUES if self.chance.random() < self.odd + 0.1 else self.usual)
        if self.chance.random() < 0.6:
            params.append(value)
            return "?"
        if value is None:
            return "NULL"
        if isinstance(value, bytes):
            return "x'61'"
        return f"'{value}'" if isinstance(value, str) else str(value)

    def _insert(self) -> Call:
        one, params = self.chance.choice, list[Any]()
        name = one(self.tables)
        columns = [c for c in COLUMNS[name] if c in KEYS[name] or self.chance.random() < 0.7]
        if self.chance.random() < self.odd:
            columns = columns[1:] or columns
        rows = [f"({', '.join(self._value(params) for _ in columns)})" for _ in range(one([1, 1, 1, 2]))]
        verb = one(["INSERT", "INSERT", "INSERT OR IGNORE", "INSERT OR REPLACE", "REPLACE", "INSERT OR ABORT"])
        values = f"VALUES {', '.join(rows)}"
        if self.chance.random() < self.odd / 2:
            params.clear()
            values = f"SELECT {', '.join(columns)} FROM {name} WHERE v = 2" if name != "l" else "SELECT 7, 7"
            columns = columns if name != "l" else ["id", "t"]
        clash = ""
        if verb == "INSERT" and self.chance.random() < 0.4 and "SELECT" not in values:
            target = one([f"({', '.join(KEYS[name])})", "(n)" if name == "p" else "", ""])
            sets = f"{one(COLUMNS[name][1:])} = {one(['excluded.' + COLUMNS[name][-1], '2', 'NULL'])}"
            clash = f"ON CONFLICT {target} DO {one(['NOTHING', 'UPDATE SET ' + sets])}"
        return f"{verb} INTO {name} ({', '.join(columns)}) {values} {clash} {self._some('RETURNING *')}", params

    def _where(self, name: str, params: list[Any], before: str = "") -> str:
        kind = self.chance.random()
        if kind < self.odd / 3:
            return ""
        columns = KEYS[name] if kind < 0.85 else [self.chance.choice(COLUMNS[name])]
        parts = [self._equals(before + c, params) for c in columns]
        if self.chance.random() < 0.2:
            parts.append(f"({before}{self.chance.choice(COLUMNS[name])} IS NOT 2 OR 1 = {self._value(params)})")
        return f"WHERE {' AND '.join(parts)}"

    def _equals(self, column: str, params: list[Any]) -> str:
        kind = self.chance.random()
        if kind < 0.7:
            return f"{column} = {self._value(params)}"
        if kind < 0.8:
            return f"{self._value(params)} = {column}"
        if kind < 0.92:
            return f"{column} IN ({self._value(params)}, {self._value(params)})"
        odd = self.chance.choice(["IS", "<", "= 1 <", "COLLATE NOCASE =", "= 1 OR v =", "= 1 IS NOT"])
        return f"{column} {odd} {self._value(params)}"

    def _update(self) -> Call:
        name, params = self.chance.choice(self.tables), list[Any]()
        some = self.chance.sample(COLUMNS[name], self.chance.choice([1, 1, 2]))
        sets = ", ".join(f"{c} = {self._new(c, params)}" for c in some)
        way = self._some(self.chance.choice(["OR IGNORE", "OR REPLACE"])) if self.chance.random() < 0.3 else ""
        return f"UPDATE {way} {name} SET {sets} {self._where(name, params)} {self._some('RETURNING *')}", params

    def _new(self, column: str, params: list[Any]) -> str:
        kind = self.chance.random()
        if kind < 0.7:
            return self._value(params)
        return f"{column} || 1" if kind < 0.8 else f"{column} + 1" if kind < 0.9 else "(SELECT max(v) FROM c)"

    def _delete(self) -> Call:
        name, params = self.chance.choice(self.tables), list[Any]()
        return f"DELETE FROM {name} {self._where(name, params)} {self._some('RETURNING *')}", params

    def _select(self) -> Call:
        name, params = self.chance.choice(self.tables), list[Any]()
        kind = self.chance.random()
        if kind < 0.1:
            return "SELECT * FROM w WHERE id = 1", []
        if kind < 0.3:
            return f"SELECT * FROM {name} a LEFT JOIN c b ON a.rowid = b.id {self._where(name, params, 'a.')}", params
        what = self.chance.choice(["*", "count(*)", "rowid", "max(v)"])
        return f"SELECT {what} FROM {name} {self._where(name, params)}", params
