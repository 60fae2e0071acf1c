"""Databases on three nodes: several of them, one that somebody writes into, one whose disk is full."""

import sqlite3

import pytest

from framework import BadRequest, RemoteError
from framework.orb.backed import resident
from framework.orb.backed.checked import unchecked
from framework.orb.config import Group
from framework.orb.durable.entries import Head, decode
from framework.testing import cluster
from objects.sql import Database
from objects.sql.client import Sql
from tests.cluster.test_membership import until
from tests.objects.sql.disks import small_disk

WAIT = 60.0
TABLES = (
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)",
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, body BLOB)",
)


def made(c, name="db", node="n1"):
    db = Sql(c.connect(node, timeout=WAIT), name, timeout=WAIT)
    for text in TABLES:
        db.execute(text)
    db.executemany("INSERT INTO accounts VALUES (?, ?)", [(i, 100) for i in range(10)])
    return db


def file_of(directory, node, name="db"):
    return directory / "data" / node / "stores" / name / "database.sqlite"


def whole(db):
    """Are all replicas there, and equal?"""
    found = db.digests()
    return found.equal and not found.missing


def test_several_databases_on_the_same_nodes(tmp_path):
    """They share nothing: neither tables, nor the order, nor what a session has seen."""
    options = {"other": {"url": "sqlite:///apart/{node}.sqlite", "durability": "relaxed"}}
    with cluster({"db": Database, "other": Database}, 3, trace=tmp_path, options=options) as c:
        db, other = made(c), Sql(c.connect("n2", timeout=WAIT), "other", timeout=WAIT)
        assert other.tables() == []
        other.execute("CREATE TABLE accounts (owner TEXT PRIMARY KEY, balance NUMERIC) WITHOUT ROWID")
        other.execute("INSERT INTO accounts VALUES ('ann', 1.5)")
        db.execute("UPDATE accounts SET balance = 7 WHERE id = 3")
        assert db.query("SELECT balance FROM accounts WHERE id = 3", read="majority").scalar() == 7
        assert other.query("SELECT count(*) FROM accounts", read="linearizable").scalar() == 1
        for each, tables in ((db, {"accounts", "notes"}), (other, {"accounts"})):
            found = each.digests()
            assert found.equal and not found.missing and set(found.replicas[f"{each.name}@n3"]) == tables
        assert (tmp_path / "data" / "n3" / "stores" / "other" / "apart" / "n3.sqlite").exists()
        c.verify(WAIT)


def test_a_database_that_was_written_to_leaves_and_gets_a_fresh_state(tmp_path, caplog):
    """The comparison that runs by itself names the table; nobody has to ask."""
    assert 0 < Group().compare_every <= 86400
    with cluster({"db": Database}, 3, trace=tmp_path) as c:
        db = made(c)
        until(lambda: whole(db), "not all have it")
        with sqlite3.connect(file_of(tmp_path, "n3"), timeout=WAIT) as file:
            file.execute("UPDATE accounts SET balance = 1000000 WHERE id = 4")
        file.close()
        assert list(db.digests().differing) == ["accounts"]
        db.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 4")
        for node in c.nodes:  # each does so every hour
            c._background._loop.call_soon_threadsafe(c._members[node]._node.comparing.start, 0.2)
        told = "db@n3 DIFFERS from the majority of its replicas in accounts: it leaves"
        until(lambda: told in caplog.text, "nobody has noticed")
        until(lambda: whole(db), "n3 is not back, or still differs")
        assert Sql(c.connect("n3", timeout=WAIT), "db").query("SELECT balance FROM accounts WHERE id = 4").rows == [
            (101,)
        ]


def test_a_node_whose_disk_is_full_steps_out_and_comes_back(tmp_path):
    """A disk of the database alone. What the node notes of itself is elsewhere; else it ends (docs/operations.md)."""
    urls = {"n1": "sqlite:///db.sqlite", "n2": "sqlite:///db.sqlite", "n3": f"sqlite:///{tmp_path}/small/db.sqlite"}
    made_of = {"trace": tmp_path / "nodes", "options": {"db": {"urls": urls}}}
    with small_disk(tmp_path / "small", 4) as resize, cluster({"db": Database}, 3, **made_of) as c:
        db = made(c)
        for number in range(60):  # 6 MB
            db.execute("INSERT INTO notes VALUES (?, ?)", [number, b"x" * 100_000])
        until(lambda: "db@n3" in c.look("n3")["transfers"]["unready"], "n3 goes on")
        db.execute("UPDATE accounts SET balance = 1 WHERE id = 1")
        assert db.query("SELECT count(*), sum(length(body)) FROM notes", read="linearizable").rows == [(60, 6_000_000)]
        resize(100)
        until(lambda: whole(db), "n3 is not back")


def test_a_statement_that_is_wrong_is_wrong_everywhere(tmp_path):
    with cluster({"db": Database}, 3, trace=tmp_path) as c:
        db = made(c)
        wrong = [
            ("INSERT INTO accounts VALUES (1, 1)", (), "IntegrityError: UNIQUE"),
            ("INSERT INTO accounts VALUES (99, NULL)", (), "IntegrityError: NOT NULL"),
            ("INSERT INTO accounts VALUES ('no number', 1)", (), "DataError"),
            ("INSERT INTO missing VALUES (1)", (), "missing"),
            ("INSERT INTO notes VALUES (1, ?)", [2**70], "64 bits"),
        ]
        for sql, params, words in wrong:
            with pytest.raises((RemoteError, BadRequest), match=words):
                db.execute(sql, params)
        db.execute("INSERT INTO notes VALUES (1, ?)", [b"x" * 3_000_000])  # a large row
        db.execute("UPDATE notes SET body = ? WHERE id = 1", ["'; DROP TABLE accounts; --"])
        assert whole(db)
        assert db.query("SELECT count(*), sum(balance) FROM accounts", read="majority").rows == [(10, 1000)]
        c.verify(WAIT)


def test_what_is_kept_of_performed_calls_is_bounded(tmp_path, monkeypatch):
    """Results are kept for who might ask again. A client says which it has got: these go."""
    monkeypatch.setattr(resident, "RECORDS", 50)
    with cluster({"db": Database}, 3, trace=tmp_path) as c:
        db = made(c)
        text = "UPDATE accounts SET balance = balance + 1 WHERE id = 1 RETURNING hex(zeroblob(1000))"  # 2 kB
        sizes = []
        for _ in range(3):
            for _ in range(200):
                db.execute(text)
            sizes.append(max(kept(c, node) for node in c.nodes))
        assert max(sizes) < 100 * 2500, f"{sizes} bytes after 200, 400 and 600 calls"
        assert db.query("SELECT balance FROM accounts WHERE id = 1", read="majority").scalar() == 700
        c.verify(WAIT)


def kept(c, node):
    """Bytes with results in them. Requests, of which the last thousand are remembered, have none."""
    recalled = c._members[node]._node.life.residents[f"db@{node}"].store.recall()
    return len(decode(unchecked(recalled.head, node), Head, node).part) + sum(map(len, recalled.entries))
