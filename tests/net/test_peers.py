"""Two com layers over a real gRPC stream: frames cross, streams break and are resumed, wrong hellos are refused."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest
from tenacity import wait_fixed

from framework.com.core import Com
from framework.com.events import Arrived, Completed, Connected, Deliver, Received, Submit, Transmit, Wake, Writable
from framework.com.events import Outgoing as Part
from framework.com.receipt import CREC
from framework.com.view import Directory, Placement, View
from framework.footprint import Footprint, Relation
from framework.ids import Node
from framework.net import options, peers
from framework.net.peers import Peers, hello
from framework.net.wire.com_pb2 import Frame
from framework.net.wire.com_pb2_grpc import LinkStub

WAIT = 60.0


class Member:
    """A node that answers every request at once."""

    def __init__(self, name, addresses):
        self.name = Node(name)
        names = sorted(addresses)
        directory = Directory(View(1, tuple(map(Node, names))), [Placement("echo", Relation([("e", "e")]), names)])
        self.com = Com(self.name, directory)
        self.addresses = {Node(n): a for n, a in addresses.items()}
        self.peers = Peers(self.name, self.addresses, self)
        self.performed = []
        self.received = asyncio.Queue()
        self.server = None

    def feed(self, event):
        for effect in self.com.step(event, asyncio.get_running_loop().time()):
            match effect:
                case Wake():
                    self.peers.lines[effect.peer].wake()
                case Transmit():
                    self.peers.lines[effect.peer].transmit(effect.data)
                case Deliver():
                    self.performed.append(effect.request.args)
                    asyncio.get_running_loop().call_soon(self.feed, Completed(effect.sid, True, effect.request.args))
                case Received():
                    self.received.put_nowait(effect)

    def arrived(self, peer, data):
        self.feed(Arrived(peer, data))

    def connected(self, peer):
        self.feed(Connected(peer))

    def heard(self, peer):
        pass

    def writable(self, peer):
        self.feed(Writable(peer))

    def on_the_way(self, peer):
        return 0

    async def serve(self):
        self.server = grpc.aio.server(options=options.server())
        self.peers.serve_on(self.server)
        assert self.server.add_insecure_port(self.addresses[self.name])
        await self.server.start()

    async def call(self, number, args):
        replicas = self.com.directory.find("echo").replicas
        part = Part("echo", Footprint("e"), args, replicas)
        self.feed(Submit("client", number, "sync", "mcast", (part,), CREC))
        return await asyncio.wait_for(self.received.get(), WAIT)


@asynccontextmanager
async def pair(ports):
    addresses = {"n1": f"127.0.0.1:{ports[0]}", "n2": f"127.0.0.1:{ports[1]}"}
    members = [Member(n, addresses) for n in addresses]
    try:
        for m in members:
            await m.serve()
            m.peers.start()
        yield members
    finally:
        for m in members:
            await m.peers.stop()
            await m.server.stop(0)


async def until(condition):
    async with asyncio.timeout(WAIT):
        while not condition():
            await asyncio.sleep(0.005)


def test_requests_cross_and_are_answered(ports):
    async def run():
        async with pair(ports(2)) as (a, b):
            for number in range(1, 4):
                got = await a.call(number, b"%d" % number)
                assert got.complete and len(got.responses) == 2
            assert a.performed == b.performed == [b"1", b"2", b"3"]

    asyncio.run(run())


def test_a_broken_stream_is_resumed_from_the_first_unacknowledged_frame(ports, caplog):
    async def run():
        async with pair(ports(2)) as (a, b):
            await a.call(1, b"1")
            await b.server.stop(0)
            await until(lambda: not a.peers.up(Node("n2")))
            waiting = asyncio.ensure_future(a.call(2, b"2"))
            await b.serve()
            assert (await waiting).complete
            assert b.performed == [b"1", b"2"]

    asyncio.run(run())
    told = [r.getMessage() for r in caplog.records]
    assert any(t.startswith("n2 is lost") for t in told)


def test_a_peer_that_comes_later_is_found(ports):
    async def run():
        first, second = ports(2)
        addresses = {"n1": f"127.0.0.1:{first}", "n2": f"127.0.0.1:{second}"}
        a, b = Member("n1", addresses), Member("n2", addresses)
        try:
            await a.serve()
            a.peers.start()
            waiting = asyncio.ensure_future(a.call(1, b"1"))
            await asyncio.sleep(0)
            await b.serve()
            assert (await waiting).complete
        finally:
            await a.peers.stop()
            for m in (a, b):
                await m.server.stop(0)

    asyncio.run(run())


@pytest.mark.parametrize(("who", "fault"), [("x", "not a peer"), ("n3", "dials")])
def test_a_wrong_hello_is_refused(ports, who, fault):
    async def run():
        numbers = ports(3)
        addresses = {f"n{i + 1}": f"127.0.0.1:{p}" for i, p in enumerate(numbers)}
        b = Member("n2", addresses)
        await b.serve()
        try:
            async with grpc.aio.insecure_channel(addresses["n2"]) as channel:
                call = LinkStub(channel).Exchange(metadata=hello(Node(who)))
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await asyncio.wait_for(call.read(), WAIT)
                assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
                assert fault in caught.value.details()
        finally:
            await b.server.stop(0)

    asyncio.run(run())


def test_garbage_ends_the_stream_and_nothing_else(ports):
    async def run():
        async with pair(ports(2)) as (a, b):
            await a.call(1, b"1")
            async with grpc.aio.insecure_channel(b.addresses[Node("n2")]) as channel:
                call = LinkStub(channel).Exchange(metadata=hello(Node("n1")))
                await call.write(Frame(data=b"garbage"))
                async with asyncio.timeout(WAIT):
                    while await call.read() is not grpc.aio.EOF:
                        pass
            assert (await a.call(2, b"2")).complete

    asyncio.run(run())


def test_a_node_that_starts_is_dialled_at_once(ports, monkeypatch):
    """However long the pause between two attempts is by then."""
    monkeypatch.setattr(peers, "_BACKOFF", wait_fixed(10 * WAIT))

    async def run():
        addresses = {f"n{i + 1}": f"127.0.0.1:{p}" for i, p in enumerate(ports(2))}
        a, b = Member("n1", addresses), Member("n2", addresses)
        await a.serve()
        a.peers.start()
        await asyncio.sleep(0.5)  # the first attempt has failed
        await b.serve()
        b.peers.start()
        try:
            async with asyncio.timeout(WAIT):
                while not (a.peers.up("n2") and b.peers.up("n1")):
                    await asyncio.sleep(0.01)
        finally:
            for member in (a, b):
                await member.peers.stop()
                await member.server.stop(0)

    asyncio.run(run())
