"""Objects with a store of their own, on real nodes: what is acknowledged is there once, whoever is killed and when."""

import sqlite3
import threading
import time

import pytest

from framework import BadRequest, Outdated, RemoteError
from framework.errors import OboError
from framework.orb.backed import resident
from framework.orb.comparing import Comparing, minority
from framework.testing import cluster
from tests.cluster.shelf import Shelf
from tests.cluster.test_durable import restart_all
from tests.cluster.test_membership import ready, until
from tests.tiers import only_full

WAIT = 60.0
PAUSE = 0.005  # between two calls of a client: what happens to the nodes takes longer where they are slow


class Adds:
    """Clients at different nodes that add to a few names, with fail-over; some names are hot."""

    def __init__(self, c, each=2):
        self._c = c
        homes = [n for n in c.nodes for _ in range(each)]
        self._counts = [0] * len(homes)
        self.errors = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=a, daemon=True) for a in enumerate(homes)]

    @property
    def done(self):
        return sum(self._counts)

    def _run(self, index, home):
        shelf = self._c.connect(home, timeout=WAIT).object(Shelf, "shelf")
        while not self._over.is_set():
            try:
                shelf.add(f"a{self.done % 3}", 1)
            except OboError as error:
                self.errors.append(error)
                return
            self._counts[index] += 1
            self._over.wait(PAUSE)

    def more(self, count=100):
        wanted = self.done + count
        until(lambda: self.done >= wanted or self.errors, f"no {count} more after {self.done}")
        assert not self.errors

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.more()
        return self

    def __exit__(self, *error):
        self._over.set()
        for thread in self._threads:
            thread.join(WAIT)


def sums(c):
    orb = c.connect(timeout=WAIT)
    replies = orb.crec(orb.mcast(orb.object(Shelf, "shelf").all.request()))
    return [sum(r.value.values()) for r in replies]


def test_calls_and_reads(tmp_path):
    with cluster({"shelf": Shelf}, 3, trace=tmp_path) as c:
        shelf = c.connect("n1", timeout=WAIT).object(Shelf, "shelf")
        for number in range(20):
            shelf.add("ann", 1)
            assert shelf.get("ann") == number + 1  # a session sees what it has written
        shelf.add("bob", 5)
        shelf.swap("ann", "bob")
        assert shelf.all() == {"ann": 5, "bob": 20}
        with pytest.raises(RemoteError, match="no ann"):
            shelf.fail("ann")
        pending = [shelf.add.submit("hot", 1) for _ in range(200)]
        for each in pending:
            each.result(WAIT)
        assert shelf.get("hot") == 200
        assert sums(c) == [225] * 3
        c.verify(WAIT)


def test_calls_that_conflict_share_a_commit(tmp_path):
    with cluster({"shelf": Shelf}, 3, trace=tmp_path) as c:
        shelf = c.connect("n1", timeout=WAIT).object(Shelf, "shelf")
        shelf.add("one", 1)
        shelf.add("two", 2)
        for each in [shelf.swap.submit("one", "two") for _ in range(301)]:
            each.result(WAIT)
        assert shelf.all() == {"one": 2, "two": 1}
        committer = c._members["n1"]._node.life.residents["shelf@n1"].committer
        assert committer.batched > 2 * committer.commits
        c.verify(WAIT)


def test_what_was_judged_too_early_is_judged_again(tmp_path):
    """The basis moves while calls are under way: nobody notices."""
    with cluster({"shelf": Shelf}, 3, trace=tmp_path) as c:
        with Adds(c) as load:
            shelf = c.connect("n2", timeout=WAIT).object(Shelf, "shelf")
            for number in range(20):
                assert shelf.change() == number + 1
                load.more(10)
        assert sums(c) == [load.done] * 3
        c.verify(WAIT)


@pytest.mark.parametrize("victims", [only_full(["n2"]), only_full(["n1", "n2"]), ["n1", "n2", "n3"]])
def test_nodes_are_killed_and_all_is_there_once(tmp_path, victims):
    with cluster({"shelf": Shelf}, 3, processes=True, trace=tmp_path) as c:
        with Adds(c) as load:
            for _ in range(2):
                for name in victims:
                    c.crash(name)
                time.sleep(0.2)
                restart_all(c, victims)
                load.more()
        assert not load.errors
        assert sums(c) == [load.done] * 3
        c.verify(WAIT)


@pytest.mark.full
def test_notes_are_begun_anew_under_load(tmp_path, monkeypatch):
    monkeypatch.setattr(resident, "RECORDS", 50)
    with cluster({"shelf": Shelf}, 3, trace=tmp_path) as c:
        with Adds(c) as load:
            load.more(400)
            for name in c.nodes:
                c.crash(name)
            restart_all(c, c.nodes)
            load.more()
        assert sums(c) == [load.done] * 3
        c.verify(WAIT)


@pytest.mark.full
def test_a_store_that_is_full_takes_its_node_out_and_nobody_else(tmp_path):
    pages = {"shelf": {"pages": {"n3": 20}}}
    with cluster({"shelf": Shelf}, 3, trace=tmp_path, options=pages) as c:
        shelf = c.connect("n1", timeout=WAIT).object(Shelf, "shelf")
        for number in range(1500):
            shelf.add(f"a name that takes some room {number}", 1)
        until(lambda: "shelf@n3" in c.look("n3")["transfers"]["unready"], "n3 goes on")
        assert shelf.get("a name that takes some room 7") == 1
        assert len(shelf.all()) == 1500
        c.stop("n3")


def test_a_member_that_was_away_gets_what_it_missed(tmp_path):
    with cluster({"shelf": Shelf}, 3, processes=True, trace=tmp_path) as c:
        with Adds(c) as load:
            c.crash("n3")
            until(lambda: ready(c, "n1", "n2"), "n3 is still a member")
            load.more()
            for file in (tmp_path / "data" / "n3").rglob("shelf.sqlite*"):
                file.unlink()
            c.restart("n3")
            until(lambda: ready(c, "n1", "n2", "n3"), "n3 is not back")
            load.more()
        assert sums(c) == [load.done] * 3
        c.verify(WAIT)


def test_a_replica_that_differs_leaves_and_gets_a_fresh_state(tmp_path, caplog):
    """Somebody writes into the file of n3, past the framework."""
    with cluster({"shelf": Shelf}, 3, trace=tmp_path) as c:
        shelf = c.connect("n1", timeout=WAIT).object(Shelf, "shelf")
        for number in range(10):
            shelf.add(f"a{number}", 1)
        until(lambda: sums(c) == [10] * 3, "not all have it")
        node = c._members["n1"]._node
        assert c._background.run(Comparing(node).compare("shelf"), WAIT) == []
        with sqlite3.connect(tmp_path / "data" / "n3" / "stores" / "shelf" / "shelf.sqlite", timeout=WAIT) as file:
            file.execute("update numbers set number = 7 where name = 'a4'")
        file.close()
        assert c._background.run(Comparing(node).compare("shelf"), WAIT) == ["shelf@n3"]
        until(lambda: sums(c) == [10] * 3, "n3 still differs")
        assert "shelf@n3 DIFFERS from the majority of its replicas in a4" in caplog.text


def test_who_differs():
    assert minority({"a": b"1", "b": b"1", "c": b"2"}) == ["c"]
    assert minority({"a": b"1", "b": b"1"}) == [] == minority({"a": b"1"}) == minority({})
    assert minority({"a": b"1", "b": b"2"}) is None
    assert minority({"a": b"1", "b": b"1", "c": b"2", "d": b"3"}) is None


def test_options_are_checked():
    with pytest.raises(BadRequest, match="'page' is not known: pages"):
        cluster({"shelf": Shelf}, 3, options={"shelf": {"page": 4}})
    with pytest.raises(BadRequest, match="options: no object 'shelv'"):
        cluster({"shelf": Shelf}, 3, options={"shelv": {}})


def test_outdated_is_an_abort():
    assert Outdated("x").happened is False
