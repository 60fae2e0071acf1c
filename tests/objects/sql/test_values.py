"""Values come back as they went in, or are refused."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from objects.sql import Database, DataError, ProgrammingError
from tests.objects.sql.replica import Replica
from tests.tiers import examples

EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))

#: A type that both databases know, and values of it.
SAME = [
    ("INTEGER", [0, -1, 2**31 - 1]),
    ("BIGINT", [2**63 - 1, -(2**63)]),
    ("DOUBLE PRECISION", [0.1, -1e300, 5e-324, float("inf"), 2.0]),
    ("TEXT", ["", "ä€𝄞 'quoted' \"too\" %s ? :name \\ ;--", "x" * 100_000, "null", "now"]),
    ("DECIMAL(15, 2)", [Decimal("0.10"), Decimal("-9999999999999.99"), Decimal(5), Decimal("1E+3")]),
    ("NUMERIC", [Decimal("0.000001"), Decimal("123456789012345"), Decimal("1E+20"), Decimal("-0.5")]),
    ("BOOLEAN", [True, False]),
    ("DATE", [dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    ("TIME", [dt.time(0, 0), dt.time(23, 59, 59, 999_999)]),
    ("TIMESTAMP", [dt.datetime(2024, 2, 29, 12, 30), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 1)]),
    ("TIMESTAMPTZ", [dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC), dt.datetime(2024, 1, 1, tzinfo=EAST)]),
    ("INTERVAL", [dt.timedelta(days=-3, seconds=7, microseconds=9), dt.timedelta(0)]),
    ("UUID", [UUID(int=0), UUID("12345678-9012-3456-7890-123456789012")]),
]
BYTES = {"sqlite": "BLOB", "postgres": "BYTEA"}


@pytest.mark.parametrize(("kind", "values"), SAME, ids=[kind for kind, _ in SAME])
def test_each_type_comes_back(db, kind, values):
    db.do(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {kind})")
    for number, value in enumerate([*values, None]):
        returned = db.do("INSERT INTO t VALUES (?, ?) RETURNING v", [number, value]).scalar()
        read = db.ask("SELECT v FROM t WHERE id = ?", [number])[0][0]
        for found in (returned, read):
            assert found == value
            # SQLite 3.40 returns the integer that it keeps for 2.0
            assert type(found) is type(value) or (type(value) is float and found is returned)
        assert db.ask("SELECT id FROM t WHERE v = ?", [value]) == ([] if value is None else [(number,)])


def test_bytes_come_back(db, dialect):
    db.do(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {BYTES[dialect]})")
    for number, value in enumerate([b"", b"\x00\xff text", bytes(range(256)) * 1000]):
        db.do("INSERT INTO t VALUES (?, ?)", [number, value])
        assert db.ask("SELECT v FROM t WHERE id = ?", [number]) == [(value,)]


def test_they_come_back_through_the_wire(db):
    """As a client gets them: packed and unpacked by the declaration."""
    from framework import declaration

    kinds = ", ".join(f"c{n} {kind}" for n, (kind, _) in enumerate(SAME))
    db.do(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {kinds})")
    row = [1, *(values[0] for _, values in SAME)]
    declared = declaration(Database).methods["execute"]
    sql = f"INSERT INTO t VALUES ({', '.join('?' * len(row))}) RETURNING *"
    arrived = declared.unpack(declared.pack(declared.bind(sql, row)))
    result = db.do(*arrived)
    assert declared.unpack_result(declared.pack_result(result)) == result
    assert result.rows == [tuple(row)]
    assert list(map(type, result.rows[0])) == list(map(type, row))


def test_parameters_by_name(db):
    db.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    db.do("INSERT INTO t VALUES (:id, :v)", {"id": 1, "v": "a'); DROP TABLE t; --"})
    assert db.ask(
        "SELECT v FROM t WHERE id = :id AND v = :v AND id = :id", {"id": 1, "v": "a'); DROP TABLE t; --"}
    ) == [("a'); DROP TABLE t; --",)]


def test_a_sign_that_drivers_know_is_no_parameter(db):
    assert db.ask("SELECT '100%', '%s', '?', ':x', 5 % 3, '%(a)s' WHERE 'a%' LIKE ?", ["a%"]) == [
        ("100%", "%s", "?", ":x", 2, "%(a)s")
    ]


def test_a_result_tells_what_was_done(db, dialect):
    db.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    assert db.do("INSERT INTO t VALUES (7, 'a'), (8, 'b')").rowcount == 2
    found = db.do("UPDATE t SET v = upper(v) WHERE id > 0 RETURNING id, v AS w")
    assert (found.columns, sorted(found.rows), found.rowcount) == (["id", "w"], [(7, "A"), (8, "B")], 2)
    assert found.dicts()[0] == {"id": found.rows[0][0], "w": found.rows[0][1]}
    assert db.do("DELETE FROM t WHERE id = 9").rowcount == 0
    found = db.do("SELECT id FROM t WHERE id = 99")
    assert (found.columns, found.rows, found.rowcount, found.lastrowid, found.scalar()) == (["id"], [], 0, None, None)
    many = db.batch(("executemany", "INSERT INTO t VALUES (?, ?) RETURNING id", [[1, "x"], [2, "y"]]))[0]
    assert (many.rowcount, many.rows) == (2, [(1,), (2,)])


sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
postgres_only = pytest.mark.parametrize("dialect", ["postgres"], indirect=True)


@sqlite_only
def test_the_last_key_is_told_where_it_is_certain(db):
    db.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE)")
    db.do("CREATE TABLE w (id TEXT PRIMARY KEY) WITHOUT ROWID")
    db.do("CREATE VIEW tv AS SELECT v FROM t")
    db.do("CREATE TRIGGER into_tv INSTEAD OF INSERT ON tv BEGIN INSERT INTO t (v) VALUES (new.v); END")
    assert db.do("INSERT INTO t (v) VALUES ('a')").lastrowid == 1
    assert db.do("INSERT OR IGNORE INTO \"T\" (v) VALUES ('b')").lastrowid == 2
    assert db.do("REPLACE INTO t VALUES (10, 'c')").lastrowid == 10
    for sql in (
        "INSERT OR IGNORE INTO t (v) VALUES ('a')",
        "INSERT INTO t (v) VALUES ('a') ON CONFLICT (v) DO UPDATE SET v = 'z'",
        "INSERT INTO w VALUES ('x')",
        "INSERT INTO tv VALUES ('d')",
        "UPDATE t SET v = 'e' WHERE id = 1",
        "DELETE FROM t WHERE id = 1",
        "SELECT 1",
    ):
        assert db.do(sql).lastrowid is None, sql


@sqlite_only
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Decimal("1234567890.123456"), "16 digits"),
        (Decimal("NaN"), "SQLite keeps 15"),
        (Decimal("1E+400"), "beyond"),
        (Decimal("1E-400"), "beyond"),
        (float("nan"), "no NaN"),
        (2**63, "64 bits"),
        (-(2**63) - 1, "64 bits"),
        ([1], "is a list"),
        ({}, "is a dict"),
        (dt.datetime(1, 1, 1, tzinfo=EAST), "beyond the years"),
    ],
)
def test_what_would_come_back_as_something_else_is_refused(db, value, words):
    db.do("CREATE TABLE t (v NUMERIC)")
    with pytest.raises(DataError, match=words):
        db.do("INSERT INTO t VALUES (?)", [value])
    assert db.ask("SELECT count(*) FROM t") == [(0,)]


@sqlite_only
@pytest.mark.parametrize(
    "kind", ["NUMERIC", "decimal(10,2)", "BOOLEAN", "UUID", "DATE", "TIME", "TIMESTAMP", "DATETIME", "INTERVAL"]
)
def test_bytes_come_back_as_bytes_or_are_refused(db, kind):
    """A converter is not told what SQLite has kept."""
    data = b"00000000-0000-0000-0000-000000000001" if kind == "UUID" else b"2024-01-01" if "DATE" in kind else b"1"
    db.do(f'CREATE TABLE t (id INTEGER PRIMARY KEY, "a {{b}} ""c" {kind}, b BLOB, v)')
    db.do("INSERT INTO t (id, b, v) VALUES (1, ?, ?)", [data, data])
    for sql in (
        "INSERT INTO t VALUES (2, ?, NULL, NULL)", "REPLACE INTO t VALUES (1, ?, NULL, NULL)",
        'UPDATE t SET "a {b} ""c" = ?', "INSERT OR IGNORE INTO t VALUES (2, CAST(? AS BLOB), NULL, NULL)",
    ):  # fmt: skip
        with pytest.raises(DataError, match="they would come back as something else, use BLOB"):
            db.do(sql, [data])
    with pytest.raises(DataError, match="use BLOB"):
        db.do('UPDATE t SET "a {b} ""c" = b')
    assert db.ask("SELECT b, v FROM t") == [(data, data)]
    with pytest.raises(ProgrammingError):
        db.do("ALTER TABLE t DROP COLUMN nothing")
    with pytest.raises(DataError, match="use BLOB"):
        db.do("INSERT INTO t VALUES (2, ?, NULL, NULL)", [data])
    db.do("ALTER TABLE t RENAME TO u")
    with pytest.raises(DataError, match="use BLOB"):
        db.do("INSERT INTO u VALUES (2, ?, NULL, NULL)", [data])
    db.do('ALTER TABLE u DROP COLUMN "a {b} ""c"')
    db.reopen()
    assert db.database.schema() == ['CREATE TABLE "u" (id INTEGER PRIMARY KEY, b BLOB, v)']


@sqlite_only
def test_what_is_no_value_of_its_column_comes_back_as_sqlite_has_it(db):
    db.do("CREATE TABLE t (id INTEGER PRIMARY KEY, d DATE, n DECIMAL, u UUID, b BOOL, i INTERVAL)")
    odd = [1, "soon", "many", "none", 7, "long"]
    db.do("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", odd)
    assert db.ask("SELECT * FROM t") == [tuple(odd)]
    db.do("UPDATE t SET d = 5, u = 1.5")
    assert db.ask("SELECT d, u FROM t") == [(5, 1.5)]


@sqlite_only
def test_what_is_computed_has_no_declared_type(db):
    db.do("CREATE TABLE t (at TIMESTAMP, n DECIMAL(5, 2), u UUID)")
    db.do("INSERT INTO t VALUES (?, ?, ?)", [dt.datetime(2024, 1, 2), Decimal("1.50"), UUID(int=1)])
    assert db.ask("SELECT max(at), sum(n), lower(u) FROM t") == [("2024-01-02 00:00:00", 1.5, str(UUID(int=1)))]
    assert db.ask("SELECT x.n AS m FROM (SELECT n FROM t) AS x") == [(Decimal("1.5"),)]
    assert db.ask("SELECT n FROM t WHERE at < ? AND n >= ?", [dt.datetime(2024, 1, 2, 0, 0, 1), Decimal("1.5")])


@sqlite_only
def test_aware_times_compare(db):
    db.do("CREATE TABLE t (id INTEGER PRIMARY KEY, at TIMESTAMPTZ)")
    early, late = dt.datetime(2024, 1, 1, 12, tzinfo=EAST), dt.datetime(2024, 1, 1, 8, 0, 0, 1, dt.UTC)
    db.do("INSERT INTO t VALUES (1, ?), (2, ?)", [late, early])
    assert db.ask("SELECT id FROM t ORDER BY at") == [(2,), (1,)]
    assert db.ask("SELECT id FROM t WHERE at < ?", [late]) == [(2,)]


@sqlite_only
def test_text_that_is_none(db):
    with pytest.raises(ValueError, match="UTF-8"):
        db.ask("SELECT CAST(x'ff' AS TEXT)")
    db.do("CREATE TABLE t (v TEXT)")
    db.do("INSERT INTO t VALUES (CAST(x'ff' AS TEXT))")
    assert db.database.digest()["t"]


@sqlite_only
@pytest.mark.parametrize("sql", [
    "INSERT INTO t VALUES (9223372036854775807)", "INSERT INTO t SELECT min(id) * 4611686018427387900 FROM t",
    "UPDATE t SET id = 9223372036854775806 WHERE id = 2", "INSERT INTO t VALUES (?)",
])  # fmt: skip
def test_keys_end_before_sqlite_picks_them_by_chance(db, sql):
    db.do("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    db.do("INSERT INTO t VALUES (2)")
    db.do("INSERT INTO t VALUES (?)", [2**62])
    with pytest.raises(DataError, match="by chance"):
        db.do(sql, [2**63 - 1] if "?" in sql else [])
    assert db.ask("SELECT * FROM t ORDER BY id") == [(2,), (2**62,)]
    assert db.do("INSERT INTO t VALUES (NULL)").lastrowid == 2**62 + 1


@postgres_only
def test_types_of_postgres(db):
    for kind, value, back in [
        ("jsonb", {"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
        ("int[]", [1, 2], [1, 2]),
        ("text[]", ["a", None], ["a", None]),
        ("numeric", 2**200, Decimal(2**200)),
        ("numeric", Decimal("1." + "3" * 100), Decimal("1." + "3" * 100)),
        ("inet", "10.0.0.1", "10.0.0.1"),
        ("int4range", "[1,5)", "[1,5)"),
        ("char(3)", "a", "a  "),
        ("double precision", float("-inf"), float("-inf")),
        ("timetz", dt.time(1, 2, tzinfo=EAST), dt.time(1, 2, tzinfo=EAST)),
    ]:
        db.do(f"CREATE TABLE t (v {kind})")
        assert db.do("INSERT INTO t VALUES (?) RETURNING v", [value]).scalar() == back, kind
        assert db.ask("SELECT v FROM t") == [(back,)]
        db.do("DROP TABLE t")


@postgres_only
def test_a_text_with_nul_is_refused(db):
    db.do("CREATE TABLE t (v text)")
    with pytest.raises(DataError, match="NUL"):
        db.do("INSERT INTO t VALUES (?)", ["a\0b"])
    assert db.do("SELECT 1").scalar() == 1


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    made = Replica(tmp_path_factory.mktemp("many"))
    made.do(
        "CREATE TABLE t (n DECIMAL, a TIMESTAMP, z TIMESTAMPTZ, d DATE, i INTERVAL, x TEXT, b BLOB, g INTEGER, f REAL)"
    )
    yield made
    made.close()


@settings(max_examples=examples(50, 200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.tuples(
        st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**10), max_value=10**10),
        st.datetimes(),
        st.datetimes(timezones=st.timezones(), allow_imaginary=False, min_value=dt.datetime(2, 1, 1),
                     max_value=dt.datetime(9998, 1, 1)),
        st.dates(), st.timedeltas(dt.timedelta(-(10**8)), dt.timedelta(10**8)), st.text(), st.binary(),
        st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False),
    )
)  # fmt: skip
def test_all_of_them_on_sqlite(many, row):
    many.do("DELETE FROM t")
    many.do("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", list(row))
    decimal, naive, aware, *rest = row
    # Python takes a local time that comes twice, when clocks are put back, for different from all times of other zones
    assert many.ask("SELECT * FROM t") == [(decimal, naive, aware.astimezone(dt.UTC), *rest)]
