"""What instances of a node share: the way into the com layer and back, threads, and names."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from framework.com.events import Cancel, Collect, Completed, Safe, Submit
from framework.ids import Replica
from framework.orb.naming import Naming
from framework.orb.short import Shorts
from framework.orb.turn import Body, Lane, Turn

if TYPE_CHECKING:
    from framework.orb.backed.parts import Settling
    from framework.orb.performance import Instance, Written

LOOK = 0.005  # seconds after which one that waits for its turn looks whether the other is blocked


#: Those of several replicas that an instance can ask, whose own request was sent in a view of this version.
There = Callable[[Sequence[Replica], int], Sequence[Replica]]


class Stage:
    """What instances of a node share: the way into the com layer and back, and names."""

    def __init__(
        self, feed: Callable[[Submit | Collect | Cancel | Completed | Safe], None], naming: Naming, there: There
    ) -> None:
        self.feed = feed
        self.naming = naming
        self.there = there
        self.loop: asyncio.AbstractEventLoop  # from start on
        self.journal: Written | None = None
        self.over: Callable[[Instance | Settling, Completed], None]  # on the loop: it has been performed
        self._done: deque[tuple[Instance | Settling, Completed]] = deque()
        self._rung = False
        self._crowded: set[Turn | Lane] = set()
        self._entered: set[Turn | Lane] = set()
        self.shorts = Shorts()
        self.stopped = False

    def done(self, performance: "Instance | Settling", completed: Completed) -> None:
        """From any thread. What many threads have done meanwhile goes to the com layer in one go."""
        self._done.append((performance, completed))
        if not self._rung and not self.stopped:
            self._rung = True
            self.on_loop(self._take_done)

    def _take_done(self) -> None:
        self._rung = False
        done = self._done
        for _ in range(0 if self.stopped else len(done)):
            self.over(*done.popleft())

    def close(self) -> list[tuple["Instance | Settling", Completed]]:
        """On the loop: the life is over. What was done, and nobody has heard of yet."""
        self.stopped = True
        done = list(self._done)
        self._done.clear()
        return done

    def on_loop(self, work: Callable[[], None]) -> None:
        """From any thread. A node that has stopped does nothing any more."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(work)

    def enter(self, line: Turn | Lane, body: Body) -> None:
        """On the loop. Threads are called when all that came together is in line: each call costs a hand-over."""
        if line.waiting:
            self.look_after(line)
        line.enter(body)
        if not self._entered:
            self.loop.call_soon(self._go)
        self._entered.add(line)

    def go(self) -> None:
        """On the loop, outside of ``feed``: all that came together is in line. What is short is performed now."""
        if self._entered:
            self._go()

    def _go(self) -> None:
        entered, self._entered = self._entered, set()
        self._rung = True  # what is performed here is told below
        try:
            self._entered = {line for line in entered if line.go()}
        finally:
            self._take_done()
        if self._entered:
            self.loop.call_soon(self._go)

    def look_after(self, line: Turn | Lane) -> None:
        """Somebody waits in this line: see to it that nobody waits for one that is blocked."""
        if not self._crowded:
            self.loop.call_later(LOOK, self._look)
        self._crowded.add(line)

    def _look(self) -> None:
        for line in tuple(self._crowded):
            if line.waiting:
                line.relieve()
            else:
                self._crowded.discard(line)
        if self._crowded:
            self.loop.call_later(LOOK, self._look)
