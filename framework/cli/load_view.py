"""What ``obo load`` shows: live figures on stderr for people, a summary on stdout for people and programs."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from framework.load.driver import Load, State
    from framework.load.plan import Plan

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}


class View:
    """Use it in a ``with``. Without a terminal only problems are told, as they come up."""

    def __init__(self, plan: "Plan") -> None:
        self._plan = plan
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, transient=True, refresh_per_second=5, auto_refresh=False)
        self._shown = self._console.is_terminal
        self._told = 0

    def __enter__(self) -> Self:
        if self._shown:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._live.stop()

    def tell(self, state: "State") -> None:
        for problem in state.problems[self._told :]:
            self._console.print(f"obo load: {problem}", markup=False, soft_wrap=True)
        self._told = len(state.problems)
        if self._shown:
            self._live.update(live_table(state), refresh=True)

    def show(self, said: dict[str, Any]) -> None:
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = 120
        console.print(_summary_table(said))
        for name, node in said["nodes"].items():
            console.print(_node_line(name, node), markup=False, soft_wrap=True)
        console.print(f"{said['ended']}: {said['out']}", markup=False, soft_wrap=True)


def live_table(state: "State") -> Table:
    """One line that fits 80 columns, and errors below it."""
    rate, latencies = state.live()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in (state.doing[:24], "calls/s", "p50", "p99", "p99.9", "in flight", "late", "errors"):
        table.add_column(name, justify="right")
    whole = "" if state.plan.scripted else f" / {state.plan.total:.0f}"
    so_far = state.elapsed if state.plan.scripted else min(state.elapsed, state.plan.total)
    elapsed = f"{so_far:.0f}{whole} s" if state.started else ""
    table.add_row(
        elapsed,
        f"{rate:.0f}",
        *(milliseconds(latencies.quantile(q)) for q in (0.5, 0.99, 0.999)),
        str(sum(state.in_flight.values())),
        milliseconds(max(state.behind.values(), default=0.0)),
        str(sum(state.errors.values())),
    )
    for name, count in state.errors.most_common(3):
        table.add_row(name, str(count))
    return table


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 10 else f"{seconds:.1f} s"


def summary(load: "Load", ended: str) -> dict[str, Any]:
    """For people and programs alike. Latencies are of calls that were answered well, after warm-up, from when due."""
    state, said = load.state, load.directory.said
    latency = {name: round(state.latency.quantile(q), 6) for name, q in QUANTILES.items()}
    seconds = max(0.0, said["calls_until"] - state.started - load.plan.before) if state.started else 0.0
    return {
        "out": str(load.directory.path),
        "ended": ended,
        "workload": load.plan.workload,
        "calls": state.calls,
        "ok": state.ok,
        "errors": dict(state.errors),
        "rate": round(state.latency.total / seconds, 1) if seconds else 0.0,
        "latency": latency,
        "records": said["clients"].get("records", 0),
        "lost": said["clients"].get("lost", 0),
        "nodes": said["nodes"],
        "problems": state.problems,
    }


def _summary_table(said: dict[str, Any]) -> Table:
    table = Table(title=f"obo load {said['workload']}", title_justify="left")
    for name in ("calls", "ok", "errors", "ok/s", *QUANTILES):
        table.add_column(name, justify="right")
    latency = [milliseconds(said["latency"][name]) for name in QUANTILES]
    errors = ", ".join(f"{name} {count}" for name, count in said["errors"].items()) or "none"
    table.add_row(str(said["calls"]), str(said["ok"]), errors, f"{said['rate']:.1f}", *latency)
    return table


def _node_line(name: str, node: dict[str, Any]) -> str:
    if not node.get("traced", True):
        return f"{name}: writes no trace"
    lives = node.get("traces", {})
    text = f"{name}: {node['records']} records of {len(lives)} {'life' if len(lives) == 1 else 'lives'}"
    text += f", {node['drops']} MISSING" if node["drops"] else ""
    return text + (f"; {node['gone']}" if node.get("gone") else "")
