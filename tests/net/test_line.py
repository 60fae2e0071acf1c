"""How a stream that is over is told: what gRPC or the peer did is no fault of this node, all else is."""

import asyncio

import grpc.aio
import pytest

from framework.ids import Node
from framework.net.line import Line


class Nobody:
    def arrived(self, peer, data):
        raise AssertionError("nothing arrives")

    def connected(self, peer): ...

    def writable(self, peer): ...
    def heard(self, peer): ...

    def on_the_way(self, peer):
        return 0


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (grpc.aio.UsageError("RPC already finished."), False),
        (asyncio.InvalidStateError("RPC already finished."), False),
        (grpc.aio.UsageError("two writers"), True),
        (asyncio.InvalidStateError("a future of ours"), True),
        (grpc.aio.InternalError("who knows"), True),
        (ZeroDivisionError("in the com layer"), True),
    ],
)
def test_whose_fault_it_was(error, ours, caplog):
    async def read():
        raise error

    async def write(data): ...

    async def run():
        return await Line(Node("n2"), Nobody()).carry(read, write)

    assert str(error) in asyncio.run(run())
    assert ("a fault of this node" in caplog.text) == ours
