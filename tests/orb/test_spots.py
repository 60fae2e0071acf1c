"""Calls that the home node performs on the spot (framework/orb/spots.py): as all others, and sooner."""

import asyncio
import time

import pytest

from framework import Object, OboError, RemoteError, conflict_matrix, method
from framework.com.spot import Spot
from framework.orb.spots import Spots
from tests.orb.cluster import cluster

OBJECTS = """
[objects.box]
class = "tests.orb.test_spots:Box"
on = ["n1"]
[objects.shelf]
class = "tests.orb.test_spots:Box"
[objects.other]
class = "tests.orb.test_spots:Box"
on = ["n2"]
"""


class Asks:
    """In the state of an object; its length is told by another object."""

    def __init__(self, of: Object) -> None:
        self._of = of

    def __len__(self) -> int:
        found: int = self._of.orb.object("other").size()
        return found


@conflict_matrix(put="*", slow="*")
class Box(Object):
    def __init__(self) -> None:
        self.things: dict[str, list[int]] = {}
        self.last = 0.0

    @method
    def put(self, name: str, value: int) -> int:
        self.things[name] = [*self.things.get(name, []), value]
        self.last = self.now()
        if value < 0:
            raise ValueError(f"{value} is less than nothing")
        return len(self.things[name])

    @method
    def keep(self, name: str, values: list[int]) -> None:
        self.things[name] = values

    @method
    def slow(self, name: str) -> None:
        time.sleep(0.2)
        self.things[name] = [0]

    @method(readonly=True)
    def get(self, name: str) -> list[int]:
        return self.things.get(name, [])

    @method(readonly=True)
    def size(self) -> int:
        return len(self.things)

    @method
    def dice(self) -> list[float]:
        return [self.random(), self.random()]

    @method(readonly=True)
    def asks(self) -> int:
        return len(Asks(self))


def test_a_call_and_a_read(usual, ports, tmp_path):
    async def work():
        async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, c.client("n1") as orb:
            box, shelf = orb.object(Box, "box"), orb.object(Box, "shelf")
            await box.put("a", 1)  # the first call of a client makes its session
            assert await box.put("a", 2) == 2
            await box.keep.oneway("b", [7])
            assert await box.get("b") == [7]
            await shelf.put("x", 1)
            assert await shelf.get("x") == [1]
            (mine,) = c.objects("box")
            assert mine.things == {"a": [1, 2], "b": [7]}
            assert usual.count("put") == 1 + 3 and "keep" not in usual and "get" not in usual
            assert all(type(v).__name__ != "list" for v in mine.things.values()), "what it has kept is tracked"

    asyncio.run(work())


def test_who_raises_leaves_no_trace(usual, ports, tmp_path):
    async def work():
        async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, c.client("n1") as orb:
            box = orb.object(Box, "box")
            await box.put("a", 1)
            with pytest.raises(RemoteError, match="-5 is less than nothing") as raised:
                await box.put("a", -5)
            assert "in put" in "".join(raised.value.__notes__)
            assert await box.get("a") == [1]
            assert usual.count("put") == 1

    asyncio.run(work())


def test_it_waits_for_who_conflicts(ports, tmp_path):
    async def work():
        async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, c.client("n1") as orb, c.client("n1") as other:
            box = orb.object(Box, "box")
            await box.put("a", 1)
            await other.object(Box, "box").get("a")
            slow = box.slow.submit("z")
            await asyncio.sleep(0.05)
            assert await other.object(Box, "box").get("z") == [0]
            await slow

    asyncio.run(work())


def test_who_calls_others_is_performed_by_a_thread(usual, ports, tmp_path):
    async def work():
        async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, c.client("n1") as orb:
            box = orb.object(Box, "box")
            await box.put("a", 1)
            assert await box.asks() == 0
            assert await box.asks() == 0
            assert "asks" in usual

    asyncio.run(work())


def test_chance_is_that_of_the_call(ports, tmp_path, monkeypatch):
    async def work():
        async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, c.client("n1") as orb:
            box = orb.object(Box, "box")
            await box.put("a", 1)
            first, second = await box.dice(), await box.dice()
            assert first != second and first[0] != first[1]

    asyncio.run(work())


def test_wrong_arguments_are_told_as_ever(ports, tmp_path):
    async def work():
        async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, c.client("n1") as orb:
            await orb.object("box").put("a", 1)
            with pytest.raises(Exception, match="argument value"):
                await orb.object("box").put("a", "one")
            with pytest.raises(Exception, match="no method 'putt'"):
                await orb.object("box").putt("a", 1)
            await orb.object("box").put.oneway("a", 1)  # it returns a value: the client's log says so
            assert await orb.object("box").get("a") == [1]

    asyncio.run(work())


def test_a_fault_of_the_framework_stops_the_node(ports, tmp_path, monkeypatch):
    def broken(self, *args):
        raise KeyError("broken")

    async def work():
        async with cluster(ports(3), tmp_path, judged=False, objects=OBJECTS) as c, c.client("n1", "n2") as orb:
            box = orb.object(Box, "box")
            await box.put("a", 1)
            monkeypatch.setattr(Spot, "did", broken)
            lost = box.put.with_(timeout=1.0).submit("a", 2)
            await asyncio.wait_for(c.nodes["n1"].has_failed.wait(), 5)
            with pytest.raises(OboError):
                await lost
            assert isinstance(c.nodes["n1"].failed, KeyError)

    asyncio.run(work())


def test_a_life_that_is_over_performs_nothing(ports, tmp_path):
    async def work():
        async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, c.client("n1") as orb:
            await orb.object(Box, "box").put("a", 1)
            life = c.nodes["n1"].life
            spots: Spots = life.spots
            assert not spots.closed
        assert spots.closed

    asyncio.run(work())
