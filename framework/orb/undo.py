"""What one instance has changed in its object, so that one that raises leaves no trace (A4).

Before a method runs, and after each pause in which others may have run, the state is copied. When the method raises or
pauses, copy and state are compared: the differences are the instance's own changes, attribute by attribute and key by
key. Taking them back puts the old value where the new one still stands. Where a compatible instance has changed the
same place meanwhile, numbers are taken back as differences (two deposits on one account), elements of sets one by one;
anything else stays as the later one left it.

Changes are taken back in place: others may hold on to the same dict or set.

Limits. The copy costs time in proportion to the state, for every call that is not readonly. Objects of the user's own
classes inside the state are copied and put back whole. A value that a compatible instance has *computed* from the one
that is taken back (a maximum, for example) is not computed again.
"""

import copy
from collections.abc import Iterator
from typing import Any, Final

_PLAIN = (int, float, str, bytes, bool, type(None), complex, frozenset)


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Undo:
    """The changes that one instance has made to ``state``, the attributes of its object."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self._before: dict[str, Any] | None = None
        self._log: list[_Put | _Elements | _List] = []

    def begin(self) -> None:
        """From here on this instance alone changes the state."""
        self._before = copied(self._state)

    def pause(self) -> None:
        """Others may change it from here on."""
        if self._before is not None:
            self._log += _changes(self._before, self._state, set())
            self._before = None

    def take_back(self) -> None:
        self.pause()
        while self._log:
            self._log.pop().undo()


def copied(value: Any) -> Any:
    """A copy that shares nothing that can change. Faster than deepcopy where the types are plain."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {k: copied(v) for k, v in value.items()}
    if kind is list:
        return [copied(v) for v in value]
    if kind is set:
        return set(value)
    return copy.deepcopy(value)


class _Put:
    """An attribute or the value of a key: ``old`` became ``new``."""

    def __init__(self, where: dict[Any, Any], key: Any, old: Any, new: Any) -> None:
        self.where, self.key, self.old, self.new = where, key, old, new

    def undo(self) -> None:
        now = self.where.get(self.key, MISSING)
        if _same(now, self.new):
            if self.old is MISSING:
                del self.where[self.key]
            else:
                self.where[self.key] = self.old
        elif all(map(_is_number, (now, self.old, self.new))):
            self.where[self.key] = _number(now) + _number(self.old) - _number(self.new)


class _Elements:
    def __init__(self, where: set[Any], added: set[Any], removed: set[Any]) -> None:
        self.where, self.added, self.removed = where, added, removed

    def undo(self) -> None:
        self.where -= self.added
        self.where |= self.removed


class _List:
    def __init__(self, where: list[Any], old: list[Any], new: list[Any]) -> None:
        self.where, self.old, self.new = where, old, new

    def undo(self) -> None:
        if self.where == self.new:
            self.where[:] = self.old


def _changes(before: dict[Any, Any], now: dict[Any, Any], seen: set[int]) -> Iterator[_Put | _Elements | _List]:
    if id(now) in seen:  # one dict under two names: its changes are taken back once
        return
    seen.add(id(now))
    for key in [*before, *(k for k in now if k not in before)]:
        old, new = before.get(key, MISSING), now.get(key, MISSING)
        if type(old) is dict and type(new) is dict:
            yield from _changes(old, new, seen)
        elif type(old) is set and type(new) is set:
            if old != new:
                yield _Elements(new, new - old, old - new)
        elif type(old) is list and type(new) is list:
            if not _same(old, new):
                yield _List(new, old, copied(new))
        elif not _same(old, new):
            yield _Put(now, key, old, copied(new))


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(a == b))


def _is_number(value: Any) -> bool:
    return value is MISSING or type(value) in (int, float)


def _number(value: Any) -> Any:
    return 0 if value is MISSING else value
