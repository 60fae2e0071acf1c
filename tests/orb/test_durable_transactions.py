"""Durable objects take part in transactions, as callees and as roots: all or nothing, and it is on disk."""

import asyncio

import pytest

from framework.errors import RemoteError
from framework.orb.durable import journaling
from framework.orb.node import Node
from framework.store import snapshots
from tests.orb.cluster import cluster

OBJECTS = """
[objects.a]
class = "tests.orb.booking:Ledger"
[objects.b]
class = "tests.orb.booking:Kept"
[objects.agency]
class = "tests.orb.booking:Agency"
on = ["n2", "n3"]
[objects.chooser]
class = "tests.orb.booking:Chooser"
on = ["n2", "n3"]
[objects.kept]
class = "tests.orb.booking:KeptChooser"
on = ["n1", "n2"]
[serve]
data = "{data}"
"""


@pytest.fixture
def play(ports, tmp_path):
    def run(act):
        async def whole():
            made = cluster(ports(3), tmp_path, True, OBJECTS.format(data=tmp_path / "data"))
            async with made as c, asyncio.timeout(60), c.client() as orb:
                await act(c, orb)

        asyncio.run(whole())

    return run


async def both(orb):
    return [await orb.object(name).get("k") for name in ("a", "b")]


def test_a_client_s_transaction_changes_one_and_undoes_it(play):
    async def act(c, orb):
        async with orb.transaction():
            await orb.object("a").add("k", 5)
            await orb.object("b").add("k", 5)
            assert await orb.object("b").get("k") == 5
        assert await both(orb) == [5, 5]

        async def too_much(orb):
            await orb.object("b").add("k", 7)
            await orb.object("a").add("k", 1000)

        with pytest.raises(RemoteError, match="too much"):
            await orb.run_transaction(too_much)
        assert await both(orb) == [5, 5]

    play(act)


def test_a_method_that_fails_undoes_what_it_called(play):
    async def act(c, orb):
        await orb.object("agency").both("k", 5, 7)
        with pytest.raises(RemoteError, match="too much"):
            await orb.object("agency").both("k", 5, 1000)
        assert await both(orb) == [5, 7]
        with pytest.raises(RemoteError, match="on purpose"):
            await orb.object("agency").fails("k", 5)
        assert await both(orb) == [5, 12], "what is independent stays"

    play(act)


@pytest.mark.parametrize("root", ["chooser", "kept"])
@pytest.mark.parametrize("method", ["choose", "choose_async"])
def test_a_method_wants_all_or_nothing(play, method, root):
    async def act(c, orb):
        choose = getattr(orb.object(root), method)
        assert await choose("atomic", "k", 5, 6) == ["5", "6"]
        with pytest.raises(RemoteError, match="too much"):
            await choose("atomic", "k", 1, 1000)
        assert await choose("alternative", "k", 1000, 1) == ["b"]
        assert await choose("some", "k", 1000, 1) == ["b"]
        assert await both(orb) == [5, 8]

    play(act)


@pytest.mark.parametrize("control", ["centralized", "distributed"])
def test_a_client_wants_all_or_nothing(play, control):
    async def act(c, orb):
        def ask(one, two):
            return orb.object("a").add.request("k", one), orb.object("b").add.request("k", two)

        assert await orb.atomic(*ask(5, 6), control=control) == [5, 6]
        with pytest.raises(RemoteError, match="too much"):
            await orb.atomic(*ask(1, 1000), control=control)
        assert await both(orb) == [5, 6]

    play(act)


async def until(holds, why):
    for _ in range(3000):
        if holds():
            return
        await asyncio.sleep(0.02)
    pytest.fail(why)


class SlowDisk:
    """What tran of a node is told is on disk when it is let go."""

    def __init__(self, node):
        journal = node.disk.journals[f"tran@{node.name}"]
        self._real, journal.committed = journal.committed, self._later
        self._gate = asyncio.Event()

    def _later(self, position):
        return asyncio.ensure_future(self._wait(position))

    async def _wait(self, position):
        await self._gate.wait()
        await self._real(position)

    def go_on(self):
        self._gate.set()


async def transfer(orb, end):
    async with orb.transaction():
        await orb.object("b").add("k", 5)
        await end.wait()


def test_a_state_leaves_when_its_outcomes_are_on_disk(play, tmp_path):
    """Else it is on another disk, and after a crash of all nobody knows that it was committed (seed 1486)."""

    async def act(c, orb):
        await c.nodes["n3"].drain()
        await c.nodes["n3"].stop()
        end = asyncio.Event()
        moving = asyncio.ensure_future(transfer(orb, end))  # until it is decided, the state stays where it is
        await until(lambda: c.nodes["n1"].object("b@n1").rows, "nothing was performed")
        c.nodes["n3"] = joiner = Node(c.config, "n3", tmp_path)
        await joiner.start()
        await until(lambda: joiner.member and list(joiner.life.com.unready) == ["b@n3"], "n3 got no states")
        slow = [SlowDisk(c.nodes[name]) for name in ("n1", "n2")]
        end.set()
        await until(lambda: all(c.nodes[n].life.com.trans.outcomes for n in ("n1", "n2")), "nobody decided")
        await asyncio.sleep(1.0)
        assert "b@n3" in joiner.life.com.unready, "it has the state, and no disk has the outcome"
        for each in slow:
            each.go_on()
        await until(lambda: not joiner.life.com.unready, "n3 gets no state")
        assert joiner.object("b@n3").rows == {"k": 5}
        await moving

    play(act)


def test_a_snapshot_is_written_when_its_outcomes_are_on_disk(play, monkeypatch):
    """The journal whose place it takes has the outcomes, too."""
    written, real = [], snapshots.write
    monkeypatch.setattr(journaling, "RECORDS", 0)
    monkeypatch.setattr(snapshots, "write", lambda *a: (written.append(a[2]), real(*a)))

    async def act(c, orb):
        slow = SlowDisk(c.nodes["n1"])
        end = asyncio.Event()
        end.set()
        moving = asyncio.ensure_future(transfer(orb, end))
        await until(lambda: "b@n2" in written, "n2 writes no snapshot")
        await asyncio.sleep(0.5)
        assert "b@n1" not in written
        slow.go_on()
        await until(lambda: "b@n1" in written, "n1 writes no snapshot")
        await moving

    play(act)
