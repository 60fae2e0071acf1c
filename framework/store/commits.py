"""Who waits until which position is safely on disk: coroutines by a future, threads by a condition."""

import asyncio
import threading
from collections.abc import Iterable

from framework.errors import BadRequest
from framework.store.problems import StoreError, StoreFailed

Loop = asyncio.AbstractEventLoop
Done = asyncio.Future[None]

#: A future, its loop, and why it did not come to pass ("" if it did).
Told = tuple[Loop, Done, str]


class Commits:
    """Positions ``durable`` and below are on disk, those up to ``last`` are on the way, unless they failed.

    Whatever ends in ``_locked`` is called by one who holds the lock of the store."""

    def __init__(self, lock: threading.Lock, position: int) -> None:
        self._lock = lock
        self._changed = threading.Condition(lock)
        self._waiting: list[tuple[int, Loop, Done]] = []
        self.last = self.durable = position
        self.failure = ""
        self.failed = 0  # positions up to here that are not durable never will be

    def committed(self, position: int) -> Done:
        """Done when this position is on disk; StoreFailed if that failed. For code that runs in an event loop."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self._lock:
            if self._is_settled_locked(position):
                _settle(future, "" if position <= self.durable else self.failure)
            else:
                self._waiting.append((position, loop, future))
        return future

    def wait(self, position: int, timeout: float | None = None) -> None:
        """The same for a thread, which is blocked so long."""
        with self._lock:
            if not self._changed.wait_for(lambda: self._is_settled_locked(position), timeout):
                raise StoreError(f"position {position} is not on disk after {timeout} s; {self.durable} is")
            if position > self.durable:
                raise StoreFailed(self.failure)

    def _is_settled_locked(self, position: int) -> bool:
        if position > self.last:
            raise BadRequest(f"position {position} has not been written yet: the last one is {self.last}")
        return position <= max(self.durable, self.failed)

    def advance_locked(self, position: int) -> list[Told]:
        self.durable = position
        return self._tell_locked(position, "")

    def fail_locked(self, position: int, why: str) -> list[Told]:
        self.failed, self.failure = position, why
        return self._tell_locked(position, why)

    def _tell_locked(self, position: int, why: str) -> list[Told]:
        told = [(loop, future, why) for at, loop, future in self._waiting if at <= position]
        self._waiting = [w for w in self._waiting if w[0] > position]
        self._changed.notify_all()
        return told


def tell(told: Iterable[Told]) -> None:
    """Each loop is woken once, however many wait in it."""
    by_loop: dict[Loop, list[tuple[Done, str]]] = {}
    for loop, future, why in told:
        by_loop.setdefault(loop, []).append((future, why))
    for loop, futures in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle_all, futures)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more


def _settle_all(futures: list[tuple[Done, str]]) -> None:
    for future, why in futures:
        _settle(future, why)


def _settle(future: Done, why: str) -> None:
    if future.done():
        return  # who waited has given up
    if why:
        future.set_exception(StoreFailed(why))
    else:
        future.set_result(None)
