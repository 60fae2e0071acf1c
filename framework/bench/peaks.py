"""The most that nodes had in memory, and before them, while something went on.

A thread asks them, and asks seldom where a look takes long: a node does nothing else meanwhile.
"""

import threading
import time

from framework.bench.back import SHARE, look
from framework.testing.clusters import Cluster

EVERY = 1.0  # seconds


class Peaks:
    """In a ``with``."""

    def __init__(self, c: Cluster) -> None:
        self.memory: dict[str, float] = dict.fromkeys(c.nodes, 0.0)  # megabytes
        self.waiting: dict[str, int] = dict.fromkeys(c.nodes, 0)  # requests
        self._cluster = c
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="peaks", daemon=True)

    def __enter__(self) -> "Peaks":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        pause = EVERY
        while not self._over.wait(pause):
            began = time.monotonic()
            for node in self.memory:
                self._look(node)
            pause = max(EVERY, SHARE * (time.monotonic() - began))

    def _look(self, node: str) -> None:
        told = look(self._cluster, node)
        if told:
            self.memory[node] = max(self.memory[node], round(told["process"]["rss"] / 1e6))
            self.waiting[node] = max(self.waiting[node], told["waiting_in_all"])
