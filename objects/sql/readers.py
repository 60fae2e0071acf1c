"""Connections that read, beside the one that writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from framework import Broken, ResourceExhausted

C = TypeVar("C")
T = TypeVar("T")
_PATIENCE = 60.0


class Readers(Generic[C]):
    """A fixed number of places. A connection is made when its place is first used, and again when it has failed."""

    def __init__(self, size: int, make: Callable[[], C], end: Callable[[C], None]) -> None:
        self._make, self._end = make, end
        self._size = size
        self._free: SimpleQueue[C | None] = SimpleQueue()
        for _ in range(size):
            self._free.put(None)

    def use(self, work: Callable[[C], T]) -> T:
        """What ``work`` gives. After ``Broken`` the connection is thrown away; an old one may have been lost meanwhile,
        so there is a second try with a new one."""
        kept = self._take()
        try:
            if kept is not None:
                try:
                    return work(kept)
                except Broken:
                    self._end(kept)
                    kept = None
            kept = self._make()
            return work(kept)
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
                try:
                    taken.append(self._take())
                except ResourceExhausted as error:
                    raise Broken(str(error)) from None
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
            raise ResourceExhausted(
                f"all {self._size} connections that read are in use for {_PATIENCE:g} s: raise pool"
            ) from None
