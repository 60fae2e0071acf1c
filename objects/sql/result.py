"""What goes in and what comes out of a statement."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from objects.sql.errors import DataError, shown

#: By position for ``?``, by name for ``:name``.
Params = Sequence[Any] | Mapping[str, Any]


LARGEST: Final = 256 << 20  # bytes of a result, roughly
_ROWS: Final = 10_000  # that are fetched at a time
_CELL: Final = 16


class Result(msgspec.Struct, frozen=True):
    """``rows`` are those of a SELECT or of RETURNING. ``rowcount``: rows changed, or given by a SELECT. ``lastrowid``:
    the key that SQLite gave to the last row that this very statement inserted; None wherever that means nothing."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    rowcount: int
    lastrowid: int | None = None

    def dicts(self) -> list[dict[str, Any]]:
        """The rows by the names of the columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def scalar(self) -> Any:
        """The first value of the first row; None if there is no row."""
        return self.rows[0][0] if self.rows else None


def fetched(cursor: Any, text: str) -> list[tuple[Any, ...]]:
    """All rows; DataError if there are too many for an answer: a statement without an end would fill the memory."""
    rows: list[tuple[Any, ...]] = cursor.fetchmany(_ROWS)
    if len(rows) < _ROWS:
        return rows
    size, more = _size(rows), rows
    while more:
        more = cursor.fetchmany(_ROWS)
        rows += more
        size += _size(more)
        if size > LARGEST:
            cursor.close()
            raise DataError(f"the result is larger than {LARGEST >> 20} MB: ask for less at a time; in: {shown(text)}")
    return rows


def _size(rows: Sequence[tuple[Any, ...]]) -> int:
    """In bytes, roughly."""
    return sum([len(v) if type(v) in (str, bytes) else _CELL for row in rows for v in row])


def summed(results: Sequence[Result]) -> Result:
    """Of one statement that was performed several times."""
    rows = [row for result in results for row in result.rows]
    return Result(results[0].columns, rows, sum(result.rowcount for result in results))
