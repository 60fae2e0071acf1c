"""Connections that read, beside the one that writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from framework import Broken

C = TypeVar("C")
_PATIENCE = 60.0


class Readers(Generic[C]):
    """A fixed number of places. A connection is made when its place is first used, and again when it has failed."""

    def __init__(self, size: int, make: Callable[[], C], end: Callable[[C], None]) -> None:
        self._make, self._end = make, end
        self._size = size
        self._free: SimpleQueue[C | None] = SimpleQueue()
        for _ in range(size):
            self._free.put(None)

    @contextmanager
    def one(self) -> Iterator[C]:
        """For one thread at a time. After ``Broken`` the connection is thrown away."""
        found = self._take()
        kept: C | None = None
        try:
            kept = found if found is not None else self._make()
            yield kept
        except Broken:
            if kept is not None:
                self._end(kept)
                kept = None
            raise
        finally:
            self._free.put(kept)

    @contextmanager
    def none(self) -> Iterator[None]:
        """While no connection is open: waits for those in use, closes all, and lets others wait."""
        taken: list[C | None] = []
        try:
            while len(taken) < self._size:
                taken.append(self._take())
            for one in taken:
                if one is not None:
                    self._end(one)
            yield
        finally:
            for _ in taken:
                self._free.put(None)

    def _take(self) -> C | None:
        try:
            return self._free.get(timeout=_PATIENCE)
        except Empty:
            raise Broken(f"all {self._size} connections that read are in use for {_PATIENCE:g} s: raise pool") from None
