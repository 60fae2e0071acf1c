"""A state as it is at this moment, without a copy of what never changes.

Containers are taken apart, each into its token and what was in it; texts, bytes and numbers are the same objects as in
the state. So it costs time in proportion to the number of values, not to their size. ``opened`` takes what comes out of
it like the values that it stands for: it can be encoded, or a fingerprint be taken, later and in a thread, while
methods change the object.
"""

from collections.abc import Iterator, Sized
from typing import Any

from framework.declare.portable.classes import classes_of
from framework.declare.portable.leaves import Unknown
from framework.declare.portable.parts import Still, opened

_STAYS = frozenset((bool, int, float, type(None), str, bytes))


def still(owner: Any, state: dict[str, Any], most: int) -> dict[str, Any] | None:
    """None if there are more than ``most`` values in it, or one that cannot travel (``encoded`` says which)."""
    values: list[Any] = []
    try:
        taken = _take(owner, state, values, most)
    except Unknown:
        return None
    return dict(zip(state, values, strict=True)) if taken else None


def _take(owner: Any, state: dict[str, Any], into: list[Any], most: int) -> bool:
    classes, left = classes_of(owner), most
    todo: list[tuple[Iterator[Any], list[Any], bool]] = [(iter(state.values()), into, True)]
    while todo:
        values, into, attributes = todo.pop()
        for value in values:
            left -= 1
            if left < 0:
                return False
            if type(value) in _STAYS:
                into.append(value)
                continue
            if type(value) is bytearray:  # this one is copied
                left -= len(value) >> 10
                if left < 0:
                    return False
            token, within = opened(value, classes, attributes)
            if within is None:
                into.append(Still(token, None))
                continue
            if isinstance(value, Sized) and len(value) > left:
                return False
            inside: list[Any] = []
            into.append(Still(token, inside))
            todo.append((within, inside, False))
    return True
