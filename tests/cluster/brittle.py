"""A backed object whose store stops working where a test says, once; it works again when it is opened anew."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from framework import LATER, Backed, Broken, Place, Recalled, Touched, method
from tests.cluster.shelf import Shelf

WAIT = 60.0


class Brittle(Shelf):
    transactions = True
    armed: ClassVar[set[tuple[str, str]]] = set()  # (node, point)
    slow: ClassVar[set[str]] = set()  # points at which the other nodes wait until none is armed
    fired: ClassVar[list[tuple[str, str]]] = []
    dead = True  # until it is opened

    def _pass(self, point: str) -> None:
        where = (self.node, point)
        if where in self.armed:
            self.armed.discard(where)
            self.fired.append(where)
            self.dead = True
        until = time.monotonic() + WAIT
        while point in self.slow and any(armed == point for _, armed in list(self.armed)):
            assert time.monotonic() < until, f"nothing came to {point} where it is armed"
            time.sleep(0.01)
        if self.dead:
            raise Broken(f"on purpose, at {point}: connection refused")

    # for the framework

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        pass

    def open(self, place: Place) -> None:
        self.node, self.dead = place.node, False
        self._pass("open")
        super().open(place)

    def recall(self) -> Recalled | None:
        self._pass("recall")
        return super().recall()

    def begin(self) -> None:
        self._pass("begin")
        super().begin()

    def commit(self, entries: Sequence[bytes], head: bytes | None = None) -> None:
        self._pass("commit")
        super().commit(entries, head)
        self._pass("committed")  # it is in the store, and nobody knows

    def rollback(self) -> None:
        super().rollback()
        self._pass("rollback")

    @contextmanager
    def provisional(self) -> Iterator[None]:
        self._pass("provisional")
        with super().provisional():
            yield
        self._pass("take back")

    def fingerprint(self) -> str:
        self._pass("fingerprint")
        return super().fingerprint()

    def touched(self, method: str, values: tuple[Any, ...]) -> Touched:
        self._pass("touched")
        return super().touched(method, values)

    def at_once(self, method: str, values: tuple[Any, ...], keys: Any) -> Any:
        if method != "get":
            return LATER
        self._pass("glance")
        return self.get(*values)

    def get_state(self) -> Iterable[bytes]:
        self._pass("state asked for")
        for chunk in super().get_state():
            yield chunk
            self._pass("state half read")

    def set_state(self, chunks: Iterable[bytes]) -> None:
        self._pass("state comes")
        super().set_state(self._half(chunks))

    def _half(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            yield chunk
            self._pass("state half written")

    # what methods do

    def _read(self, sql: str, *params: Any) -> list[Any]:
        self._pass("read")
        return super()._read(sql, *params)

    def _write(self, sql: str, *params: Any) -> None:
        super()._write(sql, *params)
        self._pass("write")

    @method(readonly=True)
    async def patiently(self, name: str) -> int:
        """A read on the node's loop."""
        return self.get(name)


assert issubclass(Brittle, Backed)
