"""Plain containers of a state become tracked ones, each as soon as nobody but the state holds it.

References that the state explains are counted: places in holders that are tracked, places in other plain containers,
and our own notes. If Python counts more, somebody else can write to the container, and must not be left with a dead
copy: it stays, with all that can be reached through it.
"""

from collections.abc import Iterator
from sys import getrefcount
from typing import Any

from framework.orb.state.base import Keeper, Tracked
from framework.orb.state.changes import MISSING
from framework.orb.state.copies import places
from framework.orb.state.kinds import PLAIN_TYPES, never_changes, tracked_copy

#: A holder (the attributes, or a tracked container), a key or index, and the plain container that was stored there.
Place = tuple[Any, Any, Any]

#: Containers by their id, each with the number of references that are explained.
_Found = dict[int, list[Any]]


def adopt(pending: list[Place], keeper: Keeper) -> Any:
    """Leaves in ``pending`` what must stay plain. Returns a value that cannot be tracked, if there is one: then nothing
    is done.

    Nothing here may hold a container in a variable while references are counted: each step is a function."""
    _locate(pending)
    found = _survey(pending)
    odd = next(_odd(found, keeper), None)
    if odd is not None:
        return odd
    free = _free(found)
    pending[:] = _convert(pending, found, free, keeper)
    return None


def _locate(pending: list[Place]) -> None:
    """Each place once, where the container is by now."""
    known = {}
    for holder, place, value in pending:
        now = _where(holder, place, value)
        at = place if now is MISSING else now
        known[id(holder), at, id(value)] = (holder, at, value)
    pending[:] = known.values()


def _where(holder: Any, place: Any, value: Any) -> Any:
    if isinstance(holder, dict):
        return place if dict.get(holder, place) is value else MISSING
    if place < len(holder) and holder[place] is value:
        return place
    return next((n for n, v in enumerate(holder) if v is value), MISSING)


def _survey(pending: list[Place]) -> _Found:
    found: _Found = {}
    for holder, place, value in pending:
        entry = found.setdefault(id(value), [value, 0])
        entry[1] += 1  # this note
        if _where(holder, place, value) is not MISSING:
            entry[1] += 1
    todo = list(found)
    while todo:
        for _, inner in places(found[todo.pop()][0]):
            if type(inner) in PLAIN_TYPES:
                if id(inner) not in found:
                    found[id(inner)] = [inner, 0]
                    todo.append(id(inner))
                found[id(inner)][1] += 1
    return found


def _odd(found: _Found, keeper: Keeper) -> Iterator[Any]:
    """Values that may change unseen."""
    for container, _ in found.values():
        if isinstance(container, dict | set):
            yield from (v for v in container if not never_changes(v))
        for _, inner in places(container):
            if isinstance(inner, Tracked):
                if inner.keeper is not keeper:
                    yield inner
            elif type(inner) not in PLAIN_TYPES and not never_changes(inner):
                yield inner


_probe: _Found = {0: [[], 0]}
_OURS = getrefcount(_probe[0][0])  # how a container counts that only a _Found holds


def _free(found: _Found) -> set[int]:
    """The containers that nobody else holds, nor anything through which they can be reached."""
    held = [key for key in found if getrefcount(found[key][0]) != found[key][1] + _OURS]
    free = set(found).difference(held)
    while held:
        for _, inner in places(found[held.pop()][0]):
            if id(inner) in free:
                free.discard(id(inner))
                held.append(id(inner))
    return free


def _convert(pending: list[Place], found: _Found, free: set[int], keeper: Keeper) -> list[Place]:
    """What is left."""
    made: dict[int, Any] = {}
    left: list[Place] = []
    todo = list(pending)
    while todo:
        holder, place, value = todo.pop()
        there = _where(holder, place, value) is not MISSING
        if id(value) not in free:
            left.append((holder, place, value))  # even if it is gone from there: who holds it may put it back
        elif there:
            if id(value) not in made:
                made[id(value)] = new = tracked_copy(value, keeper)
                todo += [(new, at, inner) for at, inner in places(new) if id(inner) in found]
            holder[place] = made[id(value)]
    return left
