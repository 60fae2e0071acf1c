"""The four laws on one example; see the package. What is found is a ``Broken`` with its words."""

import copy
from dataclasses import dataclass
from typing import Any

import msgspec

from framework.declare import Declaration, Object
from framework.testing import tell
from framework.testing.generate import Example
from framework.testing.perform import Call, Output, Stage, same, state


@dataclass(frozen=True)
class Broken:
    """``law`` tells one finding from another: the same one shows up with many pairs of methods."""

    law: str
    words: str


@dataclass
class Seen:
    """What the examples of a pair showed: how many there were, how many conflicted by declaration, and how many of
    those could tell the order."""

    examples: int = 0
    met: int = 0
    needed: int = 0


@dataclass(frozen=True, eq=False)
class Outcome:
    """Of two calls in one order."""

    first: Output
    second: Output
    state: dict[str, Any]

    def same(self, other: "Outcome") -> bool:
        return self.first.same(other.first) and self.second.same(other.second) and same(self.state, other.state)


def judge(declared: Declaration, stage: Stage, e: Example, seen: Seen) -> Broken | None:
    base = _reach(declared, stage, e)
    if e.history and _unwritable(base) is not None:
        return None  # a shorter history blames the call that did it
    one, two = copy.deepcopy(base), copy.deepcopy(base)
    first, second = stage.perform(one, e.first, "first"), stage.perform(two, e.second, "second")
    broken = _single(e, e.first, base, first, one) or _single(e, e.second, base, second, two)
    if broken is None and e.first.method is e.second.method:
        broken = _repeat(stage, e, base, first, one)
    if broken is not None:
        return broken
    forth = Outcome(first, stage.perform(one, e.second, "second"), state(one))
    back = Outcome(stage.perform(two, e.first, "first"), second, state(two))
    conflict = declared.relation.conflict(e.first.footprint, e.second.footprint)
    told = not forth.same(back)
    seen.examples += 1
    seen.met += conflict
    seen.needed += conflict and told
    if not told or conflict:
        return None
    law = f"order {e.first.method.name} {e.second.method.name}"
    return Broken(law, tell.missing(declared, e, forth, back))


def _reach(declared: Declaration, stage: Stage, e: Example) -> Object:
    made = declared.cls(**copy.deepcopy(dict(e.start)))
    for number, call in enumerate(e.history):
        stage.perform(made, call, f"history {number}")
    assert isinstance(made, Object)
    return made


def _single(e: Example, call: Call, base: Object, output: Output, after: Object) -> Broken | None:
    """The laws about one call."""
    name = call.method.name
    unwritable = _unwritable(after)
    if unwritable is not None:
        return Broken("state", tell.unwritable(e, call, unwritable))
    if same(vars(base), vars(after)):
        return None
    if call.method.readonly:
        return Broken(f"readonly {name}", tell.readonly(e, call, vars(base), vars(after)))
    if output.raised:
        return Broken(f"trace {name}", tell.trace(e, call, output, vars(base), vars(after)))
    return None


def _repeat(stage: Stage, e: Example, base: Object, output: Output, after: Object) -> Broken | None:
    again = copy.deepcopy(base)
    second = stage.perform(again, e.first, "first")
    if second.same(output) and same(vars(again), vars(after)):
        return None
    return Broken(
        f"chance {e.first.method.name}", tell.chance(e, e.first, (output, vars(after)), (second, vars(again)))
    )


def _unwritable(of: Object) -> str | None:
    """The state must be one that can be sent to a new replica."""
    for name, value in vars(of).items():
        try:
            msgspec.msgpack.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            return f"self.{name} = {value!r:.80}: {error}"
    return None
