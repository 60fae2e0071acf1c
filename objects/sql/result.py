"""What goes in and what comes out of a statement."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

#: By position for ``?``, by name for ``:name``.
Params = Sequence[Any] | Mapping[str, Any]


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


def summed(results: Sequence[Result]) -> Result:
    """Of one statement that was performed several times."""
    rows = [row for result in results for row in result.rows]
    return Result(results[0].columns, rows, sum(result.rowcount for result in results))
