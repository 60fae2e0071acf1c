"""``Sql``: the four levels of reads, and digests of all replicas."""

import time

import pytest

from framework import BadRequest, NoSuchObject, RemoteError
from objects.sql.client import LEVELS, Digests, Diverged, Sql, odd_ones
from objects.sql.sqlite import Sqlite
from tests.cli.conftest import only_at


@pytest.fixture
def table(db, nodes):
    """Rows that every replica has: a read at the level ``any`` sees only what its own replica has performed."""
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [[1, "one"], (2, "two")])
    assert nodes.settle()
    return db


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_reads(table, level):
    assert table.query("SELECT name FROM t WHERE id = ?", [2], level).rows == [("two",)]
    assert table.query("SELECT name FROM t WHERE id = :id", {"id": 1}, read=level).rows == [("one",)]
    assert table.tables(level) == ["t"]
    assert table.schema(level)[0].startswith("CREATE TABLE t")
    with pytest.raises(RemoteError, match="nope"):
        table.query("SELECT * FROM nope", read=level)


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_for_a_whole_connection(table, nodes, level):
    other = Sql(table.orb, "db", read=level)
    assert other.query("SELECT count(*) FROM t").rows == [(2,)]


def test_a_transaction_is_whole(table):
    done = table.transaction([("INSERT INTO t VALUES (?, ?)", [3, "three"]), ("SELECT count(*) FROM t", ())])
    assert done[1].rows == [(3,)]
    with pytest.raises(RemoteError, match="UNIQUE"):
        table.transaction([("INSERT INTO t VALUES (4, 'four')", ()), ("INSERT INTO t VALUES (1, 'again')", ())])
    assert table.query("SELECT count(*) FROM t").rows == [(3,)]


@pytest.mark.parametrize("level", ["linearizable", "majority"])
def test_who_begins_after_an_answer_sees_what_was_answered(table, nodes, level, monkeypatch):
    """From another client, without a common session, at a node whose own replica is behind."""
    usual = Sqlite.commit

    def commit(self, *notes):
        time.sleep(0.3 if "n3" in self._files.database.parts else 0.0)
        usual(self, *notes)

    monkeypatch.setattr(Sqlite, "commit", commit)
    writer, reader = Sql(nodes.connect("n2"), "db"), Sql(nodes.connect("n3"), "db")
    behind = 0
    for number in range(10, 16):
        writer.execute("INSERT INTO t VALUES (?, 'x')", [number])
        behind += reader.query("SELECT max(id) FROM t", read="any").rows != [(number,)]
        assert reader.query("SELECT max(id) FROM t", read=level).rows == [(number,)]
    assert behind, "else this shows nothing"


@pytest.mark.parametrize(
    ("level", "ordered_at"),
    [("any", [0, 0, 0]), ("session", [1, 0, 0]), ("linearizable", [1, 1, 1]), ("majority", [1, 1, 1])],
)
def test_where_a_read_has_a_place_in_the_order(table, nodes, level, ordered_at):
    """At the home node, at all replicas, or nowhere."""
    reader = Sql(nodes.connect("n1"), "db", read=level)
    assert nodes.settle()
    before = {node: begun(nodes, node) for node in nodes.nodes}
    reader.query("SELECT * FROM t")
    assert nodes.settle()
    assert [begun(nodes, node) - before[node] for node in nodes.nodes] == ordered_at


def begun(nodes, node):
    return nodes.look(node)["replicas"][f"db@{node}"]["begun"]


def test_a_majority_that_differs_is_an_error_that_names_who(table):
    only_at(table.orb, "db@n2", "UPDATE t SET name = 'other' WHERE id = 1")
    assert differ(table, "SELECT name FROM t WHERE id = 1").startswith("db: db@n2 gave another answer")
    assert table.query("SELECT name FROM t WHERE id = 2", read="majority").rows == [("two",)]


def test_an_error_at_one_replica_differs_too(table):
    table.execute("UPDATE t SET name = '1'")
    only_at(table.orb, "db@n3", "UPDATE t SET name = 'no JSON'")
    assert differ(table, "SELECT json(name) FROM t").startswith("db: db@n3 gave another answer")


def differ(db, statement):
    """What is said about it. A majority without the odd one is equal: ask until one is with it."""
    for _ in range(100):
        try:
            db.query(statement, read="majority")
        except Diverged as error:
            return str(error)
    raise AssertionError("nobody noticed")


def test_rows_in_another_order_are_the_same_answer():
    from objects.sql.client import rows_alike
    from objects.sql.result import Result

    assert rows_alike(Result(["a"], [(1,), (2,)], 2)) == rows_alike(Result(["a"], [(2,), (1,)], 2))
    assert rows_alike(Result(["a"], [(1,), (1,)], 2)) != rows_alike(Result(["a"], [(1,)], 1))
    assert (
        rows_alike(Result(["a"], [(1,)], 1))
        != rows_alike(Result(["a"], [(1.0,)], 1))
        != rows_alike(Result(["a"], [("1",)], 1))
    )


def test_digests(table):
    found = table.digests()
    assert list(found.replicas) == ["db@n1", "db@n2", "db@n3"] and not found.missing
    assert found.equal and found.differing == {}
    only_at(table.orb, "db@n1", "INSERT INTO t VALUES (9, 'alone')")
    found = table.digests()
    assert list(found.differing) == ["t"] and odd_ones(found.differing["t"]) == ["db@n1"]


def test_differing_tables():
    found = Digests({"db@n1": {"a": "1", "b": "2"}, "db@n2": {"a": "1"}, "db@n3": {"a": "1", "b": "3"}})
    assert found.differing == {"b": {"db@n1": "2", "db@n2": None, "db@n3": "3"}}
    assert odd_ones(found.differing["b"]) == ["db@n1", "db@n2", "db@n3"], "nobody has a majority"


def test_mistakes(table):
    with pytest.raises(BadRequest, match="read='all': the levels are any, session, linearizable, majority"):
        table.query("SELECT 1", read="all")
    with pytest.raises(BadRequest, match="levels"):
        Sql(table.orb, "db", read="")
    with pytest.raises(BadRequest, match=r"parameters 'x': give a list, or a dict for :name"):
        table.execute("SELECT ?", "x")
    with pytest.raises(NoSuchObject):
        Sql(table.orb, "other").query("SELECT 1", read="linearizable")
