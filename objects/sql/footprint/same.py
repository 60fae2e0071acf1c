"""Values that are equal for the database give equal texts.

That is what safety needs. Values that differ may give one text, too: that only orders more. So texts of SQLite are
folded by all of its collations at once: no case, no spaces at the end. Where it is not certain how the database will
compare a value (the text '5' in a column of integers), there is no text, and the statement touches the whole table.

Values are as the driver gets them: None, int, float, str and bytes for SQLite.
"""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, Literal
from uuid import UUID

from framework import canonical

#: SQLite's affinities, then types of PostgreSQL.
Sort = Literal["integer", "real", "numeric", "text", "blob", "pg int", "pg text", "pg uuid", "pg bytes", "pg bool",
               "pg date", "other"]  # fmt: skip

#: The text of a value; None: not certain.
Same = Callable[[Any], str | None]

_LARGEST: Final = (1 << 63) - 1
_UPPER: Final = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}


def same(sort: Sort) -> Same:
    return _SAME[sort]


def _folded(value: str) -> str | None:
    """Short ASCII is the rule. Not certain: what cannot be sent, and SQLite's functions stop at a NUL."""
    text = value.rstrip(" ")
    if "\0" in text:
        return None
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return None
        return canonical(text.translate(_UPPER))
    return canonical(text.lower())


def _number(value: Any) -> str | None:
    """Of a column that turns texts into numbers where they look like one."""
    kind = type(value)
    if kind is int:
        return f"#{value}" if -_LARGEST <= value <= _LARGEST else None
    if kind is str:
        try:
            float(value)
        except ValueError:
            return _folded(value)
        return None
    if kind is float:
        return canonical(value) if value == value else None  # NaN becomes NULL
    if kind is bool:
        return f"#{int(value)}"
    return canonical(value) if kind is bytes else None


def _real(value: Any) -> str | None:
    return _number(float(value)) if type(value) is int and abs(value) <= _LARGEST else _number(value)


def _text(value: Any) -> str | None:
    """Numbers become texts, in a form that is the database's own: not certain."""
    if type(value) is str:
        return _folded(value)
    return canonical(value) if type(value) is bytes else None


def _blob(value: Any) -> str | None:
    """Of a column without a type: nothing is turned into anything."""
    return _folded(value) if type(value) is str else _number(value)


def _pg_int(value: Any) -> str | None:
    if type(value) is int:
        return f"#{value}"
    if type(value) is Decimal and value.is_finite() and value == value.to_integral_value() and abs(value) < _LARGEST:
        return f"#{int(value)}"
    return None


def _pg_text(value: Any) -> str | None:
    """Spaces at the end do not count in char(n), and varchar(n) drops those that are too many."""
    return canonical(value.rstrip(" ")) if type(value) is str and "\0" not in value else None


def _pg_uuid(value: Any) -> str | None:
    if type(value) is str:
        try:
            value = UUID(value)
        except ValueError:
            return None
    return canonical(value) if type(value) is UUID else None


def _only(kind: type) -> Same:
    return lambda value: canonical(value) if type(value) is kind else None


_SAME: Final[dict[Sort, Same]] = {
    "integer": _number,
    "real": _real,
    "numeric": _number,
    "text": _text,
    "blob": _blob,
    "pg int": _pg_int,
    "pg text": _pg_text,
    "pg uuid": _pg_uuid,
    "pg bytes": _only(bytes),
    "pg bool": _only(bool),
    "pg date": lambda value: canonical(value) if type(value) is date and not isinstance(value, datetime) else None,
    "other": lambda value: None,
}
