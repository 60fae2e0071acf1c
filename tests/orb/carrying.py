"""Nodes that give and fetch states over real gRPC servers on loopback, without a com layer; and streams that fail."""

import asyncio
from contextlib import asynccontextmanager

import grpc.aio
import pytest

from framework.ids import Node, Replica
from framework.net import options
from framework.net.peers import NotReached, Peers
from framework.net.security import Credentials, Tls, listen
from framework.net.wire.com_pb2 import FetchChunk, FetchPiece
from framework.orb.moving import Donor, Fetcher
from framework.orb.moving.captures import Held
from tests.orb.secured import make_certs

WAIT = 60.0
N1, N2, N3 = Node("n1"), Node("n2"), Node("n3")
AT = Replica("thing@n3")  # the joiner's
BYTES = [bytes([n % 256]) * 100_000 for n in range(210)]  # 21 MB


class Driver:
    """Nothing of the com layer."""

    def arrived(self, peer, data): ...
    def connected(self, peer): ...
    def writable(self, peer): ...
    def heard(self, peer): ...

    def on_the_way(self, peer):
        return 0


class Member:
    def __init__(self, name, addresses, tls=None, **options):
        self.name = Node(name)
        self.addresses = addresses
        self.tls = tls
        self.peers = Peers(self.name, addresses, Driver(), credentials=Credentials(tls))
        self.asked = []
        self.taken = 0
        self.state = lambda: Held(BYTES)
        self.donor = Donor(self.name, self.wanted, **options)
        self.peers.give = self.donor.give
        self.server = None

    def wanted(self, replica, to, life):
        """As a node whose com layer finds the moment at once."""
        self.asked.append((replica, to, life))
        state = self.state()
        if state is not None:
            self.taken += 1
            asyncio.get_running_loop().call_soon(
                lambda: self.donor.offer(replica, to, b"part of " + self.name.encode(), state)
            )

    async def serve(self):
        self.server = grpc.aio.server(options=options.server())
        self.peers.serve_on(self.server)
        assert listen(self.server, self.addresses[self.name], self.tls)
        await self.server.start()

    async def stop(self):
        self.donor.close()
        if self.server is not None:
            await self.server.stop(0)


@asynccontextmanager
async def three(ports, secured=None, **options):
    addresses = {Node(f"n{i + 1}"): f"127.0.0.1:{p}" for i, p in enumerate(ports)}
    tls = dict.fromkeys(addresses)
    if secured is not None:
        certs = make_certs(secured)
        tls = {n: Tls.read(certs / "ca.pem", certs / f"{n}.pem", certs / f"{n}.key") for n in addresses}
    members = [Member(n, addresses, tls[n], **options) for n in addresses]
    try:
        for m in members:
            await m.serve()
        yield members
    finally:
        for m in members:
            await m.stop()


class Wire:
    """Between a fetcher and its peers: notes the wishes, and spoils streams as it is told."""

    def __init__(self, member):
        self.fetch = member.peers.fetch
        self.wishes = []
        self.spoil = []  # for each stream in turn: a function of (number of the chunk, chunk)

    async def __call__(self, donor, wish):
        if not wish.done:
            self.wishes.append((donor, wish.ticket, wish.offset))
        spoil = self.spoil.pop(0) if self.spoil and not wish.done else lambda n, chunk: chunk
        n = 0
        stream = self.fetch(donor, wish)
        try:
            async for chunk in stream:
                yield await spoilt(spoil, n, chunk)
                n += 1
        finally:
            await stream.aclose()


async def spoilt(spoil, n, chunk):
    made = spoil(n, chunk)
    return await made if asyncio.iscoroutine(made) else made


def cut(at):
    def spoil(n, chunk):
        if n == at:
            raise NotReached("cut")
        return chunk

    return spoil


def damage(at):
    def spoil(n, chunk):
        if n != at:
            return chunk
        piece = chunk.piece
        return FetchChunk(piece=FetchPiece(data=b"?" + piece.data[1:], crc=piece.crc))

    return spoil


def fetcher(wire, **options):
    return Fetcher(N3, 1, wire, **{"silence": 20.0, **options})


async def fetched(fetch, donors=(N1, N2)):
    async with asyncio.timeout(WAIT):
        return await fetch.fetch(AT, donors)


def run(coroutine):
    return asyncio.run(coroutine)


async def refused(peers, wish, said, kind=NotReached):
    with pytest.raises(kind) as caught:
        async for _ in peers.fetch(N1, wish):
            pass
    assert said in str(caught.value)
