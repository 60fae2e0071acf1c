"""``obo soak``: does the group bear what happens to nodes? Real processes, random faults, a sum that must stay."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from framework.cli.bench import ended_cleanly
from framework.errors import BadRequest

if TYPE_CHECKING:
    from framework.bench.soak_group import Faults, Report
    from framework.bench.soak_sql import SqlReport
    from framework.bench.soak_tran import TranReport


def run(
    minutes: Annotated[float, typer.Option(min=0.05, help="How long faults go on.")] = 10.0,
    nodes: Annotated[
        int | None, typer.Option(min=3, max=15, help="How many: 5, with --sql 3; fewer than half are away at a time.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Which faults; chosen by the clock and told, if not given.")] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep traces and logs here; else they go at the end.")
    ] = None,
    sql: Annotated[bool, typer.Option("--sql", help="A replicated database on SQLite; nodes are killed.")] = False,
    postgres: Annotated[bool, typer.Option("--postgres", help="With --sql: on PostgreSQL; servers, too.")] = False,
    random: Annotated[
        bool, typer.Option("--random", help="With --sql: random statements of a grammar; digests must be equal.")
    ] = False,
    transactions: Annotated[
        bool, typer.Option("--transactions", help="Transfers from bank to bank; nodes are killed.")
    ] = False,
    clients: Annotated[int | None, typer.Option(min=1, max=64, help="How many: 4, with --sql 16.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The result as one JSON object on stdout.")] = False,
) -> None:
    """Real nodes on loopback under load, one killed, stopped or left hanging every few seconds.

    Ends with 0 if clients saw no error, the sum is right at every replica, all states are equal and the traces break no
    definition; with 1 otherwise. With --sql: if all that was acknowledged is there once, at every replica; with
    --random, too: if digests of all tables were equal, whenever they were compared. With --transactions: if the sum
    over both banks is right at every read, and each account has what was committed.
    docs/testing.md says more."""
    from framework.bench.soak_group import Plan, soak
    from framework.bench.soak_random import RandomSoak
    from framework.bench.soak_sql import soak_sql
    from framework.bench.soak_tran import soak_tran

    if sql and transactions:
        raise BadRequest("--sql and --transactions: one of them")
    if postgres and not sql:
        raise BadRequest("--postgres is for --sql")
    if random and not sql:
        raise BadRequest("--random is for --sql")
    plan = Plan(
        minutes * 60.0,
        nodes or (3 if sql else 5),
        int(time.time()) if seed is None else seed,
        clients or (16 if sql else 4),
    )
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn())
    with ended_cleanly(), Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"seed {plan.seed}: starting", total=plan.seconds)

        def progress(soak: "Faults") -> None:
            away = " ".join(f"{node} {kind}" for node, kind in sorted(soak.away.items()))
            bad = f", {len(soak.errors)} ERRORS" if soak.errors else ""
            what = f"{sum(soak.faults.values())} faults, {soak.calls} calls{bad} [{away}]"
            bar.update(task, completed=soak.elapsed, description=what.replace("[", r"\["))

        said: Report | SqlReport | TranReport
        if sql:
            said = soak_sql(plan, trace, postgres, progress, RandomSoak if random else None)
        else:
            said = (soak_tran if transactions else soak)(plan, trace, progress)
    if as_json:
        print(msgspec.json.encode(said).decode())
    else:
        show(said, trace)
    raise typer.Exit(1 if said.problems else 0)


def show(said: "Report | SqlReport | TranReport", trace: Path | None) -> None:
    faults = ", ".join(f"{kind} {count}" for kind, count in said.faults.items())
    print(f"seed {said.seed}: {said.nodes} nodes, {said.seconds:g} s, faults: {faults}")
    print(f"{said.calls} calls, the longest {said.longest_s:.2f} s; {said.story}")
    for problem in said.problems:
        print(f"problem: {problem}", file=sys.stderr)
    if said.problems:
        kept = f"traces and logs are in {trace}" if trace is not None else f"--seed {said.seed} --trace DIR keeps them"
        print(f"{len(said.problems)} problems; {kept}", file=sys.stderr)
    else:
        print(f"no client error, {said.praise}")
