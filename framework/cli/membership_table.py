"""What ``obo bench membership`` shows at the end."""

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
    for run in result.runs:
        out.print(_events(run))
    out.print(_ratios(result))
    for text in [text for run in result.runs for text in run.errors][:_SHOWN]:
        out.print(f"error: {text}", markup=False, highlight=False, soft_wrap=True, style="red")


def _events(run: Run) -> Table:
    caption = (
        f"{run.rate:.0f} calls/s, a third of what {run.nodes} nodes took; median latency {run.median_ms:.1f} ms\n"
        "pauses in ms: how long the worst client waited without an answer; before the event; all at once\n"
        "90 % s: when throughput was back"
    )
    table = Table(title=f"obo bench membership, {run.nodes} nodes", caption=caption, box=SIMPLE_HEAD)
    for name in ("event", "node", "took s", "pause", "before", "all", "errors", "90 % s"):
        table.add_column(name, justify="left" if name in ("event", "node") else "right", no_wrap=True)
    for e in run.events:
        back = "never" if e.recovered_after_s is None else f"{e.recovered_after_s:.2f}"
        pauses = (f"{p:.0f}" for p in (e.pause_ms, e.steady_pause_ms, e.pause_all_ms))
        table.add_row(e.event, e.victim, f"{e.took_s:.2f}", *pauses, str(e.errors), back)
    return table


def _ratios(result: Result) -> Table:
    table = Table(box=SIMPLE_HEAD, caption="the worst of all runs and events; docs/bench.md says what each is")
    for name in ("ratio", "measured", "to reach", "meaning"):
        table.add_column(name, justify="right" if name in ("measured", "to reach") else "left")
    for name, value in result.ratios.items():
        colour = {True: "[green]", False: "[red]", None: "[red]"}[result.targets[name].reached]
        shown = "never" if value is None else f"{value:.2f}" if value % 1 else f"{value:.0f}"
        table.add_row(name, shown, f"{colour}≤ {RATIOS[name]:g}", _MEANING[name])
    return table
