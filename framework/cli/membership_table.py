"""What ``obo bench membership`` shows at the end."""

from collections.abc import Iterable
from statistics import median

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from framework.bench.membership import RATIOS, Result, Run

_SHOWN = 10  # errors
_MEANING = {
    "leave_pause_over_median": "a node leaves in order: pause / median latency",
    "join_pause_over_median": "a node comes back, also with a large state",
    "crash_pause_over_suspicion": "a node is killed: pause / suspicion time",
    "client_errors": "calls that failed although there was a majority",
    "lost": "acknowledged, but not at a replica",
    "recovered_after_s": "seconds until 90 % of the throughput",
}


def show(result: Result) -> None:
    out = Console()
    for nodes in result.plan.nodes:
        out.print(_events([run for run in result.runs if run.nodes == nodes], result.plan.share))
    out.print(_ratios(result))
    for text in [text for run in result.runs for text in run.errors][:_SHOWN]:
        out.print(f"error: {text}", markup=False, highlight=False, soft_wrap=True, style="red")


def _events(runs: list[Run], share: float) -> Table:
    """One for all rounds with so many nodes."""
    busy = [r.busy for r in runs if r.busy is not None]
    caption = (
        f"{_range(r.rate for r in runs)} calls/s, {share:.0%} of what {runs[0].nodes} nodes took with many in flight"
        + (f": {median(busy):.0%} of all cores" if busy else "")
        + f"; median latency {_range((r.median_ms for r in runs), 1)} ms\n"
        "pauses in ms, median of the rounds (least to largest): how long the worst client waited without an answer;\n"
        "before the event; all at once. 90 % s: when throughput was back, at the latest"
    )
    table = Table(title=f"obo bench membership, {runs[0].nodes} nodes", caption=caption, box=SIMPLE_HEAD)
    for name in ("event", "took s", "pause", "before", "all", "errors", "90 % s"):
        table.add_column(name, justify="left" if name == "event" else "right", no_wrap=True)
    for events in zip(*[r.events for r in runs], strict=True):
        after = [e.recovered_after_s for e in events]
        known = [a for a in after if a is not None]
        table.add_row(
            events[0].event,
            f"{median(e.took_s for e in events):.2f}",
            _spread([e.pause_ms for e in events]),
            *(
                f"{median(pauses):.0f}"
                for pauses in ([e.steady_pause_ms for e in events], [e.pause_all_ms for e in events])
            ),
            str(sum(e.errors for e in events)),
            "never" if len(known) < len(after) else f"{max(known):.2f}",
        )
    return table


def _range(values: Iterable[float], digits: int = 0) -> str:
    found = sorted({f"{v:.{digits}f}" for v in values}, key=float)
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _spread(values: list[float]) -> str:
    return f"{median(values):.0f}" + (f" ({min(values):.0f} to {max(values):.0f})" if len(values) > 1 else "")


def _ratios(result: Result) -> Table:
    table = Table(
        box=SIMPLE_HEAD, caption="the worst event, by the median of its rounds; docs/bench.md says what each is"
    )
    for name in ("ratio", "measured", "to reach", "meaning"):
        table.add_column(name, justify="right" if name in ("measured", "to reach") else "left")
    for name, value in result.ratios.items():
        colour = {True: "[green]", False: "[red]", None: "[red]"}[result.targets[name].reached]
        shown = "never" if value is None else f"{value:.2f}" if value % 1 else f"{value:.0f}"
        table.add_row(name, shown, f"{colour}≤ {RATIOS[name]:g}", _MEANING[name])
    return table
