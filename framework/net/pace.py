"""How often a stream is written to. To write and read a packet costs as much as dozens of messages in it, so when they
follow close upon each other some gather first; but not so many that one side waits while the other works."""

import asyncio
import time

FEW, SOME = 8, 64  # what is on its way
SHORT, LONG = 0.001, 0.003  # seconds from one packet to the next, at least


class Pace:
    """One for each writer. A lone message goes at once."""

    __slots__ = ("_last", "_some")

    def __init__(self, some: int = SOME) -> None:
        self._last = 0.0
        self._some = some

    async def gather(self, on_the_way: int) -> None:
        if on_the_way > FEW:
            pause = self._last + (SHORT if on_the_way <= self._some else LONG) - time.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
        self._last = time.monotonic()
