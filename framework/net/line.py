"""One peer: what waits for it, and the one writer that drains it into whatever stream there is.

The com layer numbers frames and keeps them until they are acknowledged (protocol.md §9.1). So a line may lose a frame:
it drops what it is given while there is no stream, or while a stream takes nothing. A new stream begins with
``connected``, which sends again what was lost. What is not lost is batching: Writable is given only when the stream
has taken the frame before, so all that came up meanwhile is one frame; and a little later still while many frames are
on their way.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import grpc.aio

from framework.errors import BadMessage
from framework.ids import Node
from framework.net.pace import Pace

log = logging.getLogger(__name__)

#: Frames that may wait for a stream that takes nothing. Beyond that resends would only pile up.
MOST_WAITING = 512
#: Messages that a peer has not confirmed, from which on frames gather for longest. Of a call there are few on a link
#: at a time, so that is less than for a client.
SOME = 24

#: What gRPC raises, at the client and at the server, when a stream is written to that somebody else has ended. With any
#: other text it is a mistake of ours.
_OVER: Final = (asyncio.InvalidStateError, grpc.aio.UsageError)
_FINISHED: Final = "RPC already finished"


class Driver(Protocol):
    """Who owns the com layer. Every method is called on the loop and carries out the effects before it returns."""

    def arrived(self, peer: Node, data: bytes) -> None: ...
    def heard(self, peer: Node) -> None:
        """A piece of a large frame has come."""

    def connected(self, peer: Node) -> None: ...
    def writable(self, peer: Node) -> None: ...

    def on_the_way(self, peer: Node) -> int:
        """How many messages this peer has not confirmed."""
        ...


class Line:
    def __init__(self, peer: Node, driver: Driver) -> None:
        self.peer = peer
        self.lost = 0  # how often a stream that stood has broken
        self._driver = driver
        self._out: deque[bytes] = deque()
        self._woken = False
        self._pace = Pace(SOME)
        self._bell = asyncio.Event()
        self._stream: asyncio.Future[str] | None = None  # the stream in use; done, with the reason, when it is to end

    @property
    def up(self) -> bool:
        return self._stream is not None

    def wake(self) -> None:
        self._woken = True
        self._bell.set()

    def heard(self) -> None:
        self._driver.heard(self.peer)

    def transmit(self, data: bytes) -> None:
        if self._stream is not None and len(self._out) < MOST_WAITING:
            self._out.append(data)
            self._bell.set()

    def close(self) -> None:
        if self._stream is not None and not self._stream.done():
            self._stream.set_result("closed here")

    async def carry(
        self, read: Callable[[], Awaitable[bytes | None]], write: Callable[[bytes], Awaitable[None]]
    ) -> str:
        """Use a stream until it breaks; say why it did. A newer stream takes the place of an older one."""
        if self._stream is not None and not self._stream.done():
            self._stream.set_result("a newer stream took its place")
        mine: asyncio.Future[str]
        mine = self._stream = asyncio.get_running_loop().create_future()
        self._out.clear()
        log.info("%s is connected", self.peer)
        reader = asyncio.ensure_future(self._read(read))
        writer = asyncio.ensure_future(self._write(write, mine))
        try:
            self._driver.connected(self.peer)
            await asyncio.wait((reader, writer, mine), return_when=asyncio.FIRST_COMPLETED)
            return mine.result() if mine.done() else _why(reader if reader.done() else writer)
        finally:
            for task in (reader, writer):
                task.cancel()
            if self._stream is mine:
                self._stream = None
                self.lost += 1

    async def _read(self, read: Callable[[], Awaitable[bytes | None]]) -> None:
        while (data := await read()) is not None:
            self._driver.arrived(self.peer, data)

    async def _write(self, write: Callable[[bytes], Awaitable[None]], mine: "asyncio.Future[str]") -> None:
        while self._stream is mine:
            if self._woken and not self._out:
                await self._pace.gather(self._driver.on_the_way(self.peer))
                self._woken = False
                self._driver.writable(self.peer)
            if self._out:
                await write(self._out.popleft())
            elif not self._woken:
                self._bell.clear()
                await self._bell.wait()


def _why(task: "asyncio.Future[None]") -> str:
    error = None if task.cancelled() else task.exception()
    if error is None:
        return "the stream was closed"
    if isinstance(error, BadMessage):
        return f"it sent what cannot be used: {error}"
    details = getattr(error, "details", None)
    over = isinstance(error, _OVER) and _FINISHED in str(error)
    if not callable(details) and not over:  # neither the network nor the peer
        log.error("a stream ended by a fault of this node", exc_info=error)
    return str(details() if callable(details) else "") or f"{type(error).__name__}: {error}"
