"""From an object to chunks of bytes."""

from collections.abc import Iterator
from typing import Any

import msgspec

from framework.declare.portable import tags
from framework.declare.portable.classes import NotPortable, classes_of
from framework.declare.portable.leaves import Unknown
from framework.declare.portable.parts import PIECE, opened
from framework.declare.portable.places import place_of

#: Attributes with this prefix belong to the framework.
PRIVATE = "_obo_"
_ROOM = tags.CHUNK // 8  # of a chunk, in tokens of about eight bytes
_AROUND = 4  # such tokens, for one that is a list
_MOST, _LEAST = (1 << 64) - 1, -(1 << 63)
_PLAIN = frozenset((bool, float, type(None)))
_LONG = frozenset((str, bytes))

_encode = msgspec.msgpack.Encoder().encode


def state_of(target: object) -> dict[str, Any]:
    return {name: value for name, value in vars(target).items() if not name.startswith(PRIVATE)}


def encoded(target: object) -> Iterator[bytes]:
    """The attributes of an object. NotPortable if one of them cannot travel. Lazy: what changes meanwhile is seen."""
    return written(type(target), state_of(target))


def written(owner: type, state: dict[str, Any]) -> Iterator[bytes]:
    """The same, of attributes that are given."""
    try:
        yield from _chunks(owner, state)
    except _Stuck as stuck:
        raise NotPortable(_told(owner, state, stuck)) from None


class _Stuck(Exception):
    def __init__(self, value: Any, why: str) -> None:
        self.value = value
        self.why = why


def _chunks(owner: type, state: dict[str, Any]) -> Iterator[bytes]:
    """Goes through all values, each container before what is in it. Those that are open lie on a stack."""
    classes = classes_of(owner)
    out: list[Any] = [[tags.VERSION, owner.__qualname__]]
    room = _ROOM
    values: Iterator[Any] = iter((state,))
    above: list[tuple[Iterator[Any], int]] = []
    inside: set[int] = set()  # ids of the containers that are open
    while True:
        for value in values:
            if room <= 0:
                yield _packed(out)
                out, room = [], _ROOM
            kind = type(value)
            if kind in _PLAIN or (kind is int and _LEAST <= value <= _MOST):
                out.append(value)
                room -= 1
                continue
            if kind in _LONG and len(value) <= PIECE:
                out.append(value)
                room -= 1 + len(value) // 8
                continue
            try:
                token, within = opened(value, classes, of_attribute=len(above) == 1)
            except Unknown as error:
                raise _Stuck(value, str(error)) from None
            out.append(token)
            room -= _AROUND
            if within is not None:
                if id(value) in inside:
                    raise _Stuck(value, "it holds itself")
                inside.add(id(value))
                above.append((values, id(value)))
                values = within
                break
        else:
            if not above:
                yield _packed(out)
                return
            values, closed = above.pop()
            inside.discard(closed)


def _packed(tokens: list[Any]) -> bytes:
    try:
        return _encode(tokens)
    except UnicodeEncodeError:  # half a surrogate pair: not text for msgpack, but a str for Python
        return _encode([part for token in tokens for part in _spelled(token)])


def _spelled(token: Any) -> list[Any]:
    if type(token) is not str:
        return [token]
    return [[tags.PIECES, 1, True], token.encode("utf-8", "surrogatepass")]


def _told(owner: type, state: dict[str, Any], stuck: _Stuck) -> str:
    kind = type(stuck.value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    why = f"{stuck.why}; or " if stuck.why else ""
    return (
        f"{owner.__qualname__}: {place_of(state, stuck.value)} is a {name}, which cannot travel to another node: {why}"
        f"keep it out of the attributes, or give {owner.__qualname__} its own get_state and set_state"
    )
