"""Pairs of statements that were once taken for compatible, performed in both orders; and a grammar that finds more."""

from typing import NamedTuple

import pytest

from objects.sql.footprint.effects import Effects
from tests.objects.sql.footprint.campaign import pairs
from tests.objects.sql.footprint.images import Call, Images, Sqlite, Tally, disorder, in_both_orders
from tests.objects.sql.footprint.images_postgres import Postgres


class Case(NamedTuple):
    schema: list[str]
    rows: list[Call]
    calls: list[Call]


IN_TABLE = ["CREATE TABLE t (a INTEGER PRIMARY KEY, b)", "CREATE TABLE k (t INTEGER PRIMARY KEY)"]
PARENT = [
    "CREATE TABLE p (id INTEGER PRIMARY KEY)",
    "CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p, v)",
]
TWO_PARENTS = [
    "CREATE TABLE a (id INTEGER PRIMARY KEY)",
    "CREATE TABLE p2 (id INTEGER PRIMARY KEY)",
    "CREATE TABLE ch (id INTEGER PRIMARY KEY, c INTEGER REFERENCES a (id) ON UPDATE CASCADE REFERENCES p2 (id))",
]
DEFAULTS = [
    *TWO_PARENTS[:2],
    "CREATE TABLE ch (id INTEGER PRIMARY KEY, c INTEGER DEFAULT 7 REFERENCES a (id) ON DELETE SET DEFAULT "
    "REFERENCES p2 (id))",
]
COMPUTED = [
    *TWO_PARENTS[:2],
    "CREATE TABLE ch (id INTEGER PRIMARY KEY, c INTEGER REFERENCES a (id) ON UPDATE CASCADE, "
    "g INTEGER GENERATED ALWAYS AS (c + 1) STORED REFERENCES p2 (id))",
]
ROWS: list[Call] = [(f"INSERT INTO {name} VALUES (1)", []) for name in ("a", "p2")]

SQLITE: dict[str, Case] = {
    "x IN target": Case(
        IN_TABLE, [], [("INSERT INTO t VALUES (?, (?, 6) IN t)", [1, 5]), ("INSERT INTO t VALUES (?, 6)", [5])]
    ),
    "x NOT IN main.target": Case(
        IN_TABLE, [("INSERT INTO t VALUES (1, 1)", [])],
        [("UPDATE t SET b = ((5, 6) NOT IN main.t) WHERE a = 1", []), ("REPLACE INTO t VALUES (5, 6)", [])],
    ),
    "x IN 'target'": Case(
        IN_TABLE, [("INSERT INTO t VALUES (1, 1)", [])],
        [("DELETE FROM t WHERE a = 1 AND (5, 6) IN 't'", []), ("INSERT INTO t VALUES (5, 6)", [])],
    ),
    "a column of the table's name": Case(
        IN_TABLE, [("INSERT INTO k VALUES (1)", [])],
        [("DELETE FROM k WHERE t = 1 AND 2 IN k", []), ("INSERT INTO k VALUES (2)", [])],
    ),
    "x IN the parent": Case(
        PARENT, [], [("INSERT INTO c VALUES (?, NULL, ? IN p)", [1, 5]), ("INSERT INTO p VALUES (?)", [5])]
    ),
    "x IN the child": Case(
        PARENT, [],
        [("INSERT INTO p SELECT 8 WHERE (1, NULL, 3) NOT IN c", []), ("INSERT INTO c VALUES (1, NULL, 3)", [])],
    ),
    "x IN, RETURNING": Case(
        PARENT, [], [("INSERT INTO p VALUES (5) RETURNING 6 IN p", []), ("INSERT INTO p VALUES (6)", [])]
    ),
}  # fmt: skip
CHILD = ["CREATE TABLE a (id INTEGER PRIMARY KEY)", "CREATE TABLE ch (id INTEGER PRIMARY KEY, c INTEGER REFERENCES a)"]
UPDATE_A: Call = ("UPDATE a SET id = 1001 WHERE id = 1", [])
BOTH: dict[str, Case] = {
    "a parent that others refer to": Case(
        CHILD, [ROWS[0], ("INSERT INTO ch VALUES (1, 1)", [])],
        [("DELETE FROM a WHERE id = 1", []), ("DELETE FROM ch WHERE id = 1", [])],
    ),
    "a parent that comes": Case(CHILD, [], [("INSERT INTO a VALUES (3)", []), ("INSERT INTO ch VALUES (1, 3)", [])]),
    "a cascade to a column with two parents": Case(
        TWO_PARENTS, [*ROWS, ("INSERT INTO ch VALUES (1, 1)", [])], [UPDATE_A, ("INSERT INTO p2 VALUES (1001)", [])]
    ),
    "a default that another parent must have": Case(
        DEFAULTS, [*ROWS, ("INSERT INTO ch VALUES (1, 1)", []), ("INSERT INTO a VALUES (7)", [])],
        [("DELETE FROM a WHERE id = 1", []), ("INSERT INTO p2 VALUES (7)", [])],
    ),
    "a cascade to what is computed": Case(
        COMPUTED, [*ROWS, ("INSERT INTO p2 VALUES (2)", []), ("INSERT INTO ch (id, c) VALUES (1, 1)", [])],
        [UPDATE_A, ("INSERT INTO p2 VALUES (1002)", [])],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*SQLITE, *BOTH])
def test_a_pair_on_sqlite(sqlite_images: Sqlite, name: str) -> None:
    check(sqlite_images, (SQLITE | BOTH)[name])


@pytest.mark.parametrize("name", BOTH)
def test_a_pair_on_postgres(postgres_images: Postgres, name: str) -> None:
    check(postgres_images, BOTH[name])


def check(on: Images, case: Case) -> None:
    assert in_both_orders(on, case) != "", "their order shows nowhere"
    assert disorder(on, case) == ""


RULES = pytest.mark.parametrize(
    ("rule", "name"), [("children", "a parent that others refer to"), ("parent", "a parent that comes")]
)


@RULES
def test_sqlite_itself_tells_what_foreign_keys_reach(
    sqlite_images: Sqlite, rule: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Effects, rule, lambda *_: None)
    assert disorder(sqlite_images, BOTH[name]) == ""
    monkeypatch.setattr(Effects, "reaches", lambda *_: True)
    assert disorder(sqlite_images, BOTH[name]) != ""


@RULES
def test_a_rule_that_is_left_out_is_missed(
    postgres_images: Postgres, rule: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Effects, rule, lambda *_: None)
    assert disorder(postgres_images, BOTH[name]) != ""


@pytest.mark.full
def test_the_grammar(sqlite_images: Sqlite, postgres_images: Postgres) -> None:
    """More of it: python -m tests.objects.sql.footprint.campaign."""
    for seed in range(1000, 1100):
        assert pairs(sqlite_images, seed, Tally()) == ""
    for seed in range(1000, 1040):
        assert pairs(postgres_images, seed, Tally()) == ""
