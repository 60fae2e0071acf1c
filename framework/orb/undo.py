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


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()

_PLAIN = (int, float, str, bytes, bool, type(None), complex, frozenset, _Missing)
_CONTAINERS = (dict, list, set)

Path = tuple[Any, ...]


class Undo:
    """The changes that one instance has made to ``state``, the attributes of its object."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self._before: dict[str, Any] | None = None
        self._log: list[_Change] = []

    def begin(self) -> None:
        """From here on this instance alone changes the state."""
        self._before = copied(self._state)

    def pause(self) -> None:
        """Others may change it from here on."""
        if self._before is not None:
            self._log += _changes((), self._before, self._state, set())
            self._before = None

    def take_back(self) -> None:
        self.pause()
        while self._log:
            change = self._log.pop()
            found = _find(self._state, change.path)
            if type(found) is dict:
                change.undo(found)


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


class _Change:
    """``old`` became ``new`` at ``key`` of the dict that ``path`` leads to; the attributes are such a dict, too."""

    def __init__(self, path: Path, key: Any, old: Any, new: Any) -> None:
        self.path, self.key, self.old, self.new = path, key, old, new

    def undo(self, where: dict[Any, Any]) -> None:
        now = where.get(self.key, MISSING)
        if type(self.old) is set and type(self.new) is set and type(now) is set:
            now -= self.new - self.old
            now |= self.old - self.new
        elif _same(now, self.new):
            self._restore(where, now)
        elif all(map(_is_number, (now, self.old, self.new))):
            where[self.key] = _number(now) + _number(self.old) - _number(self.new)

    def _restore(self, where: dict[Any, Any], now: Any) -> None:
        if self.old is MISSING:
            del where[self.key]
        elif type(self.old) is list and type(now) is list:
            now[:] = self.old
        else:
            where[self.key] = self.old


def _changes(path: Path, before: dict[Any, Any], now: dict[Any, Any], seen: set[int]) -> Iterator[_Change]:
    if id(now) in seen:  # one dict under two names: its changes are taken back once
        return
    seen.add(id(now))
    for key in [*before, *(k for k in now if k not in before)]:
        old, new = before.get(key, MISSING), now.get(key, MISSING)
        if type(old) is dict and type(new) is dict:
            yield from _changes((*path, key), old, new, seen)
        elif not _same(old, new):
            yield _Change(path, key, old, copied(new) if type(new) in _CONTAINERS else new)


def _find(state: Any, path: Path) -> Any:
    for key in path:
        state = state.get(key) if type(state) is dict else None
    return state


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(a == b))


def _is_number(value: Any) -> bool:
    return value is MISSING or type(value) in (int, float)


def _number(value: Any) -> Any:
    return 0 if value is MISSING else value
