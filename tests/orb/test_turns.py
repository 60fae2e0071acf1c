"""Compatible instances overlap wherever they wait; what each does between two waits is whole."""

import asyncio
import sys
import threading
import time

import pytest

from framework import Object, RemoteError, conflict_matrix, method
from tests.orb.cluster import cluster

OBJECTS = '[objects.busy]\nclass = "tests.orb.test_turns:Busy"\non = ["n1"]\n'


@conflict_matrix(
    alone="*",
    meet="alone",
    meet_and_fail="alone",
    count="alone",
    count_async="alone",
    look="alone",
    total="alone",
)
class Busy(Object):
    """All but ``alone`` is compatible."""

    meeting: threading.Barrier  # set by a test: all who wait here are in a method at the same time
    inside = 0  # instances in a method that conflicts with everything
    most_inside = 0

    def __init__(self) -> None:
        self.n = 0
        self.seen: dict[str, int] = {}

    @method
    def meet(self, name: str) -> None:
        """Blocks in something that is no call of ours; changes state before and after it."""
        self.seen[name] = self.seen.get(name, 0) + 1
        self.n += 1
        type(self).meeting.wait(60)
        count = self.n
        time.sleep(0)
        self.n = count + 1

    @method
    def meet_and_fail(self, name: str) -> None:
        self.seen[name] = 1
        self.n += 1000
        type(self).meeting.wait(60)
        self.n += 1000
        raise RuntimeError("on purpose")

    @method(readonly=True)
    def look(self) -> int:
        type(self).meeting.wait(60)
        return self.n

    @method
    def count(self, times: int) -> None:
        """A read and a write with much in between, all of it Python."""
        for _ in range(times):
            before = self.n
            for _ in range(50):
                pass
            self.n = before + 1

    @method
    async def count_async(self, pauses: int) -> None:
        for _ in range(pauses):
            self.n += 1
            await asyncio.sleep(0.001)

    @method
    def alone(self) -> None:
        cls = type(self)
        cls.inside += 1
        cls.most_inside = max(cls.most_inside, cls.inside)
        time.sleep(0.03)
        cls.inside -= 1

    @method(readonly=True)
    def total(self) -> int:
        return self.n


@pytest.fixture
def play(ports, tmp_path):
    def run(act):
        async def whole():
            async with cluster(ports(1), tmp_path, objects=OBJECTS) as c, asyncio.timeout(60), c.client() as orb:
                await act(c.objects("busy")[0], orb.object(Busy, "busy"))

        asyncio.run(whole())

    return run


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing counts as blocked")
def test_methods_that_block_overlap(play):
    """Each waits until all six are inside: were they performed one after the other, the barrier would break."""
    Busy.meeting = threading.Barrier(6)

    async def act(busy, proxy):
        await asyncio.gather(*(proxy.meet.submit(f"c{i}") for i in range(6)))
        assert busy.n == 12
        assert busy.seen == {f"c{i}": 1 for i in range(6)}

    play(act)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing counts as blocked")
def test_one_that_raises_takes_back_its_own_changes_only(play):
    Busy.meeting = threading.Barrier(3)

    async def act(busy, proxy):
        work = [proxy.meet.submit("a"), proxy.meet_and_fail.submit("b"), proxy.meet.submit("c")]
        results = await asyncio.gather(*work, return_exceptions=True)
        assert [type(r) for r in results] == [type(None), RemoteError, type(None)]
        assert (busy.n, busy.seen) == (4, {"a": 1, "c": 1})

    play(act)


def test_readonly_methods_overlap(play):
    Busy.meeting = threading.Barrier(5)

    async def act(busy, proxy):
        assert await asyncio.gather(*(proxy.look.submit() for _ in range(5))) == [0] * 5

    play(act)


@pytest.fixture
def restless():
    """Threads are switched at every opportunity."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def test_no_change_is_lost(play, restless):
    async def act(busy, proxy):
        mixed = [proxy.count.submit(200) if i % 2 else proxy.count_async.submit(5) for i in range(60)]
        await asyncio.gather(*mixed)
        assert await proxy.total() == 30 * 200 + 30 * 5

    play(act)


def test_conflicting_ones_never_overlap(play):
    Busy.inside = Busy.most_inside = 0

    async def act(busy, proxy):
        await asyncio.gather(*(proxy.alone.submit() for _ in range(8)))
        assert Busy.most_inside == 1

    play(act)
