"""The tables of ``obo bench tran``."""

from rich.console import Console
from rich.table import Table

from framework.bench.tran import TARGETS, Result
from framework.sim.measure import CLIENTS

_MEANING = {
    "single_over_plain": "a call that calls nobody, over one in a group without transactions (CPU)",
    "two_object_over_two_calls": "a transaction over two objects, over two plain calls (p50)",
    "distributed_over_centralized": "atomic over two objects, decided by their votes, over by the client (p50)",
    "parts_over_oneway": "a call of a method that nobody waits for, as a part over one-way (CPU)",
    "hot_aborts_share": "aborted, of transactions that all want one account, in one order",
}


def show(result: Result) -> None:
    table = Table("ratio", title="obo bench tran", title_justify="left")
    for heading in ("measured", "to reach"):
        table.add_column(heading, justify="right")
    table.add_column("meaning")
    for name, value in result.ratios.items():
        target = TARGETS[name]
        goal = "" if target is None else f"[{'green' if value <= target else 'red'}]≤ {target:g}[/]"
        table.add_row(name, f"{value:.3f}", goal, _MEANING[name])
    rows = Table("want the same account", title="Contention", title_justify="left")
    for heading in ("committed", "aborted", "p50 ms", "p99 ms"):
        rows.add_column(heading, justify="right")
    for row in result.raw["contention"]:
        figures = (row["committed"], row["aborted"], f"{row['p50_ms']:.1f}", f"{row['p99_ms']:.1f}")
        rows.add_row(f"{row['share']:.0%}", *map(str, figures))
    console = Console()
    console.print(table)
    console.print(rows)
    for kind, fan in result.raw["fan"].items():
        console.print(
            f"a call that nobody waits for, {kind}: {fan['seconds'] * 1e6:.0f} µs, {fan['bytes']:.0f} bytes; "
            f"answered after {fan['lone_delays']} message delays, the last of {CLIENTS} in a line after "
            f"{fan['line_delays']}"
        )
    console.print(
        f"raw: two calls {result.raw['two_calls_ms']:.2f} ms, in a transaction {result.raw['two_object_ms']:.2f} ms; "
        f"atomic {result.raw['centralized_ms']:.2f} ms, by votes {result.raw['distributed_ms']:.2f} ms; "
        f"a call {result.raw['plain_us']:.1f} µs without transactions, {result.raw['single_us']:.1f} µs with"
    )
