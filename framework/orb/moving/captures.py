"""The state of an object at one moment, to be read later, while methods are performed again.

| the class | at that moment | later, in a thread |
| --- | --- | --- |
| has no ``get_state`` of its own, few values of any size | containers are taken apart | all is encoded |
| the same, many values, Linux | fork | the child encodes |
| the same, no fork | all is encoded: a pause in proportion to the state | |
| has its own ``get_state`` | it is called, and asked for its first chunk | for the others |
"""

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import chain, islice
from typing import Any, Protocol

from framework.declare import Object
from framework.declare.portable import encoded
from framework.declare.portable.classes import classes_of
from framework.declare.portable.encode import state_of, written
from framework.declare.portable.parts import attributes
from framework.declare.portable.still import still
from framework.orb.moving.forked import SILENCE, CaptureFailed, Forked, can_fork

log = logging.getLogger(__name__)

ITEMS = 20_000  # of values: what is more is many
BYTES = 1 << 20  # of text: what is more is large


class Capture(Protocol):
    def chunks(self) -> Iterator[bytes]:
        """Once, in a thread. Errors of all kinds come here."""

    def close(self) -> None:
        """Nobody wants it any more; from any thread."""


class Held:
    """Chunks that are there, or come out of something that does not change any more."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)

    def chunks(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        pass


class Failed:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def chunks(self) -> Iterator[bytes]:
        raise self._error

    def close(self) -> None:
        pass


def capture(target: Object, silence: float = SILENCE) -> Capture:
    """Now. While nothing is performed on the object. Never raises: who reads the chunks gets the error."""
    try:
        if type(target).get_state is not Object.get_state:
            return Held(_begun(target))
        kind = type(target)
        taken = still(kind, state_of(target), ITEMS)
        if taken is not None:
            return Held(written(kind, taken))
        return _forked(target, silence) if can_fork() else Held(target.get_state())
    except Exception as error:  # also of a get_state that is not ours
        return Failed(error)


def _begun(target: Object) -> Iterator[bytes]:
    """The first chunk is asked for at once: nothing of a generator runs before."""
    chunks = iter(target.get_state())
    first = list(islice(chunks, 1))
    return map(_checked, chain(first, chunks))


def _checked(chunk: Any) -> bytes:
    if not isinstance(chunk, bytes | bytearray | memoryview):
        raise CaptureFailed(f"get_state gave a {type(chunk).__name__}: it must give bytes, in chunks")
    return bytes(chunk)


def _forked(target: Object, silence: float) -> Capture:
    kind: Any = type(target)
    classes_of(kind)  # now: the child imports nothing and asks nobody
    try:
        return Forked(kind.__qualname__, lambda: encoded(target), silence)
    except OSError as error:
        log.warning("no process to write the state of a %s (%s): methods wait for it", kind.__qualname__, error)
        return Held(target.get_state())


def prepare(kinds: Iterable[type[Object]]) -> None:
    """Find out which classes may occur in their states: it takes some milliseconds, which nobody has at the cut."""
    owners: list[Any] = [kind for kind in kinds if kind.get_state is Object.get_state]
    for owner in owners:
        classes_of(owner)


def is_much(state: Mapping[str, Any]) -> bool:
    """Found out by looking at no more than ``ITEMS`` values, usually far fewer."""
    items, size = len(state), 0
    seen: set[int] = set()
    todo: deque[Iterable[Any]] = deque([state.values()])
    while todo:
        for value in todo.popleft():
            if isinstance(value, str | bytes | bytearray):
                size += len(value)
            elif isinstance(value, int):
                size += value.bit_length() // 8
            elif id(value) not in seen and (inner := _inside(value)) is not None:
                seen.add(id(value))
                items += len(value) if isinstance(value, Sized) else 1
                todo.append(inner)
            if items > ITEMS or size > BYTES:
                return True
    return False


def _inside(value: Any) -> Iterable[Any] | None:
    if isinstance(value, dict):
        return chain.from_iterable(value.items())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return value
    names = None if isinstance(value, type) else attributes(value)
    return None if names is None else (getattr(value, name) for name in names)
