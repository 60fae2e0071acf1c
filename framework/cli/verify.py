"""``obo verify TRACE…``: judges trace files, of simulated and real runs alike. See docs/trace.md."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from framework.cli import look
from framework.errors import BadTrace
from framework.sim.oracle import judge
from framework.sim.picture import of_traces
from framework.sim.verdict import Verdict, Violation
from framework.trace.check import load
from framework.trace.files import Trace, read

_NUMBERS = ("requests", "delivered", "duplicates", "fast", "slow", "pairs", "ordered", "views", "crashed", "adopted")
_RARE = {
    "torn": "accepted, because a life that crashed has not written down its side",
    "unpromised": "acknowledged and lost with a majority of the replicas at once: A10 does not promise it",
}


class Judged(msgspec.Struct, omit_defaults=True):
    """One run: its verdict, or why there is none."""

    run: str
    verdict: Verdict | None = None
    error: str = ""

    def numbers(self) -> dict[str, int]:
        return {} if self.verdict is None else {name: getattr(self.verdict, name) for name in _NUMBERS}

    def rare(self) -> dict[str, int]:
        """Those that are told only when they are not 0."""
        found = {} if self.verdict is None else {name: getattr(self.verdict, name) for name in _RARE}
        return {name: number for name, number in found.items() if number}

    @property
    def violations(self) -> list[Violation]:
        return [] if self.verdict is None else self.verdict.violations


def run(
    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE...",
            help="The files of one run, or directories: of obo load, or each that holds *.jsonl is a run.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per run and line on stdout.")] = False,
    show_run: Annotated[bool, typer.Option("--show", help="Draw the run in the terminal.")] = False,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the run as a picture.")] = None,
    start: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Draw from this time on.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Draw up to this time.")] = None,
    only: Annotated[
        str | None, typer.Option(metavar="WHAT", help="Draw one invocation (c1/2), client, object or replica.")
    ] = None,
) -> None:
    """Judge traces by the definitions. Ends with 1 at a violation, 2 if something cannot be read."""
    found = runs(traces)
    wanted = look.wanted(show_run, svg, start, end, only, as_json, len(found) == 1)
    judged = [judge_run(name, paths, wanted) for name, paths in found]
    if as_json:
        for one in judged:
            print(msgspec.json.encode(as_object(one)).decode())
    else:
        show(judged)
    for one in judged:
        if one.error:
            print("obo: error:", " ".join(one.error.splitlines()), file=sys.stderr)
    if any(one.error for one in judged):
        raise typer.Exit(2)
    raise typer.Exit(1 if any(one.violations for one in judged) else 0)


def runs(names: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """(name, files) of each run. Files that are named one by one are one run."""
    found: list[tuple[str, list[Path]]] = []
    files: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            found += _inside(path)
        elif path.exists():
            files.append(path)
        else:
            raise BadTrace(f"{name}: no such file or directory")
    if files:
        found.insert(0, (str(files[0]) if len(files) == 1 else f"{files[0]} …", files))
    return found


def _inside(directory: Path) -> list[tuple[str, list[Path]]]:
    """The directory itself is a run, or those below it are. One of ``obo load`` has a directory for each life."""
    loaded = [run for run in (directory, *sorted(directory.iterdir())) if (run / "run.toml").is_file()]
    if loaded:
        return [(str(run), _lives(run)) for run in loaded]
    holders: dict[Path, list[Path]] = {}
    for file in sorted(directory.glob("*.jsonl")) or sorted(directory.rglob("*.jsonl")):
        holders.setdefault(file.parent, []).append(file)
    if not holders:
        raise BadTrace(f"{directory}: no trace files (*.jsonl) in this directory or below")
    return [(str(holder), files) for holder, files in sorted(holders.items(), key=lambda item: _order(item[0]))]


def _lives(run: Path) -> list[Path]:
    """Also what ``obo load`` did not come to convert, because it was killed: that is in ``logs/``."""
    left = sorted(run.glob("logs/*.jsonl"))
    names = {file.stem for file in left}
    found = [p.parent for p in sorted(run.glob("traces/*/header.json")) if p.parent.name not in names] + left
    if not found:
        raise BadTrace(f"{run}: a run without traces: its nodes wrote none, or could not be asked (see its run.toml)")
    return found


def _read(path: Path) -> Trace:
    """A file of JSON lines, or a directory of a run with Parquet."""
    if not path.is_dir():
        return read(path)
    try:
        from framework.analytics.lives import read_life
    except ImportError as error:
        raise BadTrace(f"{path}: needs pyarrow: pip install 'obo[load]' ({error})") from None
    return read_life(path)


def _order(path: Path) -> tuple[str, int, str]:
    """Seeds as numbers: 9 before 10."""
    name = path.name
    return str(path.parent), int(name) if name.isascii() and name.isdecimal() and len(name) < 19 else -1, name


def judge_run(name: str, paths: Sequence[Path], wanted: look.Look) -> Judged:
    try:
        traces = load(paths, _read)
    except BadTrace as error:
        return Judged(name, error=str(error))
    verdict = judge(traces)
    if wanted:
        look.draw(wanted, of_traces(traces), name, verdict)
    return Judged(name, verdict)


def as_object(one: Judged) -> dict[str, object]:
    if one.error:
        return {"run": one.run, "error": one.error}
    return {"run": one.run, **one.numbers(), **one.rare(), "violations": one.violations}


def show(judged: Sequence[Judged]) -> None:
    look.encodable(sys.stdout)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1000  # a file has no edge: never cut a name
    table = Table()
    table.add_column("run", overflow="fold")
    for name in (*_NUMBERS, "violations"):
        table.add_column(name, justify="right")
    for one in judged:
        if not one.error:
            table.add_row(escape(one.run), *map(str, one.numbers().values()), str(len(one.violations)))
    if table.row_count:
        console.print(table)
    for one in judged:
        notes = [f"{name}: {number} {_RARE[name]}" for name, number in one.rare().items()]
        for text in (*notes, *map(str, one.violations)):
            console.print(f"{one.run}: {text}" if len(judged) > 1 else text, markup=False, soft_wrap=True)
    bad = sum(bool(one.violations) for one in judged)
    unread = sum(bool(one.error) for one in judged)
    if unread < len(judged):
        console.print(_summary(len(judged), bad, unread))


def _summary(total: int, bad: int, unread: int) -> str:
    words = (
        f"{total} run{'' if total == 1 else 's'} judged" if not unread else f"{total - unread} of {total} runs judged"
    )
    return f"{words}: " + (f"{bad} with violations" if bad else "no violation found")
