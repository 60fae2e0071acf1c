"""A node that cannot use the state that it gets asks for it more and more rarely, and says so; with room, at once."""

import time

from framework import Broken
from framework.orb.backed.resident import BackedResident
from framework.orb.moving import backoff
from framework.testing import cluster
from tests.cluster.shelf import Shelf

WAIT = 120.0  # seconds; for hangs only


def until(what, said):
    end = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < end, said()
        time.sleep(0.02)


def test_a_disk_without_room(tmp_path, monkeypatch):
    """Room is what the test says. With none, each pause is longer; with enough, the last one ends."""
    free, real, tried = {"bytes": 1 << 40}, BackedResident.adopt, []

    def adopt(resident, chunks):
        if resident.replica == "shelf@n3" and free["bytes"] == 0:
            tried.append(1)
            raise Broken("the disk is full")
        real(resident, chunks)

    monkeypatch.setattr(BackedResident, "adopt", adopt)
    monkeypatch.setattr(backoff, "free", lambda directory: free["bytes"])
    with cluster({"shelf": Shelf}, 3, trace=tmp_path) as c:
        shelf = c.connect("n1", timeout=WAIT).object(Shelf, "shelf")
        shelf.add("ann", 1)
        assert c.settle(WAIT)
        c.crash("n3")
        shelf.add("ann", 1)
        free["bytes"] = 0
        c.restart("n3")

        def pause():
            return c.look("n3")["transfers"]["pausing"].get("shelf@n3", {"failures": 0})

        until(lambda: pause()["failures"] >= 3, lambda: f"{c.look('n3')['transfers']}")
        said = pause()
        assert said["why"] == "the disk is full" and said["room"] > 0 and said["failures"] == len(tried)
        why = c.look("n3")["group"]["why"]
        assert "shelf@n3: the disk is full; it tries again in" in why and "or when" in why
        node = c._members["n3"]._node
        node.backoffs.of("shelf@n3").until += 1e6  # time alone would not end it
        before = len(tried)
        free["bytes"] = 1 << 40
        until(lambda: not c.look("n3")["group"]["why"], lambda: c.look("n3")["group"]["why"])
        assert len(tried) == before and c.look("n3")["transfers"]["pausing"] == {}
        assert c.connect("n3", timeout=WAIT).object(Shelf, "shelf").get("ann") == 2
