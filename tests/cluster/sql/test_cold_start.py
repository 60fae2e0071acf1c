"""All nodes are down, and the files of some of them change: whose state counts when all are started again?"""

import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from framework.orb.replaced import DIFFERS, REPLACED, UNREADABLE
from framework.testing import cluster
from objects.sql import Database
from objects.sql.client import Sql
from tests.tiers import only_full

WAIT = 120.0  # seconds; for hangs only
NODES = ("n1", "n2", "n3")


def until(what, said):
    end = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < end, said()
        time.sleep(0.02)


class Scene:
    """A table with numbers at three nodes."""

    def __init__(self, c, directory, dialect, options):
        self.c, self.directory, self.dialect = c, directory, dialect
        self.urls = options["db"].get("urls", {})
        self.run("n1", "CREATE TABLE t (id INTEGER PRIMARY KEY, number INTEGER NOT NULL)")
        for number in range(5):
            self.add("n1", number, 100 + number)

    def add(self, home, key, number):
        self.run(home, f"INSERT INTO t VALUES ({key}, {number})")

    def run(self, home, text):
        Sql(self.c.connect(home, timeout=WAIT), "db", timeout=WAIT).execute(text)

    def rows(self):
        db = Sql(self.c.connect("n1", timeout=WAIT), "db", timeout=WAIT)
        until(lambda: db.digests().equal and not db.digests().missing, lambda: f"not equal: {db.digests()}")
        return dict(db.query("SELECT id, number FROM t", read="linearizable").rows)

    def down(self, *nodes):
        for node in nodes:
            self.c.crash(node)

    def settle(self):
        assert self.c.settle(WAIT)

    def up(self, *nodes):
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(self.c.restart, nodes))
        until(lambda: not any(self.said()), lambda: f"not well: {self.said()}")

    def said(self):
        return [self.c.look(node)["group"]["why"] for node in NODES]

    def refused(self):
        """Start all, and wait until it is said that none begins."""
        with ThreadPoolExecutor(len(NODES)) as pool:
            list(pool.map(self.c.restart, NODES))
        until(lambda: any("does not begin" in why for why in self.said()), lambda: f"{self.said()}")
        return next(why for why in self.said() if "does not begin" in why)

    def file(self, node):
        return self.directory / "data" / node / "stores" / "db" / "database.sqlite"

    def change(self, node, key, number):
        """Some bytes of its database, past the framework."""
        text = f"UPDATE t SET number = {number} WHERE id = {key}"
        if self.urls:
            with psycopg.connect(self.urls[node], autocommit=True) as raw:
                raw.execute(text)
            return
        with sqlite3.connect(self.file(node)) as raw:
            raw.execute(text)
        raw.close()

    def kept(self, node, kind):
        """Rows of the only state of this kind that is kept there; None if there is none."""
        told = [k for k in self.c.look(node)["kept"] if k["kind"] == kind]
        assert len(told) <= 1, told
        return self.rows_in(Path(told[0]["path"])) if told else None

    def rows_in(self, path):
        if self.urls:
            with psycopg.connect(self.urls["n1"]) as raw:
                home = raw.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'").fetchone()[0]
            said = subprocess.run(
                [f"{home}/pg_restore", "--data-only", "--table=t", "--file=-", path], capture_output=True, check=True
            )
            lines = [line.split("\t") for line in said.stdout.decode().splitlines()]
            return {int(line[0]): int(line[1]) for line in lines if len(line) == 2}
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as raw:
            found = dict(raw.execute("SELECT id, number FROM t").fetchall())
        raw.close()
        return found


@pytest.fixture(params=["sqlite", only_full("postgres")])
def dialect(request):
    return request.param


@pytest.fixture
def scene(tmp_path, dialect, options):
    with cluster({"db": Database}, 3, trace=tmp_path, options=options) as c:
        yield Scene(c, tmp_path, dialect, options)


ROWS = {key: 100 + key for key in range(5)}


def test_a_file_that_was_changed_does_not_count(scene, caplog):
    """The last node by name performed as much as the others: without a comparison all took its state."""
    scene.settle()
    scene.down(*NODES)
    scene.change("n3", 2, 666)
    scene.up(*NODES)
    assert scene.rows() == ROWS
    assert scene.kept("n3", DIFFERS) == {**ROWS, 2: 666}
    assert "db@n3 DIFFERS from the 2 others, which agree" in caplog.text
    assert any("db@n3 DIFFERS" in said for n in NODES for said in scene.c.look(n)["transfers"]["found"].values())
    for node in NODES:  # those that are the same leave nothing
        assert scene.kept(node, REPLACED) is None and (node == "n3" or scene.kept(node, DIFFERS) is None)


def test_the_most_advanced_one_was_changed(scene):
    """n1 was away: it lacks what the others have performed, and is brought to their position for the comparison."""
    scene.settle()
    scene.down("n1")
    scene.add("n2", 5, 105)
    scene.settle()
    scene.down("n2", "n3")
    scene.change("n3", 2, 666)
    scene.up(*NODES)
    assert scene.rows() == {**ROWS, 5: 105}
    assert scene.kept("n3", DIFFERS) == {**ROWS, 5: 105, 2: 666}
    assert scene.kept("n1", DIFFERS) is None


def test_one_that_is_behind_was_changed(scene):
    scene.settle()
    scene.down("n3")
    scene.add("n2", 5, 105)
    scene.settle()
    scene.down("n1", "n2")
    scene.change("n3", 2, 666)
    scene.up(*NODES)
    assert scene.rows() == {**ROWS, 5: 105}
    assert scene.kept("n3", DIFFERS) == {**ROWS, 2: 666}


def test_no_majority_and_none_begins(scene):
    scene.settle()
    scene.down(*NODES)
    scene.change("n2", 1, 222)
    scene.change("n3", 1, 333)
    said = scene.refused()
    assert "no majority of 3 agrees" in said and "Nothing was overwritten" in said
    scene.down(*NODES)
    if scene.urls:
        return  # what an operator does there is a matter of the server
    for node, number in (("n1", 101), ("n2", 222), ("n3", 333)):
        assert scene.rows_in(scene.file(node))[1] == number
    for node in ("n1", "n3"):  # the operator finds that n2 is right
        scene.file(node).parent.rename(scene.directory / f"away-{node}")
    scene.up(*NODES)
    assert scene.rows() == {**ROWS, 1: 222}


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("how", ["torn", "note", "page"])
def test_a_file_that_cannot_be_read_does_not_count(scene, how):
    """No database at all; a note that is not what was written; a page in the middle that is none."""
    if how == "page":
        scene.run("n1", "CREATE TABLE filler (id INTEGER PRIMARY KEY, body BLOB)")
        scene.run("n1", "INSERT INTO filler VALUES (1, zeroblob(1000000))")
    scene.settle()
    scene.down(*NODES)
    if how == "torn":
        scene.file("n3").write_bytes(b"half of something else")
        for end in ("-wal", "-shm"):
            scene.file("n3").with_name(f"database.sqlite{end}").unlink(missing_ok=True)
    elif how == "note":
        with sqlite3.connect(scene.file("n3")) as raw:
            body = bytearray(raw.execute("SELECT body FROM _obo_head").fetchone()[0])
            body[len(body) // 2] ^= 1
            raw.execute("UPDATE _obo_head SET body = ?", (bytes(body),))
        raw.close()
    else:
        with sqlite3.connect(scene.file("n3")) as raw:
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            root = raw.execute("SELECT rootpage FROM sqlite_schema WHERE name = 't'").fetchone()[0]
        raw.close()
        data = bytearray(scene.file("n3").read_bytes())
        data[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096
        scene.file("n3").write_bytes(data)
    scene.up(*NODES)
    assert scene.rows() == ROWS
    kept = [k for k in scene.c.look("n3")["kept"] if k["kind"] == UNREADABLE]
    assert len(kept) == 1 and kept[0]["bytes"] > 0


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_nobody_begins_with_nothing_where_there_was_something(scene):
    """All files are torn: that is no reason for an empty database."""
    scene.settle()
    scene.down(*NODES)
    for node in NODES:
        scene.file(node).write_bytes(b"half of something else")
    assert "no state of it can be read" in scene.refused()
    scene.down(*NODES)
    assert "no state of it can be read" in scene.refused()


def test_a_node_that_was_changed_while_the_others_lived(scene):
    """Its state is replaced, and kept: as one that differs, if the others have performed nothing since."""
    scene.settle()
    scene.down("n3")
    scene.change("n3", 2, 666)
    scene.up("n3")
    assert scene.rows() == ROWS and scene.kept("n3", DIFFERS) == {**ROWS, 2: 666}
    scene.settle()
    scene.down("n2")
    scene.up("n2")  # it was not changed
    assert scene.c.look("n2")["kept"] == []
    for number in (5, 6):  # one of them is kept, however often it goes
        scene.settle()
        scene.down("n2")
        scene.add("n1", number, 100 + number)
        scene.up("n2")
        assert scene.kept("n2", REPLACED) == {key: 100 + key for key in range(number)}
