"""Tracked set."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from framework.orb.state import changes
from framework.orb.state.base import Tracked


class TrackedSet(Tracked, set[Any]):
    __slots__ = ("keeper",)
    plain_type = set

    def _change(self, gone: set[Any], came: set[Any]) -> None:
        set.difference_update(self, gone)
        set.update(self, came)
        log = self.keeper.log
        if log is not None and (gone or came):
            log.append((changes.elements, self, None, gone, came))

    def add(self, value: Any) -> None:
        if value not in self:
            self._change(set(), {value})

    def discard(self, value: Any) -> None:
        if value in self:
            self._change({value}, set())

    def remove(self, value: Any) -> None:
        if value not in self:
            raise KeyError(value)
        self._change({value}, set())

    def pop(self) -> Any:
        value = super().pop()
        log = self.keeper.log
        if log is not None:
            log.append((changes.elements, self, None, {value}, ()))
        return value

    def clear(self) -> None:
        self._change(set(self), set())

    def update(self, *others: Iterable[Any]) -> None:
        self._change(set(), set().union(*others).difference(self))

    def difference_update(self, *others: Iterable[Any]) -> None:
        self._change(set(chain.from_iterable(set.intersection(self, other) for other in others)), set())

    def intersection_update(self, *others: Iterable[Any]) -> None:
        self._change(set(self).difference(set(self).intersection(*others)), set())

    def symmetric_difference_update(self, other: Iterable[Any]) -> None:
        other = set(other)
        self._change(set(other.intersection(self)), other.difference(self))

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        return self._in_place(other, self.update)

    def __isub__(self, other: Any) -> Any:  # type: ignore[misc]
        return self._in_place(other, self.difference_update)

    def __iand__(self, other: Any) -> Any:  # type: ignore[misc]
        return self._in_place(other, self.intersection_update)

    def __ixor__(self, other: Any) -> Any:  # type: ignore[misc]
        return self._in_place(other, self.symmetric_difference_update)

    def _in_place(self, other: Any, change: Any) -> Any:
        if not isinstance(other, set | frozenset):
            return NotImplemented
        change(other)
        return self
