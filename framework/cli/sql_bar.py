"""A progress bar for work on rows: how many, of how many, how fast. On stderr; silent where that is no terminal."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class Bar:
    """Use it in a ``with``. ``total`` in whatever unit ``done`` counts."""

    def __init__(self, what: str, total: float | None) -> None:
        console = Console(stderr=True)
        said = TextColumn("{task.fields[said]}")
        columns = (TextColumn("{task.description}"), BarColumn(24), said, TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(what, total=total, said="")
        self._began = time.monotonic()
        self.rows = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self._began, 1e-6)

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds

    def advance(self, rows: int, done: float) -> None:
        """``done``: all in all, so far."""
        self.rows += rows
        self._bar.update(self._task, completed=done, said=f"{self.rows:,} rows, {self.rate:,.0f}/s")

    def say(self, what: str) -> None:
        self._bar.update(self._task, description=what)
