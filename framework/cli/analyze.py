"""``obo analyze RUN…``: the analysis of a run on Spark, as tables and one HTML report. See docs/analytics.md."""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from framework.errors import BadRequest

_MOST = 1000  # records about a call that are shown

if TYPE_CHECKING:
    from framework.analytics.analyze import Found, Tell
    from framework.analytics.work import Analysed


def run(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Directory of obo load, or of *.jsonl traces. Two: what differs."),
    ],
    master: Annotated[
        str, typer.Option(metavar="MASTER", help="local[N], local[*], or spark://HOST:PORT.")
    ] = "local[*]",
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where tables and report.html go. [RUN/analysis]")
    ] = None,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Of the JVM: 512m, 2g. More is spilled to disk.")] = "2g",
    call: Annotated[
        str | None, typer.Option(metavar="ID", help="Show the way of this call across nodes (ann/3), and nothing else.")
    ] = None,
) -> None:
    """Analyse runs: how fast, what was waited for, what order cost, and whether anything went wrong.

    Ends with 0, with 1 if the traces show a violation, with 2 if a run cannot be read or not be judged.
    """
    paths = [Path(name) for name in runs]
    _check(paths, master, memory)
    where = Path(out) if out is not None else paths[0] / "analysis"
    from framework.analytics.session import session

    console = Console(stderr=True, highlight=False)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what was written meanwhile is removed
    try:
        with _telling(console) as tell:
            tell(f"starting Spark on {master}")
            with session(master, memory) as spark:
                from framework.analytics.work import explained, work

                if call is not None:
                    from framework.analytics.way import look_up

                    with explained():
                        for path in paths:
                            _show_way(look_up(spark, path, call, _MOST + 1), call, path)
                    return
                found = work(spark, paths, where, tell)
    except KeyboardInterrupt:
        console.print(f"interrupted; {where} is not whole")
        raise typer.Exit(130) from None
    for one in found.runs:
        _tell(one)
    _tell_differences(found)
    print(f"report: {where / 'report.html'}")
    raise typer.Exit(found.code)


def _check(paths: list[Path], master: str, memory: str) -> None:
    """What can be seen to be wrong before Spark takes its ten seconds."""
    if len(paths) > 2:
        raise BadRequest(f"{len(paths)} runs: give one, or two to compare")
    if len({p.resolve() for p in paths}) < len(paths):
        raise BadRequest(f"{paths[0]} twice: there is nothing to compare")
    for path in paths:
        if not path.is_dir():
            raise BadRequest(
                f"{path}: {'a file; give the directory of the run' if path.exists() else 'no such directory'}"
            )
    if not master.startswith(("local", "spark://", "yarn", "k8s://")):
        raise BadRequest(f"--master {master}: write local[2], local[*] or spark://HOST:PORT")
    if not (memory[:-1].isdecimal() and memory[-1:] in "mg" and memory[:1] != "0"):
        raise BadRequest(f"--memory {memory}: write 512m or 2g")


@contextmanager
def _telling(console: Console) -> "Iterator[Tell]":
    """A line that changes on a terminal; elsewhere one line for each step."""
    if not console.is_terminal:
        yield lambda what: console.print(escape(what), soft_wrap=True)
        return
    with console.status("") as status:
        yield lambda what: status.update(escape(what))


def _tell(found: "Found") -> None:
    """What matters most, on stdout."""
    out = Console(highlight=False, soft_wrap=True)
    for note in found.notes:
        out.print(f"{found.name}: {note.what} ({note.where})", markup=False)
    calls = found.rows.get("calls", [])
    if calls:
        table = Table(title=escape(found.name))
        for name in ("object", "method", "calls", "errors", "p50", "p99"):
            table.add_column(name, justify="left" if name in ("object", "method") else "right")
        for r in calls[:20]:
            times = [
                "–" if r[p] is None else f"{r[p] * 1000:.3g} ms" if found.seconds else f"{r[p]:.3g}"
                for p in ("p50", "p99")
            ]
            table.add_row(escape(r["object"]), escape(r["method"]), str(r["calls"]), str(r["errors"]), *times)
        out.print(table)
    ratio = found.rows.get("ratio", [])
    messages = sum(r["messages"] for r in ratio)
    if messages:
        needed = sum(r["needed"] for r in ratio)
        out.print(
            f"{found.name}: {messages} messages, {100 * (1 - needed / messages):.1f} % need no order", markup=False
        )
    if found.violated:
        for row in found.rows.get("violations", [])[:20]:
            out.print(f"{found.name}: {row['rule']}: {row['text']}", markup=False)
    out.print(f"{found.name}: {_judged(found)}", markup=False)


def _judged(found: "Found") -> str:
    if not found.judged:
        return "not judged: no traces"
    if found.unsure:
        return f"not judged: records are missing; {found.unsure} findings may come from that (table violations)"
    return f"{sum(found.violations.values())} violations" if found.violations else "no violation found"


def _tell_differences(found: "Analysed") -> None:
    """Of two runs: what got worse or better, where the interval says so."""
    if len(found.runs) < 2:
        return
    from framework.analytics.report_tables import shown

    first, second = found.runs
    seen = [one for one in found.differences if one.word in ("worse", "better")]
    out = Console(highlight=False, soft_wrap=True)
    for d in seen[:20]:
        name = f"{d.object}.{d.method}" if d.object else "all calls"
        a, b, low, high = (shown(first, d.figure, v) for v in (d.first, d.second, d.low, d.high))
        values = f"{a} → {b} (change {low} … {high}, 95 %)"
        out.print(f"{second.name} against {first.name}: {d.word}: {name}, {d.figure}: {values}", markup=False)
    if not seen:
        out.print(f"{second.name} against {first.name}: no difference seen", markup=False)


def _show_way(rows: Sequence[object], call: str, path: Path) -> None:
    if not rows:
        raise BadRequest(f"{path}: nothing about a call {call!r}; an id looks like ann/3 or ann/3.1")
    table = Table(title=f"{escape(call)} in {escape(str(path))}")
    columns = ("at", "node", "event", "invocation", "replica", "what", "way", "received")
    for name in columns:
        table.add_column(name, overflow="fold")
    first = rows[0].at  # type: ignore[attr-defined]
    for row in rows[:_MOST]:
        told = row.asDict()  # type: ignore[attr-defined]
        told["at"] = f"{told['at'] - first:+.6f}"
        table.add_row(*[escape(str(told[name] or "")) for name in columns])
    console = Console(highlight=False)
    if not sys.stdout.isatty():
        console.width = 220
    console.print(table)
    if len(rows) > _MOST:
        console.print(f"these are the first {_MOST} records; there are more")
