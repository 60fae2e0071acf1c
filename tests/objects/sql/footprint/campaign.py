"""Perform compatible statements of the grammar in both orders, as many pairs as wanted:

    python -m tests.objects.sql.footprint.campaign sqlite --pairs 1000000 --note FILE

It goes on where the note says that it stopped, and ends at the first difference with 1.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from objects.sql.tokens import Dialect
from tests.objects.sql.footprint.grammar import Grammar
from tests.objects.sql.footprint.world import Asked, Made, Sqlite, disorder, told

Asks = Callable[[Made], Asked]


def pairs(dialect: Dialect, ask: Asks, seed: int) -> tuple[int, str]:
    """How many compatible pairs the world of a seed has, and a difference."""
    world = Grammar(Random(f"{dialect} {seed}"), dialect)
    counted = 0

    def count() -> None:
        nonlocal counted
        counted += 1

    found = disorder(ask(world), world.calls, count)
    return counted, told(world, found)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("dialect", choices=["sqlite", "postgres"])
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--note", type=Path)
    parser.add_argument("--seed", type=int, help="only this one")
    args = parser.parse_args(words)
    if args.dialect == "sqlite":
        return campaign("sqlite", Sqlite, args)
    from framework.testing.postgres import servers
    from tests.objects.sql.footprint.world_postgres import Postgres, connected

    with servers(1, fsync=False) as (server,), connected(server.create("campaign")) as connection:
        return campaign("postgres", lambda world: Postgres(connection, world), args)


def campaign(dialect: Dialect, ask: Asks, args: Any) -> int:
    note = {"seed": 0, "pairs": 0}
    if args.note and args.note.exists():
        note = json.loads(args.note.read_text())
    if args.seed is not None:
        note = {"seed": args.seed, "pairs": 0}
    end = time.monotonic() + args.seconds
    while note["pairs"] < args.pairs and time.monotonic() < end:
        counted, found = pairs(dialect, ask, note["seed"])
        if found:
            print(f"seed {note['seed']}, after {note['pairs']} pairs:\n{found}")
            return 1
        note = {"seed": note["seed"] + 1, "pairs": note["pairs"] + counted}
        if args.note and note["seed"] % 100 == 0:
            args.note.write_text(json.dumps(note))
        if args.seed is not None:
            break
    if args.note:
        args.note.write_text(json.dumps(note))
    print(f"{dialect}: {note['pairs']} pairs of {note['seed']} seeds, no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
