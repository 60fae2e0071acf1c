"""``obo bench``: costs as ratios against a baseline that runs beside them, in the same run."""

import platform
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from framework import __version__
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest
from framework.files import put

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
    with _bar(console) as progress:
        task = progress.add_task("bench core", total=reports(repeats))
        result: dict[str, Any] = measure(
            rounds, repeats, lambda what: progress.update(task, advance=1, description=what)
        )
    result["machine"] = machine() | {"rounds": rounds, "repeats": repeats}
    _show(result)
    _write(json, result, console)


class Form(StrEnum):
    FLAMEGRAPH = "flamegraph"
    SPEEDSCOPE = "speedscope"
    RAW = "raw"


@app.command()
def rpc(
    json: Annotated[Path | None, typer.Option(help="Write the result to this file.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A fast look: 64 B alone, 2 rounds of 0.3 s, soak of 3 s.")
    ] = False,
    only: Annotated[
        str | None, typer.Option(metavar="PART,PART", help="Of lone, async, oneway, mcast0, mcast100, soak.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Times each row is measured; the median counts. [5]")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0.01, help="For each row in each round. [1]")] = None,
    soak: Annotated[
        float | None, typer.Option(min=0, help="Seconds at half load; 300 tells more, 0 leaves it out. [30]")
    ] = None,
    profile: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run each row once more under py-spy and write what it sees.")
    ] = None,
    profile_format: Annotated[Form, typer.Option(help="Of the files in DIR.")] = Form.FLAMEGRAPH,
) -> None:
    """Calls over loopback: nodes beside plain grpcio and Pyro5, all of them real processes.

    Ends with 0 also where a target is missed: this is a measurement, not a test. docs/bench.md says how to read it.
    """
    from framework.bench import measure as m
    from framework.bench.profile import find
    from framework.bench.rpc import Plan
    from framework.cli.bench_table import show

    usual = Plan(payloads=(64,), rounds=2, seconds=0.3, soak=3.0) if quick else Plan()
    asked = {"rounds": rounds, "seconds": seconds, "soak": soak, "parts": _parts(only, usual.parts)}
    plan = msgspec.structs.replace(usual, **{name: value for name, value in asked.items() if value is not None})
    if json is not None:
        _check_writable(json)
    profiling = None
    if profile is not None:
        find()
        profiling = m.Profile(profile, profile_format.value, max(5.0, plan.seconds))
    console = Console(stderr=True)
    with ended_cleanly(), _bar(console) as progress:
        task = progress.add_task("starting", total=m.reports(plan, profiling))
        result = m.measure(plan, lambda what: progress.update(task, advance=1, description=what), profiling)
    result.machine = machine()
    show(result)
    _write(json, result, console)


@app.command()
def membership(
    json: Annotated[Path | None, typer.Option(help="Write the result to this file.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A fast look: 3 nodes, 1 MB, one round, 1 s before and after each event.")
    ] = False,
    nodes: Annotated[str | None, typer.Option(metavar="N,N", help="How many; one run for each. [3,5]")] = None,
    state_mb: Annotated[int | None, typer.Option(min=0, max=1000, help="State of the last rejoin. [100]")] = None,
    clients: Annotated[int | None, typer.Option(min=1, max=64, help="Each has a home of its own. [4]")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.1, help="Before and after each event. [3]")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, max=99, help="The median of each event counts. [3]")] = None,
    share: Annotated[
        float | None, typer.Option(min=0.01, max=0.9, help="The load, of what the nodes can take. [a sixth]")
    ] = None,
) -> None:
    """What clients notice when nodes leave, crash, hang and come back under load: pauses, errors, losses.

    Ends with 0 also where a target is missed: this is a measurement, not a test. docs/bench.md says how to read it.
    """
    from framework.bench import membership as m
    from framework.cli.membership_table import show

    usual = m.Plan(nodes=(3,), state_mb=1, seconds=1.0, rounds=1) if quick else m.Plan()
    asked = {"nodes": _numbers(nodes), "state_mb": state_mb, "clients": clients, "seconds": seconds}
    asked |= {"rounds": rounds, "share": share}
    plan = msgspec.structs.replace(usual, **{name: value for name, value in asked.items() if value is not None})
    m.check(plan)
    if json is not None:
        _check_writable(json)
    console = Console(stderr=True)
    with ended_cleanly(), _bar(console) as progress:
        task = progress.add_task("starting", total=m.reports(plan))
        result = m.measure(plan, lambda what: progress.update(task, advance=1, description=what))
    result.machine = machine()
    show(result)
    _write(json, result, console)


@app.command()
def sql(
    json: Annotated[Path | None, typer.Option(help="Write the result to this file.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A fast look: 2 rounds of 0.3 s, 32 clients alone.")] = False,
    only: Annotated[str | None, typer.Option(metavar="PART,PART", help="Of insert, update, hot, select, mix.")] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Times the rows of the ratios are measured; the median counts. [5]")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0.01, help="For each row in each round. [1]")] = None,
) -> None:
    """A replicated database on three nodes, beside plain SQLite and plain PostgreSQL, all of them real processes.

    Ends with 0 also where a target is missed: this is a measurement, not a test. docs/bench.md says how to read it.
    """
    from framework.bench import sql_result as m
    from framework.bench.sql import Plan
    from framework.cli.bench_sql_table import show

    usual = Plan(clients=(32,), rounds=2, seconds=0.3) if quick else Plan()
    asked = {"rounds": rounds, "seconds": seconds, "parts": _parts(only, usual.parts)}
    plan = msgspec.structs.replace(usual, **{name: value for name, value in asked.items() if value is not None})
    if json is not None:
        _check_writable(json)
    console = Console(stderr=True)
    with ended_cleanly(), _bar(console) as progress:
        task = progress.add_task("starting", total=m.reports(plan))
        result = m.measure(plan, lambda what: progress.update(task, advance=1, description=what))
    result.machine = machine()
    show(result)
    _write(json, result, console)


@app.command()
def join(
    json: Annotated[Path | None, typer.Option(help="Write the result to this file.")] = None,
    mb: Annotated[int, typer.Option(min=1, max=10_000, help="Size of the database, in megabytes.")] = 1000,
    postgres: Annotated[
        bool, typer.Option("--postgres", help="On three PostgreSQL servers instead of SQLite.")
    ] = False,
    seconds: Annotated[float, typer.Option(min=0.1, help="Of load before the join, and after it.")] = 5.0,
    share: Annotated[float, typer.Option(min=0.01, max=10, help="The load, of what the nodes can take.")] = 1 / 3,
) -> None:
    """A replica that has lost everything gets a large database from the others, while clients write.

    Ends with 1 if a call failed, a write was lost or performed twice, or the replicas differ at the end.
    """
    from framework.bench import sql_join as m

    plan = m.Plan(mb, postgres, seconds, share)
    if json is not None:
        _check_writable(json)
    console = Console(stderr=True)
    with ended_cleanly(), _bar(console) as progress:
        task = progress.add_task("starting", total=m.reports(plan))
        result = m.measure(plan, lambda what: progress.update(task, advance=1, description=what))
    result.machine = machine()
    table = Table(title="obo bench join", show_header=False)
    for name in m.SHOWN:
        table.add_row(name, str(getattr(result, name)))
    Console().print(table)
    _write(json, result, console)
    for text in result.errors[:5]:
        console.print(text, style="red", highlight=False)
    if not result.good:
        raise typer.Exit(1)


@app.command()
def analytics(
    json: Annotated[Path | None, typer.Option(help="Write the result to this file.")] = None,
    small: Annotated[int, typer.Option(min=1000, help="Records of the small run.")] = 1_000_000,
    large: Annotated[int, typer.Option(min=1000, help="Records of the large run.")] = 10_000_000,
    cores: Annotated[int, typer.Option(min=1, help="That Spark may use.")] = 2,
) -> None:
    """What obo analyze costs per trace record: on one million records, and on ten.

    Ends with 0 also where a target is missed: this is a measurement, not a test. docs/bench.md says how to read it.
    """
    from framework.bench import analytics as m

    if large <= small:
        raise BadRequest(f"--large {large}: must be more than --small {small}")
    if json is not None:
        _check_writable(json)
    console = Console(stderr=True)
    with ended_cleanly(), _bar(console) as progress:
        task = progress.add_task("starting", total=m.reports())
        plan = m.Plan(small=small, large=large, cores=cores)
        result = m.measure(plan, lambda what: progress.update(task, advance=1, description=what))
    result.machine = machine()
    table = Table(title="obo bench analytics")
    for heading in ("ratio", "measured", "to reach"):
        table.add_column(heading, justify="left" if heading == "ratio" else "right")
    for name, target in (("cost_per_event_10m_over_1m", 1.2), ("seconds_10m", 180.0), ("peak_gib", 4.0)):
        value = result.ratios[name]
        table.add_row(name, f"{value:.2f}", ("[green]" if value <= target else "[red]") + f"≤ {target:g}")
    Console().print(table)
    _write(json, result, console)


@app.command()
def tran(
    json: Annotated[Path | None, typer.Option(help="Write the result to this file.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A fast look: 2 rounds of 0.5 s, 4 clients.")] = False,
    rounds: Annotated[int | None, typer.Option(min=1, help="Times each is measured; the median counts. [5]")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.1, help="For each row in each round. [2]")] = None,
) -> None:
    """What transactions cost: a call alone, two objects over two calls, and contention, on three real nodes.

    Ends with 0 also where a target is missed: this is a measurement, not a test. docs/bench.md says how to read it.
    """
    from framework.bench import tran as m
    from framework.cli.bench_tran_table import show

    usual = m.Plan(rounds=2, seconds=0.5, clients=4, requests=40) if quick else m.Plan()
    asked = {"rounds": rounds, "seconds": seconds}
    plan = msgspec.structs.replace(usual, **{name: value for name, value in asked.items() if value is not None})
    if json is not None:
        _check_writable(json)
    console = Console(stderr=True)
    with ended_cleanly(), _bar(console) as progress:
        task = progress.add_task("starting", total=m.reports(plan))
        result = m.measure(plan, lambda what: progress.update(task, advance=1, description=what))
    result.machine = machine()
    show(result)
    _write(json, result, console)


def _numbers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise BadRequest(f"--nodes {text}: write numbers, for example 3,5") from None


def _parts(only: str | None, every: Sequence[str]) -> list[str] | None:
    if only is None:
        return None
    parts = [p.strip() for p in only.split(",") if p.strip()]
    for part in parts:
        if part not in every:
            raise BadRequest(f"--only {only}: no part {part!r}; {did_you_mean(part, every)}")
    if not parts:
        raise BadRequest(f"--only names nothing: write one or more of {', '.join(every)}")
    return parts


@contextmanager
def ended_cleanly() -> Iterator[None]:
    """SIGTERM ends the processes of the benchmark as Ctrl-C does."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _write(path: Path | None, result: Any, console: Console) -> None:
    if path is not None:
        put(path, msgspec.json.format(msgspec.json.encode(result)) + b"\n")
        console.print(f"written to {path}")


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
        existed = path.exists()
        with path.open("ab"):
            pass
        if not existed:
            path.unlink()  # Ctrl-C leaves no empty file
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
