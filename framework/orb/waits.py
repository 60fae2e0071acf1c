"""How somebody waits for the outcome of a call: in a thread, or on a loop."""

import asyncio
import threading
from _thread import RLock
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from framework.errors import OboError
from framework.orb.outcome import Outcome
from framework.orb.proxy import Finish

#: Takes back a call that nobody waits for any more.
Cancel = Callable[[int], None]


class Latch:
    """A thread waits. A bare lock: the call itself takes less time than a condition variable."""

    __slots__ = ("_lock", "_outcome")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._outcome: Outcome | OboError | None = None

    def settle(self, outcome: Outcome | OboError) -> None:
        self._outcome = outcome
        self._lock.release()

    def get(self) -> Outcome:
        self._lock.acquire()
        if isinstance(self._outcome, OboError):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome


class Bell(RLock):  # type: ignore[misc]  # it can be, whatever typeshed says
    """What a future is locked with, and waited for. A ``threading.Condition`` in each of them was an eighth of what an
    asynchronous call cost its caller, and many have callbacks instead: so there is one only for who waits."""

    _condition: threading.Condition | None = None

    def wait(self, timeout: float | None = None) -> bool:
        if self._condition is None:
            self._condition = threading.Condition(self)
        return self._condition.wait(timeout)

    def notify_all(self) -> None:
        if self._condition is not None:
            self._condition.notify_all()


class ThreadFuture(Future[Any]):
    """What ``submit`` gives to a program of threads."""

    def __init__(self, finish: Finish, cancel: Cancel) -> None:
        self._condition = Bell()  # type: ignore[assignment]  # all else as Future.__init__ does; a test compares
        self._state = "PENDING"
        self._result = None
        self._exception = None
        self._waiters = []
        self._done_callbacks: list[Any] = []
        self.number = 0
        self._finish = finish
        self._take_back = cancel

    def cancel(self) -> bool:
        cancelled = super().cancel()
        if cancelled:
            self._take_back(self.number)
        return cancelled

    def forked(self, error: OboError) -> None:
        """Fail in a child of the process. Its callbacks are for the parent, and a thread that is not here may have held
        its lock."""
        self._condition = Bell()  # type: ignore[assignment]
        self._done_callbacks.clear()
        self.settle(error)

    def settle(self, outcome: Outcome | OboError) -> None:
        if not self.set_running_or_notify_cancel():
            return
        try:
            if isinstance(outcome, OboError):
                raise outcome
            value = self._finish(outcome)
        except Exception as error:
            self.set_exception(error)
        else:
            self.set_result(value)


class LoopFuture(asyncio.Future[Any]):
    """What ``submit`` gives to coroutines."""

    def __init__(self, finish: Finish, cancel: Cancel) -> None:
        super().__init__()
        self.number = 0
        self._finish = finish
        self._take_back = cancel

    def cancel(self, msg: Any | None = None) -> bool:
        cancelled = super().cancel(msg)
        if cancelled:
            self._take_back(self.number)
        return cancelled

    def settle(self, outcome: Outcome | OboError) -> None:
        if self.done():
            return
        try:
            if isinstance(outcome, OboError):
                raise outcome
            value = self._finish(outcome)
        except Exception as error:
            self.set_exception(error)
        else:
            self.set_result(value)
