"""Frames of the com layer over a stream that takes messages up to a size: a large one goes in pieces.

A frame holds all that waited for a peer, so it may be larger than any argument. Were it refused, the link would send
it again and again, and nothing else would come through. Each piece is a sign of life: nothing else comes meanwhile,
and a peer that sends much must not be taken for dead.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc.aio

from framework.errors import BadMessage
from framework.net.wire.com_pb2 import Frame

_AROUND = 64  # bytes of a message that are not data
PIECE = 1 << 20  # bytes: of these, some come in each moment, also where a link or a machine is slow
#: Pieces of one frame. A peer that sends more of them does not mean it.
MOST = 65536


def writer(stream: Any, max_message: int) -> Callable[[bytes], Awaitable[None]]:
    size = min(max_message - _AROUND, PIECE)

    async def write(data: bytes) -> None:
        if len(data) <= size:
            await stream.write(Frame(data=data))
            return
        for start in range(0, len(data), size):
            await stream.write(Frame(data=data[start : start + size], more=start + size < len(data)))

    return write


def reader(stream: Any, heard: Callable[[], None] = lambda: None) -> Callable[[], Awaitable[bytes | None]]:
    """Gives one frame after the other; None at the end of the stream. ``heard`` is called for each piece of a frame."""

    async def read() -> bytes | None:
        frame = await stream.read()
        if frame is grpc.aio.EOF:
            return None
        if not frame.more:
            data: bytes = frame.data
            return data
        parts = [frame.data]
        while frame.more:
            if len(parts) >= MOST:
                raise BadMessage(f"a frame of more than {MOST} pieces")
            heard()
            frame = await stream.read()
            if frame is grpc.aio.EOF:
                return None
            parts.append(frame.data)
        return b"".join(parts)

    return read
