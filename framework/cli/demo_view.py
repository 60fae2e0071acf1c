"""What ``obo demo`` shows while it runs: a live picture in a terminal, plain lines elsewhere."""

import re
import time
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from framework.cli.demo_money import NAME, Tally
from framework.cli.sql_replicas import queue_of, state_of

WIDTH = 100
EVERY = 2.0  # seconds between two plain lines
_BARS = "▁▂▃▄▅▆▇█"
_SECONDS = 60  # of the past that are drawn


class View:
    """Use it in a ``with``. ``update`` as often as you like; ``event`` for what must not be missed."""

    def __init__(self, console: Console, seconds: float) -> None:
        self.console = console
        self._seconds = seconds
        self._events: list[tuple[float, str, str]] = []
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._tally: Tally | None = None
        self._told: dict[str, dict[str, Any]] = {}
        self._next = 0.0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._tally.began if self._tally is not None else 0.0

    def event(self, text: str, style: str = "bold") -> None:
        self._events.append((self.elapsed, text, style))
        if self._live is None:
            self.console.print(f"{self.elapsed:5.1f} s  {text}", markup=False, soft_wrap=True)
        else:
            self._draw()

    def begin(self, tally: Tally) -> None:
        self._tally = tally
        self._next = EVERY

    def update(self, told: dict[str, dict[str, Any]]) -> None:
        self._told = told
        tally = self._tally
        assert tally is not None
        if self._live is not None:
            self._draw()
        elif self.elapsed >= self._next:
            self._next = self.elapsed + EVERY
            self.console.print(f"{self.elapsed:5.1f} s  {_line(tally, told)}", markup=False, soft_wrap=True)

    def _draw(self) -> None:
        assert self._live is not None
        if self._tally is not None:
            self._live.update(self._picture(self._tally), refresh=True)

    def _picture(self, tally: Tally) -> RenderableType:
        width = min(self.console.width, WIDTH)
        speed, half, nearly_all = tally.speed()
        numbers = Text.assemble(
            (f"{tally.confirmed:,}", "bold"), " transfers   ", (f"{speed:,.0f}", "bold green"), " a second   ",
            "half within ", (f"{1000 * half:.0f} ms", "bold"), ", ",
            "99 of 100 within ", (f"{1000 * nearly_all:.0f} ms", "bold"),
        )  # fmt: skip
        bar = ProgressBar(self._seconds, min(self.elapsed, self._seconds), width=width - 4)
        lines: list[RenderableType] = [
            bar,
            Text(),
            self._nodes(width),
            Text(),
            numbers,
            _spark(tally, width - 4),
            Text(),
        ]
        lines += [Text(f"{at:5.1f} s  {text}", style=style) for at, text, style in self._events[-6:]]
        title = f"a bank on three nodes · {self.elapsed:.0f} s"
        return Panel(Group(*lines), title=title, width=width, box=box.ROUNDED, padding=(0, 1))

    def _nodes(self, width: int) -> Table:
        table = Table(box=None, width=width - 4, padding=(0, 1), header_style="dim")
        for name, right in (
            ("node", False), ("state", False), ("view", True), ("waiting", True), ("performed", True),
            ("as they came", True), ("one after another", True),
        ):  # fmt: skip
            table.add_column(name, justify="right" if right else "left", no_wrap=True)
        for node, status in self._told.items():
            replica = f"{NAME}@{node}"
            words, colour = _short(node, status), state_of(replica, status)[1]
            stages = status.get("replicas", {}).get(replica)
            if stages is None:
                table.add_row(node, Text(words, style=colour))
                continue
            begun, waited = stages["begun"], stages["waited"]
            numbers = (status["view"], queue_of(replica, status), begun, begun - waited, waited)
            table.add_row(node, Text(words, style=colour), *(f"{n:,}" for n in numbers))
        return table


def _spark(tally: Tally, width: int) -> Text:
    """Transfers in each second: a hole is a time in which nothing went on."""
    counts = tally.per_second[:-1][-min(_SECONDS, width // 2) :]
    most = max(counts, default=0) or 1
    bars = "".join(_BARS[min(7, count * 8 // (most + 1))] * 2 if count else "  " for count in counts)
    return Text(bars, style="green", no_wrap=True, overflow="crop")


def _line(tally: Tally, told: dict[str, dict[str, Any]]) -> str:
    speed, half, nearly_all = tally.speed()
    states = ", ".join(f"{node} {_short(node, status)}" for node, status in told.items())
    return (
        f"{tally.confirmed:6,} transfers, {speed:5,.0f} a second, half within {1000 * half:3.0f} ms, "
        f"99 of 100 within {1000 * nearly_all:4.0f} ms; {states}"
    )


def _short(node: str, status: dict[str, Any]) -> str:
    """The state without its reasons and numbers."""
    return re.split(": |, | from ", state_of(f"{NAME}@{node}", status)[0])[0]
