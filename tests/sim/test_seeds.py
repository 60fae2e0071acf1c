"""Seeds that once showed a fault: each stays in the tests for good."""

import pytest

from framework.sim.run import Options, run
from framework.sim.world import Faults

FOUND = [
    (
        548,
        {"oneway": 0.5, "later": 0.3, "conflict": 0.5, "ucast": 0.3, "calls": 12},
        "the response of a call back proved its delivery before its predecessors were delivered",
    ),
    (642, {"back": 0.8, "wide": 0.6, "conflict": 0.5}, "the same, nested"),
    (
        734,
        {"back": 0.8, "wide": 0.6, "conflict": 0.5},
        "a call back was not looked at again when the one before it started",
    ),
    (
        740,
        {"repeat": 0.9, "later": 0.6, "conflict": 0.3, "ucast": 0.0, "calls": 10},
        "the oracle let a read go beyond its instance",
    ),
    (
        500244,
        {
            "nodes": 3, "objects": 3, "levels": 2, "clients": 10, "calls": 5, "back": 1.0, "wide": 0.8,
            "conflict": 1.0, "keys": 1, "oneway": 0.3, "later": 0.4,
        },
        "a call back was not looked at again when its predecessor had started but was not settled",
    ),
    (
        7097,
        {"oneway": 0.5, "later": 0.3, "conflict": 0.5, "ucast": 0.3, "calls": 12, "cancel": 0.0},
        "one part of a pcast stood for the other part of another, with which it does not conflict",
    ),
    (
        7075,
        {
            "ucast": 0.3, "oneway": 0.4, "conflict": 0.5, "objects": 2, "levels": 2, "wide": 0.5, "calls": 14,
            "clients": 6, "keys": 2, "nodes": 4, "back": 0.5, "cancel": 0.0,
        },
        "the same, in a world of calls back",
    ),
]  # fmt: skip

HEAVY = Faults(loss=0.4, duplication=0.5, reorder=True, cuts=4, pauses=4, slow=2)
FOUND_UNDER_HEAVY_FAULTS = [
    (
        100013,
        {"repeat": 1.0, "later": 0.0, "oneway": 0.2},
        "a client that repeated calls at other nodes lost what it had sent from its session",
    ),
]


@pytest.mark.parametrize(("seed", "shape", "what"), FOUND, ids=[f"{seed}: {what}" for seed, _, what in FOUND])
def test_a_fault_that_was_found_stays_away(seed: int, shape: dict[str, object], what: str) -> None:
    assert run(seed, Options(shape=shape)).verdict.violations == []


@pytest.mark.parametrize(
    ("seed", "shape", "what"),
    FOUND_UNDER_HEAVY_FAULTS,
    ids=[f"{seed}: {what}" for seed, _, what in FOUND_UNDER_HEAVY_FAULTS],
)
def test_a_fault_that_was_found_under_heavy_faults(
    seed: int, shape: dict[str, object], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framework.sim.run.random_faults", lambda seed, level: HEAVY)
    assert run(seed, Options(shape=shape)).verdict.violations == []


def test_many_seeds_without_a_violation() -> None:
    """A smaller range than ``make sim`` runs, for every change."""
    for seed in range(250):
        assert run(seed).verdict.violations == [], f"obo sim --seed {seed}"
