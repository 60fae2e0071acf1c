"""What waits, as packets: as much in one as the stream takes in one message."""

from collections.abc import Iterable, Iterator

from framework.net.wire.orb_pb2 import Packet
from framework.orb.messages import ToNode, encode

ENOUGH = 1 << 20  # bytes: a larger packet would gain nothing
_AROUND = 16  # bytes around each message


def packets(messages: Iterable[ToNode], most: int) -> Iterator[Packet]:
    batch: list[bytes] = []
    size = 0
    for message in messages:
        data = encode(message)
        if batch and size + len(data) + _AROUND > min(most, ENOUGH):
            yield Packet(messages=batch)
            batch, size = [], 0
        batch.append(data)
        size += len(data) + _AROUND
    if batch:
        yield Packet(messages=batch)
