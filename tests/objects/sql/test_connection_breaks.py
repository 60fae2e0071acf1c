"""A database that stops answering, at each of its statements in turn: that is ``Broken``, whatever was under way.

Any other error would be the answer of this replica to a call that the others have performed.
"""

import sqlite3
from contextlib import closing

import psycopg
import pytest

from framework import Broken, performing
from objects.sql import postgres_connect, sqlite_connect
from tests.objects.sql.replica import Request

pytestmark = pytest.mark.parametrize(
    "dialect", ["sqlite", pytest.param("postgres", marks=pytest.mark.full)], indirect=True
)


class Faults:
    """Counts the statements of all connections, and lets one fail: once, or with all that come after it."""

    def __init__(self, dialect):
        self.dialect = dialect
        self.count = self.at = 0
        self.lasting = False
        self.said = None

    def arm(self, at, lasting=False):
        self.count, self.at, self.lasting, self.said = 0, at, lasting, None

    def look(self, sql, connection):
        self.count += 1
        if self.at and (self.count == self.at or (self.lasting and self.count > self.at)):
            self.said = self.said or sql
            raise self.error(connection)

    def error(self, connection):
        if self.dialect == "postgres":
            connection.close()
            return psycopg.errors.AdminShutdown("terminating connection due to administrator command")
        found = sqlite3.OperationalError("disk I/O error")
        found.sqlite_errorcode, found.sqlite_errorname = sqlite3.SQLITE_IOERR_WRITE, "SQLITE_IOERR_WRITE"
        return found


class Raw:
    """A connection of sqlite3, all of whose statements are looked at first."""

    def __init__(self, raw, faults):
        self.raw, self.faults = raw, faults

    def __getattr__(self, name):
        return getattr(self.raw, name)

    def execute(self, sql, *more):
        self.faults.look(sql, self.raw)
        return self.raw.execute(sql, *more)


@pytest.fixture
def faults(dialect, monkeypatch):
    made = Faults(dialect)
    if dialect == "sqlite":
        begun = sqlite_connect.Connection.__init__

        def init(self, *args, **more):
            begun(self, *args, **more)
            self.raw = Raw(self.raw, made)

        monkeypatch.setattr(sqlite_connect.Connection, "__init__", init)
        return made
    connect = postgres_connect.connect

    def connected(*args):
        raw = connect(*args)
        execute = raw.execute

        def looked(sql, *more, **named):
            made.look(sql, raw)
            return execute(sql, *more, **named)

        raw.execute = looked
        return raw

    monkeypatch.setattr(postgres_connect, "connect", connected)
    return made


@pytest.fixture
def db(make, faults):
    made = make()
    made.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL)")
    made.do("INSERT INTO t VALUES (1, 'a')")
    return made


def batch(*calls):
    def act(db):
        db.database.begin()
        for call in calls:
            found = db.call(*call)
            if isinstance(found, Broken):
                raise found
        db.database.commit([b"entry"], b"head")

    return act


def prepared(db):
    """For a transaction: performed, read, and taken back."""
    db.database.begin()
    with db.database.provisional(), performing(Request()):
        db.database.execute("INSERT INTO t VALUES (7, 'g')")
        assert db.database.query("SELECT count(*) FROM t").rows == [(2,)]
        assert "t" in db.database.tables() and db.database.schema()
    db.database.commit([b"entry"])


def asked(method, *arguments):
    def act(db):
        with performing(Request()):
            getattr(db.database, method)(*arguments)

    return act


def reopened(db):
    db.database.close()
    db.database.open(db.place)


def taken(db):
    """Its own state."""
    db.database.set_state(iter(list(db.database.get_state())))


INSERT = "INSERT INTO t VALUES (?, ?)"
WRITES = {
    "a row": batch(("execute", INSERT, [2, "b"])),
    "a large key": batch(("execute", INSERT, [(1 << 31) - 1, "b"])),
    "rows": batch(("executemany", INSERT, [[n, "b"] for n in range(2, 5)])),
    "statements": batch(("transaction", [(INSERT, [2, "b"]), ("UPDATE t SET v = 'c'", [])])),
    "several": batch(("several", [(INSERT, [2, "b"]), (INSERT, [1, "twice"]), (INSERT, [3, "c"])])),
    "a computed key": batch(("execute", "INSERT INTO t SELECT id + 1, v FROM t")),
    "ddl": batch(("execute", "CREATE TABLE u (id INTEGER PRIMARY KEY, v TEXT)"), ("execute", INSERT, [2, "b"])),
    "a mistake": batch(("execute", INSERT, [1, "b"]), ("transaction", [(INSERT, [2, "b"]), (INSERT, [1, "b"])])),
    "a transaction": prepared,
    "a rollback": lambda db: (db.database.begin(), asked("execute", INSERT, [2, "b"])(db), db.database.rollback()),
    "notes": lambda db: db.database.recall(),
}
READS = {
    "query": asked("query", "SELECT * FROM t"),
    "a row": asked("query", "SELECT * FROM t WHERE id = ?", [1]),
    "queries": asked("queries", [("SELECT * FROM t", []), ("SELECT count(*) FROM t", [])]),
    "tables": asked("tables"),
    "schema": asked("schema"),
    "digest": asked("digest"),
    "fingerprint": asked("fingerprint"),
    "state": lambda db: list(db.database.get_state()),
}


def points(db, faults, act):
    """How many statements it takes, when all is well."""
    faults.arm(0)
    act(db)
    return faults.count


def broken_at(db, faults, act, point, lasting):
    faults.arm(point, lasting)
    try:
        act(db)
    except Broken:
        return True
    except BaseException as error:
        error.add_note(f"at {faults.said!r}")
        raise
    finally:
        faults.arm(0)
    return False


def begin_anew(db):
    reopened(db)
    assert db.database.recall() is not None
    if "u" in db.database.tables():
        db.do("DROP TABLE u")
    db.do("DELETE FROM t")
    db.do("INSERT INTO t VALUES (1, 'a')")


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("what", WRITES)
def test_while_it_writes(db, faults, what, lasting):
    count = points(db, faults, WRITES[what])
    assert count
    for point in range(1, count + 1):
        begin_anew(db)
        assert broken_at(db, faults, WRITES[what], point, lasting), f"nobody heard of a fault at {point} of {count}"
    begin_anew(db)


@pytest.mark.parametrize("what", READS)
def test_while_it_reads(db, faults, what):
    """A connection that reads and was lost is made anew; if that fails, too, the database is."""
    count = points(db, faults, READS[what])
    assert count or what == "queries"
    for point in range(1, count + 1):
        reopened(db)
        assert broken_at(db, faults, READS[what], point, True), f"nobody heard of a fault at {point} of {count}"
        reopened(db)
        READS[what](db)
        broken_at(db, faults, READS[what], point, False)
        READS[what](db)


def test_while_it_is_opened(db, faults):
    for point in range(1, points(db, faults, reopened) + 1):
        assert broken_at(db, faults, reopened, point, True)
        reopened(db)
        assert db.ask("SELECT * FROM t") == [(1, "a")], "the lock is free, and all is there"


def test_while_it_takes_over_a_state(db, faults, make):
    with closing(make("n2")) as donor:
        donor.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL)")
        donor.do("INSERT INTO t VALUES (1, 'a')")
        chunks = list(donor.database.get_state())

    def act(db):
        db.database.set_state(iter(chunks))

    for point in range(1, points(db, faults, act) + 1):
        heard = broken_at(db, faults, act, point, True)
        reopened(db)
        assert heard
        assert db.database.recall() is None or db.ask("SELECT * FROM t") == [(1, "a")], "half of a state is none"
        act(db)
        db.database.begin()
        db.database.commit([], b"head")
        assert db.ask("SELECT * FROM t") == [(1, "a")]
