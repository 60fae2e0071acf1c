"""Judges the ends of schedules by the definitions (framework.sim.oracle), each distinct end once."""

from collections.abc import Callable
from typing import Final

import msgspec

from framework.sim.explore.machine import Choice, Machine, State
from framework.sim.oracle import judge
from framework.sim.verdict import Verdict, Violation
from framework.trace.files import Trace

UNKNOWN: Final = "OutcomeUnknown"  # a replica says so only when it has forgotten an answer: here nothing is so old
CRASH: Final = "crash"  # stands for the rule where the com layer itself failed


class Finding(msgspec.Struct):
    """A schedule whose end is wrong."""

    schedule: list[Choice]
    violations: list[Violation]


class Enough(Exception):
    """As much as was wanted has been found."""


class Judge:
    """``most``: how many findings are enough."""

    def __init__(self, machine: Machine, most: int = 1) -> None:
        self.machine = machine
        self.most = most
        self.ends = 0
        self.findings: list[Finding] = []
        self._seen: set[tuple[int, ...]] = set()

    @property
    def distinct(self) -> int:
        return len(self._seen)

    def look(self, state: State, schedule: Callable[[], list[Choice]]) -> None:
        """A schedule has come to its end."""
        self.ends += 1
        machine = self.machine
        try:
            end, over = machine.finish(state)
        except Exception as error:
            self.failed(schedule(), error)
            return
        told = machine.told(end)
        if told in self._seen:
            return
        self._seen.add(told)
        whole = machine.scenario.rounds > 0
        must = over or machine.keeps_majority(end)
        violations = verdict(machine.traces(end, whole and must), not whole or over or not must).violations
        if violations:
            self._found(Finding(schedule(), violations))

    def failed(self, schedule: list[Choice], error: Exception) -> None:
        """The com layer raised."""
        self._found(Finding(schedule, [Violation(CRASH, f"{type(error).__name__}: {error}")]))

    def _found(self, finding: Finding) -> None:
        self.findings.append(finding)
        if len(self.findings) >= self.most:
            raise Enough


def verdict(traces: list[Trace], over: bool) -> Verdict:
    """``over``: all came to its end, or it need not."""
    found = judge(traces, outbox=True)
    unknown = [r for t in traces for r in t.records if any(status == UNKNOWN for _, status in r.received)]
    found.violations += [Violation("answer", f"{r.sid} is told {UNKNOWN} of {r.group}") for r in unknown]
    if not over and not any(v.rule == "A8" for v in found.violations):
        found.violations.append(Violation("A8", "the run did not come to an end"))
    return found
