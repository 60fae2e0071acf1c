"""Streams on which nothing is said, and streams that end without a word."""

import asyncio
import logging
from contextlib import asynccontextmanager

import grpc
import grpc.aio

from framework.net import options
from framework.net.peers import hello
from framework.net.wire.com_pb2_grpc import LinkStub
from tests.net.test_peers import Member


@asynccontextmanager
async def alone(ports):
    """Only n2 is there, so that nobody but the test speaks for n1."""
    first, second = ports(2)
    member = Member("n2", {"n1": f"127.0.0.1:{first}", "n2": f"127.0.0.1:{second}"})
    await member.serve()
    try:
        yield member
    finally:
        await member.peers.stop()
        await member.server.stop(0)


def test_an_idle_stream_is_kept_however_often_its_keepalive_asks(ports):
    """A server that finds pings too many sends the client away: with gRPC's own limits, after the third."""
    quick = {**dict(options.channel()), "grpc.keepalive_time_ms": 1100}

    async def run():
        async with (
            alone(ports) as member,
            grpc.aio.insecure_channel(member.addresses["n2"], options=list(quick.items())) as channel,
        ):
            call = LinkStub(channel).Exchange(metadata=hello("n1"))
            async with asyncio.timeout(60):
                await call.initial_metadata()
            await asyncio.sleep(6)  # five pings
            assert not call.done(), await call.details()
            call.cancel()

    asyncio.run(run())


def test_who_accepted_a_stream_tells_that_its_peer_is_lost(ports, caplog):
    caplog.set_level(logging.INFO)

    async def run():
        async with alone(ports) as member, asyncio.timeout(60):
            async with grpc.aio.insecure_channel(member.addresses["n2"]) as channel:
                call = LinkStub(channel).Exchange(metadata=hello("n1"))
                await call.initial_metadata()
            while not any(text.startswith("n1 is lost: ") for text in caplog.messages):
                await asyncio.sleep(0.02)

    asyncio.run(run())


SLOW = 0.7  # seconds until somebody takes up what comes: longer than gRPC waits between two attempts


def test_a_peer_that_is_slow_to_accept_is_reached(ports):
    """gRPC's shortest time between two attempts is also the time that one attempt has."""

    async def run():
        async with alone(ports) as member, asyncio.timeout(60):
            host, port = member.addresses["n2"].split(":")

            async def late(reader, writer):
                await asyncio.sleep(SLOW)
                there = await asyncio.open_connection(host, port)
                await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

            server = await asyncio.start_server(late, host)
            far = "{}:{}".format(*server.sockets[0].getsockname())
            async with server, grpc.aio.insecure_channel(far, options=options.channel()) as channel:
                call = LinkStub(channel).Exchange(metadata=hello("n1"))
                await call.initial_metadata()
                assert not call.done(), await call.details()
                call.cancel()

    asyncio.run(run())


async def copy(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
    finally:
        writer.close()
