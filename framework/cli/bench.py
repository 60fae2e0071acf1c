"""``obo bench``: costs as ratios against a baseline that runs beside them, in the same process."""

import platform
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from framework import __version__
from framework.errors import BadRequest

app = typer.Typer(help="Measure costs; every benchmark prints ratios against a baseline of the same run.")

#: What each ratio says, and what is to be reached (None: no target).
MEANING: dict[str, tuple[str, float | None]] = {
    "obo0_over_fifo": ("OBO, no method conflicts", None),
    "obo20_over_fifo": ("OBO, 20 % of the method pairs conflict", 3.0),
    "obo60_over_fifo": ("OBO, 60 %", None),
    "obo100_over_fifo": ("OBO, 100 %", None),
    "total_over_fifo": ("total order: one object, every pair conflicts", None),
    "backlog_over_empty": ("compatible requests beside 10,000 waiting ones, over beside none", 1.5),
    "bytes_per_waiting": ("memory of a waiting request at a replica, bytes", 4096.0),
}


@app.callback()
def bench() -> None:
    """Keeps ``core`` a subcommand while it is the only one."""


@app.command()
def core(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of 24 requests for each measurement.")] = 150,
    repeats: Annotated[int, typer.Option(min=1, help="Times each one is measured; the median counts.")] = 5,
    json: Annotated[Path | None, typer.Option(help="Write the result to this file.")] = None,
) -> None:
    """Cost per delivered request and replica: FIFO only, OBO at several conflict ratios, total order.

    Three nodes in one process; frames are encoded and decoded, nothing waits for time. The machine may be busy: what
    is compared takes turns, and only ratios mean anything.
    """
    from framework.sim.measure import measure, reports

    if json is not None:
        _check_writable(json)
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("bench core", total=reports(repeats))
        result: dict[str, Any] = measure(
            rounds, repeats, lambda what: progress.update(task, advance=1, description=what)
        )
    result["machine"] = machine() | {"rounds": rounds, "repeats": repeats}
    _show(result)
    if json is not None:
        json.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
        console.print(f"written to {json}")


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    import os

    return {
        "obo": __version__,
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }


def _check_writable(path: Path) -> None:
    """Before minutes of work, not after."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
    except OSError as error:
        raise BadRequest(f"--json {path}: {error.strerror}; name a file that can be written") from None


def _show(result: dict[str, Any]) -> None:
    table = Table(title="obo bench core", caption="cost of FIFO = 1; CPU time per delivered request and replica")
    table.add_column("ratio")
    table.add_column("measured", justify="right")
    table.add_column("to reach", justify="right")
    table.add_column("meaning")
    for name, value in result["ratios"].items():
        meaning, target = MEANING[name]
        digits = 0 if name == "bytes_per_waiting" else 2
        reached = "" if target is None else ("[green]" if value <= target else "[red]") + f"≤ {target:g}"
        table.add_row(name, f"{value:.{digits}f}", reached, meaning)
    out = Console()
    out.print(table)
    out.print(f"raw: FIFO {result['raw']['fifo_us']:.1f} µs, OBO 20 % {result['raw']['obo20_us']:.1f} µs")
