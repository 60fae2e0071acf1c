"""Reads of objects with a store of their own, on the spot (framework/orb/spots.py, ``Backed.at_once``)."""

import asyncio
import threading

from framework import ALL, LATER
from framework.orb.backed.committer import Committer
from tests.cluster.shelf import Shelf
from tests.orb.cluster import cluster

OBJECTS = """
[serve]
data = "{data}"
[objects.quick]
class = "tests.orb.test_spots_backed:Quick"
"""


class Quick(Shelf):
    """It can tell at once what lies under names, but for long ones."""

    def at_once(self, method, values, keys):
        if values == ("oops",):
            raise KeyError("a mistake in the class")
        if values == ("text",):
            return "no number"
        if method != "get" or len(values[0]) > 5:
            return LATER
        assert keys == ((values[0], "r"),)
        return self.get(*values)


def test_what_can_be_told_at_once_is(usual, ports, tmp_path):
    async def work():
        data = OBJECTS.format(data=tmp_path / "data")
        async with cluster(ports(3), tmp_path, True, data) as c, c.client("n1") as orb:
            shelf = orb.object(Quick, "quick")
            await shelf.add.with_(receipt=ALL)("a", 1)
            await shelf.add.with_(receipt=ALL)("longer", 7)
            usual.clear()
            assert await shelf.get("a") == 1
            assert await shelf.get("nobody") == 0
            assert await shelf.get("longer") == 7
            assert await shelf.all() == {"a": 1, "longer": 7}
            assert usual == ["get", "get", "all"]

    asyncio.run(work())


def test_a_mistake_in_the_class_does_not_stop_the_node(usual, ports, tmp_path):
    async def work():
        data = OBJECTS.format(data=tmp_path / "data")
        async with cluster(ports(3), tmp_path, True, data) as c, c.client("n1") as orb:
            shelf = orb.object(Quick, "quick")
            await shelf.add.with_(receipt=ALL)("oops", 3)
            assert await shelf.get("oops") == 3
            assert await shelf.get("text") == 0
            assert usual == ["get", "get"]
            assert c.nodes["n1"].failed is None

    asyncio.run(work())


def test_a_session_sees_what_it_has_written(ports, tmp_path):
    async def work():
        data = OBJECTS.format(data=tmp_path / "data")
        async with cluster(ports(3), tmp_path, True, data) as c, c.client("n1") as orb, c.client("n2") as other:
            one, two = orb.object(Quick, "quick"), other.object(Quick, "quick")
            for n in range(1, 30):
                await (one if n % 2 else two).add("a", 1)
                assert await (one if n % 2 else two).get("a") == n
                sent = two.add.submit("b", 1)
                assert await two.get("b") == n, "it has sent it before"
                await sent

    asyncio.run(work())


def test_it_waits_for_a_commit_that_it_must_see(usual, ports, tmp_path, monkeypatch):
    """Performed, and not committed: nobody may see that it is not there."""
    go = threading.Event()
    waits = threading.Event()
    allowed = Committer._until_allowed

    def held_up(self, settlings):
        if threading.current_thread().name == "obo-quick@n1-commit":
            waits.set()
            go.wait(60)
        allowed(self, settlings)

    async def work():
        data = OBJECTS.format(data=tmp_path / "data")
        async with cluster(ports(3), tmp_path, True, data) as c, c.client("n2") as orb, c.client("n1") as other:
            shelf, reads = orb.object(Quick, "quick"), other.object(Quick, "quick")
            await shelf.add.with_(receipt=ALL)("a", 1)
            await reads.add.with_(receipt=ALL)("b", 1)
            assert await reads.get("a") == 1
            monkeypatch.setattr(Committer, "_until_allowed", held_up)
            usual.clear()
            await shelf.add("a", 1)  # a majority is without n1
            await asyncio.to_thread(waits.wait, 10)
            read = reads.get.submit("a")
            assert await reads.get("b") == 1, "that has nothing to do with it"
            await asyncio.sleep(0.1)
            assert not read.done()
            go.set()
            assert await read == 2
            assert usual == ["get"]

    try:
        asyncio.run(work())
    finally:
        go.set()
