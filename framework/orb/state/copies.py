"""Changes found by copying before and comparing afterwards: for values that do not note their changes themselves.

It costs time in proportion to what is copied. Containers are copied and compared one by one, known by identity, and so
are the attributes of objects that have nothing but attributes: they are taken back in place. Anything else that may
change (a bytearray, an array) is put back whole, as a copy, where it stood. A list is put back as a whole, too: if a
compatible instance has changed it since, it stays as that one left it.
"""

import copy
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from framework.orb.state import changes
from framework.orb.state.base import Tracked
from framework.orb.state.changes import MISSING, Change, same
from framework.orb.state.kinds import ATOMS, PLAIN_TYPES, never_changes

Part = tuple[Any, Any]
"""A container, and what it held."""


class _Whole:
    """A value that is no container, as it was."""

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            self._copy = copy.deepcopy(value)
        except Exception as error:
            raise TypeError(
                f"a {type(value).__name__} in the state of an object cannot be copied ({error}), so a method that "
                "raises could not be undone: keep it outside of the object's attributes"
            ) from error

    def before(self) -> Any:
        return self.value if same(self.value, self._copy) else self._copy


def copied(roots: Iterable[Any], through: bool) -> list[Part]:
    """Every container that can be reached. Tracked ones note their changes themselves: left out, unless ``through``."""
    parts: dict[int, Part] = {}
    todo = list(roots)
    while todo:
        container = todo.pop()
        if id(container) in parts:
            continue
        held = _held(container)
        parts[id(container)] = (container, held)
        for place, value in places(container):
            if type(value) in ATOMS:
                continue
            if isinstance(value, Tracked):
                if through:
                    todo.append(value)
            elif type(value) in PLAIN_TYPES:
                todo.append(value)
            elif _has_only_attributes(value):
                todo.append(vars(value))
            elif not never_changes(value):
                held[place] = _Whole(value)
    return list(parts.values())


def compared(parts: Iterable[Part]) -> Iterator[Change]:
    """What has changed since they were copied."""
    for now, before in parts:
        if isinstance(now, set):
            if before != now:
                yield changes.elements, now, None, before - now, now - before
        elif isinstance(now, dict):
            yield from _compared_keys(now, before)
        elif len(before) == len(now):
            for place, old in enumerate(before):
                yield from _one(now, place, old, now[place])
        else:
            gone = [old.before() if isinstance(old, _Whole) else old for old in before]
            yield changes.splice, now, 0, gone, list(now), len(now)


def places(container: Any) -> Iterator[tuple[Any, Any]]:
    """Where a container holds which value. Elements of sets have no place."""
    if isinstance(container, dict):
        return iter(container.items())
    return iter(enumerate(container)) if isinstance(container, list | deque) else iter(())


def _held(container: Any) -> Any:
    if isinstance(container, dict):
        return dict(container)
    return set(container) if isinstance(container, set) else list(container)


def _compared_keys(now: Any, before: dict[Any, Any]) -> Iterator[Change]:
    if isinstance(now, OrderedDict) and list(before) != list(now):
        yield changes.order, now, None, list(before), ()
    for place in [*reversed(before), *(k for k in now if k not in before)]:
        yield from _one(now, place, before.get(place, MISSING), dict.get(now, place, MISSING))


def _one(holder: Any, place: Any, old: Any, new: Any) -> Iterator[Change]:
    if isinstance(old, _Whole):
        old = old.before()
    if old is not new:
        yield changes.key, holder, place, old, new


def _has_only_attributes(value: Any) -> bool:
    """And no ways of its own to be made or copied."""
    kind: Any = type(value)
    if not hasattr(value, "__dict__") or hasattr(kind, "__deepcopy__"):
        return False
    usual = all(getattr(kind, name) is getattr(object, name) for name in ("__new__", "__reduce__", "__reduce_ex__"))
    return usual and not any(vars(base).get("__slots__") for base in kind.__mro__)
