"""A thread that has much to do takes a breath now and then: the loop of its node, and other nodes on the machine, have
their turn. A lower priority would not do: a thread that is not let on, and has Python's lock, stops its whole process.
"""

import time
from collections.abc import Iterable, Iterator

STEP = 512 << 10  # bytes between two pauses
PAUSE = 0.001  # seconds


class Breath:
    def __init__(self) -> None:
        self._since = 0

    def take(self, size: int) -> None:
        """So many bytes have been worked through."""
        self._since += size
        if self._since >= STEP:
            self._since = 0
            time.sleep(PAUSE)


def slowly(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same chunks, with a pause now and then."""
    breath = Breath()
    for chunk in chunks:
        yield chunk
        breath.take(len(chunk))
