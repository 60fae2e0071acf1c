"""Results of SQL statements as people and programs read them: a table, CSV, or JSON, one object per row and line."""

import csv
import json
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TextIO, get_args

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from framework.cli.look import encodable

if TYPE_CHECKING:
    from objects.sql.result import Result

Mode = Literal["table", "csv", "json"]
MODES: tuple[Mode, ...] = get_args(Mode)

MOST_ROWS = 1000  # of a table on a terminal
_MOST_BYTES = 24  # of a blob in a table
_NARROWEST = 10  # a table with narrower columns is shown row by row
_WIDEST = 100_000  # of what is no terminal: nothing is folded


class Shower:
    """``notes``: say how many rows there were, as in a shell."""

    def __init__(
        self, mode: Mode = "table", notes: bool = True, timing: bool = False, out: TextIO | None = None
    ) -> None:
        self.mode = mode
        self.notes = notes
        self.timing = timing
        out = sys.stdout if out is None else out
        encodable(out)
        self.console = Console(file=out, highlight=False, soft_wrap=False)
        if not self.console.is_terminal:
            self.console.width = _WIDEST

    def show(self, result: "Result", seconds: float | None = None) -> None:
        if result.columns:
            getattr(self, f"_{self.mode}")(result)
        self.console.file.flush()
        self.note(_count(result) if self.notes and self.mode == "table" else "", seconds)

    def note(self, text: str, seconds: float | None = None) -> None:
        """Beside the result; stdout belongs to CSV and JSON alone."""
        took = f"{1000 * seconds:.1f} ms" if self.timing and seconds is not None else ""
        words = ", ".join(word for word in (text, took) if word)
        if words:
            aside = self.console if self.mode == "table" else Console(stderr=True)
            aside.print(words, style="dim", markup=False, highlight=False)

    def _csv(self, result: "Result") -> None:
        writer = csv.writer(self.console.file, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows([plain(value, "") for value in row] for row in result.rows)

    def _json(self, result: "Result") -> None:
        names = distinct(result.columns)
        for row in result.rows:
            record = {name: as_json(value) for name, value in zip(names, row, strict=True)}
            self.console.file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def _table(self, result: "Result") -> None:
        shown = result.rows[:MOST_ROWS] if self.console.is_terminal else result.rows
        table = Table(box=box.ROUNDED if self.console.is_terminal else box.ASCII2, header_style="bold")
        for at, name in enumerate(result.columns):
            right = any(row[at] is not None for row in shown) and all(_is_number(row[at]) for row in shown)
            table.add_column(Text(printable(name)), justify="right" if right else "left", overflow="fold")
        for row in shown:
            table.add_row(*map(_cell, row))
        wanted = Measurement.get(self.console, self.console.options.update(width=_WIDEST), table).maximum
        width = self.console.width
        if wanted > width and width / max(1, len(result.columns)) < _NARROWEST:
            self._row_by_row(result.columns, shown)
        else:
            self.console.print(table)
        if len(shown) < len(result.rows):
            more = f"{len(result.rows) - len(shown):,} more rows are not shown: .mode csv or .mode json shows all"
            self.console.print(more, style="yellow")

    def _row_by_row(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A row too wide for the terminal: each value on a line of its own."""
        for number, row in enumerate(rows, 1):
            self.console.print(f"── row {number} ".ljust(40, "─"), style="dim")
            grid = Table.grid(padding=(0, 2))
            grid.add_column(justify="right", style="bold", no_wrap=True)
            grid.add_column(overflow="fold")
            for name, value in zip(columns, row, strict=True):
                grid.add_row(Text(printable(name)), _cell(value))
            self.console.print(grid)


def _count(result: "Result") -> str:
    if result.columns:
        return f"{len(result.rows):,} {'row' if len(result.rows) == 1 else 'rows'}"
    return f"{result.rowcount:,} {'row' if result.rowcount == 1 else 'rows'} changed"


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _cell(value: object) -> Text:
    if value is None:
        return Text("NULL", style="dim italic")
    if isinstance(value, bytes) and len(value) > _MOST_BYTES:
        return Text(f"{plain(value[:_MOST_BYTES])}… ({len(value):,} bytes)")
    return Text(printable(plain(value)))


def plain(value: object, null: str = "NULL") -> str:
    """A value as text."""
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, list | tuple | dict):
        return json.dumps(as_json(value), ensure_ascii=False)
    return str(value)


def as_json(value: object) -> Any:
    """Numbers, texts, truth and null as they are; everything else as text."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)  # JSON has no NaN
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if isinstance(value, dict):
        return {str(name): as_json(one) for name, one in value.items()}
    return str(value)


def printable(text: str) -> str:
    """Whatever a value holds, it does not steer the terminal."""
    if text.isprintable():
        return text
    return "".join(_shown(c) for c in text)


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs"):
        return character
    return character.encode("unicode_escape").decode()


def distinct(names: Sequence[str]) -> list[str]:
    """A JSON object has each name once: a, a become a, a_2."""
    return list(_distinct(names))


def _distinct(names: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        one, number = name, 1
        while one in seen:
            number += 1
            one = f"{name}_{number}"
        seen.add(one)
        yield one
