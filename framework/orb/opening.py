"""A client's stream to a node: how it is opened, and how what it stood on is closed."""

import asyncio
from typing import Any, NamedTuple

import grpc
import grpc.aio

from framework.errors import BadMessage
from framework.net.security import Credentials
from framework.net.wire.orb_pb2 import Packet
from framework.net.wire.orb_pb2_grpc import SessionStub
from framework.orb.messages import Hello, Stay, Welcome, encode, to_client


class NotOpened(Exception):
    """This node cannot be had; ``error`` is why."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(detail(error))
        self.error = error


class Opened(NamedTuple):
    address: str
    channel: Any
    stream: Any
    stay: Stay
    max_message: int
    why: str  # it takes no calls now; empty: it does


async def open_session(credentials: Credentials, address: str, client: str, patience: float) -> Opened:
    """The node has said Welcome. Whoever gets this closes the channel."""
    channel = credentials.channel(address)
    try:
        stream = SessionStub(channel).Open(metadata=credentials.metadata)
        async with asyncio.timeout(patience):
            await stream.write(Packet(messages=[encode(Hello(client))]))
            packet = await stream.read()
        welcome = to_client(packet.messages[0]) if packet is not grpc.aio.EOF else None
        if not isinstance(welcome, Welcome):
            raise BadMessage(f"{address} does not say Welcome")
        return Opened(address, channel, stream, welcome.stay, welcome.max_message, welcome.why)
    except (grpc.aio.AioRpcError, TimeoutError, BadMessage, asyncio.InvalidStateError) as error:
        await channel.close()
        raise NotOpened(error) from None
    except BaseException:
        await channel.close()
        raise


class Closer:
    """Channels close beside what goes on."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self, channel: Any) -> None:
        task = asyncio.ensure_future(channel.close())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self, preparing: "asyncio.Task[Opened | None] | None", patience: float = 1.0) -> None:
        """Until all are closed; also one that was prepared and is not used any more."""
        if preparing is not None:
            if not preparing.done():
                preparing.cancel()
            elif not preparing.cancelled() and preparing.exception() is None and (opened := preparing.result()):
                self.close(opened.channel)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=patience)


def detail(error: BaseException) -> str:
    details = getattr(error, "details", None)
    return str(details() if callable(details) else "") or str(error) or type(error).__name__
