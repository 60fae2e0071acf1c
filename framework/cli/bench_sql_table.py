"""What ``obo bench sql`` shows at the end."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from framework.bench.sql import TARGETS, Row
from framework.bench.sql_result import Result
from framework.cli.bench_table import ratios

_TITLES = {
    "obo": "three replicas on SQLite",
    "sqlite": "plain SQLite, one commit for each statement",
    "postgres": "plain PostgreSQL",
}


def show(result: Result) -> None:
    out = Console()
    for system, title in _TITLES.items():
        rows = [r for r in result.rows if r.system == system]
        if rows:
            out.print(_rows(title, rows))
    out.print(ratios(result, TARGETS))
    out.print(_end(result), highlight=False)
    for note in result.notes:
        out.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True, style="yellow")


def _rows(title: str, rows: list[Row]) -> Table:
    """It fits 80 columns."""
    caption = "median of the rounds; CPU in µs per statement: clients / servers"
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("row", "clients", "p50 µs", "p99 µs", "ops/s", "CPU"):
        table.add_column(name, justify="left" if name in ("row", "CPU") else "right", no_wrap=True)
    order = list(dict.fromkeys(r.row for r in rows))
    for r in sorted(rows, key=lambda r: (order.index(r.row), r.clients)):
        numbers = (f"{value:.0f}" for value in (r.p50_us, r.p99_us, r.ops_per_s))
        table.add_row(r.row, str(r.clients), *numbers, _cpu(r))
    return table


def _cpu(r: Row) -> str:
    client, *servers = ("?" if cpu is None else f"{cpu:.0f}" for cpu in r.cpu_us_per_op.values())
    return f"{client} / {' '.join(servers)}" if servers else client


def _end(result: Result) -> str:
    changes = sum(result.acknowledged.values())
    equal = "[green]equal" if result.digests_equal else "[red]NOT EQUAL"
    return f"{changes} changes were acknowledged; the tables of the replicas are {equal}"
