"""Python values in SQLite, which itself knows integers, floats, text, blobs and NULL.

Going in, a value is turned into one of these by its own type. Coming back, it is turned again by the declared type of
its column: the first word of it, so DECIMAL(10,2) is DECIMAL. What a statement computes has no declared type and comes
back as SQLite has it. docs/sql.md has the table.

A value that would come back as another one is refused: a Decimal of more than 15 digits (SQLite computes with floats),
NaN (it would be NULL), an integer beyond 64 bits.

The standard library keeps converters for the whole process. Ours do not raise: what they do not know stays as it is.
"""

import datetime as dt
import math
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from objects.sql.errors import DataError
from objects.sql.result import Params

_SAFE: Final = frozenset({int, str, bytes, bool, type(None)})
_DIGITS: Final = 15  # that a float keeps for sure
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def adapted(params: Params) -> Params:
    """Parameters as SQLite takes them."""
    if type(params) in (tuple, list):  # by far the most; to ask for a Mapping takes longer
        return params if _SAFE.issuperset(map(type, params)) else [_adapt(value) for value in params]
    if isinstance(params, Mapping):
        return {name: _adapt(value) for name, value in params.items()}
    return [_adapt(value) for value in params]


def _adapt(value: Any) -> Any:
    kind = type(value)
    if kind in _SAFE:
        return value
    write = _WRITE.get(kind)
    if write is None:
        raise DataError(
            f"{value!r:.80} is a {kind.__name__}, which no column can hold: pass None, bool, int, float, str, bytes, "
            "Decimal, datetime, date, time, timedelta or UUID"
        )
    return write(value)


def _from_float(value: float) -> float:
    if math.isnan(value):
        raise DataError("SQLite has no NaN (it would become NULL): pass None")
    return value


def _from_decimal(value: Decimal) -> int | float:
    digits = value.as_tuple().digits
    if not value.is_finite() or len(value.normalize().as_tuple().digits) > _DIGITS:
        raise DataError(
            f"Decimal {value} ({len(digits)} digits): SQLite keeps {_DIGITS}; pass str(value), to a column of type TEXT"
        )
    if value == value.to_integral_value() and value.adjusted() < _DIGITS:
        return int(value)
    found = float(value)
    if math.isinf(found) or (found == 0 and value != 0):
        raise DataError(f"Decimal {value} is beyond what SQLite keeps: pass str(value), to a column of type TEXT")
    return found


def _from_datetime(value: dt.datetime) -> str:
    """Aware ones in UTC, so that they compare as text; as CURRENT_TIMESTAMP writes it otherwise."""
    if value.tzinfo is not None:
        try:
            value = value.astimezone(dt.UTC)
        except OverflowError:
            raise DataError(f"{value!r} is beyond the years 1 to 9999 in UTC") from None
    return value.isoformat(" ")


_WRITE: Final[dict[type, Callable[[Any], Any]]] = {
    float: _from_float,
    Decimal: _from_decimal,
    dt.datetime: _from_datetime,
    dt.date: dt.date.isoformat,
    dt.time: dt.time.isoformat,
    dt.timedelta: lambda value: value // _MICROSECOND,
    UUID: str,
    bytearray: bytes,
    memoryview: bytes,
}


def _plain(data: bytes) -> Any:
    """What is no value of the declared type comes back as SQLite has it."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _converter(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    def convert(data: bytes) -> Any:
        try:
            return read(data.decode())
        except (ArithmeticError, ValueError, KeyError, OverflowError):
            return _plain(data)

    return convert


def _to_decimal(text: str) -> Decimal:
    found = Decimal(text)
    if not found.is_finite():
        raise ValueError(text)
    return found


_READ: Final[Mapping[Callable[[str], Any], Sequence[str]]] = {
    _to_decimal: ("DECIMAL", "NUMERIC"),
    UUID: ("UUID",),
    dt.datetime.fromisoformat: ("TIMESTAMP", "TIMESTAMPTZ", "DATETIME"),
    dt.date.fromisoformat: ("DATE",),
    dt.time.fromisoformat: ("TIME", "TIMETZ"),
    lambda text: dt.timedelta(microseconds=int(text)): ("INTERVAL",),
    {"0": False, "1": True}.__getitem__: ("BOOLEAN", "BOOL"),
}


#: Declared types by which values come back, their first word in upper case.
CONVERTED: Final = frozenset(name for names in _READ.values() for name in names)


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def register() -> None:
    for read, names in _READ.items():
        for name in names:
            sqlite3.register_converter(name, _converter(read))
