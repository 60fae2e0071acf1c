"""A key as a short string, so that footprints are small and every replica judges alike (protocol.md §2.1).

The one rule that safety needs: keys that are equal in Python give equal strings. ``1``, ``True``, ``1.0`` and
``Decimal(1)`` are one dictionary key, so they are one key here. The other direction is only nice to have: two
keys with one string order more than they must, never less. It holds but for hashes of long keys and
structures.

A text stands for itself, so that footprints read well in a trace; anything else starts with a sign of
``_SIGNS``, and a text that does so, too, is quoted.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from hashlib import blake2b
from typing import Any
from uuid import UUID

#: Longer keys are cut and end in a hash: a footprint travels with every request and lies in every index.
LONGEST = 64

_SIGNS = frozenset("'#%@([{<")
_BITS = 1100  # a float has at most 1074; a larger number could cost any amount of memory as a key
_DIGITS = 330

KINDS = "str, int, bool, float, Decimal, bytes, Enum, date, datetime, timedelta, UUID, or a tuple of these"


class OddKeyError(TypeError):
    """A value that cannot be a key; the caller knows which method and parameter it came from."""


def canonical(value: object) -> str:
    """The string of a key."""
    if type(value) is str and len(value) <= LONGEST and value.isascii():
        if value and value[0] not in _SIGNS:
            return value
        return "'" + value
    text = _text(value)
    return text if len(text) <= LONGEST else _shortened(text)


def _shortened(text: str) -> str:
    return f"{text[:20]}~{blake2b(text.encode(), digest_size=16).hexdigest()}"


def _text(value: object) -> str:
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            _check_equality(value, kind)
            return write(value)
    raise OddKeyError(f"a {type(value).__name__} cannot be a key ({KINDS})")


def _check_equality(value: object, kind: type) -> None:
    """A subclass with its own equality (case-insensitive text, say) may call equal what we write apart."""
    own: object = type(value).__eq__
    if type(value) is not kind and own is not kind.__eq__:
        raise OddKeyError(f"a {type(value).__name__} compares in its own way and cannot be a key ({KINDS})")


def _str(value: str) -> str:
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OddKeyError("a text with a lone surrogate cannot be sent") from None
    return text if text and text[0] not in _SIGNS else "'" + text


def _number(value: int | float | Decimal | Fraction) -> str:
    if isinstance(value, (float, Decimal)):
        special = _special(value)
        if special is not None:
            return special
    over, under = value.as_integer_ratio()
    if over.bit_length() > _BITS or under.bit_length() > _BITS:
        raise OddKeyError("a number so large or small cannot be a key")
    return f"#{over}" if under == 1 else f"#{over}/{under}"


def _special(value: float | Decimal) -> str | None:
    """What has no ratio, or one that could fill the memory: Decimal('1E+999999999') is short to send."""
    number = Decimal(value)
    if number.is_nan():
        return "#nan"
    if number.is_infinite():
        return "#inf" if number > 0 else "#-inf"
    if number.is_zero():
        return "#0"
    if abs(number.adjusted()) > _DIGITS:
        raise OddKeyError("a number so large or small cannot be a key")
    return None


def _datetime(value: datetime) -> str:
    """Instants that are equal are written alike: in UTC."""
    if value.utcoffset() is not None:
        value = value.astimezone(UTC)
    return f"@{value.replace(fold=0).isoformat()}"


def _time(value: time) -> str:
    if value.tzinfo is not None:
        raise OddKeyError("a time with a time zone cannot be a key: use a datetime")
    return f"@{value.replace(fold=0).isoformat()}"


def _parts(values: list[str]) -> str:
    return ",".join(f"{len(v)}:{v}" for v in values)


# In this order: a datetime is a date, a bool an int; an Enum of texts or numbers equals its value.
_WRITERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (str, _str),
    (int, _number),
    (float, _number),
    (Decimal, _number),
    (Fraction, _number),
    (bytes, lambda v: f"%{bytes(v).hex()}"),
    (Enum, lambda v: f"<{type(v).__qualname__}.{v.name}"),
    (tuple, lambda v: f"({_parts([_text(part) for part in v])}"),
    (frozenset, lambda v: f"{{{_parts(sorted(_text(part) for part in v))}"),
    (datetime, _datetime),
    (date, lambda v: f"@{v.isoformat()}"),
    (time, _time),
    (timedelta, lambda v: f"@{v // timedelta(microseconds=1)}us"),
    (UUID, lambda v: f"<{v.hex}"),
    (type(None), lambda v: "<None"),
)
