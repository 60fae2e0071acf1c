"""More comes than the nodes can do: clients are held back before queues and memory grow (protocol.md §8.5).

Nothing is lost, nobody is taken for dead because of it, and who asks how the node is gets an answer.
"""

import asyncio

import pytest

from framework import Object, method
from framework.errors import DeadlineExceeded, ResourceExhausted
from framework.ids import Replica
from framework.orb import calling
from framework.orb.served import AT_ONCE

from .cluster import cluster

MOST = 20
CALLS = 300
OBJECTS = f"""
[objects.door]
class = "tests.orb.test_crowded:Door"
[objects.counter]
class = "objects.counter:Counter"
[serve]
waiting = {MOST}
"""

gate = asyncio.Event()  # a test sets its own


class Door(Object):
    """One after the other."""

    def __init__(self) -> None:
        self.through = 0

    @method
    async def knock(self, luggage: bytes = b"") -> int:
        await gate.wait()
        self.through += 1
        return self.through


@pytest.fixture(name="play")
def _play(ports, tmp_path, monkeypatch):
    def run(act):
        async def whole():
            monkeypatch.setitem(globals(), "gate", asyncio.Event())
            async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, asyncio.timeout(60):
                await act(c)

        asyncio.run(whole())

    return run


def waiting(c):
    """At each node, of requests that have not been performed."""
    return [len(n.life.com.hosts[Replica(f"door@{name}")].order.entries) for name, n in c.nodes.items()]


def test_what_waits_is_bounded_and_nothing_is_lost(play):
    async def act(c):
        async with c.client("n1", "n2") as ann, c.client("n1", "n3") as bob, c.client("n2", "n1") as eve:
            clients = (ann, bob, eve)
            homes = [await orb._home.reached() or orb._home.node for orb in clients]
            calls = [orb.object("door").knock.submit() for _ in range(CALLS) for orb in clients]
            most = 0
            for _ in range(40):  # longer than a client waits for a sign of its node
                await asyncio.sleep(0.05)
                most = max(most, *waiting(c))
            assert MOST < most <= MOST + len(clients) * AT_ONCE
            assert [orb._home.node for orb in clients] == homes  # none of them has gone elsewhere
            async with c.client("n1") as other:
                assert (await other._home.look("status"))["node"] == "n1"
            gate.set()
            assert sorted(await asyncio.gather(*calls)) == list(range(1, 3 * CALLS + 1))
        assert [door.through for door in c.objects("door")] == 3 * [3 * CALLS]

    play(act)


def test_who_is_held_back_for_too_long_is_told(play):
    async def act(c):
        async with c.client("n1", timeout=120.0) as ann, c.client("n1") as bob:
            calls = [ann.object("door").knock.submit() for _ in range(CALLS)]
            while max(waiting(c)) <= MOST:
                await asyncio.sleep(0.01)
            with pytest.raises(DeadlineExceeded):
                await bob.object("door").knock.with_(timeout=0.5)()
            with pytest.raises(ResourceExhausted, match="n1 has too much to do"):
                await c.nodes["n1"].gateway.room(0.2)
            gate.set()
            await asyncio.gather(*calls)
            assert await c.nodes["n1"].gateway.room(0.2) > 0

    play(act)


def test_who_has_begun_a_transaction_can_end_it(play):
    """Others may wait for what it holds: it would stay crowded."""

    async def act(c):
        async with c.client("n1", timeout=120.0) as ann, c.client("n1") as bob, c.client("n1") as eve:
            async with asyncio.timeout(60), bob.transaction():
                await bob.object("counter").increment()
                calls = [ann.object("door").knock.submit() for _ in range(CALLS)]
                while max(waiting(c)) <= MOST:
                    await asyncio.sleep(0.01)
                for _ in range(3):
                    await bob.object("counter").increment()
                await eve.object("counter").decrement.oneway()  # is taken, and then no more of hers
                await asyncio.sleep(0.1)
                with pytest.raises(DeadlineExceeded):
                    await eve.object("counter").show.with_(timeout=0.3)()
            gate.set()
            await asyncio.gather(*calls)
            assert await bob.object("counter").show() == 3

    play(act)


def test_what_nobody_waits_for_any_more_is_not_sent(play):
    """A node that has much to do does not do what is too late as well."""

    async def act(c):
        async with c.client("n1", timeout=120.0) as ann, c.client("n1", timeout=50.0) as bob:
            first = [ann.object("door").knock.submit() for _ in range(2 * MOST)]
            while max(waiting(c)) <= MOST:
                await asyncio.sleep(0.01)
            bobs = bob.object("door").knock
            large = []
            for _ in range(2):  # what comes first is more than the stream takes; the rest waits behind it
                large += [bobs.with_(timeout=0.5).submit(bytes(40_000)) for _ in range(300)]
                await asyncio.sleep(0.1)
            late = await asyncio.gather(*large, return_exceptions=True)
            assert {type(error) for error in late} == {DeadlineExceeded}
            gate.set()
            await asyncio.gather(*first)
            assert await bobs() <= 2 * MOST + 300 + 1

    play(act)


def test_a_client_with_too_many_calls_begins_no_more(play, monkeypatch):
    monkeypatch.setattr(calling, "MOST_CALLS", 5)

    async def act(c):
        async with c.client("n1") as ann:
            calls = [ann.object("door").knock.submit() for _ in range(5)]
            with pytest.raises(ResourceExhausted, match=r"5 calls of c-\w+ are not answered"):
                await ann.object("door").knock()
            gate.set()
            await asyncio.gather(*calls)
            assert await ann.object("door").knock() == 6

    play(act)
