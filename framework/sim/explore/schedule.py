"""Schedules as people read them, and files that bring one back.

A replay file is a scenario, a line ``----``, and the schedule: one step on each line, ``NODE WORD...``, with what it
meant behind ``#``. What follows the last step is the fair end. Run it with ``obo explore --replay FILE``.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from framework.com.messages import Delivered, Frame, Known, Proposal, Request, Response
from framework.com.words import Accept, Decided, Prepare, Promise, decode
from framework.errors import BadRequest
from framework.ids import Node
from framework.sim.explore.judge import CRASH, verdict
from framework.sim.explore.machine import Choice, Machine, is_empty
from framework.sim.explore.scenario import Scenario, read
from framework.sim.explore.stepper import Stepper, traces
from framework.sim.verdict import Verdict, Violation
from framework.trace.files import Trace

RULE: Final = "----"


class Replayed(msgspec.Struct):
    """A schedule that was run step by step, with the fair end."""

    verdict: Verdict
    traces: list[Trace]
    story: list[tuple[float, float, str]]  # what went wrong, for the picture
    lines: list[str]  # of the schedule


def line(choice: Choice, nodes: Sequence[str]) -> str:
    """``n2 takes n1``"""
    node, event, _ = choice
    words = event[:2] if event[0] in ("takes", "gets") else event
    return " ".join([nodes[node], *map(str, words)])


def meaning(machine: Machine, choice: Choice) -> str:
    """What arrives, in short."""
    if choice.event[0] not in ("takes", "gets"):
        return ""
    item: tuple[Any, ...] = machine.items[choice.event[2]]
    if item[0] == "ask":
        return f"the state of {item[1]} is wanted"
    if item[0] == "state":
        return f"the state for {item[1]}"
    if item[0] == "client":
        return f"client {item[1]} comes"
    what = decode(item[1], Node(choice.event[1]))
    return " + ".join(map(_short, what.messages)) or "nothing" if isinstance(what, Frame) else _short(what)


def _short(m: Any) -> str:
    match m:
        case Request():
            return f"request {m.invocation} to {m.target}"
        case Proposal() | Known():
            return f"{type(m).__name__.lower()} of {m.replica} for {m.group}"
        case Response():
            return f"response {m.status} of {m.replica} to {m.group}"
        case Delivered():
            return "delivered marks"
        case Prepare():
            return f"prepare {m.ballot.round}/{m.ballot.node} without {' '.join(m.leaving) or 'nobody'}"
        case Promise():
            return f"promise {m.ballot.round}/{m.ballot.node}" + (", with what it accepted" if m.accepted else "")
        case Accept():
            return f"accept {m.ballot.round}/{m.ballot.node}: {' '.join(m.decision.view.members)}"
        case Decided():
            return f"decided view {m.decision.view.version}: {' '.join(m.decision.view.members)}"
    return type(m).__name__.lower()


def write(scenario: Scenario, lines: Iterable[str]) -> str:
    """The text of a replay file."""
    return "\n".join([scenario.text().rstrip("\n"), "", RULE, *lines]) + "\n"


def read_replay(name: str, text: str) -> tuple[Scenario, list[str]]:
    """The scenario and the schedule of a replay file."""
    head, rule, rest = text.partition(f"\n{RULE}\n")
    if not rule:
        raise BadRequest(f"{name}: no line {RULE}; a replay file is a scenario, this line, and the steps of a schedule")
    steps = [step for step in (line.split("#")[0].strip() for line in rest.splitlines()) if step]
    return read(name, head), steps


def chosen(machine: Machine, steps: Sequence[str]) -> list[Choice]:
    """The choices that these lines mean."""
    state, out = machine.initial, []
    for number, step in enumerate(steps, 1):
        there = {line(c, machine.nodes): c for c in machine.choices(state)}
        if step not in there:
            raise BadRequest(
                f"{machine.scenario.name}: step {number}, {step!r}, cannot happen then; it could be one of "
                f"{', '.join(map(repr, there)) or 'none: all is over'}"
            )
        out.append(there[step])
        try:
            state = machine.next(state, there[step])
        except Exception:  # the com layer fails in this step, as it may have when the file was written
            break
    return out


def replay(machine: Machine, schedule: Sequence[Choice]) -> Replayed:
    """Run a schedule on nodes of its own, where nothing is looked up. Time is the number of the step."""
    steppers = [Stepper(machine.scenario, name) for name in machine.nodes]
    done = Replayed(Verdict(violations=[]), [], [], [])
    state, over, at = machine.initial, True, 0.0

    def step(choice: Choice) -> None:
        nonlocal at
        empty = choice.event[0] == "takes" and is_empty(machine.items[choice.event[2]], choice.event[1])
        at += not empty and choice.event[0] != "passes"
        for stepper in steppers:
            stepper.at = at
        if choice.event[0] == "loses":
            return
        event = ("crashes",) if choice.event[0] == "crashes" else machine.real(choice.event)
        steppers[choice.node].apply(event)

    try:
        for choice in schedule:
            told, means = line(choice, machine.nodes), meaning(machine, choice)
            done.lines.append(f"{told:<24} # {means}" if means else told)
            step(choice)
            if choice.event[0] in ("crashes", "evicts", "loses", "vetoes", "cancels", "moves", "returns"):
                done.story.append((at, at + 1.0, told))
            state = machine.next(state, choice)
        end, over = machine.finish(state, step)
        must = machine.scenario.rounds > 0 and (over or machine.keeps_majority(end))
    except Exception as error:
        must = False
        done.verdict.violations.append(Violation(CRASH, f"{type(error).__name__}: {error}"))
    for stepper in steppers:
        stepper.at = at + 1.0
        if must:
            stepper.stop()
        done.traces += traces(stepper.told)
    if not done.verdict.violations:
        done.verdict = verdict(done.traces, over or not must)
    return done
