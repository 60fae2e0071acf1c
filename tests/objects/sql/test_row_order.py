"""PostgreSQL keeps rows in the order in which they were written, which differs from replica to replica: what did not
conflict was performed in different orders, and space that is free again is used again. Nothing may go by it."""

import pytest

from framework import BadRequest
from objects.sql import ProgrammingError, SqlError

pytestmark = pytest.mark.parametrize("dialect", ["postgres"], indirect=True)

SCHEMA = [
    "CREATE TABLE t (id int PRIMARY KEY, n int, m int UNIQUE, x double precision, name text)",
    "CREATE TABLE u (k int PRIMARY KEY, g int, v int)",
    "CREATE TABLE l (id serial PRIMARY KEY, t int, name text)",
    "CREATE TABLE w (id int PRIMARY KEY, n int)",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN INSERT INTO l (t) VALUES (OLD.id); RETURN NULL; END $$",
    "CREATE TRIGGER g AFTER UPDATE OR DELETE ON w FOR EACH ROW EXECUTE FUNCTION f()",
    "CREATE VIEW vt AS SELECT id, n FROM t",
    "CREATE TABLE e (id int PRIMARY KEY, low text, high text)",
    "CREATE UNIQUE INDEX el ON e (lower(low))",
    "CREATE TABLE nk (a int, b text)",
    "CREATE TRIGGER g2 AFTER DELETE ON nk FOR EACH ROW EXECUTE FUNCTION f2()",
]
F2 = (
    "CREATE FUNCTION f2() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN INSERT INTO l (t, name) VALUES (OLD.a, OLD.b); RETURN NULL; END $$"
)
FLOATS = ("1e16", "1.0", "-1e16", "3")  # their sum depends on its order
ROWS = [
    *(
        f"INSERT INTO t VALUES ({i}, {i % 2}, {i}, {x}, 'n{9 - i}')"
        for i, x in enumerate(("1e16", "1.0", "-1e16", "3"))
    ),
    *(f"INSERT INTO u VALUES ({i}, {i // 2}, {i * 10})" for i in range(4)),
    *(f"INSERT INTO w VALUES ({i}, 1)" for i in range(4)),
    *(f"INSERT INTO e VALUES ({i}, '{chr(97 + i)}', '{chr(98 + i)}')" for i in range(4)),
    *(f"INSERT INTO nk VALUES ({i % 2}, 'b{i}')" for i in range(4)),
]


@pytest.fixture
def both(make):
    """The same rows, in different places."""
    made = [make("n1"), make("n2")]
    for one, rows in zip(made, (ROWS, ROWS[::-1]), strict=True):
        for sql in (*SCHEMA[:-1], F2, SCHEMA[-1], *rows):
            one.do(sql, number=sql)
    assert made[0].database.fingerprint() == made[1].database.fingerprint()
    return made


def performed(both, sql, params=()):
    """What each of them gave, or the kind of error."""
    found = []
    for one in both:
        try:
            found.append(one.do(sql, params, number=sql))
        except (SqlError, BadRequest) as error:
            found.append(error)
    assert both[0].database.digest() == both[1].database.digest()
    assert both[0].database.fingerprint() == both[1].database.fingerprint()
    return found


@pytest.mark.parametrize(("sql", "params", "count"), [
    ("UPDATE t SET id = id - 1", (), 4),  # each in turn makes room for the next
    ("UPDATE t SET m = m - ? WHERE n < ?", (1, 5), 4),
    ("UPDATE ONLY t AS a SET m = -a.m, name = 'x' WHERE a.id > :i RETURNING *", {"i": 1}, 2),
    ("UPDATE e SET low = high", (), None),  # 'b' is there when the first one becomes it
    ("UPDATE t SET id = id + 1", (), None),
    ("UPDATE w SET n = n + 1", (), 4),
    ("DELETE FROM w WHERE id >= ? RETURNING id", (1,), 3),
    ("WITH few AS (SELECT id AS i FROM t WHERE n = 1) UPDATE w SET n = 7 WHERE id IN (SELECT i FROM few)", (), 2),
    ("DELETE FROM nk", (), 4),  # without a key
    ("INSERT INTO l (t) SELECT id FROM t ORDER BY n", (), 4),
    ("INSERT INTO l (t, name) SELECT n, name FROM t ORDER BY n DESC LIMIT 3", (), 3),
    ("INSERT INTO l SELECT * FROM (SELECT id + 100 AS i, n, name FROM t) AS s ORDER BY n", (), None),
    ("INSERT INTO l (t, name) SELECT t.n, max(u.v)::text FROM t JOIN u ON u.g = t.n GROUP BY t.n ORDER BY 1", (), 2),
    ("DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY n LIMIT ?)", (1,), 1),
    ("UPDATE u SET v = (SELECT id FROM t ORDER BY n OFFSET 1 LIMIT 1) WHERE k = 0", (), 1),
    ("UPDATE l SET name = 'x' WHERE id = (SELECT max(id) FROM l)", (), 0),
    ("INSERT INTO l (name) VALUES ((SELECT string_agg(name, ',' ORDER BY n) FROM t))", (), 1),
    ("UPDATE t SET x = (SELECT sum(x ORDER BY n) FROM t) WHERE id = 1", (), 1),
    ("UPDATE t SET x = (SELECT sum(x::numeric) FROM t) WHERE id = 1", (), 1),
    ("UPDATE t SET n = (SELECT sum(t.n + CASE WHEN v > 0 THEN 1 ELSE 2 END) FROM t, u) WHERE id = 1", (), 1),
    ("UPDATE t SET n = u.v FROM u WHERE u.k = t.id AND u.v > ?", (5,), 3),
    ("WITH s AS (SELECT k, v FROM u) UPDATE t SET n = s.v FROM s WHERE s.k = t.id", (), 4),
    ("INSERT INTO l (t, name) SELECT id, row_number() OVER (ORDER BY n, id) FROM t ORDER BY id", (), 4),
    ("CREATE TABLE few AS SELECT name FROM t ORDER BY n LIMIT 1", (), 1),
    ("WITH gone AS (DELETE FROM u WHERE g = 1 RETURNING k) INSERT INTO l (t) SELECT k FROM gone ORDER BY k", (), 2),
])  # fmt: skip
def test_what_is_done_is_the_same(both, sql, params, count):
    one, other = performed(both, sql, params)
    if count is None:
        assert type(one) is type(other) and isinstance(one, SqlError), (one, other)
    else:
        assert one == other and one.rowcount == count


@pytest.mark.parametrize(("sql", "words"), [
    ("UPDATE t SET n = u.v FROM u WHERE u.g = t.n", "two rows of FROM match one row"),
    ("WITH s AS (SELECT g, v FROM u) UPDATE t SET n = s.v FROM s WHERE s.g = t.n", "two rows of FROM"),
    ("UPDATE w SET n = u.v FROM u WHERE u.k = w.id", "FROM and USING are refused with a trigger for each row"),
    ("DELETE FROM w USING u WHERE u.k = w.id", "use subqueries"),
    ("UPDATE t SET m = u.v + t.m FROM u WHERE u.k = t.id", "with new values of a unique constraint"),
    ("UPDATE vt SET id = id - 1", "change the table itself"),
    ("UPDATE t SET x = (SELECT sum(x) FROM t)", r"write sum\(x ORDER BY x\)"),
    ("UPDATE t SET n = (SELECT avg(n * ?) FROM t)", r"avg\(x::numeric\)"),
    ("UPDATE t SET n = (SELECT sum(sqrt(n)) FROM t)", r"ORDER BY x\)"),
    ("UPDATE t SET n = (SELECT sum(2 ^ n) FROM t)", r"ORDER BY x\)"),
    ("CREATE VIEW s AS SELECT sum(x) AS total FROM t", r"ORDER BY x\)"),
    ("INSERT INTO l (t) SELECT row_number() OVER (ORDER BY n) FROM t ORDER BY 1", "the primary key of the only table"),
    ("INSERT INTO l (t, name) SELECT * FROM (SELECT n, name FROM t) AS s ORDER BY 1", "name the columns after SELECT"),
    ("WITH x AS (UPDATE w SET n = 2 RETURNING id) SELECT * FROM x", "a statement of its own"),
    ("WITH x AS (UPDATE t SET id = id - 1 RETURNING id) SELECT * FROM x", "a statement of its own"),
    ("CREATE FUNCTION h() RETURNS int STABLE LANGUAGE sql AS $$ SELECT id FROM t ORDER BY n LIMIT 1 $$",
     "ORDER BY in a function"),
    ("CREATE FUNCTION h() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO l (t) SELECT id FROM t; "
     "RETURN NEW; END $$", "without ORDER BY is refused"),
])  # fmt: skip
def test_what_nothing_helps_is_refused(both, sql, words):
    before = both[0].database.fingerprint()
    for one, error in zip(both, performed(both, sql, [1] if "?" in sql else ()), strict=True):
        assert isinstance(error, ProgrammingError | BadRequest), one.place.node
        with pytest.raises((ProgrammingError, BadRequest), match=words):
            raise error
    assert both[0].database.fingerprint() == before


def test_numbers_that_an_update_would_draw_are_refused(both):
    both[0].do("CREATE TABLE s (id int PRIMARY KEY, n serial)")
    for sql in ("UPDATE s SET n = DEFAULT WHERE id = 1", "UPDATE s SET (id, n) = (2, DEFAULT)",
                "INSERT INTO s VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = DEFAULT"):  # fmt: skip
        with pytest.raises(BadRequest, match="give the value itself"):
            both[0].do(sql)
    both[0].do("INSERT INTO s VALUES (1, DEFAULT)")


def test_it_follows_the_schema(both):
    """Also one that is changed, and changed back, in the same batch."""
    sql = "UPDATE u SET g = -g - v"
    for one in both:
        one.do(sql)
        found = one.batch(
            ("execute", "CREATE UNIQUE INDEX i ON u (g)"),
            ("execute", "UPDATE u SET g = g + 10"),
            ("transaction", [("DROP INDEX i", ()), ("SELECT 1 / 0", ())]),
            ("execute", "UPDATE u SET g = g + 10"),
        )
        assert [type(f).__name__ for f in found] == ["Result", "Result", "DataError", "Result"]
    assert both[0].database.fingerprint() == both[1].database.fingerprint()
