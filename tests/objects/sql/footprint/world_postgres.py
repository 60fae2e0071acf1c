"""The same of PostgreSQL, where columns have types."""

from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

from tests.objects.sql.footprint.world import Call

ACTIONS = [
    "",
    "ON DELETE CASCADE",
    "ON DELETE SET NULL ON UPDATE CASCADE",
    "ON UPDATE CASCADE",
    "ON DELETE SET DEFAULT",
]
COLUMNS = {"p": ("id", "n", "v"), "c": ("id", "pid", "n", "v"), "g": ("x", "y", "cid", "v")}
KEYS = {"p": ("id",), "c": ("id",), "g": ("x", "y")}
UUIDS: list[Any] = [UUID(int=0xA1), UUID(int=0xB2), str(UUID(int=0xA1)), str(UUID(int=0xA1)).upper()]
VALUES: dict[str, list[Any]] = {
    "int": [1, 2, 1, 2, 3, None],
    "text": ["a", "a ", "a", "b", None],
    "uuid": UUIDS,
    "numeric": [1, 2, 2.5, None],
}


class World:
    def __init__(self, chance: Random) -> None:
        self.chance = chance
        one = chance.choice
        self.key = one(["int", "int", "text", "uuid", "numeric"])
        self.types = {
            "v": "int",
            "n": "text",
            "id": "int",
            "pid": self.key,
            "cid": "int",
            "x": one(["int", "text"]),
            "y": "int",
        }
        self.tables = one(["p", "c", "g", "pc", "pc", "cg", "pcg"])
        self.schema = list(filter(None, self._schema()))
        self.rows = [*self._first(), *(self._insert() for _ in range(chance.randint(0, 4)))]
        self.calls = [self._call() for _ in range(7)]

    def _type(self, name: str, column: str) -> str:
        return self.key if (name, column) == ("p", "id") else self.types[column]

    def _schema(self) -> Iterator[str]:
        some, one = self._some, self.chance.choice
        kind = "char(3)" if self.key == "text" and self.chance.random() < 0.6 else self.key
        yield f"CREATE TABLE p (id {kind} PRIMARY KEY, n text {some('UNIQUE')}, v int {some('UNIQUE')})"
        yield (
            f"CREATE TABLE c (id serial PRIMARY KEY, pid {kind} REFERENCES p(id) {one(ACTIONS)}, "
            f"n text {some('DEFAULT 1')}, v int {some('UNIQUE NULLS NOT DISTINCT')} {some(', UNIQUE (n, v)')})"
        )
        yield (
            f"CREATE TABLE g (x {self.types['x']}, y int, cid int REFERENCES c {one(ACTIONS)}, v int {some('UNIQUE')}, "
            "PRIMARY KEY (x, y))"
        )
        yield "CREATE VIEW w AS SELECT c.id, p.n FROM c JOIN p ON c.pid = p.id"
        if self.chance.random() < 0.1:
            yield "CREATE UNIQUE INDEX part ON c (v) WHERE n = 'a'"
        if self.chance.random() < 0.1:
            body = "BEGIN UPDATE g SET v = NULL; RETURN NULL; END"
            yield f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"
            yield "CREATE TRIGGER t AFTER DELETE ON c FOR EACH ROW EXECUTE FUNCTION f()"

    def _some(self, text: str) -> str:
        return text if self.chance.random() < 0.4 else ""

    def _first(self) -> Iterator[Call]:
        keys = {"int": [1, 2], "text": ["a", "b"], "uuid": UUIDS[:2], "numeric": [1, 2]}
        for i in (1, 2):
            yield "INSERT INTO p VALUES (?, ?, ?)", [keys[self.key][i - 1], self.chance.choice(["a", None]), i]
            yield "INSERT INTO c VALUES (?, ?, ?, ?)", [i, self.chance.choice([*keys[self.key], None]), "a", i]
            x = "a" if self.types["x"] == "text" else 1
            yield "INSERT INTO g VALUES (?, ?, ?, ?)", [x, i, self.chance.choice([1, 2, None]), i]

    def _call(self) -> Call:
        return self.chance.choice(
            [self._insert, self._insert, self._update, self._update, self._delete, self._select]
        )()

    def _value(self, kind: str, params: list[Any]) -> str:
        value = self.chance.choice(VALUES[kind])
        if self.chance.random() < 0.7:
            params.append(value)
            return self.chance.choice(["?", "?", f"?::{kind}"])
        return "NULL" if value is None else f"'{value}'" if isinstance(value, str | UUID) else str(value)

    def _insert(self) -> Call:
        name, params = self.chance.choice(self.tables), list[Any]()
        columns = [c for c in COLUMNS[name] if c in KEYS[name] or self.chance.random() < 0.7]
        if name == "c" and self.chance.random() < 0.3:
            columns = columns[1:] or ["v"]
        rows = [
            f"({', '.join(self._value(self._type(name, c), params) for c in columns)})"
            for _ in range(self.chance.choice([1, 1, 2]))
        ]
        clash = ""
        if self.chance.random() < 0.3:
            one = self.chance.choice
            target = one([f"({', '.join(KEYS[name])})", "(v)", "(n)"])
            sets = one(["v = excluded.v", "v = 2", "v = NULL"])
            clash = one(["ON CONFLICT DO NOTHING", f"ON CONFLICT {target} DO UPDATE SET {sets}"])
        return (
            f"INSERT INTO {name} ({', '.join(columns)}) VALUES {', '.join(rows)} {clash} {self._some('RETURNING *')}",
            params,
        )

    def _where(self, name: str, params: list[Any]) -> str:
        columns = KEYS[name] if self.chance.random() < 0.85 else [self.chance.choice(COLUMNS[name])]
        parts = [self._equals(name, c, params) for c in columns]
        if self.chance.random() < 0.2:
            parts.append(f"(v <> 2 OR 1 = {self._value('int', params)})")
        return f"WHERE {' AND '.join(parts)}"

    def _equals(self, name: str, column: str, params: list[Any]) -> str:
        def value() -> str:
            return self._value(self._type(name, column), params)

        form = self.chance.choice(
            ["{0} = {1}", "{0} = {1}", "{0} = {1}", "{1} = {0}", "{0} IN ({1}, {2})", "{0} >= {1}"]
        )
        return form.format(column, value(), value() if "{2}" in form else "")

    def _update(self) -> Call:
        name, params = self.chance.choice(self.tables), list[Any]()
        some = self.chance.sample(COLUMNS[name], self.chance.choice([1, 1, 2]))
        sets = ", ".join(f"{c} = {self._new(name, c, params)}" for c in some)
        return f"UPDATE {name} SET {sets} {self._where(name, params)} {self._some('RETURNING *')}", params

    def _new(self, name: str, column: str, params: list[Any]) -> str:
        kind = self._type(name, column)
        if kind == "int" and self.chance.random() < 0.3:
            return self.chance.choice([f"{column} + 1", "(SELECT max(v) FROM c)"])
        return self._value(kind, params)

    def _delete(self) -> Call:
        name, params = self.chance.choice(self.tables), list[Any]()
        return f"DELETE FROM {name} {self._where(name, params)} {self._some('RETURNING *')}", params

    def _select(self) -> Call:
        name, params = self.chance.choice([*self.tables, "w"]), list[Any]()
        if name == "w":
            return "SELECT * FROM w WHERE id = 1", []
        return (
            f"SELECT {self.chance.choice(['*', 'count(*)', 'max(v)'])} FROM {name} {self._where(name, params)}",
            params,
        )
