"""Values that hold no others: to a token, and back. One pair of functions for each type."""

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from framework.declare.portable import tags
from framework.declare.portable.classes import Classes, name_of

Token = list[Any]


class Unknown(Exception):
    """This value is of no type that is known here; the text says what is in its way, if that is not its own type."""


def leaf(value: Any) -> Token | None:
    """None: not a leaf."""
    write = _WRITE.get(type(value))
    return None if write is None else write(value)


def member(value: Enum) -> Token:
    if isinstance(value, Flag):  # combinations have no name of their own
        return [tags.FLAG, name_of(type(value)), _big(value.value)]
    return [tags.MEMBER, name_of(type(value)), value.name]


def read(token: Token, classes: Classes) -> Any:
    """KeyError, ValueError, TypeError: these bytes do not come from ``leaf``."""
    tag, *rest = token
    if tag == tags.MEMBER:
        return classes.of(rest[0])[rest[1]]
    if tag == tags.FLAG:
        return classes.of(rest[0])(_read_big(rest[1]))
    return _READ[tag](*rest)


def _big(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, signed=True)


def _read_big(data: bytes) -> int:
    return int.from_bytes(data, signed=True)


def _zone(zone: tzinfo | None) -> Any:
    if zone is None:
        return None
    if type(zone) is timezone:
        offset, name = zone.utcoffset(None), zone.tzname(None)
        return [_delta(offset), None if name == timezone(offset).tzname(None) else name]
    if type(zone) is ZoneInfo and zone.key:
        return zone.key
    raise Unknown(f"its time zone is a {type(zone).__qualname__}")


def _read_zone(said: Any) -> tzinfo | None:
    if said is None:
        return None
    if isinstance(said, str):
        return ZoneInfo(said)
    offset, name = timedelta(*said[0]), said[1]
    return timezone(offset) if name is None else timezone(offset, name)


def _delta(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _day(value: date) -> list[int]:
    return [value.year, value.month, value.day]


def _clock(value: time | datetime) -> list[int]:
    return [value.hour, value.minute, value.second, value.microsecond]


def _read_datetime(day: list[int], clock: list[int], fold: int, zone: Any) -> datetime:
    return datetime(*day, *clock, tzinfo=_read_zone(zone), fold=fold)  # type: ignore[arg-type, misc]


def _read_time(clock: list[int], fold: int, zone: Any) -> time:
    return time(*clock, tzinfo=_read_zone(zone), fold=fold)  # type: ignore[arg-type, misc]


def _pattern(value: re.Pattern[Any]) -> Token:
    return [tags.PATTERN, value.pattern, value.flags & ~re.UNICODE if isinstance(value.pattern, str) else value.flags]


_WRITE: dict[type[Any], Callable[[Any], Token]] = {
    int: lambda v: [tags.BIG, _big(v)],
    datetime: lambda v: [tags.DATETIME, _day(v), _clock(v), v.fold, _zone(v.tzinfo)],
    date: lambda v: [tags.DATE, *_day(v)],
    time: lambda v: [tags.TIME, _clock(v), v.fold, _zone(v.tzinfo)],
    timedelta: lambda v: [tags.DELTA, *_delta(v)],
    Decimal: lambda v: [tags.DECIMAL, str(v)],
    UUID: lambda v: [tags.UUID_, v.bytes],
    complex: lambda v: [tags.COMPLEX, v.real, v.imag],
    Fraction: lambda v: [tags.FRACTION, _big(v.numerator), _big(v.denominator)],
    range: lambda v: [tags.RANGE, _big(v.start), _big(v.stop), _big(v.step)],
    timezone: lambda v: [tags.TIMEZONE, _zone(v)],
    ZoneInfo: lambda v: [tags.TIMEZONE, _zone(v)],
    re.Pattern: _pattern,
    PurePosixPath: lambda v: [tags.POSIX_PATH, str(v)],
    PureWindowsPath: lambda v: [tags.WINDOWS_PATH, str(v)],
    bytearray: lambda v: [tags.ARRAY, bytes(v)],
}

_READ: dict[int, Callable[..., Any]] = {
    tags.BIG: _read_big,
    tags.DATETIME: _read_datetime,
    tags.DATE: date,
    tags.TIME: _read_time,
    tags.DELTA: timedelta,
    tags.DECIMAL: Decimal,
    tags.UUID_: lambda data: UUID(bytes=data),
    tags.COMPLEX: complex,
    tags.FRACTION: lambda n, d: Fraction(_read_big(n), _read_big(d)),
    tags.RANGE: lambda *ends: range(*map(_read_big, ends)),
    tags.TIMEZONE: _read_zone,
    tags.PATTERN: re.compile,
    tags.POSIX_PATH: PurePosixPath,
    tags.WINDOWS_PATH: PureWindowsPath,
    tags.ARRAY: bytearray,
}
