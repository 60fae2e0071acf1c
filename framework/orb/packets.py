"""Messages as packets: all that waits in one, but none larger than a stream takes."""

from collections.abc import Iterable, Iterator

from framework.net.wire.orb_pb2 import Packet
from framework.orb.messages import ToClient, ToNode, encode

ENOUGH = 1 << 20  # bytes: a packet with more would gain nothing, and several of them might not fit


def packets(messages: Iterable[ToNode | ToClient]) -> Iterator[Packet]:
    batch: list[bytes] = []
    size = 0
    for message in messages:
        data = encode(message)
        if batch and size + len(data) > ENOUGH:
            yield Packet(messages=batch)
            batch, size = [], 0
        batch.append(data)
        size += len(data)
    if batch:
        yield Packet(messages=batch)
