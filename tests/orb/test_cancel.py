"""Cancelling reaches the callee, where one replica performs the call; everywhere else it is carried through."""

import asyncio
from time import monotonic, sleep

import grpc
import pytest

from framework.errors import DeadlineExceeded
from framework.net.wire.orb_pb2 import InvokeRequest
from framework.net.wire.orb_pb2_grpc import GatewayStub
from framework.orb.client import connect
from tests.orb import held
from tests.orb.cluster import cluster

OBJECTS = """
[objects.held]
class = "tests.orb.held:Held"
[objects.outer]
class = "tests.orb.held:Outer"
on = ["n2"]
[objects.single]
class = "tests.orb.held:Held"
on = ["n2"]
[objects.far]
class = "tests.orb.held:Held"
on = ["n3"]
"""
AT = "single@n2"


@pytest.fixture
def play(ports, tmp_path):
    """Run a coroutine function with a cluster and a client of n1; whatever it does, the trace must be clean."""

    def run(act):
        async def whole():
            async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, asyncio.timeout(60), c.client("n1") as orb:
                try:
                    await act(c, orb)
                finally:
                    held.GATE.set()

        held.reset()
        asyncio.run(whole())

    return run


async def until(what, seconds=60.0):
    end = monotonic() + seconds
    while not what():
        assert monotonic() < end, f"in vain; seen: {held.SEEN}"
        await asyncio.sleep(0.01)


async def began(name="a"):
    await until(lambda: f"{name} began" in held.SEEN)


def quiet(c):
    """Nothing runs, nobody waits."""
    return not any(n.open() for n in c.nodes.values())


def nothing_kept(c):
    coms = [n.life.com for n in c.nodes.values()]
    return not any(s.calls for com in coms for s in com.calls.sessions.values()) and not any(
        n.sessions.total.count or com.calls._waiting or any(h._cancelled for h in com.hosts.values())
        for n, com in zip(c.nodes.values(), coms, strict=True)
    )


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_async_def_is_cancelled_and_undone(play):
    async def act(c, orb):
        task = asyncio.ensure_future(orb.object("single").hold("a"))
        await began()
        await cancelled(task)
        await until(lambda: "a cancelled" in held.SEEN and quiet(c))
        assert [h.log for h in c.objects("single")] == [[]]
        assert nothing_kept(c)

    play(act)


def test_a_time_out_of_the_caller_cancels(play):
    async def act(c, orb):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await orb.object("single").hold("a")
        await until(lambda: quiet(c) and nothing_kept(c))
        assert [h.log for h in c.objects("single")] == [[]]

    play(act)


def test_a_deadline_that_passes_cancels(play):
    async def act(c, orb):
        with pytest.raises(DeadlineExceeded):
            await orb.object("single").hold.with_(timeout=0.3)("a")
        await until(lambda: quiet(c) and nothing_kept(c))
        assert [h.log for h in c.objects("single")] == [[]]
        held.GATE.set()
        await orb.object("single").note("b")
        assert [h.log for h in c.objects("single")] == [["b"]]

    play(act)


def test_what_waits_in_the_queue_is_never_performed(play):
    async def act(c, orb):
        proxy = orb.object("single")
        first = asyncio.ensure_future(proxy.hold("a"))
        await began()
        second = asyncio.ensure_future(proxy.note("b"))
        third = asyncio.ensure_future(proxy.note("c"))
        await until(lambda: len(c.nodes["n2"].life.com.hosts[AT].order.entries) == 2)
        await cancelled(second)
        await until(lambda: c.nodes["n2"].life.com.hosts[AT]._cancelled)
        held.GATE.set()
        await asyncio.gather(first, third)
        assert c.nodes["n2"].object(AT).log == ["a", "c"] and "b began" not in held.SEEN
        assert nothing_kept(c)

    play(act)


def test_a_change_of_several_replicas_is_carried_through(play):
    async def act(c, orb):
        task = asyncio.ensure_future(orb.object("held").hold("a"))
        await until(lambda: held.SEEN.count("a began") == 3)
        await cancelled(task)
        await orb.look("status")  # the node has heard of it
        assert "a cancelled" not in held.SEEN
        held.GATE.set()
        await until(lambda: quiet(c))
        assert [h.log for h in c.objects("held")] == [["a"]] * 3 and "a cancelled" not in held.SEEN
        assert nothing_kept(c)

    play(act)


def test_a_read_is_cancelled(play):
    async def act(c, orb):
        task = asyncio.ensure_future(orb.object("single").watch("a"))
        await began()
        await cancelled(task)
        await until(lambda: "a cancelled" in held.SEEN and quiet(c))
        await orb.object("single").note("b")  # it is not in the way of others
        assert nothing_kept(c)

    play(act)


@pytest.mark.parametrize("method", ["call", "call_async"])
def test_what_it_has_called_is_cancelled_with_it(play, method):
    async def act(c, orb):
        task = asyncio.ensure_future(getattr(orb.object("outer"), method)("far"))
        await began("inner")
        await cancelled(task)
        await until(lambda: "inner cancelled" in held.SEEN and quiet(c))
        assert [o.log for o in c.objects("outer") + c.objects("far")] == [[]] * 2
        assert nothing_kept(c)

    play(act)


def test_a_nested_change_of_several_replicas_is_undone_with_its_caller(play):
    async def act(c, orb):
        task = asyncio.ensure_future(orb.object("outer").call_all())
        await until(lambda: held.SEEN.count("inner began") == 3)
        await cancelled(task)
        await until(lambda: not c.nodes["n2"].object("outer@n2").log)  # undone; the callee is part of it
        held.GATE.set()
        await until(lambda: quiet(c))
        assert [h.log for h in c.objects("held")] == [[]] * 3
        assert nothing_kept(c)

    play(act)


def test_a_def_is_cancelled_at_its_next_call(play):
    async def act(c, orb):
        task = asyncio.ensure_future(orb.object("outer").work_then_call())
        await began("work")
        await cancelled(task)
        await until(lambda: any(p.cancelled for p in c.nodes["n2"].life.dispatch._running.values()))
        held.GATE.set()
        await until(lambda: quiet(c))
        assert "inner began" not in held.SEEN and c.nodes["n2"].object("outer@n2").log == []

    play(act)


def test_a_method_may_give_up_a_call(play):
    async def act(c, orb):
        outer = orb.object("outer")
        assert await outer.impatient("far") == "late"
        assert c.nodes["n2"].object("outer@n2").log == ["late"] and c.nodes["n3"].object("far@n3").log == []
        await until(lambda: quiet(c) and nothing_kept(c))

    play(act)


def test_the_future_of_a_thread(play):
    async def act(c, orb):
        def in_thread():
            with connect(c.config.address("n1")) as orb:
                future = orb.object("single").hold.submit("a")
                end = monotonic() + 60
                while "a began" not in held.SEEN and monotonic() < end:
                    sleep(0.01)
                assert future.cancel() and future.cancelled()
                while "a cancelled" not in held.SEEN and monotonic() < end:
                    sleep(0.01)

        await asyncio.to_thread(in_thread)
        assert held.SEEN == ["a began", "a cancelled"]
        await until(lambda: quiet(c) and nothing_kept(c))

    play(act)


@pytest.mark.parametrize("with_id", [False, True])
def test_an_rpc_that_is_cancelled(play, with_id):
    """With an id its caller may repeat it: then it goes on."""

    async def act(c, orb):
        request = InvokeRequest(object="single", method="hold", args_json='["a"]')
        if with_id:
            request.id.client, request.id.number = "me", 1
        async with grpc.aio.insecure_channel(c.config.address("n1")) as channel:
            rpc = GatewayStub(channel).Invoke(request, timeout=60)
            await began()
            rpc.cancel()
            await until(lambda: not c.nodes["n1"].gateway.in_flight)
            if with_id:
                held.GATE.set()
                await GatewayStub(channel).Invoke(request, timeout=60)
        await until(lambda: quiet(c))
        assert c.nodes["n2"].object("single@n2").log == (["a"] if with_id else [])
        assert ("a cancelled" in held.SEEN) is not with_id

    play(act)
