"""``obo sim --seeds 0:500``: the seeded world, judged by the definitions. See docs/sim.md."""

import os
import shlex
import traceback
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from framework.cli import look, sim_shrink
from framework.cli.numbers import new_directory, new_file, seeds, share, whole
from framework.cli.progress import Display
from framework.errors import BadRequest
from framework.interrupt import undisturbed
from framework.sim.batch import Job, outcomes
from framework.sim.picture import of_traces
from framework.sim.run import Level, Options
from framework.sim.run import run as run_seed
from framework.sim.shrink import Replay, of_replay, read

_MOST_SEEDS = 10
_LEVELS: dict[Level, list[str]] = {  # to replay
    "none": ["--no-faults"],
    "links": [],
    "group": ["--faults", "group"],
    "all": ["--faults", "all"],
    "wiped": ["--faults", "wiped"],
}


class Wanted(msgspec.Struct):
    """The command line, read and checked."""

    seeds: range
    options: Options
    words: list[str]  # the options that make the world, as given: for the replay command
    jobs: int
    most: int
    as_json: bool
    trace: str
    drawn: look.Look | None = None
    file: str = ""  # of the world, if it is replayed from one

    def replay(self, seed: int) -> str:
        if self.file:
            return shlex.join(["obo", "sim", "--replay", self.file])
        return shlex.join(["obo", "sim", "--seed", str(seed), *self.words])


def run(
    seed: Annotated[str | None, typer.Option("--seed", metavar="N", help="Run one seed.")] = None,
    many: Annotated[
        str | None,
        typer.Option("--seeds", metavar="FIRST:LAST", help="Run these; LAST not included. 0:100 if not given."),
    ] = None,
    nodes: Annotated[str | None, typer.Option(metavar="N", help="Instead of what the seed chooses.")] = None,
    objects: Annotated[str | None, typer.Option(metavar="N")] = None,
    conflict: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Of the method pairs that conflict: 0 to 1 (0.3), or 30%.")
    ] = None,
    keys: Annotated[str | None, typer.Option(metavar="N", help="Keys of each object; 0: calls without keys.")] = None,
    clients: Annotated[str | None, typer.Option(metavar="N")] = None,
    calls: Annotated[str | None, typer.Option(metavar="N", help="Of each client.")] = None,
    ucast: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Of the requests that go to one replica: 0 to 1, or percent.")
    ] = None,
    transactions: Annotated[bool, typer.Option("--transactions", help="Calls to several objects are atomic.")] = False,
    convoys: Annotated[bool, typer.Option("--convoys", help="Calls of clients travel together.")] = False,
    faults: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            help="links: loss, duplication, reordering, cuts, pauses, slow nodes; group: nodes crash, join and leave, "
            "and all else is punctual; all: both, and the group falls apart; wiped: all, and once or twice every node "
            "loses all it has, also on disk, while clients go on; none.",
        ),
    ] = "links",
    no_faults: Annotated[bool, typer.Option("--no-faults", help="The same as --faults none.")] = False,
    jobs: Annotated[
        str | None, typer.Option(metavar="N", help="Worker processes; one per processor if not given.")
    ] = None,
    most: Annotated[
        str | None,
        typer.Option(metavar="N", help=f"Stop after so many seeds with violations; {_MOST_SEEDS} if not given."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per seed and line on stdout.")] = False,
    trace: Annotated[str | None, typer.Option(metavar="DIR", help="Write traces to DIR/<seed>/<node>.jsonl.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Draw the run of --seed in the terminal.")] = False,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the run of --seed as a picture.")] = None,
    start: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Draw from this time on.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Draw up to this time.")] = None,
    only: Annotated[
        str | None, typer.Option(metavar="WHAT", help="Draw one invocation (c1/2), client, object or replica.")
    ] = None,
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Make the world of --seed small, as long as the same thing is wrong.")
    ] = False,
    save: Annotated[
        str | None,
        typer.Option(metavar="FILE", help=f"Write the small world here, not to {sim_shrink.OUT}/SEED.json."),
    ] = None,
    replay: Annotated[str | None, typer.Option(metavar="FILE", help="Run the world in this file again.")] = None,
) -> None:
    """Run seeded worlds with faults and judge each by the definitions (protocol.md §2, §13)."""
    shape = {
        "nodes": whole("--nodes", nodes, 1, 64),
        "objects": whole("--objects", objects, 1, 1000),
        "conflict": share("--conflict", conflict),
        "keys": whole("--keys", keys, 0, 1_000_000),
        "clients": whole("--clients", clients, 1, 1000),
        "calls": whole("--calls", calls, 1, 100_000),
        "ucast": share("--ucast", ucast),
        **{name: True for name, on in (("transactions", transactions), ("convoys", convoys)) if on},
    }
    given = {"nodes": nodes, "objects": objects, "conflict": conflict, "keys": keys, "clients": clients}
    given |= {"calls": calls, "ucast": ucast}
    level = _level("none" if no_faults else faults)
    wanted = Wanted(
        seeds(seed, many),
        Options({n: v for n, v in shape.items() if v is not None}, level),
        _words(given, transactions, convoys) + _LEVELS[level],
        whole("--jobs", jobs, 1, 1024) or os.cpu_count() or 1,
        whole("--most", most, 1, 1_000_000) or _MOST_SEEDS,
        as_json,
        str(new_directory("--trace", trace) or ""),
    )
    file = new_file("--save", save)
    if file and not shrink:
        raise BadRequest("--save FILE says where --shrink writes: add --shrink")
    saved: Replay | None = None
    if replay is not None:
        if shrink or [seed, many] != [None, None] or wanted.words:
            raise BadRequest("--replay FILE holds a whole world: leave out --seed, --shrink and what makes a world")
        saved = read(Path(replay))
        wanted.seeds, wanted.options, wanted.file = range(saved.seed, saved.seed + 1), of_replay(saved), replay
    wanted.drawn = look.wanted(show, svg, start, end, only, as_json, len(wanted.seeds) == 1)
    if shrink:
        if seed is None or wanted.drawn or as_json or trace is not None:
            raise BadRequest("--shrink makes one world small: write --seed N with it, and draw it with --replay FILE")
        raise typer.Exit(sim_shrink.run(wanted.seeds[0], wanted.options, file))
    code = run_seeds(wanted)
    if saved is not None and not as_json:
        print(sim_shrink.compared(saved))
    raise typer.Exit(code)


def _words(given: dict[str, str | None], transactions: bool, convoys: bool) -> list[str]:
    """Options as they were given."""
    words = [word for name, text in given.items() if text is not None for word in (f"--{name}", text)]
    return words + ["--transactions"] * transactions + ["--convoys"] * convoys


def _level(text: str) -> Level:
    for level in _LEVELS:
        if level == text:
            return level
    raise BadRequest(f"--faults {text}: write {', '.join(_LEVELS)}")


def run_seeds(wanted: Wanted) -> int:
    """The exit code: 0 without violation, 1 with, 130 when interrupted."""
    total = len(wanted.seeds)
    work = (Job(seed, wanted.options, wanted.trace) for seed in wanted.seeds)
    with Display(total, wanted.as_json) as display:
        try:
            with closing(outcomes(work, min(wanted.jobs, total))) as done:
                for outcome in done:
                    with undisturbed():  # it is told and counted, or neither
                        display.take(outcome, wanted.replay(outcome.seed))
                    if display.totals.bad >= wanted.most:
                        break
        except KeyboardInterrupt:
            display.say(f"interrupted; of {total} seeds these were done: {display.totals}")
            return 130
        left = total - display.totals.seeds
        tail = f"; stopped at {wanted.most} bad seeds, {left} not run" if left else ""
        if total == 1 and display.totals.crashed:
            explain(wanted)
        elif wanted.drawn:
            draw(wanted)
        if not wanted.as_json:
            display.say(f"{display.totals}{tail}")
        return 1 if display.totals.bad else 0


def explain(wanted: Wanted) -> None:
    """Who replays one seed that crashes wants to see all of it."""
    try:
        run_seed(wanted.seeds[0], wanted.options)
    except Exception:
        traceback.print_exc()


def draw(wanted: Wanted) -> None:
    """One seed, one run (A11): run it again for its picture."""
    assert wanted.drawn is not None
    seed = wanted.seeds[0]
    done = run_seed(seed, wanted.options)
    picture = of_traces(done.traces, done.world.story)
    look.draw(wanted.drawn, picture, f"Seed {seed}", done.verdict)
