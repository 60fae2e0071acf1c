"""A large frame crosses a stream in pieces, and each of them is a sign of life."""

import asyncio

import grpc.aio

from framework.net.pieces import PIECE, reader, writer
from framework.net.wire.com_pb2 import Frame


class Stream:
    def __init__(self):
        self.sent = []

    async def write(self, frame):
        self.sent.append(frame)

    async def read(self):
        return self.sent.pop(0) if self.sent else grpc.aio.EOF


def crossed(data, most):
    """What came, in how many pieces, and how often the peer was heard before the whole was there."""
    stream, heard = Stream(), []

    async def cross():
        await writer(stream, most)(data)
        sizes = [len(frame.data) for frame in stream.sent]
        return await reader(stream, lambda: heard.append(1))(), sizes

    came, sizes = asyncio.run(cross())
    return came, sizes, len(heard)


def test_a_large_frame_goes_in_pieces_that_are_small_whatever_a_message_may_hold():
    data = bytes(range(256)) * (40 << 10)  # 10 MB
    came, sizes, heard = crossed(data, 64 << 20)
    assert came == data and max(sizes) <= PIECE and len(sizes) == 10
    assert heard == 9
    came, sizes, heard = crossed(b"short", 64 << 20)
    assert (came, sizes, heard) == (b"short", [5], 0)


def test_a_message_may_hold_less_than_a_piece():
    data = b"x" * (1 << 20)
    came, sizes, _ = crossed(data, 1 << 18)
    assert came == data and max(sizes) < 1 << 18


def test_pieces_are_frames_of_the_protocol():
    assert Frame(data=b"x", more=True).more
