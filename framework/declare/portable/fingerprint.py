"""A short word for the state of an object: equal at two replicas iff their states are (A7).

What may stand in a state, and what a value is made of, is as for its way to another node (``parts``). But neither the
order of keys in a dict, nor that of elements in a set, nor that in which attributes came up counts: compatible calls
may be performed in different orders.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from framework.declare.portable import tags
from framework.declare.portable.classes import Classes, NotPortable, classes_of
from framework.declare.portable.encode import state_of
from framework.declare.portable.leaves import Unknown
from framework.declare.portable.parts import opened

_SIZE = 16
_LARGE = 4096  # bytes
_ROUND = 1 << (8 * _SIZE)
_MAPPINGS = frozenset((tags.DICT, tags.COUNTER, tags.DEFAULT))
_SETS = frozenset((tags.SET, tags.FROZENSET))
_NAMED = frozenset((tags.INSTANCE, tags.STRUCT, tags.NAMED))
_PLAIN = frozenset((bool, float, type(None), str, bytes))
_MOST, _LEAST = (1 << 64) - 1, -(1 << 63)

_encode = msgspec.msgpack.Encoder().encode


#: Is told how many bytes have been looked at.
Rest = Callable[[int], object]


class _Looking(NamedTuple):
    classes: Classes
    rest: Rest


def fingerprint(target: object) -> str:
    """NotPortable if an attribute cannot be compared, just as it could not travel."""
    return fingerprint_of(type(target), state_of(target))


def fingerprint_of(owner: Any, state: dict[str, Any], rest: Rest = lambda size: None) -> str:
    """The same, of attributes that are given. ``rest`` hears of each large value, and may make a pause."""
    try:
        return _of(state, _Looking(classes_of(owner), rest), False, True).hex()
    except Unknown:
        raise NotPortable(f"{owner.__qualname__} holds something that cannot travel to another node") from None
    except RecursionError:
        raise NotPortable(f"{owner.__qualname__} is nested too deeply to be compared") from None


def _of(value: Any, looking: _Looking, of_attribute: bool, whole: bool = False) -> bytes:
    kind = type(value)
    if kind in _PLAIN or (kind is int and _LEAST <= value <= _MOST):
        data = _written(value)
        if len(data) > _LARGE:
            looking.rest(len(data))
        return _hash(data)
    token, within = opened(value, looking.classes, of_attribute)
    if within is None:
        return _hash(_encode(token))
    tag = token[0]
    if tag in _MAPPINGS:
        pairs = zip(within, within, strict=True)
        return _any_order(token, (_of(k, looking, False) + _of(v, looking, whole) for k, v in pairs))
    if tag in _SETS:
        return _any_order(token, (_of(v, looking, False) for v in within))
    if tag in _NAMED:
        tag, name, names = token
        inner = (_written(n) + _of(v, looking, False) for n, v in zip(names, within, strict=True))
        return _any_order([tag, name], inner)
    hasher = blake2b(_encode(token), digest_size=_SIZE)
    for inside in within:
        hasher.update(_of(inside, looking, False))
    return hasher.digest()


def _any_order(token: list[Any], inner: Iterator[bytes]) -> bytes:
    """A sum does not tell in which order it was made."""
    total = sum(int.from_bytes(_hash(data)) for data in inner) % _ROUND
    return _hash(_encode(token) + total.to_bytes(_SIZE))


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=_SIZE).digest()


def _written(value: Any) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:  # half a surrogate pair
        return _encode([tags.PIECES, value.encode("utf-8", "surrogatepass")])
