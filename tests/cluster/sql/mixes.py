"""Random statements on the schemas of family.py. Few keys and few values, so that much meets."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.cluster.sql.family import FAMILIES, Family

Step = tuple[str, tuple[Any, ...]]  # method, values
Statements = st.SearchStrategy[tuple[str, list[Any]]]

KEYS = st.integers(1, 6)
NUMBERS = st.integers(-3, 12)
NAMES = st.sampled_from(["ann", "bob", "cäsar", "d'or", "", None])
PARTS = st.integers(1, 2)


def _key(family: Family) -> st.SearchStrategy[Any]:
    return KEYS.map(lambda k: f"k{k}") if family.key == "text" else KEYS


def _of(made: dict[str, tuple[st.SearchStrategy[Any], ...]]) -> Statements:
    return st.one_of([st.tuples(st.just(sql), st.tuples(*params).map(list)) for sql, params in made.items()])


def changes(family: Family) -> Statements:
    """One statement that changes something, if it can."""
    key = _key(family)
    only = " AND part = 1" if family.pair else ""
    target = "(id, part)" if family.pair else "(id)"
    # PostgreSQL changes rows as they lie on disk: there only one row may draw a number
    drawn = {"UPDATE a SET chance = random() WHERE n > ?": (NUMBERS,)} if family.dialect == "sqlite" else {}
    return _of(
        drawn
        | {
            "INSERT INTO a (id, name, n) VALUES (?, ?, ?)": (key, NAMES, NUMBERS),
            "INSERT INTO a (id, part, name, n) VALUES (?, ?, ?, ?) RETURNING id, n": (key, PARTS, NAMES, NUMBERS),
            f"INSERT INTO a (id, n) VALUES (?, ?) ON CONFLICT {target} DO UPDATE SET n = a.n + excluded.n": (
                key,
                NUMBERS,
            ),
            "INSERT INTO a (id, n) VALUES (?, 1), (?, 2) ON CONFLICT DO NOTHING": (key, key),
            "INSERT INTO a (name, n) VALUES (?, ?) RETURNING id, n": (NAMES, NUMBERS),
            "INSERT INTO a (id, n) SELECT id + 10, n FROM a WHERE n < ? ORDER BY id": (NUMBERS,),
            f"UPDATE a SET n = n + ? WHERE id = ?{only}": (NUMBERS, key),
            f"UPDATE a SET n = n - 1, name = ? WHERE id = ?{only} RETURNING id, n": (NAMES, key),
            "UPDATE a SET n = n - ? WHERE n > ?": (NUMBERS, NUMBERS),
            f"UPDATE a SET id = ? WHERE id = ?{only}": (key, key),
            f"UPDATE a SET chance = random(), made = CURRENT_TIMESTAMP WHERE id = ?{only}": (key,),
            f"DELETE FROM a WHERE id = ?{only}": (key,),
            "DELETE FROM a WHERE n > ?": (NUMBERS,),
            "INSERT INTO b (id, a_id, v) VALUES (?, ?, ?)": (KEYS, key, NUMBERS),
            "INSERT INTO b (a_id, v) VALUES (?, ?)": (key, NUMBERS),
            "UPDATE b SET v = v + 1, a_id = ? WHERE id = ?": (key, KEYS),
            "UPDATE b SET v = (SELECT sum(n) FROM a) WHERE id = ?": (KEYS,),
            "DELETE FROM b WHERE id = ?": (KEYS,),
            "DELETE FROM b WHERE a_id = ?": (key,),
        }
    )


def reads(family: Family) -> Statements:
    key = _key(family)
    return _of(
        {
            "SELECT id, part, name, n FROM a WHERE id = ?": (key,),
            "SELECT count(*), sum(n) FROM a WHERE n >= ?": (NUMBERS,),
            "SELECT id, n, children FROM va": (),
            "SELECT a.n, b.v FROM a JOIN b ON b.a_id = a.id WHERE b.id = ?": (KEYS,),
            "SELECT count(*) FROM log": (),
        }
    )


WRONG = _of(
    {
        "INSERT INTO nobody VALUES (1)": (),
        "UPDATE a SET nothing = 1": (),
        "SELECT * FROM a WHERE id = ? AND n = ?": (KEYS,),
        "DELETE FROM a WHERE id = 1": (KEYS,),
        "INSERT INTO a (id, n) VALUES (1, NULL)": (),
        "SELEC 1": (),
        "INSERT INTO b (id, a_id) VALUES (1, '99')": (),
    }
)
DDL = _of(
    {
        "CREATE INDEX IF NOT EXISTS ib ON b (a_id)": (),
        "DROP INDEX IF EXISTS ib": (),
        "CREATE UNIQUE INDEX IF NOT EXISTS ub ON b (a_id, v)": (),
        "DROP INDEX IF EXISTS ub": (),
        "ALTER TABLE b ADD COLUMN more INTEGER DEFAULT 7": (),
        "CREATE INDEX ia ON a (n)": (),
    }
)


def steps(family: Family, ddl: bool) -> st.SearchStrategy[Step]:
    change, read = changes(family), reads(family)
    some = st.lists(st.one_of(change, change, change, read, WRONG), min_size=1, max_size=3)
    rows = st.lists(st.tuples(_key(family), NUMBERS).map(list), min_size=1, max_size=3)
    many = st.sampled_from(["INSERT INTO a (id, n) VALUES (?, ?)", "UPDATE a SET n = n + 1 WHERE id = ? AND n < ?"])
    kinds: dict[str, list[st.SearchStrategy[Any]]] = {
        "execute": [change] * 6 + [read, WRONG, *([DDL] if ddl else [])],
        "query": [read] * 2,
        "transaction": [some.map(lambda found: (found,))] * 2,
        "executemany": [st.tuples(many, rows)],
    }
    return st.one_of([st.tuples(st.just(method), values) for method, each in kinds.items() for values in each])


@st.composite
def programs(
    draw: st.DrawFn, dialect: str, clients: int, most: int, ddl: bool = True
) -> tuple[Family, list[list[Step]]]:
    """A schema, and what each of the clients does."""
    family = replace(draw(FAMILIES), dialect=dialect)
    return family, [draw(st.lists(steps(family, ddl), min_size=2, max_size=most)) for _ in range(clients)]
