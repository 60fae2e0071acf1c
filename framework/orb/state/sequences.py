"""Tracked list and deque."""

from collections import deque
from collections.abc import Iterable
from operator import index as as_index
from typing import Any, Self, SupportsIndex

from framework.orb.state import changes
from framework.orb.state.base import Tracked


class _Sequence(Tracked):
    """What list and deque have in common."""

    __slots__ = ()

    def _spliced(self: Any, index: int, gone: Any, came: Any) -> None:
        log = self.keeper.log
        if log is not None:
            log.append((changes.splice, self, index, gone, came, len(self)))

    def _position(self: Any, index: SupportsIndex) -> int:
        at = as_index(index)
        return at + len(self) if at < 0 else at

    def _set_one(self: Any, index: SupportsIndex, value: Any) -> None:
        at, old = self._position(index), self[index]
        super().__setitem__(index, value)  # type: ignore[misc]
        log = self.keeper.log
        if log is not None:
            log.append((changes.key, self, at, old, value))

    def _whole(self: Any, change: Any, *args: Any, **kwargs: Any) -> None:
        """For what touches most of the elements anyway. Also when it fails half way: a key for sorting may raise."""
        before = list(self)
        try:
            change(self, *args, **kwargs)
        finally:
            self._spliced(0, before, list(self))

    def insert(self: Any, index: SupportsIndex, value: Any) -> None:
        at = min(max(self._position(index), 0), len(self))
        super().insert(index, value)  # type: ignore[misc]
        self._spliced(at, (), (value,))

    def remove(self: Any, value: Any) -> None:
        del self[self.index(value)]


class TrackedList(_Sequence, list[Any]):
    __slots__ = ("keeper",)
    plain_type = list

    def append(self, value: Any) -> None:
        super().append(value)
        self._spliced(len(self) - 1, (), (value,))

    def extend(self, values: Iterable[Any]) -> None:
        values = list(values)
        super().extend(values)
        self._spliced(len(self) - len(values), (), values)

    def pop(self, index: SupportsIndex = -1) -> Any:
        at = self._position(index)
        value = super().pop(index)
        self._spliced(at, (value,), ())
        return value

    def clear(self) -> None:
        del self[:]

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            self._set_one(index, value)
            return
        start, stop, step = index.indices(len(self))
        value = list(value)
        if step != 1:
            self._whole(list.__setitem__, index, value)
            return
        gone = self[start:stop]
        super().__setitem__(index, value)
        self._spliced(start, gone, value)

    def __delitem__(self, index: Any) -> None:
        if not isinstance(index, slice):
            self.pop(index)
        elif index.step in (None, 1):
            self[index] = ()
        else:
            self._whole(list.__delitem__, index)

    def __iadd__(self, values: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(values)
        return self

    def __imul__(self, times: SupportsIndex) -> Self:
        self._whole(list.__imul__, times)
        return self

    def sort(self, **kwargs: Any) -> None:
        self._whole(list.sort, **kwargs)

    def reverse(self) -> None:
        self._whole(list.reverse)


class TrackedDeque(_Sequence, deque[Any]):
    __slots__ = ("keeper",)
    plain_type = deque

    def as_plain(self) -> deque[Any]:
        return deque(self, self.maxlen)

    def append(self, value: Any) -> None:
        if self._makes_room(self.popleft):
            super().append(value)
            self._spliced(len(self) - 1, (), (value,))

    def appendleft(self, value: Any) -> None:
        if self._makes_room(self.pop):
            super().appendleft(value)
            self._spliced(0, (), (value,))

    def _makes_room(self, drop: Any) -> bool:
        if self.maxlen is not None and len(self) == self.maxlen:
            if not self.maxlen:
                return False
            drop()
        return True

    def extend(self, values: Iterable[Any]) -> None:
        for value in list(values):
            self.append(value)

    def extendleft(self, values: Iterable[Any]) -> None:
        for value in list(values):
            self.appendleft(value)

    def pop(self) -> Any:  # type: ignore[override]
        value = super().pop()
        self._spliced(len(self), (value,), ())
        return value

    def popleft(self) -> Any:
        value = super().popleft()
        self._spliced(0, (value,), ())
        return value

    def clear(self) -> None:
        self._whole(deque.clear)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._set_one(index, value)

    def __delitem__(self, index: Any) -> None:
        at, value = self._position(index), self[index]
        super().__delitem__(index)
        self._spliced(at, (value,), ())

    def __iadd__(self, values: Iterable[Any]) -> Self:
        self.extend(values)
        return self

    def __imul__(self, times: int) -> Self:
        self._whole(deque.__imul__, times)
        return self

    def reverse(self) -> None:
        self._whole(deque.reverse)

    def rotate(self, n: int = 1) -> None:
        super().rotate(n)
        log = self.keeper.log
        if log is not None:
            log.append((changes.rotation, self, n, len(self), ()))
