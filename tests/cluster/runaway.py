"""A backed object whose calls do at each node what a test says: end, go on, fail, or be just over when cut."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

from framework import Broken, Interrupted, Place, conflict_matrix, method
from tests.cluster.shelf import Shelf

WAIT = 60.0
How = Literal["ends", "goes on", "fails", "just over"]


class Call:
    """One that was begun."""

    def __init__(self) -> None:
        self.ended = threading.Event()


@conflict_matrix(slow=("get", "all"), look="swap")
class Runaway(Shelf):
    """``slow`` is compatible with ``add``; so is ``slow`` itself."""

    how: ClassVar[dict[str, How]] = {}  # by node
    begun: ClassVar[list[str]] = []  # nodes, once for each time
    limits: ClassVar[dict[str, float]] = {}

    @classmethod
    def reset(cls, **how: How) -> None:
        cls.how = {node: how.get(node, "ends") for node in ("n1", "n2", "n3")}
        cls.begun.clear()

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        pass

    def open(self, place: Place) -> None:
        self.node, self.calls = place.node, dict[int, Call]()
        super().open(place)

    @property
    def limit(self) -> float:  # type: ignore[override]
        return self.limits.get(self.node, 0.0)

    def interrupt(self, thread: int) -> None:
        call = self.calls.get(thread)
        if call is not None:
            call.ended.set()

    def ended(self, why: str) -> Exception:
        return TimeoutError(why)

    @contextmanager
    def _begun(self) -> Iterator[Call]:
        ident = threading.get_ident()
        call = self.calls[ident] = Call()
        self.begun.append(self.node)
        try:
            yield call
        finally:
            del self.calls[ident]

    def _wait(self) -> None:
        """Until this node is to end it, or somebody else does."""
        until = time.monotonic() + WAIT
        with self._begun() as call:
            while self.how[self.node] in ("goes on", "just over"):
                assert time.monotonic() < until, f"{self.node} goes on for ever"
                if call.ended.wait(0.01):
                    if self.how[self.node] == "just over":
                        return
                    raise Interrupted("on purpose")
            if self.how[self.node] == "fails":
                raise Broken("no room, on purpose")

    @method
    def slow(self, name: str, number: int) -> None:
        self.add(name, number)
        self._wait()

    @method(readonly=True)
    def look(self) -> int:
        """Goes on for as long as it may."""
        with self._begun() as call:
            assert call.ended.wait(WAIT), "nobody ends it"
            raise TimeoutError("ended")
