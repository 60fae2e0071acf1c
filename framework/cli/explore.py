"""``obo explore two``: every order in which a small scenario can go, on the real com layer. See docs/explore.md."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.status import Status

from framework.cli import look
from framework.cli.numbers import new_file, seeds, whole
from framework.errors import BadRequest
from framework.files import put
from framework.sim.explore import schedule
from framework.sim.explore.family import family
from framework.sim.explore.machine import Machine
from framework.sim.explore.scenario import Scenario, load, names
from framework.sim.explore.search import Report, Strategy, explore, strategy
from framework.sim.picture import of_traces

_SHOWN = 5  # violations of a schedule
_OUT = Path("out/explore")


class Wanted(msgspec.Struct):
    """The command line, read and checked."""

    strategy: Strategy
    seconds: float
    save: Path | None
    drawn: look.Look
    seed: int


def run(
    name: Annotated[str | None, typer.Argument(help="A scenario that comes with OBO, or a file with one.")] = None,
    many: Annotated[
        str | None,
        typer.Option("--family", metavar="SEED", help="A program made by chance; FIRST:LAST for several."),
    ] = None,
    how: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            metavar="WAY",
            help="dfs: every schedule; delay:K: those with K deviations from the usual one; pct:D: random priorities "
            "that change D - 1 times. If not given: dfs, and pct:4 for --family.",
        ),
    ] = None,
    seconds: Annotated[
        str | None, typer.Option(metavar="S", help="For each scenario at most; 60, and 5 for --family.")
    ] = None,
    seed: Annotated[str | None, typer.Option(metavar="N", help="Of the chance in pct.")] = None,
    replay: Annotated[str | None, typer.Option(metavar="FILE", help="Run the schedule in this file again.")] = None,
    save: Annotated[
        str | None, typer.Option(metavar="FILE", help=f"Write the replay file here, not to {_OUT}/NAME.txt.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Draw the schedule in the terminal.")] = False,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the schedule as a picture.")] = None,
    every: Annotated[bool, typer.Option("--list", help="List the scenarios that come with OBO.")] = False,
) -> None:
    """Try every order in which a small scenario can go, and judge each end by the definitions (protocol.md §2, §13).

    Ends with 0 if nothing is wrong, 1 if a schedule is, 2 at a mistake, 130 at Ctrl-C."""
    if every:
        for each in names():
            print(f"{each:<18} {' '.join(load(each).about).partition('. ')[0].rstrip('.')}")
        return
    given = [text for text in (name, many, replay) if text is not None]
    if len(given) != 1:
        raise BadRequest("name one scenario, or give --family SEED, or --replay FILE; obo explore --list lists them")
    one = many is None or ":" not in many
    wanted = Wanted(
        strategy(how or ("dfs" if many is None else "pct:4")),
        float(whole("--seconds", seconds, 1, 1_000_000) or (60 if many is None else 5)),
        new_file("--save", save),
        look.wanted(show, svg, None, None, None, False, one),
        whole("--seed", seed, 0, 1_000_000_000) or 0,
    )
    if replay is not None:
        raise typer.Exit(_replay(replay, wanted))
    scenarios = iter([load(name)]) if name is not None else _families(many or "")
    try:
        bad = sum([_explored(scenario, wanted) for scenario in scenarios])
    except KeyboardInterrupt:
        print("interrupted")
        raise typer.Exit(130) from None
    raise typer.Exit(1 if bad else 0)


def _families(text: str) -> Iterator[Scenario]:
    try:
        return map(family, seeds(None, text if ":" in text else f"{text}:{int(text) + 1}"))
    except ValueError:
        raise BadRequest(f"--family {text}: write a seed, for example 7, or FIRST:LAST (LAST not included)") from None


def _explored(scenario: Scenario, wanted: Wanted) -> bool:
    """Explore one scenario and tell what came of it: was something wrong?"""
    machine = Machine(scenario)
    console = Console(stderr=True)
    with Status("", console=console) if console.is_terminal else _Quiet() as status:
        report = explore(
            machine,
            wanted.strategy,
            wanted.seconds,
            tell=lambda r: status.update(f"{scenario.name}: {_numbers(r)}"),
            seed=wanted.seed,
        )
    if not report.findings:
        ended = "everything was tried" if report.exhausted else "not everything was tried"
        print(f"{scenario.name}: no schedule is wrong, {ended}: {_numbers(report)}", flush=True)
        return False
    found = report.findings[0]
    done = schedule.replay(machine, found.schedule)
    print(f"{scenario.name}: a schedule of {len(found.schedule)} steps is wrong, after {_numbers(report)}")
    _tell(done)
    path = wanted.save or _OUT / f"{scenario.name}.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path, schedule.write(scenario, done.lines))
    except OSError as error:
        raise BadRequest(f"--save {path}: {error.strerror}") from None
    print(f"  replay: obo explore --replay {os.fspath(path)}", flush=True)
    _draw(scenario, done, wanted)
    return True


def _numbers(report: Report) -> str:
    schedules = f"{report.schedules:,}" if report.schedules < 10**7 else f"{report.schedules:.2g}"
    states = f"{report.states:,} states, " if report.states else ""
    return (
        f"{report.strategy}, {schedules} schedules, {states}{report.distinct:,} different ends, {report.seconds:.1f} s"
    )


def _replay(file: str, wanted: Wanted) -> int:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"--replay {file}: cannot be read: {error}") from None
    scenario, steps = schedule.read_replay(Path(file).stem, text)
    machine = Machine(scenario)
    done = schedule.replay(machine, schedule.chosen(machine, steps))
    print(f"{scenario.name}: {len(done.lines)} steps, {'wrong' if done.verdict.violations else 'nothing is wrong'}")
    _tell(done)
    _draw(scenario, done, wanted)
    return 1 if done.verdict.violations else 0


def _tell(done: schedule.Replayed) -> None:
    for number, line in enumerate(done.lines, 1):
        print(f"{number:5}  {line}")
    for violation in done.verdict.violations[:_SHOWN]:
        print(f"  {violation}")
    if len(done.verdict.violations) > _SHOWN:
        print(f"  and {len(done.verdict.violations) - _SHOWN} more")


def _draw(scenario: Scenario, done: schedule.Replayed, wanted: Wanted) -> None:
    if wanted.drawn:
        look.draw(wanted.drawn, of_traces(done.traces, done.story), scenario.name, done.verdict)


class _Quiet:
    """Stands for a status where stderr is no terminal."""

    def __enter__(self) -> "_Quiet":
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def update(self, text: str) -> None:
        pass
