"""``check_conflicts``: all pairs of methods, each with its examples."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from framework.declare import Declaration, Object, declaration
from framework.errors import BadRequest
from framework.testing import tell
from framework.testing.generate import Example, Generator, smallest
from framework.testing.laws import Broken, Seen, judge
from framework.testing.perform import NeedsOrb, Stage, stage


@dataclass(frozen=True)
class Pair:
    """What was seen of two methods: ``met`` examples conflicted by declaration, ``needed`` of them told the order."""

    first: str
    second: str
    declared: bool
    examples: int
    met: int
    needed: int


@dataclass(frozen=True)
class Report:
    """The declaration held. ``str()`` of it is for people."""

    name: str
    pairs: tuple[Pair, ...]

    @property
    def needless(self) -> tuple[tuple[str, str], ...]:
        """Pairs that are declared to conflict although no example needed it."""
        return tuple((p.first, p.second) for p in self.pairs if p.declared and not p.needed)

    @property
    def hints(self) -> tuple[str, ...]:
        found = (p for p in self.pairs if (p.first, p.second) in self.needless)
        return tuple(tell.needless(self.name, p.first, p.second, p.met) for p in found)

    def __str__(self) -> str:
        examples = sum(p.examples for p in self.pairs)
        head = f"{self.name}: no conflict is missing ({len(self.pairs)} pairs of methods, {examples} examples)"
        return "\n".join([head, *(f"hint: {hint}" for hint in self.hints)])


def check_conflicts(
    cls: type[Object],
    *,
    examples: int = 100,
    states: int = 5,
    strategies: Mapping[str, Any] | None = None,
    without: Collection[str] = (),
) -> Report:
    """Raise AssertionError if a conflict is missing, with the smallest example and the line to paste.

    ``examples``: how many to try for each pair of methods. ``states``: the most calls that lead to a state.
    ``strategies``: hypothesis strategies for parameters, by ``"amount"``, ``"deposit.amount"`` or
    ``"__init__.places"``; the others come from the annotations. ``without``: methods to leave out.
    """
    declared = declaration(cls)
    left_out = {declared.method(name).name for name in without}
    names = [name for name in declared.methods if name not in left_out]
    generator = Generator(declared, dict(strategies or {}))
    broken: dict[str, str] = {}
    pairs = []
    with stage(any(m.is_async for m in declared.methods.values())) as on:
        for a, b in _pairs(declared, names):
            seen = Seen()
            found = _first_broken(declared, on, generator.examples(a, b, names, states), seen, examples)
            if found is not None:
                broken.setdefault(found.law, found.words)
            pairs.append(Pair(a, b, declared.relation.methods(a, b), seen.examples, seen.met, seen.needed))
    if broken:
        raise AssertionError("\n\n".join([f"what {cls.__name__} declares does not hold", *broken.values()]))
    return Report(cls.__name__, tuple(pairs))


def _pairs(declared: Declaration, names: list[str]) -> list[tuple[str, str]]:
    """Without those of two readonly methods: each is tried with itself, and what changes nothing tells no order."""
    every = [(a, b) for i, a in enumerate(names) for b in names[i:]]
    readonly = {name for name in names if declared.methods[name].readonly}
    return [(a, b) for a, b in every if a == b or not {a, b} <= readonly]


def _first_broken(declared: Declaration, on: Stage, among: Any, seen: Seen, most: int) -> Broken | None:
    try:
        found: Example | None = smallest(
            among, lambda e: _judged(declared, on, e, seen) is not None, most, declared.name
        )
        return None if found is None else judge(declared, on, found, Seen())
    except _NeedsOrbError as needs:
        raise BadRequest(str(needs)) from None


class _NeedsOrbError(Exception):
    pass


def _judged(declared: Declaration, on: Stage, e: Example, seen: Seen) -> Broken | None:
    try:
        return judge(declared, on, e, seen)
    except NeedsOrb as needs:
        name = str(needs).partition(".")[2]
        raise _NeedsOrbError(
            f"{needs} uses self.orb: check_conflicts performs one object alone and cannot know what others would "
            f"answer; leave it out with without=({name!r},) and judge it by hand"
        ) from None
