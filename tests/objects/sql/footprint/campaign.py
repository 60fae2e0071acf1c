"""Perform compatible statements of the grammar in both orders, as many pairs as wanted:

    python -m tests.objects.sql.footprint.campaign --database sqlite --pairs 1000000 --state FILE

It goes on where the state says that it stopped, and ends with 1 at the first difference, with the command that performs
the same world again. CONTRIBUTING.md has more.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import msgspec

from framework.testing.sql_grammar import Grammar
from objects.sql.tokens import Dialect
from tests.objects.sql.footprint.images import Images, Tally, disorder, sqlite

_NAME = "tests.objects.sql.footprint.campaign"
_KEPT = 5.0  # seconds between two times that the state is written
_TOLD = 60.0
_AFRESH = 500  # worlds until there is a new database: what is rolled back leaves something behind


class State(msgspec.Struct):
    """How far it is. ``seed``: the next one."""

    database: Dialect
    seed: int
    seconds: float = 0.0
    tally: Tally = msgspec.field(default_factory=Tally)

    def __str__(self) -> str:
        pace = self.tally.pairs / self.seconds if self.seconds else 0.0
        return f"{self.database}: up to seed {self.seed}, {pace:.0f} pairs/s in {self.seconds:.0f} s: {self.tally}"


def pairs(on: Images, seed: int, tally: Tally) -> str:
    """The difference that the world of a seed shows; empty if there is none."""
    world = Grammar(Random(f"{on.dialect} {seed}"), on.dialect)
    return disorder(on, world, tally, world.images)


@contextmanager
def images(database: Dialect) -> Iterator[Images]:
    if database == "sqlite":
        with sqlite() as on:
            yield on
        return
    from framework.testing.postgres import servers
    from tests.objects.sql.footprint.images_postgres import postgres

    with servers(1, fsync=False) as (server,), postgres(server.create("campaign")) as made:
        yield made


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Perform compatible statements in both orders.")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed, if there is no state")
    parser.add_argument("--pairs", type=int, default=100_000, help="to be performed in all, with those of the state")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of this run")
    parser.add_argument("--state", type=Path, help="a file: how far it is")
    parser.add_argument("--only", type=int, help="the world of this seed alone")
    args = parser.parse_args(words)
    state = State(args.database, args.first)
    if args.only is not None:
        state.seed = args.only
        args.state = None
    elif args.state and args.state.exists():
        state = msgspec.json.decode(args.state.read_bytes(), type=State)
        if state.database != args.database:
            parser.error(f"{args.state} is of a campaign on {state.database}")
    return campaign(state, 0 if args.only is not None else args.pairs, args.seconds, args.state)


def campaign(state: State, most: int, seconds: float, file: Path | None) -> int:
    """Until there are so many pairs, or the time is over; at least one world."""
    end = time.monotonic() + seconds
    told = kept = time.monotonic()
    over = False
    while not over:
        with images(state.database) as on:
            for _ in range(_AFRESH):
                began = time.monotonic()
                found = pairs(on, state.seed, state.tally)
                now = time.monotonic()
                state.seconds += now - began
                if found:
                    print(found, f"\n{state}\nA difference in the world of seed {state.seed}; replay:")
                    print(f"python -m {_NAME} --database {state.database} --only {state.seed}")
                    return 1
                state.seed += 1
                over = state.tally.pairs >= most or now >= end
                if file and (over or now >= kept + _KEPT):
                    kept = now
                    write(file, state)
                if over or now >= told + _TOLD:
                    told = now
                    print(state, "" if over else "...", flush=True)
                if over:
                    break
    print("no difference")
    return 0


def write(file: Path, state: State) -> None:
    """Whole or not at all: a campaign may be killed."""
    new = file.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(state))
    new.replace(file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
