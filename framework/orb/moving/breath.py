"""Who has a state to work through takes a breath now and then: the loop of its node, and other nodes on the machine,
have their turn. A lower priority would not do: a thread that is not let on, and has Python's lock, stops its process.

Who wakes up late from a short pause sees that somebody else needs the core, or Python's lock. Then it rests for longer
than it has worked, after this step and the next ones: one that wakes up in time proves little where the cores are busy
for most of the time. Rests of three times the work were measured as well: calls had no shorter pauses meanwhile, and
more of them waited for the state in the end (docs/bench.md).
"""

import asyncio
import time
from collections.abc import Iterable, Iterator

STEP = 256 << 10  # bytes between two pauses
PAUSE = 0.0005  # seconds
LATE = 0.0003  # seconds after which a pause has been longer than asked for
MOST = 0.05  # seconds
REST = 1.5  # times as long as it has worked
WARY = 16  # steps for which it rests when it has been late


class Breath:
    def __init__(self) -> None:
        self._since = 0
        self._wary = 0  # so many steps are left for which it rests
        self._at = time.monotonic()

    def take(self, size: int) -> None:
        """So many bytes have been worked through; in a thread."""
        if self._is_time(size):
            rest = self._rest()
            began = time.monotonic()
            time.sleep(PAUSE)
            if self._is_wary(time.monotonic() - began):
                time.sleep(rest)
            self._at = time.monotonic()

    async def take_on_loop(self, size: int) -> None:
        """The same for a coroutine."""
        if self._is_time(size):
            rest = self._rest()
            began = time.monotonic()
            await asyncio.sleep(PAUSE)
            if self._is_wary(time.monotonic() - began):
                await asyncio.sleep(rest)
            self._at = time.monotonic()

    def _is_time(self, size: int) -> bool:
        self._since += size
        if self._since < STEP:
            return False
        self._since = 0
        return True

    def _is_wary(self, slept: float) -> bool:
        self._wary = WARY if slept > PAUSE + LATE else max(self._wary - 1, 0)
        return self._wary > 0

    def _rest(self) -> float:
        return min(REST * (time.monotonic() - self._at), MOST)


def slowly(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same chunks, with a pause now and then."""
    breath = Breath()
    for chunk in chunks:
        yield chunk
        breath.take(len(chunk))
