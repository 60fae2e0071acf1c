"""Faults of the store are told from faults of the statement, and leave what was committed."""

import re
import sqlite3

import psycopg
import pytest

from framework import BadRequest, Broken, performing
from objects.sql import DataError, IntegrityError, ProgrammingError, SqlError, postgres_connect, sqlite_connect
from tests.objects.sql.disks import small_disk
from tests.objects.sql.replica import Replica, Request

sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
postgres_only = pytest.mark.parametrize("dialect", ["postgres"], indirect=True)


@pytest.fixture
def table(db):
    db.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL CHECK (length(v) < 1000000))")
    db.do("INSERT INTO t VALUES (1, 'a')")
    return db


# the statement's fault: the same at every replica


@pytest.mark.parametrize(
    ("sql", "params", "kind", "words"),
    [
        ("INSERT INTO t VALUES (1, 'b')", [], IntegrityError, "t"),
        ("INSERT INTO t VALUES (2, NULL)", [], IntegrityError, "v"),
        ("INSERT INTO t VALUES (2, ?)", ["x" * 1_000_001], IntegrityError, "check|CHECK"),
        ("INSERT INTO missing VALUES (1)", [], ProgrammingError, "missing"),
        ("UPDATE t SET missing = 1", [], ProgrammingError, "missing"),
        ("SELECT FROM WHERE", [], (ProgrammingError, BadRequest), "in: SELECT FROM WHERE"),
        ("INSERT INTO t VALUES (1, 2, 3)", [], ProgrammingError, "columns"),
        ("INSERT INTO t VALUES (?, ?)", [1], BadRequest, "1 parameters for 2 places"),
        ("INSERT INTO t VALUES (:a, :b)", {"a": 1}, BadRequest, ":b is missing"),
        ("INSERT INTO t VALUES (1, 'b'); DELETE FROM t", [], BadRequest, "several statements"),
        ("BEGIN", [], BadRequest, "transaction"),
        ("", [], BadRequest, "no statement"),
    ],
)
def test_a_statement_that_is_wrong(table, sql, params, kind, words):
    with pytest.raises(kind, match=words):
        table.do(sql, params)
    assert table.ask("SELECT * FROM t") == [(1, "a")]
    table.do("INSERT INTO t VALUES (2, 'b')")


def test_what_is_injected_is_a_value(table):
    for text in ("'; DROP TABLE t; --", "%s", "$1", "\\'; DELETE FROM t; --", "?"):
        table.do("UPDATE t SET v = ? WHERE id = 1", [text])
        assert table.ask("SELECT v FROM t WHERE v = :v", {"v": text}) == [(text,)]


@sqlite_only
@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("INSERT INTO t VALUES (2, hex(zeroblob(200000000)))", DataError),
        ("SELECT randomblob(100000000)", ProgrammingError),
        (f"SELECT {'(' * 1500}1{')' * 1500}", (ProgrammingError, BadRequest)),
        ("ATTACH 'other' AS other", BadRequest),
        ("INSERT INTO t VALUES ('no number', 'b')", DataError),
    ],
)
def test_what_is_too_large_or_of_the_wrong_type(table, sql, kind):
    with pytest.raises(kind):
        table.do(sql)
    assert table.ask("SELECT * FROM t") == [(1, "a")]


@postgres_only
@pytest.mark.parametrize(
    "sql", ["INSERT INTO t VALUES ('x', 'b')", "SELECT 1 / 0", "INSERT INTO t VALUES (99999999999, '')"]
)
def test_wrong_types_on_postgres(table, sql):
    with pytest.raises(DataError):
        table.do(sql)
    with pytest.raises(SqlError):
        table.do("INSERT INTO t VALUES (?, 'b')", [{"a": 1}])
    assert table.ask("SELECT * FROM t") == [(1, "a")]


def test_a_query_that_would_write_after_all(table, dialect):
    """The connection itself does not allow it."""
    from objects.sql.statement import Statement, understand

    statement = understand("INSERT INTO t VALUES (2, 'b')", dialect)
    hidden = Statement(**{**{f: getattr(statement, f) for f in statement.__struct_fields__}, "kind": "select"})
    with performing(Request()), pytest.raises((SqlError, Broken)):
        table.database._engine.query(hidden, [])
    assert table.ask("SELECT * FROM t") == [(1, "a")]


# the store's fault


def fill(made):
    """How many rows there are when no more can be written, and what was said then."""
    for number in range(2, 100):
        try:
            made.do("INSERT INTO t VALUES (?, ?)", [number, b"x" * 100_000])
        except Broken as error:
            return number - 1, error
    raise AssertionError("the disk is not full")


def test_a_full_disk(tmp_path):
    with small_disk(tmp_path / "small", 3) as resize:
        made = Replica(tmp_path / "small")
        made.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)")
        made.do("INSERT INTO t VALUES (1, ?)", [b"x" * 1000])
        committed, fault = fill(made)
        assert re.search(r"disk is full|gave an error", str(fault))
        assert "INSERT INTO t" in str(fault) or "[commit]" in str(fault)
        made.database.rollback()
        resize(30)
        made.reopen()
        assert made.ask("SELECT count(*) FROM t") == [(committed,)]
        assert made.ask("PRAGMA integrity_check") == [("ok",)]
        made.do("INSERT INTO t VALUES (?, ?)", [1000, b"x" * 100_000])
        made.close()


@sqlite_only
def test_no_room_for_a_state_that_comes(tmp_path, db):
    db.do("CREATE TABLE t (v BLOB)")
    db.do("INSERT INTO t VALUES (zeroblob(5000000))")
    with small_disk(tmp_path / "small", 3) as resize:
        other = Replica(tmp_path / "small", "n2")
        with pytest.raises(Broken, match="No space left"):
            other.database.set_state(db.database.get_state())
        assert other.database.recall() is None
        assert other.database.tables() == []
        resize(30)
        other.database.set_state(db.database.get_state())
        assert other.database.fingerprint() == db.database.fingerprint()
        other.close()


@sqlite_only
def test_a_database_that_may_not_grow(table):
    raw = table.database._engine._raw
    pages = raw.execute("PRAGMA page_count").fetchone()[0]
    raw.execute(f"PRAGMA max_page_count = {pages + 5}")
    table.database.begin()
    assert table.call("execute", "INSERT INTO t VALUES (2, 'b')").rowcount == 1
    found = table.call("execute", "INSERT INTO t VALUES (3, ?)", ["x" * 100_000])
    assert isinstance(found, Broken)
    assert "the disk is full (SQLITE_FULL" in str(found)
    assert "; in: INSERT INTO t VALUES (3, ?)" in str(found)
    table.database.rollback()
    assert table.ask("SELECT * FROM t") == [(1, "a")]


def test_a_stranger_holds_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_connect, "BUSY", 0.1)
    made = Replica(tmp_path)
    stranger = sqlite3.connect(tmp_path / "n1" / "database.sqlite", isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(Broken, match="another process holds the database locked"):
        made.database.begin()
    stranger.execute("ROLLBACK")
    stranger.close()
    made.do("CREATE TABLE t (x)")
    made.close()


def test_a_file_that_is_no_database(tmp_path):
    made = Replica(tmp_path)
    made.close()
    path = tmp_path / "n1" / "database.sqlite"
    path.write_bytes(b"no database at all " * 1000)
    with pytest.raises(Broken, match="is no SQLite database"):
        Replica(tmp_path)
    path.unlink()
    Replica(tmp_path).close()


def test_a_damaged_file(tmp_path):
    made = Replica(tmp_path)
    made.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    made.batch(("executemany", "INSERT INTO t VALUES (?, ?)", [[n, "x" * 500] for n in range(500)]))
    made.close()
    path = tmp_path / "n1" / "database.sqlite"
    data = bytearray(path.read_bytes())
    data[30_000:200_000] = bytes(170_000)
    path.write_bytes(data)
    made = Replica(tmp_path)
    found = made.call("digest")
    assert isinstance(found, Broken)
    assert "damaged" in str(found)
    made.close()


def test_a_file_of_somebody_else_is_not_touched(tmp_path):
    (tmp_path / "n1").mkdir()
    path = tmp_path / "n1" / "database.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE precious (x)")
    other.close()
    with pytest.raises(BadRequest, match="did not make"):
        Replica(tmp_path)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM precious").fetchone() == (0,)


@postgres_only
def test_a_database_of_somebody_else_is_not_touched(make, postgres_urls):
    with psycopg.connect(postgres_urls["n1"]) as other:
        other.execute("CREATE TABLE precious (x int)")
    with pytest.raises(BadRequest, match="did not make"):
        make("n1")
    with psycopg.connect(postgres_urls["n1"]) as other:
        assert other.execute("SELECT count(*) FROM precious").fetchone() == (0,)


@postgres_only
def test_a_server_that_is_killed(table, postgres_servers):
    server = postgres_servers["n1"]
    table.database.begin()
    table.call("execute", "INSERT INTO t VALUES (2, 'b')")
    server.kill()
    try:
        found = table.call("execute", "INSERT INTO t VALUES (3, 'c')")
        assert isinstance(found, Broken)
        assert "connection" in str(found)
        for act in (table.database.rollback, table.database.begin, table.database.recall, table.database.digest):
            with pytest.raises(Broken):
                act()
        table.database.close()
        with pytest.raises(Broken, match="refused"):
            table.database.open(table.place)
    finally:
        server.start()
    table.database.open(table.place)
    assert table.database.recall() is not None
    assert table.ask("SELECT * FROM t") == [(1, "a")]
    table.do("INSERT INTO t VALUES (2, 'b')")


@postgres_only
def test_a_connection_that_is_ended(table, postgres_urls):
    assert table.ask("SELECT 1") == [(1,)]
    with psycopg.connect(postgres_urls["n1"], autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'obo%'")
    assert table.ask("SELECT 1") == [(1,)], "a new connection"
    with pytest.raises(Broken):
        table.database.begin()
    table.reopen()
    assert table.ask("SELECT * FROM t") == [(1, "a")]


@postgres_only
def test_a_stranger_locks_a_row(make, postgres_urls, monkeypatch):
    monkeypatch.setattr(postgres_connect, "_LOCKS", "200ms")
    made = make("n1")
    made.do("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    made.do("INSERT INTO t VALUES (1)")
    with psycopg.connect(postgres_urls["n1"]) as stranger:
        stranger.execute("SELECT * FROM t FOR UPDATE")
        made.database.begin()
        found = made.call("execute", "DELETE FROM t")
        assert isinstance(found, Broken)
        assert "lock" in str(found)
        made.database.rollback()
    made.do("DELETE FROM t")


@postgres_only
@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda url: url.replace("/test", "/missing"), BadRequest, "does not exist"),
        (lambda url: url.replace("postgres@", "nobody@"), BadRequest, "does not exist"),
        (lambda url: url.replace("127.0.0.1:", "127.0.0.1:1"), (Broken, BadRequest), "127.0.0.1"),
    ],
)
def test_a_server_that_does_not_let_us_in(make, postgres_urls, change, kind, words):
    with pytest.raises(kind, match=words):
        make("n1", url=change(postgres_urls["n1"]))


def test_options_that_are_wrong(make):
    for options, words in [
        ({"url": "mysql://x/y"}, "mysql is not supported"),
        ({"url": "sqlite://"}, "name a file"),
        ({"url": "sqlite:///:memory:"}, "name a file"),
        ({"url": "nonsense"}, "cannot be read"),
        ({"url": "postgresql://host"}, "name the database"),
        ({"durability": "none"}, "durability"),
        ({"pool": 0}, "from 1 to 64"),
        ({"speed": "high"}, "speed"),
        ({"url": "sqlite:///a", "urls": {"n1": "sqlite:///b"}}, "one of them"),
    ]:
        with pytest.raises(BadRequest, match=words):
            make("n1", **options)
    with pytest.raises(BadRequest, match=r"urls\.n9"):
        make("n9", urls={"n1": "sqlite:///a"})
