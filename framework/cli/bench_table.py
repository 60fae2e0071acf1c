"""What ``obo bench rpc`` shows at the end."""

from collections.abc import Mapping
from typing import Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from framework.bench.measure import Result
from framework.bench.rpc import TARGETS, Row, Target

_ORDER = ("lone", "async", "oneway", "mcast0_lone", "mcast0", "mcast100_lone", "mcast100")


def show(result: Result) -> None:
    out = Console()
    for payload in result.plan.payloads:
        out.print(_rows(payload, [r for r in result.rows if r.payload == payload]))
    out.print(ratios(result, TARGETS))
    if result.soak is not None:
        s = result.soak
        out.print(f"rss_growth was measured over {s.seconds:g} s at {s.rate:.0f} calls/s", highlight=False)
    for note in result.notes:
        out.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True, style="yellow")


def _rows(payload: int, rows: list[Row]) -> Table:
    """It fits 80 columns."""
    caption = "median of the rounds; CPU in µs per call: client / servers; RSS in MiB: client / largest server"
    table = Table(title=f"obo bench rpc, {payload} B", caption=caption, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("row", "p50 µs", "p99 µs", "calls/s", "CPU", "RSS"):
        table.add_column(name, justify="left" if name in ("row", "CPU", "RSS") else "right", no_wrap=True)
    for r in sorted(rows, key=lambda r: _ORDER.index(r.row)):
        words = [f"{r.system} {r.row}", f"{r.p50_us:.0f}", f"{r.p99_us:.0f}", f"{r.calls_per_s:.0f}"]
        table.add_row(*words, *_costs(r))
    return table


def _costs(r: Row) -> tuple[str, str]:
    client, *servers = ("?" if cpu is None else f"{cpu:.0f}" for cpu in r.cpu_us_per_call.values())
    first, *others = (rss or 0.0 for rss in r.rss_mib.values())
    return f"{client} / {' '.join(servers)}", f"{first:.0f} / {max(others):.0f}"


class Judging(Protocol):
    """A result with ratios."""

    ratios: dict[str, float | None]
    spread: dict[str, tuple[float, float] | None]


def ratios(result: Judging, targets: Mapping[str, Target | None]) -> Table:
    table = Table(caption="only ratios of one run mean anything; docs/bench.md says what each is")
    for name in ("ratio", "measured", "least to largest", "to reach", "reached"):
        table.add_column(name, justify="right" if name in ("measured", "to reach") else "left", no_wrap=True)
    for name, value in result.ratios.items():
        spread, target = result.spread.get(name), targets[name]
        reached = target.reached(value) if target is not None else None
        table.add_row(
            name,
            "-" if value is None else f"{value:.2f}",
            f"{spread[0]:.2f} to {spread[1]:.2f}" if spread is not None else "",
            f"{'≤' if target.lower else '≥'} {target.value:g}" if target is not None else "",
            {True: "[green]yes", False: "[red]no", None: ""}[reached],
        )
    return table
