"""Database keeps the contract of framework/declare/backed.py."""

import sqlite3

import pytest

from framework import BadRequest, Broken, Outdated
from objects.sql import Database, DataError, IntegrityError, ProgrammingError, postgres_connect, sqlite_connect

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE)"


@pytest.fixture
def table(db):
    db.do(TABLE)
    return db


def test_a_new_database_has_no_state(make):
    made = make(begun=False)
    assert made.database.recall() is None
    made.reopen()
    assert made.database.recall() is None
    made.database.begin()
    made.database.commit([], b"head")
    made.reopen()
    assert (made.database.recall().head, list(made.database.recall().entries)) == (b"head", [])


def test_an_error_before_it_is_open():
    with pytest.raises(Broken, match="not open"):
        Database().recall()


def test_notes_and_effects_are_committed_together(table):
    table.batch(("execute", "INSERT INTO t VALUES (1, 'a')"), entries=[b"one", b"two"])
    table.batch(("execute", "INSERT INTO t VALUES (2, 'b')"), entries=[b"three"])
    table.reopen()
    assert list(table.database.recall().entries) == [b"one", b"two", b"three"]
    assert table.ask("SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "b")]


def test_a_head_replaces_the_notes_before_it(table):
    table.batch(entries=[b"old"])
    table.database.begin()
    table.database.commit([b"new"], b"second")
    table.reopen()
    assert table.database.recall().head == b"second"
    assert list(table.database.recall().entries) == [b"new"]


def test_what_was_not_committed_is_gone(table):
    table.database.begin()
    table.call("execute", "INSERT INTO t VALUES (1, 'a')")
    table.database.rollback()
    table.database.begin()
    table.call("execute", "INSERT INTO t VALUES (2, 'b')")
    table.reopen()  # close rolls back
    assert table.ask("SELECT * FROM t") == []


def test_a_call_that_raises_takes_back_itself_alone(table):
    found = table.batch(
        ("execute", "INSERT INTO t VALUES (1, 'a')"),
        ("execute", "INSERT INTO t VALUES (2, 'b'), (3, 'a')"),
        ("transaction", [("INSERT INTO t VALUES (4, 'd')", []), ("INSERT INTO t VALUES (5, 'a')", [])]),
        ("executemany", "INSERT INTO t VALUES (?, ?)", [[6, "f"], [7, "a"]]),
        ("execute", "INSERT INTO t VALUES (10, 'j')"),
    )
    assert [isinstance(one, IntegrityError) for one in found] == [False, True, True, True, False]
    assert "constraint" in str(found[1])
    assert "; in: INSERT INTO t VALUES (2, 'b'), (3, 'a')" in str(found[1])
    assert table.ask("SELECT id FROM t ORDER BY id") == [(1,), (10,)]


LONG = 1 << 16  # bytes that a value may have in the test below, instead of 256 MiB
HALVES = {
    "INSERT OR IGNORE INTO k VALUES (1, 'a'), ('x', 'b')": (),
    "REPLACE INTO k VALUES (1, 'a'), ('x', 'b')": (),
    "INSERT OR REPLACE INTO k SELECT value, 'a' FROM json_each('[1, \"x\"]')": (),
    "INSERT INTO k VALUES (1, 'a'), ('x', 'b') ON CONFLICT DO NOTHING": (),
    "INSERT INTO k VALUES (1, 'a'), ('x', 'b') ON CONFLICT (id) DO UPDATE SET v = 'c'": (),
    "UPDATE OR IGNORE k SET id = CASE id WHEN 7 THEN 9 ELSE 'x' END": (),
    "UPDATE OR REPLACE k SET id = CASE id WHEN 7 THEN 9 ELSE 'x' END": (),
    "INSERT OR IGNORE INTO s VALUES (1, 1), (2, 'b')": (),
    "UPDATE OR IGNORE s SET v = CASE id WHEN 7 THEN 9 ELSE 'x' END": (),
    "INSERT INTO h VALUES ('a', 1), (? || ?, 2)": ("x" * (LONG // 2), "y" * (LONG // 2) + "z"),
    "INSERT INTO h VALUES ('a', 1), (?, ?)": ("x" * (LONG // 2), "y" * (LONG // 2)),
    "INSERT INTO h VALUES ('a', 1) RETURNING v || ?": ("x" * LONG,),
    "UPDATE h SET v = CASE v WHEN 'o' THEN 'p' ELSE v || ? END": ("x" * LONG,),
}


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_sqlite_does_not_leave_half_of_a_statement_that_fails(make, monkeypatch):
    monkeypatch.setitem(sqlite_connect._LIMITS, sqlite3.SQLITE_LIMIT_LENGTH, LONG)
    db = make()
    db.do("CREATE TABLE k (id INTEGER PRIMARY KEY, v)")
    db.do("CREATE TABLE s (id INTEGER PRIMARY KEY, v INTEGER) STRICT")
    db.do("CREATE TABLE h (v, w)")
    for table, value in (("k", "'o'"), ("s", "1")):
        db.do(f"INSERT INTO {table} VALUES (7, {value}), (8, {value})")
    db.do("INSERT INTO h VALUES ('o', 1), ('q', 2)")
    before = db.database.digest()
    for sql, params in HALVES.items():
        found = db.batch(("execute", sql, list(params)))[0]
        assert isinstance(found, DataError | IntegrityError), (sql, found)
        assert db.database.digest() == before, sql


def test_readers_see_what_is_committed(table):
    table.database.begin()
    table.call("execute", "INSERT INTO t VALUES (1, 'a')")
    assert table.ask("SELECT * FROM t") == []
    assert table.call("execute", "SELECT v FROM t").rows == [("a",)]
    table.database.commit([])
    assert table.ask("SELECT * FROM t") == [(1, "a")]


def test_a_query_does_not_write(table):
    assert isinstance(table.call("query", "INSERT INTO t VALUES (1, 'a')"), BadRequest)


def test_a_footprint_of_an_older_schema_is_outdated(db):
    before = db.database._engine.version
    assert db.do(TABLE, basis=before).rows == []
    now = db.database._engine.version
    assert now == before + 1
    with pytest.raises(Outdated, match=f"version {now} now, not {before}"):
        db.do("INSERT INTO t VALUES (1, 'a')", basis=before)
    db.do("INSERT INTO t VALUES (1, 'a')", basis=now)
    with pytest.raises(ProgrammingError):
        db.do(TABLE, basis=now)
    db.do("SELECT 1", basis=now)
    db.reopen()
    db.do("SELECT 1", basis=now)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_two_replicas_do_not_share_a_file(make, tmp_path):
    make("n1", url=f"sqlite:///{tmp_path}/shared.sqlite")
    with pytest.raises(BadRequest, match="in use by another replica"):
        make("n2", url=f"sqlite:///{tmp_path}/shared.sqlite")
    make("n3", url=f"sqlite:///{tmp_path}/{{node}}.sqlite")


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
def test_two_replicas_do_not_share_a_database(make, postgres_urls, monkeypatch):
    monkeypatch.setattr(postgres_connect, "_LET_GO", 0.2)
    make("n1", url=postgres_urls["n1"])
    with pytest.raises(Broken, match="in use by another replica"):
        make("n2", url=postgres_urls["n1"])
    make("n3", url=postgres_urls["n3"])


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_file_that_was_removed_takes_no_writes(table, tmp_path):
    table.do("INSERT INTO t VALUES (1, 'a')")
    (tmp_path / "n1" / "database.sqlite").unlink()
    table.database.begin()
    table.call("execute", "INSERT INTO t VALUES (2, 'b')")
    with pytest.raises(Broken, match=r"database\.sqlite: No such file"):
        table.database.commit([])


# state


def test_state_moves(table, make):
    table.batch(("execute", "INSERT INTO t VALUES (1, 'a')"))
    other = make("n2")
    other.do("CREATE TABLE old (x INTEGER)")
    leaving = table.database.get_state()
    at_that_moment = table.database.fingerprint()
    table.batch(("execute", "INSERT INTO t VALUES (2, 'b')"))
    other.database.set_state(leaving)
    assert other.database.recall() is None
    assert other.database.fingerprint() == at_that_moment != table.database.fingerprint()
    assert other.ask("SELECT * FROM t") == [(1, "a")]
    other.database.begin()
    other.database.commit([], b"taken over")
    other.reopen()
    assert (other.database.recall().head, list(other.database.recall().entries)) == (b"taken over", [])
    assert other.database.fingerprint() == at_that_moment


def test_a_state_that_was_not_taken_over_to_its_end_is_none(table, make):
    table.batch(("execute", "INSERT INTO t VALUES (1, 'a')"))
    other = make("n2")
    other.database.set_state(table.database.get_state())
    other.reopen()
    assert other.database.recall() is None
    assert other.database.tables() == []


def test_no_chunks_are_the_initial_state(table):
    table.database.set_state(())
    assert table.database.recall() is None
    assert table.database.tables() == []
    table.database.begin()
    table.database.commit([], b"head")
    table.reopen()
    assert table.database.recall().head == b"head"


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "strange", "raises"])
def test_a_damaged_state_is_none(table, make, damage):
    def damaged(chunks):
        if damage == "raises":
            yield chunks[0]
            raise OSError("the link is gone")
        whole = b"".join(chunks)
        middle = len(whole) // 2
        yield {
            "cut": whole[:-1],
            "changed": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "empty": b"",
            "strange": b"x" * 100,
        }[damage]

    other = make("n2")
    with pytest.raises((Broken, OSError)):
        other.database.set_state(damaged(list(table.database.get_state())))
    assert other.database.recall() is None
    assert other.database.tables() == []
    other.database.set_state(table.database.get_state())
    assert other.database.tables() == ["t"]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_nothing_is_left_of_a_copy_that_nobody_wants(table, tmp_path):
    leaving = table.database.get_state()
    next(leaving)
    next(leaving)
    assert list((tmp_path / "n1").glob("*leaving*"))
    del leaving
    assert not list((tmp_path / "n1").glob("*leaving*"))
