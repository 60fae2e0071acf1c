"""Worlds whose clients' calls travel together (framework.com.convoy): they are clean, they do have convoys, and each
rule of these that is switched off is noticed."""

from collections import Counter
from typing import Any

import pytest

from framework.com import convoy
from framework.errors import OboError
from framework.sim.run import Level, Options, run
from tests.tiers import worlds

from .convoy_mutants import BUSY, CONVOYS, FOCUS

SEEDS = 150
LEVELS: tuple[Level, ...] = ("links", "all")


#: Worlds that once showed a fault stay here for good.
MIXED: dict[str, object] = {"convoys": True, "oneway": 0.0, "ucast": 0.4, "later": 0.5, "conflict": 0.2}
FOUND = [
    (
        20,
        {"convoys": True, "ucast": 0.4, "conflict": 0.2},
        "who followed a copy of a call passed the convoy that it was in",
    ),
    (47, MIXED, "the first convoy of a node was taken for performed wherever a state had come: numbers begin with 1"),
    (44, MIXED, "a convoy was taken for performed, though a crash had lost some of its calls"),
]


def fault(seed: int, shape: dict[str, object], level: Level) -> str:
    """What is wrong with the run of this seed; empty if nothing is."""
    try:
        violations = run(seed, Options(shape, level)).verdict.violations
    except (OboError, AssertionError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return str(violations[0]) if violations else ""


@pytest.mark.parametrize("seeds", worlds(4, 60))
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("transactions", [False, True])
def test_seeds_without_a_violation(level: Level, transactions: bool, seeds: range) -> None:
    shape: dict[str, object] = {"convoys": True, **({"transactions": True} if transactions else {})}
    words = "--convoys --transactions" if transactions else "--convoys"
    for seed in seeds:
        assert fault(seed, shape, level) == "", f"obo sim --seed {seed} {words} --faults {level}"


@pytest.mark.parametrize(("seed", "shape", "what"), FOUND, ids=[f"{seed}: {what}" for seed, _, what in FOUND])
def test_a_fault_that_was_found_stays_away(seed: int, shape: dict[str, object], what: str) -> None:
    assert fault(seed, shape, "all") == ""


def test_worlds_have_convoys_of_one_client_and_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also such that conflict with each other, and calls that were performed before as other copies."""
    seen, board = Counter[str](), convoy.board

    def noted(host: Any, request: Any, serial: bool) -> Any:
        out = board(host, request, serial)
        clients = {rider.invocation.client for rider in request.riders}
        seen["of several" if len(clients) > 1 else "of one"] += 1
        seen["conflicting" if serial else "compatible"] += 1
        seen["with copies"] += bool(out[1])
        return out

    monkeypatch.setattr(convoy, "board", noted)
    kinds = ("of several", "of one", "conflicting", "compatible", "with copies")
    for seed in range(30):
        assert fault(seed, {"convoys": True}, "all") == ""
        if all(seen[kind] for kind in kinds):
            return
    pytest.fail(f"30 seeds have only {seen}")


@pytest.mark.rotating(4)
@pytest.mark.parametrize("name", CONVOYS)
def test_a_rule_of_convoys_that_is_switched_off_is_caught(name: str) -> None:
    """At a seed at which nothing is wrong with the rule on."""
    owner, attribute, replacement = CONVOYS[name]
    shape = FOCUS.get(name, BUSY)
    for seed in range(SEEDS):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, attribute, replacement)
            found = fault(seed, shape, "links")
        if found and not fault(seed, shape, "links"):
            return
    pytest.fail(f"{name}: {SEEDS} seeds without a violation")
