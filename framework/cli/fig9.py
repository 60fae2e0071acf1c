"""``obo fig9``: the evaluation of P0 §6, measured again and drawn (docs/fig9.md)."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from framework import BadRequest
from framework.cli.numbers import whole
from framework.files import put
from framework.sim import fig9, fig9_picture
from framework.sim.fig9_workload import Workload

_FIXED = ("conflict", "ucast")  # the axes


def run(
    out: Annotated[Path, typer.Option(help="The picture: png, svg or pdf.")] = Path("fig9.png"),
    as_json: Annotated[Path | None, typer.Option("--json", help="All numbers, for programs.")] = None,
    seeds: Annotated[str, typer.Option(metavar="N", help="Runs for each point.")] = "20",
    step: Annotated[str, typer.Option(metavar="N", help="Percent between two conflict ratios.")] = "10",
    jobs: Annotated[
        str | None, typer.Option(metavar="N", help="Worker processes; one per processor if not given.")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=NUMBER", help="A setting of the workload.")
    ] = None,
) -> None:
    """Measure how many messages need no order, against how many methods conflict (P0, Fig. 9)."""
    sweep = fig9.Sweep(
        whole("--seeds", seeds, 1, 1_000_000) or 1, whole("--step", step, 1, 100) or 1, workload(setting or [])
    )
    workers = whole("--jobs", jobs, 1, 1024) or os.cpu_count() or 1
    _check_paths(out, as_json)
    fig9_picture.check(out)
    try:
        results = _measured(sweep, workers)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; nothing was written")
        raise typer.Exit(130) from None
    fig9_picture.draw(out, sweep, results)
    said = fig9.report(sweep, results)
    if as_json is not None:
        put(as_json, json.dumps(said, indent=2, ensure_ascii=False) + "\n")
    Console().print(_table(said))


def workload(settings: list[str]) -> Workload:
    """The workload with these settings: ``transactions=6``."""
    known = [f for f in Workload.__struct_fields__ if f not in _FIXED]
    values: dict[str, int] = {}
    for text in settings:
        name, _, value = text.partition("=")
        if name not in known:
            raise BadRequest(f"--set {text}: no such setting; known: {', '.join(known)}")
        values[name] = whole(f"--set {name}", value, 1, 1000) or 1
    return msgspec.structs.replace(Workload(), **values)


def _check_paths(*paths: Path | None) -> None:
    """Nobody likes to hear after minutes that there is no such directory."""
    given = [p for p in paths if p is not None]
    if len({p.resolve() for p in given}) < len(given):
        raise BadRequest(f"{given[0]}: the picture and the numbers need two files")
    for path in given:
        existed = path.exists()
        try:
            path.open("ab").close()
        except OSError as error:
            raise BadRequest(f"{path} cannot be written: {error.strerror}") from None
        if not existed:
            path.unlink()


def _measured(sweep: fig9.Sweep, jobs: int) -> list[fig9.Result]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("fig9", total=len(sweep.tasks()))
        return fig9.run(sweep, jobs, lambda: progress.advance(task))


def _table(said: dict[str, Any]) -> Table:
    table = Table(title="messages not ordered [%]", title_justify="left")
    table.add_column("C", justify="right")
    for one in said["curves"]:
        table.add_column(f"ucast {one['ucast']} %", justify="right")
    for row in zip(*(one["points"] for one in said["curves"]), strict=True):
        table.add_row(str(row[0]["conflict"]), *(f"{p['mean']:.1f} ± {p['deviation']:.1f}" for p in row))
    paper = {p["ucast"]: p for p in said["paper"]}
    table.add_section()
    table.add_row("paper, 60", *(f"{paper[one['ucast']]['not_ordered']:.1f}" for one in said["curves"]))
    return table
