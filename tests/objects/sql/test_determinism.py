"""Time, chance and keys that a database gives are the same at every replica: they come from the request."""

import datetime as dt
import re

import pytest

from framework import BadRequest
from objects.sql import DataError, ProgrammingError, SqlError
from tests.objects.sql.replica import NOW

sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
postgres_only = pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
MOMENT = dt.datetime.fromtimestamp(NOW, dt.UTC)


@pytest.fixture
def both(make):
    return [make("n1"), make("n2")]


def agree(both, *calls):
    """Each call in a batch of its own, with the request's number as its chance; then the databases are equal."""
    found = [[one.do(sql, number=number) for number, sql in enumerate(calls)] for one in both]
    assert found[0] == found[1]
    assert both[0].database.digest() == both[1].database.digest()
    assert both[0].database.fingerprint() == both[1].database.fingerprint()
    return found[0]


@sqlite_only
def test_every_function_of_sqlite_that_tells_the_time(both):
    agree(
        both,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c, d, e, f, g, h, i, j, k)",
        "INSERT INTO t VALUES (1, CURRENT_TIMESTAMP, CURRENT_DATE, CURRENT_TIME, date(), time('now'), datetime('NOW'), "
        "julianday('now'), unixepoch(), strftime('%s', 'now', '+1 day'), strftime('%Y'), "
        "datetime('now', 'start of month'))",
    )
    row = both[0].ask("SELECT * FROM t")[0]
    assert row == (
        1, "2023-11-14 22:13:20", "2023-11-14", "22:13:20", "2023-11-14", "22:13:20", "2023-11-14 22:13:20",
        pytest.approx(2460263.4259273), 1700000000, "1700086400", "2023", "2023-11-01 00:00:00",
    )  # fmt: skip


@sqlite_only
def test_sqlite_reads_now_out_of_more_than_the_word(both):
    """A blob is a text for its date functions, and a text ends at a NUL."""
    one = both[0]
    one.do("CREATE TABLE t (v)")
    for expression in ("x'6e6f77'", "'now' || char(0)", "'NOW' || char(0) || 'x'"):
        one.do(f"INSERT INTO t VALUES (strftime('%s', {expression}))")
    one.do("INSERT INTO t VALUES (strftime('%s', ?))", [b"now"])
    one.do("INSERT INTO t VALUES (strftime('%s', ?))", ["now\0"])
    assert one.ask("SELECT DISTINCT v FROM t") == [(str(int(NOW)),)]
    for expression in ("'localtime' || char(0)", "x'757463'"):
        with pytest.raises(ProgrammingError, match="keep UTC"):
            one.do(f"INSERT INTO t VALUES (datetime('2024-01-01', {expression}))")


@sqlite_only
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE INDEX i ON t (date(v, 'now'))", "CREATE INDEX i ON t (id) WHERE v > datetime('now')",
        "CREATE INDEX i ON t (unixepoch())", "CREATE INDEX i ON t (v) WHERE v < CURRENT_TIMESTAMP",
        "CREATE TABLE u (a, g AS (strftime('%Y', 'NOW')) STORED)", "CREATE TABLE u (a CHECK (a < julianday( 'now' )))",
        "ALTER TABLE t ADD COLUMN g AS (coalesce(v, date('now')))",
    ],
)  # fmt: skip
def test_now_is_refused_where_sqlite_keeps_what_it_gave(both, sql):
    both[0].do("CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
    with pytest.raises((BadRequest, ProgrammingError), match=r"keep the time in a column|non-deterministic"):
        both[0].do(sql)
    both[0].do("CREATE TABLE w (a DEFAULT (date('now')), b DEFAULT CURRENT_TIME, g AS (date(a)))")
    both[0].do("CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO w (a) VALUES (date('now')); END")


@sqlite_only
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t SELECT 1, max(rootpage) FROM sqlite_schema", "INSERT INTO t SELECT 1, r FROM v",
        "INSERT INTO t SELECT 1, \"RootPage\" FROM main.sqlite_master",
        "UPDATE t SET v = (SELECT count(*) FROM dbstat)",
        "CREATE TABLE u AS SELECT rootpage FROM sqlite_schema",
        "DELETE FROM t WHERE id = (SELECT min(pageno) FROM dbstat)",
        "INSERT INTO fires VALUES (1)", "INSERT INTO t SELECT 1, count(*) FROM sqlite_stmt",
    ],
)  # fmt: skip
def test_places_in_one_file_do_not_get_into_data(both, sql):
    one = both[0]
    one.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
    one.do("CREATE TABLE fires (id INTEGER PRIMARY KEY)")
    one.do("CREATE VIEW v AS SELECT max(rootpage) AS r FROM sqlite_schema")
    one.do("CREATE TRIGGER f AFTER INSERT ON fires BEGIN INSERT INTO t SELECT 1, r FROM v; END")
    with pytest.raises(ProgrammingError, match=r"it tells of one file|no such table"):
        one.do(sql)
    one.do("INSERT INTO t SELECT 1, count(*) FROM sqlite_schema, json_each('[1, 2]')")
    one.do("WITH dbs AS (SELECT 2 AS n) INSERT INTO t SELECT n, count(*) FROM dbs GROUP BY n")


FAR = 2**63 - 1


@sqlite_only
@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("INSERT INTO t VALUES (?, 1)", [str(FAR)]), ("INSERT INTO t VALUES (?, 1)", [f" +{FAR} "]),
        ("INSERT INTO t VALUES (?, 1)", [9.223372036854774784e18]),
        ("INSERT INTO t VALUES ('9.2233720368547e18', 1)", []),
        (f"INSERT INTO t VALUES (trim('x{FAR}', 'x'), 1)", []),
        ("INSERT INTO t VALUES (CAST(? AS INT), 1)", [b"%d" % FAR]),
        ("INSERT INTO t VALUES (CASE WHEN 1 THEN ? END, 1)", [FAR]), ("UPDATE t SET id = id * 2 + 1 WHERE id > 5", []),
        ("UPDATE t SET rowid = abs(-?) WHERE id = 1", [FAR]), ("INSERT INTO fires VALUES (?)", [str(FAR)]),
        ("INSERT INTO comment VALUES (?)", [FAR]), ("INSERT INTO hidden (oid, rowid, v) VALUES (?, 1, 2)", [FAR]),
        ("UPDATE sqlite_sequence SET seq = ?", [FAR]), ("DELETE FROM fires WHERE v = 'x'", []),
        ("INSERT INTO t VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET id = abs(-?)", [FAR]),
    ],
)  # fmt: skip
def test_no_key_is_so_large_that_sqlite_picks_the_next_by_chance(both, sql, params):
    one = both[0]
    for text in (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v)",
        "CREATE TABLE fires (v)",
        "CREATE TRIGGER f AFTER INSERT ON fires WHEN new.v <> 'x' BEGIN INSERT INTO t VALUES (new.v, 1); END",
        f"CREATE TRIGGER g AFTER DELETE ON fires BEGIN INSERT INTO t VALUES ('{FAR}', 1); END",
        "CREATE TABLE comment (id INTEGER PRIMARY KEY /* not WITHOUT ROWID */)",
        "CREATE TABLE hidden (rowid, _rowid_, v)",
        "CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT)",
        "INSERT INTO t VALUES (1, 1), (4611686018427387903, 1)",
        "INSERT INTO fires VALUES ('x')",
        "INSERT INTO counted VALUES (1)",
    ):
        one.do(text)
    before = one.database.digest()
    with pytest.raises(DataError, match="SQLite picks keys by chance"):
        one.do(sql, params)
    assert one.database.digest() == before
    one.do("INSERT INTO t (v) VALUES ('09:00'), (?)", ["9" * 30])


@sqlite_only
def test_functions_of_sqlite_that_do_not_ask_the_time_are_its_own(both):
    plain = __import__("sqlite3").connect(":memory:")
    for expression in (
        "date('2024-02-29', '+1 year')", "time('12:00', '-30 minutes')", "datetime(1700000000, 'unixepoch')",
        "strftime('%d %H %f', '2024-01-01 10:20:30.456')", "julianday('2024-01-01')", "date(NULL)", "date('nonsense')",
        "unixepoch('2024-01-01')", "datetime('2024-01-01', 'weekday 0')",
    ):  # fmt: skip
        assert both[0].ask(f"SELECT {expression}") == plain.execute(f"SELECT {expression}").fetchall(), expression


@sqlite_only
def test_chance_in_statements_defaults_and_triggers(both):
    agree(
        both,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, r INTEGER DEFAULT (random()), b BLOB DEFAULT (randomblob(8)), "
        "at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)",
        "CREATE TABLE seen (r, at)",
        "CREATE TRIGGER note AFTER INSERT ON t BEGIN INSERT INTO seen VALUES (random(), datetime()); END",
        "INSERT INTO t (id) VALUES (1), (2), (3)",
        "INSERT INTO t (r) SELECT random() FROM t ORDER BY random()",
        "UPDATE t SET b = randomblob(20), r = abs(random() % 100) WHERE id > 2",
        "DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY random() LIMIT 1)",
    )
    values = [r for (r,) in both[0].ask("SELECT r FROM seen")]
    assert len(set(values)) == len(values) == 6
    assert all(-(2**63) <= value < 2**63 for value in values)
    assert {len(b) for (b,) in both[0].ask("SELECT b FROM t")} == {8, 20}


@sqlite_only
def test_indexes_and_generated_columns_on_dates(both):
    agree(
        both,
        "CREATE TABLE t (at TEXT, day TEXT GENERATED ALWAYS AS (date(at)) STORED, y AS (strftime('%Y', at)))",
        "CREATE INDEX i ON t (date(at))",
        "INSERT INTO t (at) VALUES ('2024-05-06 07:08:09')",
    )
    assert both[0].ask("SELECT day, y FROM t WHERE date(at) = '2024-05-06'") == [("2024-05-06", "2024")]


@sqlite_only
@pytest.mark.parametrize(
    "expression", ["datetime('now', 'localtime')", "time('12:00', 'UTC')", "randomblob(999999999)"]
)
def test_what_differs_from_machine_to_machine_is_refused(both, expression):
    both[0].do("CREATE TABLE t (v)")
    with pytest.raises(ProgrammingError, match=r"keep UTC|at most"):
        both[0].do(f"INSERT INTO t VALUES ({expression})")
    assert both[0].ask("SELECT count(*) FROM t") == [(0,)]


@postgres_only
def test_time_and_chance_of_postgres(both):
    agree(
        both,
        "CREATE TABLE t (id SERIAL PRIMARY KEY, r DOUBLE PRECISION DEFAULT random(), at TIMESTAMPTZ DEFAULT now(), "
        "u UUID DEFAULT gen_random_uuid(), day DATE DEFAULT CURRENT_DATE, old INTERVAL)",
        "INSERT INTO t (old) VALUES (age(timestamp '2023-11-13')), (NULL), (NULL)",
        "INSERT INTO t (id, at, day) VALUES (10, CURRENT_TIMESTAMP, statement_timestamp()::date)",
        "INSERT INTO t (id, at) VALUES (11, LOCALTIMESTAMP)",
        "INSERT INTO t (id, r, u) VALUES (12, random(), gen_random_uuid())",
    )
    rows = both[0].ask("SELECT r, at, u, day, old FROM t ORDER BY id")
    assert {at for _, at, _, _, _ in rows} == {MOMENT}
    assert {day for _, _, _, day, _ in rows} == {MOMENT.date()}
    assert len({r for r, *_ in rows}) == len({u for _, _, u, _, _ in rows}) == len(rows)
    assert all(0 <= r < 1 and u.version == 4 for r, _, u, _, _ in rows)
    assert rows[0][4] == dt.timedelta(days=1)


@postgres_only
def test_time_and_chance_in_triggers_of_postgres(both):
    agree(
        both,
        "CREATE TABLE t (id INTEGER PRIMARY KEY)",
        "CREATE TABLE seen (id INTEGER, r DOUBLE PRECISION, at TIMESTAMPTZ)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO seen VALUES (NEW.id, random(), now()); RETURN NEW; END $$",
        "CREATE TRIGGER note AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()",
        "INSERT INTO t VALUES (1), (2)",
    )
    rows = both[0].ask("SELECT r, at FROM seen")
    assert len({r for r, _ in rows}) == 2
    assert {at for _, at in rows} == {MOMENT}


@postgres_only
@pytest.mark.parametrize("sql", [
    "INSERT INTO t VALUES (clock_timestamp())", "INSERT INTO t VALUES ('now')", "INSERT INTO t VALUES (' Today ')",
    "INSERT INTO t VALUES (timestamp 'tomorrow')", "INSERT INTO t VALUES ('yesterday'::timestamptz)",
    "CREATE TABLE u (at TIMESTAMPTZ DEFAULT 'now')", "INSERT INTO t VALUES (timeofday()::timestamptz)",
    "UPDATE t SET at = to_timestamp(random_normal())",
])  # fmt: skip
def test_clocks_and_chance_that_cannot_be_told_are_refused(both, sql):
    both[0].do("CREATE TABLE t (at TIMESTAMPTZ)")
    with pytest.raises((BadRequest, SqlError)):
        both[0].do(sql)
    assert both[0].ask("SELECT count(*) FROM t") == [(0,)]


@postgres_only
@pytest.mark.parametrize("text", ["now", "TODAY", "tomorrow 12:00", "{yesterday}"])
def test_a_text_that_would_be_a_time_of_the_server(both, text):
    one = both[0]
    one.do("CREATE TABLE t (at TIMESTAMPTZ, v TEXT)")
    one.do("INSERT INTO t (v) VALUES (?)", [text])
    assert one.ask("SELECT v FROM t WHERE v = ?", [text]) == [(text,)]
    for sql in ("INSERT INTO t (at) VALUES (?)", "INSERT INTO t (at) VALUES (?::timestamptz)",
                "INSERT INTO t (at) VALUES (CAST(? AS timestamptz))", "UPDATE t SET at = ?"):  # fmt: skip
        with pytest.raises((BadRequest, SqlError)):
            one.do(sql, [text])
    assert one.ask("SELECT at FROM t") == [(None,)]
    one.do("INSERT INTO t (at, v) VALUES (?, 'I know that now')", ["2024-01-01"])


@postgres_only
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t (at) VALUES (('no' || 'w')::timestamptz)", "UPDATE t SET at = v::timestamptz",
        "UPDATE t SET at = CAST(lower(v) AS timestamp with time zone)", "UPDATE t SET at = (SELECT v FROM t)::date",
        "UPDATE t SET at = date(v)", "UPDATE t SET at = timestamptz(t.v)",
        "UPDATE t SET at = \"timestamp\"(v::varchar)",
        "UPDATE t SET at = (ARRAY['x', v])[2]::text::date", "UPDATE t SET at = (ARRAY[v]::timestamptz[])[1]",
        "UPDATE t SET at = CASE WHEN true THEN v END::timestamp", "UPDATE t SET at = (v::moment)",
        "UPDATE t SET at = (('(' || v || ')')::single).at",
        "UPDATE t SET at = j::moment FROM (SELECT v AS j FROM t) AS u",
        "INSERT INTO t (v) SELECT w FROM w ORDER BY 1",
        "INSERT INTO d VALUES (1)", "INSERT INTO fires VALUES (1)",
        "UPDATE t SET at = ?::moment", "UPDATE t SET at = (?::single).at",
        "UPDATE t SET r = ?", "UPDATE t SET r = '(a,b,now)'",
        "UPDATE t SET at = concat('to', 'day')::timetz + '2024-01-01'::date",
    ],
)  # fmt: skip
def test_no_cast_makes_a_time_of_the_servers_clock(both, sql):
    one = both[0]
    for text in (
        "CREATE DOMAIN moment AS timestamptz",
        "CREATE TYPE single AS (at timestamptz)",
        "CREATE TYPE rows AS (a text, b text, at timestamptz)",
        "CREATE TABLE t (at timestamptz, v text, r rows)",
        "CREATE TABLE d (id int, at date DEFAULT ('to' || 'day')::date)",
        "CREATE TABLE fires (id int)",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN UPDATE t SET at = v::timestamptz; RETURN NEW; END $$",
        "CREATE TRIGGER f BEFORE INSERT ON fires FOR EACH ROW EXECUTE FUNCTION f()",
        "CREATE VIEW w AS SELECT v::timestamptz::text AS w FROM t",
    ):
        one.do(text)
    one.do("INSERT INTO t (v) VALUES (?)", ["now"])
    before = one.database.digest()
    params = ["(a,b,now)" if "r = ?" in sql else "(now)" if "single" in sql else "now"] * sql.count("?")
    with pytest.raises((BadRequest, SqlError), match=r"each server would read it|use now\(\)|is of type text"):
        one.do(sql, params)
    assert one.database.digest() == before
    one.do("UPDATE t SET v = '2024-01-01 10:00'")
    one.do("UPDATE t SET at = v::timestamptz + interval '1 day'")
    one.do("UPDATE t SET at = date_trunc('day', at)::date, v = at::date::text || (1.5)::int || (SELECT 2)::varchar(3)")
    assert one.ask("SELECT at::text, v FROM t") == [("2024-01-02 00:00:00+00", "2024-01-0222")]


@postgres_only
def test_a_database_of_an_older_version_gets_the_functions_of_this_one(both, postgres_urls):
    import psycopg

    both[0].do("CREATE TABLE t (at date)")
    with psycopg.connect(postgres_urls["n1"], autocommit=True) as raw:
        raw.execute("DROP FUNCTION obo.timeless(text), obo.timeless(anyelement)")
    both[0].reopen()
    both[0].do("INSERT INTO t VALUES (concat('2024', '-01-01')::date)")


@postgres_only
def test_json_that_speaks_of_today_is_no_time(both):
    both[0].do("CREATE TABLE t (id int PRIMARY KEY, j jsonb, v text)")
    both[0].do("INSERT INTO t VALUES (1, ?, ?)", ['{"note": "call me today"}', "(now)"])
    both[0].do("""INSERT INTO t VALUES (2, '["now and then, always"]')""")
    assert both[0].ask("SELECT j, v FROM t ORDER BY id") == [
        ({"note": "call me today"}, "(now)"),
        (["now and then, always"], None),
    ]


@postgres_only
def test_arrays_of_rows_that_lie_in_other_orders(both):
    for one, order in zip(both, ("1, 2, 3", "3, 2, 1"), strict=True):
        one.do("CREATE TABLE t (id int PRIMARY KEY, n int)")
        one.do("CREATE TABLE l (a int[])")
        for key in order.split(", "):
            one.do("INSERT INTO t VALUES (?, 1)", [int(key)])
        one.do("INSERT INTO l VALUES (ARRAY(SELECT id FROM t ORDER BY n))")
        one.do("INSERT INTO l VALUES (ARRAY(SELECT 1))")
    assert [one.ask("SELECT a FROM l ORDER BY a") for one in both] == [[([1],), ([1, 2, 3],)]] * 2


KEYED = {
    "sqlite": "CREATE TABLE k (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT UNIQUE)",
    "postgres": "CREATE TABLE k (id SERIAL PRIMARY KEY, v TEXT UNIQUE)",
}


def test_keys_agree_whatever_failed_or_was_rolled_back(both, dialect):
    calls = [
        ("execute", "INSERT INTO k (v) VALUES ('a')"),
        ("execute", "INSERT INTO k (v) VALUES ('a')"),
        ("transaction", [("INSERT INTO k (v) VALUES ('b')", []), ("INSERT INTO k (v) VALUES ('a')", [])]),
        ("execute", "INSERT INTO k (v) VALUES ('c') RETURNING id"),
    ]
    for one in both:
        one.do(KEYED[dialect])
    both[0].batch(*calls)
    for call in calls:  # in other batches; one of them is rolled back and performed again
        both[1].database.begin()
        both[1].call(*call)
        both[1].database.rollback()
        both[1].batch(call)
    assert both[0].ask("SELECT * FROM k ORDER BY id") == both[1].ask("SELECT * FROM k ORDER BY id")
    assert both[0].database.fingerprint() == both[1].database.fingerprint()
    both[1].reopen()
    assert [one.do("INSERT INTO k (v) VALUES ('d') RETURNING id").scalar() for one in both] in ([3, 3], [6, 6])
    assert both[0].database.fingerprint() == both[1].database.fingerprint()


@postgres_only
def test_sequences_do_not_run_ahead_after_a_crash(both, postgres_servers):
    """PostgreSQL logs 32 numbers in advance, and skips them after a crash."""
    for one in both:
        one.do(KEYED["postgres"])
        one.do("INSERT INTO k (v) VALUES ('a')")
    both[0].database.begin()
    both[0].call("execute", "INSERT INTO k (v) VALUES ('never committed')")
    postgres_servers["n1"].kill()
    postgres_servers["n1"].start()
    both[0].reopen()
    assert [one.do("INSERT INTO k (v) VALUES ('b') RETURNING id").scalar() for one in both] == [2, 2]
    assert both[0].database.fingerprint() == both[1].database.fingerprint()


@postgres_only
def test_a_sequence_of_two_tables_is_refused(both):
    both[0].do(KEYED["postgres"])
    with pytest.raises((BadRequest, ProgrammingError), match="sequence"):
        both[0].do("CREATE TABLE l (LIKE k INCLUDING DEFAULTS)")
    assert both[0].database.tables() == ["k"]


@postgres_only
def test_numbers_are_not_taken_in_advance(both):
    for one in both:
        one.do("CREATE TABLE c (id INTEGER GENERATED BY DEFAULT AS IDENTITY (CACHE 20), v TEXT)")
        one.do("INSERT INTO c (v) VALUES ('a')")
    both[0].reopen()
    assert [one.do("INSERT INTO c (v) VALUES ('b') RETURNING id").scalar() for one in both] == [2, 2]


def test_each_request_has_its_own_time_and_chance(both):
    expressions = "CURRENT_TIMESTAMP, random()"
    one, other = both
    for database in (one, other):
        database.database.begin()
    a = [d.call("execute", f"SELECT {expressions}", number=1, now=NOW).rows for d in both]
    b = [d.call("execute", f"SELECT {expressions}", number=2, now=NOW + 1).rows for d in both]
    for database in (one, other):
        database.database.commit([])
    assert a[0] == a[1]
    assert b[0] == b[1]
    assert a[0][0][0] != b[0][0][0]
    assert a[0][0][1] != b[0][0][1]


def test_errors_name_statement_and_cause(db):
    with pytest.raises(ProgrammingError, match=re.escape("; in: SELECT * FROM missing")) as caught:
        db.do("SELECT *  FROM missing")
    assert "missing" in str(caught.value)
