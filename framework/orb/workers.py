"""Threads that perform methods which are a plain ``def``.

An own pool and not ``concurrent.futures``: work comes here in batches and its results leave in batches, so a future, a
work item and a condition for each call would be most of the cost of a short method.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

log = logging.getLogger(__name__)

Work = Callable[[], None]


class Workers:
    """At most ``most`` threads; they are made when they are needed."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._mutex = threading.Lock()
        self._idle = 0
        self._threads: list[threading.Thread] = []
        self._stopped = False

    def run(self, work: Work) -> None:
        """Soon, in some thread."""
        with self._mutex:
            if self._idle:
                self._idle -= 1
            elif len(self._threads) < self._most and not self._stopped:
                name = f"{self._name}-{len(self._threads)}"
                thread = threading.Thread(target=self._serve, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        self._queue.put(work)

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                work()
            except BaseException:
                log.exception("a thread failed: this is a fault of the framework")
            with self._mutex:
                self._idle += 1

    def stop(self) -> None:
        """Threads end when they have done what they do; nobody waits for them."""
        with self._mutex:
            self._stopped = True
            for _ in self._threads:
                self._queue.put(None)
