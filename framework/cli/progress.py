"""What ``obo sim`` shows while it runs: a bar on stderr for people, results on stdout for people and programs."""

import sys
from types import TracebackType

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from framework.sim.batch import CRASH, Outcome

_SHOWN = 10  # violations of a seed among many


class Totals(msgspec.Struct):
    seeds: int = 0
    requests: int = 0
    delivered: int = 0
    fast: int = 0
    slow: int = 0
    bad: int = 0  # seeds with a violation or a crash
    crashed: int = 0
    violations: int = 0

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        for name in ("requests", "delivered", "fast", "slow"):
            setattr(self, name, getattr(self, name) + getattr(outcome, name))
        crashes = sum(v.rule == CRASH for v in outcome.violations)
        self.violations += len(outcome.violations) - crashes
        self.crashed += crashes
        self.bad += bool(outcome.violations)

    def __str__(self) -> str:
        text = (
            f"{_count(self.seeds, 'seed')}: {_count(self.requests, 'request')}, {self.delivered} delivered "
            f"({self.fast} fast, {self.slow} slow), {_count(self.violations, 'violation')}"
        )
        return f"{text}, {_count(self.crashed, 'crash', 'es')}" if self.crashed else text


def _count(n: int, what: str, plural: str = "s") -> str:
    return f"{n} {what}{'' if n == 1 else plural}"


class Display:
    """Use it in a ``with``. Quiet where stderr is no terminal."""

    def __init__(self, seeds: int, as_json: bool) -> None:
        self.as_json = as_json
        self.alone = seeds == 1
        self.totals = Totals()
        console = Console(stderr=True)
        both = console.is_terminal and sys.stdout.isatty()
        self._bar = Progress(
            BarColumn(12),
            MofNCompleteColumn(),
            TextColumn("{task.fields[what]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal or seeds == 1 or (as_json and both),
            redirect_stdout=False,  # stdout may be a file, and is the result
            transient=True,
        )
        self._above = self._bar.console if both and not self._bar.disable else None
        self._task = self._bar.add_task("", total=seeds, what="")

    def __enter__(self) -> "Display":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def take(self, outcome: Outcome, replay: str) -> None:
        self.totals.add(outcome)
        t = self.totals
        what = f"{t.requests} requests, {t.fast} fast, {t.slow} slow, {t.bad} bad"  # fits 80 columns
        self._bar.update(self._task, advance=1, what=what)
        if self.as_json:
            print(msgspec.json.encode(outcome).decode(), flush=True)
        if outcome.violations:
            self.report(outcome, replay)

    def report(self, outcome: Outcome, replay: str) -> None:
        shown = outcome.violations if self.alone else outcome.violations[:_SHOWN]
        for violation in shown:
            if violation.rule == CRASH:
                self.say(f"seed {outcome.seed}: crashed: {violation.text}")
            else:
                self.say(f"seed {outcome.seed}: {violation}")
        if len(outcome.violations) > len(shown):
            self.say(f"seed {outcome.seed}: and {len(outcome.violations) - len(shown)} more; the replay tells all")
        self.say(f"  replay: {replay}")

    def say(self, text: str) -> None:
        """A line for people: on stdout, unless that belongs to JSON."""
        if self._above is not None:
            self._above.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr if self.as_json else sys.stdout, flush=True)
