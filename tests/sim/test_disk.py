"""The power fails again and again, and disks are slow: nothing that anybody was told of is lost (A10).

All objects are durable here, and all nodes crash at the same moment. What was performed shortly before is on no disk:
so each rule about who may be told is noticed when it is switched off."""

from collections.abc import Callable
from typing import Any

import pytest

from framework.com.answers import Answers
from framework.sim import disk
from framework.sim.actors import Actors, placements
from framework.sim.oracle import judge
from framework.sim.program import Program, random_shape
from framework.sim.verdict import Verdict
from framework.sim.world import Faults, World

SHAPE: dict[str, object] = {
    "objects": 2, "levels": 1, "nodes": 3, "least": 3, "conflict": 1.0, "keys": 0, "readonly": 0.5, "clients": 5,
    "calls": 40, "pace": 10.0, "wide": 0.0, "oneway": 0.3, "cancel": 0.0, "repeat": 0.3,
}  # fmt: skip
SEEDS = 12


def world(seed: int) -> World:
    program = Program(f"dark {seed}", random_shape(f"dark {seed}", SHAPE, True))
    made = World(program.seed, program.nodes, placements(program), Faults(blackouts=4))
    Actors(made, program)
    return made


def verdict(seed: int) -> Verdict:
    made = world(seed)
    assert made.run()
    return judge(made.traces())


@pytest.fixture(autouse=True)
def _slow_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "durable", lambda self, name: True)
    monkeypatch.setattr(disk, "LONGEST", (150.0,))


def test_nothing_that_anybody_was_told_of_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[int] = []

    def crash(self: disk.Disk, real: Any = disk.Disk.crash) -> None:
        lost.append(len(self._pending))
        real(self)

    monkeypatch.setattr(disk.Disk, "crash", crash)
    for seed in range(SEEDS):
        assert verdict(seed).violations == [], f"seed {seed}"
    assert sum(lost) > SEEDS, "but something else is"


def _told_at_once(self: Answers, instance: Any, event: Any, real: Any = Answers.over) -> None:
    real(self, instance, event)
    if not event.safe:
        self._tell(instance.entry, instance.reply, instance.rides)


def _reads_at_once(self: Actors, node: Any, effect: Any, real: Any = Actors._is_safe) -> bool:
    return effect.footprint.readonly or real(self, node, effect)


MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "it is answered before it is safe": (Answers, "over", _told_at_once),
    "a read is answered before what it has seen is safe": (Actors, "_is_safe", _reads_at_once),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_rule_that_is_switched_off_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, replacement = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, replacement)
    for seed in range(SEEDS):
        found = verdict(seed).violations
        if found:
            assert {v.rule for v in found} == {"A10"}
            return
    pytest.fail(f"{name}: {SEEDS} seeds without a violation")
