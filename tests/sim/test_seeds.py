"""Seeds that once showed a fault: each stays in the tests for good."""

import pytest

from framework.sim.run import Options, run

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
]


@pytest.mark.parametrize(("seed", "shape", "what"), FOUND, ids=[f"{seed}: {what}" for seed, _, what in FOUND])
def test_a_fault_that_was_found_stays_away(seed: int, shape: dict[str, object], what: str) -> None:
    assert run(seed, Options(shape=shape)).verdict.violations == []


def test_many_seeds_without_a_violation() -> None:
    """A smaller range than ``make sim`` runs, for every change."""
    for seed in range(250):
        assert run(seed).verdict.violations == [], f"obo sim --seed {seed}"
