"""A client whose stream breaks, whose node stops; and callers that are not clients at all."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import msgspec
import pytest

from framework.com.events import Session
from framework.errors import Unavailable
from framework.net.wire.orb_pb2 import Packet
from framework.net.wire.orb_pb2_grpc import SessionStub
from framework.orb.calling import Pending
from framework.orb.going import MOVING
from framework.orb.home import SILENT, SLOWEST, Home
from framework.orb.messages import Act, Ask, Call, Hello, Refused, Welcome, encode, to_client
from objects.counter import Counter
from tests.orb.cluster import cluster


@asynccontextmanager
async def stranger(c):
    async with grpc.aio.insecure_channel(c.config.address("n1")) as channel:
        yield SessionStub(channel).Open()


def test_a_client_comes_back_to_the_same_node(ports, tmp_path):
    async def run():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60), c.client("n1") as orb:
            counter = orb.object(Counter, "counter")
            for _ in range(5):
                work = [counter.increment.submit(1) for _ in range(20)]
                await asyncio.sleep(0)
                c.nodes["n1"].sessions.close()  # every stream of a client is closed
                await asyncio.gather(*work)
            assert await counter.show() == 100

    asyncio.run(run())


def test_a_client_moves_on_and_takes_its_context_along(ports, tmp_path):
    """Session order survives: what it did at n1 is there for what it does at n2."""

    async def run():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60), c.client("n1", "n2") as orb:
            counter = orb.object(Counter, "counter")
            await asyncio.gather(*(counter.increment.submit(1) for _ in range(30)))
            node = c.nodes["n1"]
            node.sessions.draining = True  # as SIGTERM does
            work = [counter.increment.submit(1) for _ in range(30)]
            await asyncio.gather(*work)
            assert orb.home == "n2"
            assert await counter.show() == 60

    asyncio.run(run())


def test_clients_find_another_home_before_their_node_takes_no_more_calls(ports, tmp_path, monkeypatch):
    """Make before break: no call is refused, so none waits for a new connection. One in the middle of a transaction,
    which is bound to its node, ends it first."""
    refused = []
    monkeypatch.setattr(Home, "_refused", lambda self, message: refused.append(message))

    async def run():
        async with (
            cluster(ports(3), tmp_path) as c,
            asyncio.timeout(60),
            c.client("n1", "n2") as ann,
            c.client("n1", "n3") as bob,
        ):
            counter = ann.object(Counter, "counter")
            await counter.increment(1)
            called = 3
            async with bob.transaction():
                await bob.object(Counter, "counter").increment(1)
                draining = asyncio.ensure_future(c.nodes["n1"].drain())
                while ann.home == "n1":
                    await asyncio.gather(*(counter.increment.submit(1) for _ in range(5)))
                    called += 5
                assert bob.home == "n1"
                await bob.object(Counter, "counter").increment(1)
            await draining
            assert (ann.home, bob.home) == ("n2", "n3")
            assert await counter.show() == called

    asyncio.run(run())
    assert refused == []


def test_a_client_with_nowhere_to_go_stays_until_its_node_stops(ports, tmp_path):
    async def run():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60), c.client("n1", timeout=1.0) as orb:
            counter = orb.object(Counter, "counter")
            draining = asyncio.ensure_future(c.nodes["n1"].drain())
            await asyncio.sleep(MOVING / 3)
            await counter.increment(1)
            await draining
            with pytest.raises(Unavailable, match="n1 is stopping"):
                await counter.increment(1)

    asyncio.run(run())


def test_a_client_that_finds_no_other_home_goes_on_where_it_is(ports, tmp_path):
    """n2 is there, but is about to stop as well."""

    async def run():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60), c.client("n1", "n2") as orb:
            counter = orb.object(Counter, "counter")
            c.nodes["n2"].sessions.part()
            assert c.nodes["n1"].sessions.part()
            for _ in range(20):
                await counter.increment(1)
                await asyncio.sleep(0.005)
            assert orb.home == "n1"

    asyncio.run(run())


@pytest.mark.parametrize(
    "first", [b"", b"garbage", encode(Hello("a b")), encode(Hello("")), encode(Call(1, Act("sync", ()), 0.0, None, 0))]
)
def test_who_is_no_client_is_refused(ports, tmp_path, first):
    async def run():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60), stranger(c) as stream:
            await stream.write(Packet(messages=[first]))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stream.read()
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    asyncio.run(run())


ASK = Ask("counter", "increment", b"\x91\x01")


@pytest.mark.parametrize(
    "call",
    [
        Call(-1, Act("sync", (ASK,)), 0.0, None, 0),
        Call(1, Act("sync", (ASK,)), 0.0, None, 5),
        Call(1 << 60, Act("sync", (ASK,)), 0.0, None, 0),
        Call(1, Act("sync", ()), 0.0, None, 0),
        Call(1, Act("sync", (ASK, ASK)), 0.0, None, 0),
        Call(1, Act("sync", (Ask("counter", "increment", b"\xc1"),)), 0.0, None, 0),
        Call(1, Act("sync", (Ask("counter", "increment", b"\x91\x01", to=("counter@n9",)),)), 0.0, None, 0),
        Call(1, Act("sync", (ASK,)), 0.0, None, 0, (Session((("x@n1", (("n1", 1),)),), 0, "?"),)),
        Call(1, Act("sync", (ASK,)), 0.0, None, 0, (Session((("counter@n2", (("n9", 1),)),), 0, "?"),)),
        Call(1, Act("sync", (ASK,)), 0.0, None, 0, (Session((), 1 << 60, "?"),)),
    ],
)
def test_a_call_that_cannot_be_meant_hurts_nobody_else(ports, tmp_path, call):
    async def run():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60), c.client("n1") as orb:
            async with stranger(c) as stream:
                await stream.write(Packet(messages=[encode(Hello("odd-one"))]))
                (first,) = (await stream.read()).messages
                welcome = to_client(first)
                assert isinstance(welcome, Welcome)
                own = tuple(msgspec.structs.replace(s, formation=welcome.formation) for s in call.sessions)
                await stream.write(Packet(messages=[encode(msgspec.structs.replace(call, sessions=own))]))
                (second,) = (await stream.read()).messages
                assert isinstance(to_client(second), Refused)
            await orb.object(Counter, "counter").increment(1)
            assert all(line.lost == 0 for node in c.nodes.values() for line in node.peers.lines.values())

    asyncio.run(run())


def test_a_node_that_is_busy_with_a_large_call_is_not_left():
    """What was asked stands behind it; else a large call would be repeated at one node after the other."""

    async def run():
        home = Home(["127.0.0.1:1"])
        try:
            for size, patience in ((100, SILENT), (32 << 20, SILENT + 32 * (1 << 20) / SLOWEST)):
                act = Act("sync", (Ask("db", "execute", bytes(size)),))
                home._calls = {1: Pending(act, None, 60.0)}
                home._calls[1].sent = home.ready = True
                home._move.clear()
                home._pinged_at = 100.0
                home._watch(100.0 + patience - 0.01)
                assert not home._move.is_set()
                home._watch(100.0 + patience + 0.01)
                assert home._move.is_set()
        finally:
            home.ready = False
            await home.close()

    asyncio.run(run())
