"""Python's collector in the process of a node: a little, often, instead of much at once.

Left to itself it looks at new objects when so many more were made than freed. But a replica that is busy frees as many
old ones as it makes: of its memory of what was performed lately, for example. So a hundred thousand new ones gather,
and the next burst of calls (somebody joins, somebody is gone) makes it look at all of them: 15 to 45 ms in which the
node stands still, in all replicas at about the same time. Here it looks 50 times a second at what the last 20 ms have
left, and five times a second at what the last 200 ms have: once a second took 2 to 6 ms at 500 calls a second.

That was a tenth of what a busy node does, and mostly for nothing: calls leave no cycles. So a second in which it has
found next to nothing is followed by some in which it does not look at all; what was made in these counts as old.

What is in a cycle and outlives that is found only by looking at everything, which takes time in proportion to all that
there is: 120 ms in a node that remembers 10,000 calls. So that is done when nobody waits for this node, because it is
not a member of the group: what it was then is the most there is to be found. Else when the process has twice as many
objects, and two million more, or twice the memory: a state that grows by large values alone is no reason. But never if
that would take so long that the others took this node for dead: with half a gigabyte of requests that wait for somebody
who joins it was a second, the node was left out, and had to begin anew.
"""

import asyncio
import gc
import logging
import os
import resource
import sys
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger(__name__)

EVERY = 0.02  # seconds
OLDER = 10  # of them between two looks at what has become older
WEIGH = 50  # and at the size of the process
FEW = 100  # objects that it found in as many looks: not worth it
REST = 7  # times as long as it has looked
MORE, OBJECTS = 2.0, 2_000_000  # times as many, and so many more at least: then it looks at everything
LARGER, BYTES = 2.0, 256 << 20  # or the process is so many times as large
LONG = 0.1  # seconds that are worth a word
EACH = (
    150e-9  # seconds for each object, until it is known: 60e-9 with two cores that were idle, more where they are not
)
CAREFUL = 0.4  # of the time after which others take a silent node for dead

_STATM = Path("/proc/self/statm")


def memory() -> int:
    """Bytes of memory that the process has now; where that is not told, the most it has had."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Size(NamedTuple):
    objects: int  # roughly: blocks of memory of at most 512 bytes
    memory: int  # bytes


def now() -> Size:
    return Size(sys.getallocatedblocks(), memory())


class Collector:
    """In the place of the automatic collector, from ``begin`` on. ``silent``: seconds after which others take this node
    for dead."""

    def __init__(self, now: Callable[[], Size] = now, silent: float = inf) -> None:
        self._now = now
        self._most = CAREFUL * silent  # seconds for which it may stop a member
        self._each = EACH
        self._looks = 0
        self._found = 0  # since it began to look
        self._rests = 0  # looks that are left out
        self._was = Size(0, 0)  # after the last look at everything

    def begin(self) -> None:
        gc.freeze()  # what is there now stays; to look for garbage in it would take longer than it is worth
        gc.disable()
        self._was = self._now()

    def look(self) -> None:
        self._looks += 1
        weigh = self._looks % WEIGH == 0
        if self._rests:
            self._rests -= 1
            if not self._rests:
                gc.freeze()
        else:
            self._found += gc.collect(0 if self._looks % OLDER else 1)
            if weigh:
                self._rests = REST * WEIGH if self._found <= FEW else 0
                self._found = 0
        if weigh and self._has_grown(now := self._now()):
            if self._each * now.objects <= self._most:
                self.everything()
            else:
                self._put_off(now)

    def _has_grown(self, now: Size) -> bool:
        was = self._was
        more = now.objects >= max(was.objects * MORE, was.objects + OBJECTS)
        return more or now.memory >= max(was.memory * LARGER, was.memory + BYTES)

    def _put_off(self, now: Size) -> None:
        """Until it is not a member. It says so, each time when the process has grown by as much again."""
        self._was = now
        log.info(
            "%d MB are in use; the collector does not look at everything: that would stop the node for about %.1f s. "
            "If there is garbage among it, it goes when the node leaves the group and comes back",
            now.memory >> 20,
            self._each * now.objects,
        )

    def everything(self) -> None:
        """Look at all objects there are. The process stands still meanwhile."""
        objects = self._now().objects
        began = time.perf_counter()
        gc.unfreeze()
        found = gc.collect()
        gc.freeze()
        took = time.perf_counter() - began
        self._was = self._now()
        self._each = took / max(objects, 1)
        log.log(
            logging.INFO if took > LONG else logging.DEBUG,
            "the collector looked at everything for %.0f ms and freed %d objects; %d MB are in use",
            1e3 * took,
            found,
            self._was.memory >> 20,
        )

    async def run(self) -> None:
        """For as long as the process lives."""
        while True:
            await asyncio.sleep(EVERY)
            self.look()
