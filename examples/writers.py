"""Clients of a demo: threads that do one thing again and again, and remember what they were told."""

import threading
import time
from collections.abc import Callable

from framework import OboError, Orb


class Writers:
    """``act(orb, number)`` by each of them, with numbers that nobody else has. Use it in a ``with``."""

    def __init__(self, orbs: list[Orb], act: Callable[[Orb, int], object], pause: float = 0.0) -> None:
        self.done: list[int] = []  # numbers that were acknowledged
        self.errors: list[str] = []
        self.longest = 0.0  # seconds that one of them waited for an answer
        self._act = act
        self._pause = pause
        self._over = threading.Event()
        self._mutex = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(orb, 1_000_000 * (i + 1)), daemon=True)
            for i, orb in enumerate(orbs)
        ]

    def __enter__(self) -> "Writers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60.0)

    def longest_since(self) -> float:
        """The longest wait since this was asked last."""
        with self._mutex:
            found, self.longest = self.longest, 0.0
        return found

    def _run(self, orb: Orb, number: int) -> None:
        while not self._over.is_set():
            number += 1
            began = time.monotonic()
            try:
                self._act(orb, number)
            except OboError as error:
                with self._mutex:
                    self.errors.append(f"{type(error).__name__}: {error}")
            else:
                with self._mutex:
                    self.done.append(number)
                    self.longest = max(self.longest, time.monotonic() - began)
            time.sleep(self._pause)
