"""Statements without an end, on real processes: ended within their limit everywhere, and nothing of them is left."""

import threading
import time
from contextlib import contextmanager

import psycopg
import pytest

from framework import RemoteError
from framework.testing import cluster
from objects.sql import Database
from objects.sql.client import Sql
from tests.cluster.test_membership import ready, until
from tests.objects.sql.disks import small_disk

WAIT = 60.0
LIMIT = 1.0
NUMBERS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"
TABLES = {
    "sqlite": (
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)",
        "CREATE TABLE big (id INTEGER PRIMARY KEY, body BLOB)",
        "CREATE TABLE bell (id INTEGER PRIMARY KEY)",
    ),
    "postgres": (
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)",
        "CREATE TABLE big (id SERIAL PRIMARY KEY, body BIGINT)",
        "CREATE TABLE bell (id INTEGER PRIMARY KEY)",
    ),
}
CROSS = ", ".join(f"accounts a{n}" for n in range(14))
#: What must be there before, and the statement.
WRITES = {
    "sqlite": {
        "recursion": ((), f"INSERT INTO big (id) {NUMBERS} SELECT n + 1 FROM r"),
        "cross join": ((), f"UPDATE big SET body = (SELECT count(*) FROM {CROSS}) WHERE id = 1"),
        "trigger": (
            (
                "CREATE TRIGGER rings AFTER INSERT ON bell BEGIN "
                f"INSERT INTO big (id) SELECT n + 1 FROM ({NUMBERS} SELECT n FROM r) ORDER BY n; END",
            ),
            "INSERT INTO bell VALUES (1)",
        ),
        "schema": ((), f"CREATE TABLE copy AS {NUMBERS} SELECT n FROM r ORDER BY n"),
    },
    "postgres": {
        "series": ((), "INSERT INTO big (body) SELECT n FROM generate_series(1, 1000000000) n ORDER BY n"),
        "recursion": ((), f"INSERT INTO big (body) {NUMBERS} SELECT n FROM r ORDER BY n"),
        "cross join": ((), f"UPDATE big SET body = (SELECT count(*) FROM {CROSS}) WHERE id = 1"),
        "trigger": (
            (
                "CREATE FUNCTION rings() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN LOOP "
                "UPDATE big SET body = body + 1 WHERE id = 1; END LOOP; END $$",
                "CREATE TRIGGER rings BEFORE INSERT ON bell FOR EACH ROW EXECUTE FUNCTION rings()",
            ),
            "INSERT INTO bell VALUES (1)",
        ),
    },
}


class Other:
    """A client at another node, in another table: how many of its statements were performed, and its longest wait."""

    def __init__(self, c, node):
        self.db = Sql(c.connect(node, timeout=WAIT), "db", timeout=WAIT)
        self.done, self.longest, self.longest_read, self.errors = 0, 0.0, 0.0, []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        until(lambda: self.done or self.errors, "it does nothing")
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join(WAIT)

    def _run(self):
        while not self._over.is_set():
            began = time.monotonic()
            try:
                self.db.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 1")
                self.done += 1
                written = time.monotonic()
                assert self.db.query("SELECT balance FROM accounts WHERE id = 1").scalar() == self.done
                self.longest_read = max(self.longest_read, time.monotonic() - written)
                self.longest = max(self.longest, written - began)
            except Exception as error:
                self.errors.append(repr(error))
                return


@contextmanager
def nodes(directory, options, dialect, limit=LIMIT):
    """Three processes, with tables; and a client at n1."""
    with cluster(
        {"db": Database},
        3,
        processes=True,
        trace=directory,
        options={"db": {**options["db"], "durability": "relaxed", "statement_limit": limit}},
    ) as c:
        db = Sql(c.connect("n1", timeout=WAIT), "db", timeout=WAIT)
        for text in TABLES[dialect]:
            db.execute(text)
        db.executemany("INSERT INTO accounts VALUES (?, 0)", [(i,) for i in range(10)])
        db.execute("INSERT INTO big (id) VALUES (1)")
        yield c, db


def whole(db):
    found = db.digests()
    return found.equal and not found.missing


def ends(c, db, statement, other):
    """The statement is refused by all alike, and leaves nothing; seconds that took."""
    views = [c.look(n)["view"] for n in c.nodes]
    before = db.digests().replicas["db@n1"]
    began = time.monotonic()
    with pytest.raises(RemoteError, match="OperationalError: nothing of it was done, at no replica"):
        db.execute(statement)
    took = time.monotonic() - began
    done = other.done
    until(lambda: other.done > done or other.errors, "the other client does not go on")
    assert not other.errors
    found = db.digests()
    assert found.equal and not found.missing
    assert {t: d for t, d in found.replicas["db@n1"].items() if t != "accounts"} == {
        t: d for t, d in before.items() if t != "accounts"
    }
    assert [c.look(n)["view"] for n in c.nodes] == views, "a node has left"
    return took


def test_it_is_ended_and_does_not_keep_a_node_that_stops(tmp_path, dialect, options):
    """What a stop interrupts is told to nobody: the other nodes bring it to its end."""
    kind = {"sqlite": "recursion", "postgres": "series"}[dialect]
    _, statement = WRITES[dialect][kind]
    with nodes(tmp_path, options, dialect) as (c, db), Other(c, "n2") as other:
        ends(c, db, statement, other)
        said = []
        thread = threading.Thread(target=lambda: said.append(outcome(db, statement)))
        thread.start()
        until(lambda: any(r["replica"] == "db@n3" for r in c.look("n3")["running"]), "n3 does not begin it")
        c.stop("n3")
        thread.join(WAIT)
        assert len(said) == 1 and "OperationalError: nothing of it was done" in said[0], said
        c.restart("n3")
        until(lambda: ready(c, *c.nodes) and whole(db), "n3 is not back, or differs")
        assert not other.errors


def outcome(db, statement):
    try:
        return f"{db.execute(statement)}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.full
def test_every_kind_of_them(tmp_path, dialect, options, record_property):
    with nodes(tmp_path, options, dialect) as (c, db), Other(c, "n2") as other:
        for kind, (before, statement) in WRITES[dialect].items():
            for text in before:
                db.execute(text)
            other.longest = other.longest_read = 0.0
            took = ends(c, db, statement, other)
            record_property(
                f"{dialect} {kind}",
                f"ended after {took:.2f} s; another client waited {other.longest:.2f} s for a write, "
                f"{other.longest_read:.2f} s for a read",
            )


@pytest.mark.full
def test_reads(tmp_path, dialect, options, record_property):
    """As many as there are connections: writes go on, and reads of others as soon as one of them has ended."""
    with nodes(tmp_path, options, dialect) as (c, db), Other(c, "n1") as other:
        found = []
        text = f"SELECT count(*) FROM {CROSS}"
        other.longest = other.longest_read = 0.0
        readers = [Sql(c.connect("n1", timeout=WAIT), "db", timeout=WAIT) for _ in range(4)]
        threads = [threading.Thread(target=lambda r=r: found.append(read(r, text))) for r in readers]
        for each in threads:
            each.start()
        for each in threads:
            each.join(WAIT)
        assert len(found) == 4 and all("OperationalError: it took longer" in f for f in found), found
        record_property(
            f"{dialect} reads", f"another client waited {other.longest:.2f} s, {other.longest_read:.2f} s for a read"
        )
        assert not other.errors and whole(db)


def read(db, text):
    try:
        return f"{db.query(text)}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.full
def test_one_that_fills_all_disks(tmp_path, record_property):
    """The disk is full at all replicas: that is the statement's fault, and what it has taken is free again."""
    urls = {n: f"sqlite:///{tmp_path}/{n}/db.sqlite" for n in ("n1", "n2", "n3")}
    with (
        small_disk(tmp_path / "n1", 20),
        small_disk(tmp_path / "n2", 20),
        small_disk(tmp_path / "n3", 20),
        nodes(tmp_path / "nodes", {"db": {"urls": urls}}, "sqlite", 30.0) as (c, db),
        Other(c, "n2") as other,
    ):
        took = ends(c, db, f"INSERT INTO big {NUMBERS} SELECT n + 1, zeroblob(100000) FROM r", other)
        record_property(
            "sqlite disk",
            f"ended after {took:.2f} s; another client waited {other.longest:.2f} s for a write, "
            f"{other.longest_read:.2f} s for a read",
        )


@pytest.mark.full
def test_one_that_needs_more_than_any_server_gives(tmp_path, started, record_property):
    """The same on PostgreSQL: room for what is sorted, which a server may limit."""
    name = f"limited{time.monotonic_ns()}"
    options = {"db": {"urls": {node: server.create(name) for node, server in started.items()}}}
    for server in started.values():
        with psycopg.connect(server.url(), autocommit=True) as raw:
            raw.execute(f"ALTER DATABASE {name} SET temp_file_limit = '1MB'")
    with nodes(tmp_path, options, "postgres", 30.0) as (c, db), Other(c, "n2") as other:
        statement = "INSERT INTO big (body) SELECT n FROM generate_series(1, 3000000) n ORDER BY n % 1000, n"
        record_property("postgres room", f"ended after {ends(c, db, statement, other):.2f} s")
