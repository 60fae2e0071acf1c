"""``obo demo``: a bank on three nodes. Clients move money, one node is killed and comes back; are the books right?"""

import signal
from typing import Annotated

import typer

from framework import BadRequest
from framework.cli.bench import ended_cleanly
from framework.cli.numbers import whole


def run(
    seconds: Annotated[float, typer.Option(min=6, max=3600, help="How long clients move money.")] = 20.0,
    clients: Annotated[int, typer.Option(min=1, max=64, help="How many do so at a time.")] = 8,
    postgres: Annotated[
        bool, typer.Option("--postgres", help="On three real PostgreSQL servers, started for this; else on SQLite.")
    ] = False,
    world: Annotated[
        bool, typer.Option("--world", help="Another demo: a simulated world, told message by message.")
    ] = False,
    seed: Annotated[str | None, typer.Option("--seed", metavar="N", help="Of --world: other delays.")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Of --world: without pauses for reading.")] = False,
) -> None:
    """Three nodes with a database each, clients that move money, a node that is killed and comes back.

    Ends with 0 if no money was lost or made, everything confirmed is there once, and all copies are the same."""
    if not world and (seed is not None or fast):
        raise BadRequest("--seed and --fast belong to --world")
    try:
        raise typer.Exit(_world(seed, fast) if world else _bank(seconds, clients, postgres))
    except KeyboardInterrupt:
        raise typer.Exit(128 + signal.SIGINT) from None


def _world(seed: str | None, fast: bool) -> int:
    from framework.cli.demo_world import tell

    return tell(whole("--seed", seed or "1", 0, 10**12) or 0, fast)


def _bank(seconds: float, clients: int, postgres: bool) -> int:
    from framework.cli.demo_bank import Bank, Plan

    with ended_cleanly():
        return Bank(Plan(seconds, clients, postgres)).play()
