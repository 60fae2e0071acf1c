"""Whose turn it is to run at a replica.

The com layer delivers a request only when no conflicting instance is running, so whatever runs here together is
compatible. That alone does not make it safe to run two bodies at once: ``self.value += 1`` in two threads loses one,
and what a method that raises has changed must be told from what its neighbours change. So a method that changes state
runs in its *turn*, and gives the turn away while it waits: for a call to another object, for anything it awaits, and
for anything else that blocks it (blocked.py). Compatible instances overlap wherever they wait, and what each of them
does between two waits is whole.

A ``readonly`` method needs no turn: it runs beside everything that is compatible with it (Lane).

Both hand out work in batches: one thread performs what has come, one after the other, and further threads are called
only when it is held up. A hand-over to a thread costs more than a short method; so the loop performs those itself
(short.py), as long as they are first in line.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from framework.orb.blocked import Watched
from framework.orb.workers import Workers


class Body(Protocol):
    """An instance that a thread performs from its beginning to its end. It has the turn at both."""

    watched: Watched | None

    @property
    def brief(self) -> bool:
        """May the loop perform it?"""
        ...

    def perform(self) -> None: ...


#: So many bodies the loop performs in one go, and so long: one of them may be many calls (riding.py).
AT_ONCE = 64
LONGEST = 0.01  # seconds


class Turn:
    """The turn of one replica. All methods may be called from any thread."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._mutex = threading.Lock()
        self._held = False
        self._bodies: deque[Body] = deque()  # not begun
        self._back: deque[Callable[[], None]] = deque()  # who waited and goes on: they come first
        self._holder: Body | None = None  # the body that a thread performs now

    @property
    def waiting(self) -> int:
        return len(self._bodies) + len(self._back)

    def enter(self, body: Body) -> None:
        """A new instance; ``go`` sees to it that it is performed when it has the turn."""
        self._bodies.append(body)

    def go(self) -> bool:
        """On the loop. True: there is more for the loop to do, later."""
        with self._mutex:
            if self._held or not self._bodies:
                return False
            self._held = True
        until = time.monotonic() + LONGEST
        for _ in range(AT_ONCE):
            if not self._bodies[0].brief:
                self._workers.run(self._run)
                return False
            self._bodies.popleft().perform()
            if self._back or not self._bodies or time.monotonic() > until:
                break
        with self._mutex:
            go = self._back.popleft() if self._back else None
            self._held = go is not None
        if go is not None:
            go()
            return False
        return bool(self._bodies)

    def take(self, go: Callable[[], None]) -> bool:
        """True: it is yours. False: ``go`` is called, from some thread, when it is."""
        with self._mutex:
            if self._held:
                self._back.append(go)
                return False
            self._held = True
            return True

    def take_if_free(self) -> bool:
        """True: it is yours. False: somebody has it, or waits for it."""
        with self._mutex:
            if self._held or self._bodies or self._back:
                return False
            self._held = True
            return True

    def give(self) -> None:
        """Whoever has the turn gives it away: to one that goes on, else to a new one."""
        with self._mutex:
            self._holder = None
            if self._back:
                go = self._back.popleft()
            elif self._bodies:
                go = self._call_thread
            else:
                self._held = False
                return
        go()

    def wait(self, body: Body) -> None:
        """In the thread of a body that goes on: until the turn is here."""
        came = threading.Lock()
        came.acquire()
        if not self.take(came.release):
            came.acquire()
        self._holder = body

    def _call_thread(self) -> None:
        self._workers.run(self._run)

    def _run(self) -> None:
        """In a thread that has the turn: bodies, one after the other."""
        while True:
            with self._mutex:
                if self._back:
                    go = self._back.popleft()
                elif self._bodies:
                    go = None
                    body = self._holder = self._bodies.popleft()
                else:
                    self._held = False
                    self._holder = None
                    return
            if go is not None:
                go()
                return
            body.perform()

    def relieve(self) -> None:
        """From time to time while others wait: if the body that has the turn is blocked, they need not."""
        holder = self._holder
        watched = holder.watched if holder is not None else None  # once: its thread may end meanwhile
        if watched is not None and watched.is_blocked():
            watched.lend()


class Lane:
    """Bodies that need no turn."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._mutex = threading.Lock()
        self._bodies: deque[Body] = deque()
        self._threads = 0
        self._begun = 0
        self._seen = -1

    @property
    def waiting(self) -> int:
        return len(self._bodies)

    def enter(self, body: Body) -> None:
        self._bodies.append(body)

    def go(self) -> bool:
        """On the loop. True: there is more for the loop to do, later."""
        for _ in range(AT_ONCE):
            body = self._brief()
            if body is None:
                self._call_thread()
                return False
            body.perform()
        return bool(self._bodies)

    def _brief(self) -> Body | None:
        """The first in line, if the loop may perform it."""
        with self._mutex:
            if not self._bodies or not self._bodies[0].brief:
                return None
            self._begun += 1
            return self._bodies.popleft()

    def _call_thread(self) -> None:
        with self._mutex:
            if self._threads or not self._bodies:
                return
            self._threads = 1
        self._workers.run(self._run)

    def _run(self) -> None:
        while True:
            with self._mutex:
                if not self._bodies:
                    self._threads -= 1
                    return
                body = self._bodies.popleft()
                self._begun += 1
            body.perform()

    def relieve(self) -> None:
        """If nothing has begun since the last time, one more thread takes from the line."""
        with self._mutex:
            stuck = self._begun == self._seen and bool(self._bodies)
            self._seen = self._begun
            if stuck:
                self._threads += 1
        if stuck:
            self._workers.run(self._run)
