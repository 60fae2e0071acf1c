"""A value of 32 MB: it is written at all replicas, and the group takes nobody for dead meanwhile."""

import threading

import pytest

from framework import BadRequest
from framework.orb.backed import checked, committer, resident
from framework.testing import cluster
from objects.sql import Database
from objects.sql.client import Sql

WAIT = 120.0  # seconds; for hangs only
LARGE = 32 << 20


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    with cluster({"db": Database}, 3, trace=tmp_path_factory.mktemp("large"), suspect_after=60) as c:
        db = Sql(c.connect("n1", timeout=WAIT), "db", timeout=WAIT)
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)")
        yield db


def test_what_is_large_is_not_worked_on_by_the_loop_and_not_written_again_and_again(db, monkeypatch):
    """What is written down of a call is encoded by the thread that commits it. The notes are begun anew when there is
    as much of them again as was kept at the last time: not after each large call."""
    threads, heads, real, head = [], [], checked.checked, resident.HeadWork

    def watched(note):
        threads.append(threading.current_thread().name)
        return real(note)

    monkeypatch.setattr(committer, "checked", watched)
    monkeypatch.setattr(resident, "HeadWork", lambda *given: heads.append(given) or head(*given))
    monkeypatch.setattr(resident, "BYTES", 100_000)
    for number in range(12):
        db.execute("INSERT INTO t VALUES (?, ?)", [number, bytes(150_000)])
    assert db.query("SELECT sum(length(body)) FROM t", read="linearizable").scalar() == 12 * 150_000
    assert threads and all(name.endswith("-commit") for name in threads)
    assert 3 <= len(heads) <= 3 * 6  # at three replicas; after each call, it was 36


def test_a_value_of_32_mb(db):
    db.execute("INSERT INTO t VALUES (100, ?)", [bytes(LARGE)])
    assert db.query("SELECT length(body) FROM t WHERE id = 100", read="linearizable").scalar() == LARGE


def test_what_is_too_large_is_refused_at_once(db):
    with pytest.raises(
        BadRequest, match=r"the arguments have 67,.* bytes, the limit is 67,043,328: send them in parts"
    ):
        db.execute("INSERT INTO t VALUES (101, ?)", [bytes(64 << 20)])
    assert db.query("SELECT count(*) FROM t WHERE id = 101", read="linearizable").scalar() == 0


@pytest.mark.full
def test_three_processes(tmp_path):
    """Within the time that clients have by default, and without a change of view."""
    with cluster({"db": Database}, 3, processes=True, trace=tmp_path, traces=False) as c:
        db = Sql(c.connect("n1", timeout=WAIT), "db", timeout=WAIT)
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)")
        for number in range(3):
            db.execute("INSERT INTO t VALUES (?, ?)", [number, bytes(LARGE)])
        assert db.query("SELECT sum(length(body)) FROM t", read="linearizable").scalar() == 3 * LARGE
        assert db.digests().equal
