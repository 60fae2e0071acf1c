"""Single rows that the node's loop reads by itself (objects/sql/sqlite_glance.py): what a thread would read, or
nothing at all."""

import datetime

import pytest

from framework import LATER, performing
from objects.sql import sqlite_glance
from tests.objects.sql.replica import Request

BY_KEY = "SELECT * FROM t WHERE id = ?"


@pytest.fixture
def dialect():
    return "sqlite"


@pytest.fixture
def table(db):
    db.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, d DATETIME, b BLOB)")
    db.do("INSERT INTO t VALUES (1, 'ein Ä', ?, x'00ff')", [datetime.datetime(2026, 1, 2, 3, 4, 5)])
    db.do("INSERT INTO t VALUES (2, NULL, NULL, NULL)")
    db.do("CREATE VIEW w AS SELECT id, upper(v) AS v FROM t")
    return db


def glance(db, sql, params=(), method="query"):
    keys = db.database.touched(method, (sql, params)).keys
    with performing(Request()):
        return db.database.at_once(method, (sql, params), keys)


@pytest.mark.parametrize("key", [1, 2, 3])
def test_it_gives_what_a_thread_gives(table, key):
    found = glance(table, BY_KEY, [key])
    assert found is not LATER
    assert found == table.call("query", BY_KEY, [key])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t",
        "SELECT * FROM t WHERE v = 'a'",
        "SELECT * FROM t WHERE id > 1",
        "SELECT upper(v) FROM t WHERE id = 1",
        "SELECT count(*) FROM t",
        "SELECT 1",
        "SELECT * FROM w WHERE id = 1",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n, t WHERE t.id = 1",
        "SELECT (WITH n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n) FROM t WHERE id = 1",
        "VALUES (1)",
        "PRAGMA table_info(t)",
        "UPDATE t SET v = 'x' WHERE id = 1",
    ],
)
def test_what_may_take_long_is_for_threads(table, sql):
    assert glance(table, sql) is LATER
    assert table.ask("SELECT v FROM t WHERE id = 1") == [("ein Ä",)]


def test_other_methods_are_for_threads(table):
    assert table.database.at_once("digest", (), None) is LATER
    assert table.database.at_once("tables", (), ()) is LATER


def test_it_sees_what_is_committed(table):
    table.database.begin()
    table.call("execute", "UPDATE t SET v = 'new' WHERE id = 1", [])
    assert glance(table, BY_KEY, [1]).rows[0][1] == "ein Ä"
    table.database.commit([])
    assert glance(table, BY_KEY, [1]).rows[0][1] == "new"


def test_it_is_stopped_after_some_steps_and_then_left_to_threads(table, monkeypatch):
    """A row alone cannot take so many: so each step counts here, and one is too much."""
    seen = []
    run = table.database._engine._glance._run
    table.database._engine._glance._run = lambda *a: seen.append(1) or run(*a)
    monkeypatch.setattr(sqlite_glance, "_STEPS", 1)
    monkeypatch.setattr(sqlite_glance, "_LOOKS", 1)
    table.database._engine._glance.close()
    table.database._engine._glance.open()
    assert glance(table, BY_KEY, [1]) is LATER
    assert glance(table, BY_KEY, [1]) is LATER
    assert len(seen) == 1
    assert table.ask(BY_KEY, [1])[0][1] == "ein Ä"


def test_what_takes_long_again_and_again_is_left_to_threads(table, monkeypatch):
    now = [0.0]

    def later():
        now[0] += 0.01
        return now[0]

    assert glance(table, BY_KEY, [1]) is not LATER
    monkeypatch.setattr(sqlite_glance.time, "perf_counter", later)
    found = [glance(table, BY_KEY, [1]) for _ in range(20)]
    assert found[0] is not LATER, "once proves nothing"
    assert found[-1] is LATER
    assert glance(table, "SELECT v FROM t WHERE id = ?", [1]) is not LATER, "others are not to blame"


def test_it_waits_for_nobody(table):
    glancing = table.database._engine._glance
    assert glancing._connection.raw.execute("PRAGMA busy_timeout").fetchone() == (0,)
    with glancing._mutex:
        assert glance(table, BY_KEY, [1]) is LATER
    assert glance(table, BY_KEY, [1]) is not LATER


def test_an_error_is_told_by_a_thread(table):
    assert glance(table, BY_KEY, [1 << 70]) is LATER
    table.database._engine._glance._connection.raw.close()
    assert glance(table, BY_KEY, [1]) is LATER
    assert table.ask(BY_KEY, [1])[0][1] == "ein Ä"


def test_a_state_that_came_is_the_one_that_is_read(table, make):
    other = make("n2")
    other.do("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    assert glance(other, BY_KEY, [1]).rows == []
    other.database.set_state(iter(list(table.database.get_state())))
    assert glance(other, BY_KEY, [1]).rows[0][1] == "ein Ä"


def test_a_closed_database_reads_nothing(table):
    engine = table.database._engine
    keys = table.database.touched("query", (BY_KEY, [1])).keys
    table.close()
    assert table.database.at_once("query", (BY_KEY, [1]), keys) is LATER
    assert engine._glance._connection is None
