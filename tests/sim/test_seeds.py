"""Seeds that once showed a fault: each stays in the tests for good."""

import pytest

from framework.sim.run import Options, run

FOUND = [
    (39, {}, "a call back waited for a predecessor that waited for its ancestor"),
    (53, {"repeat": 0.6, "oneway": 0.4}, "two calls back into one instance passed each other"),
    (134, {}, "a call back joined before the ancestor waited for it"),
    (235, {"repeat": 0.6, "oneway": 0.4}, "a pcast that reads here and writes there was no predecessor everywhere"),
    (418, {}, "the reply of a running instance was dropped when its client had its answer"),
    (548, {"oneway": 0.5, "later": 0.3, "conflict": 0.5, "ucast": 0.3, "calls": 12}, "a call back proved too much"),
    (642, {"back": 0.8, "wide": 0.6, "conflict": 0.5}, "the same"),
    (
        740,
        {"repeat": 0.9, "later": 0.6, "conflict": 0.3, "ucast": 0.0, "calls": 10},
        "the oracle let a read go too far",
    ),
    (1003, {}, "a copy that was answered early hid its predecessors"),
    (1273, {}, "a second call back waited for a first one that was performed but not settled"),
]


@pytest.mark.parametrize(("seed", "shape", "what"), FOUND, ids=[f"{seed}: {what}" for seed, _, what in FOUND])
def test_a_fault_that_was_found_stays_away(seed: int, shape: dict[str, object], what: str) -> None:
    assert run(seed, Options(shape=shape)).verdict.violations == []


def test_many_seeds_without_a_violation() -> None:
    """A smaller range than ``make sim`` runs, for every change."""
    for seed in range(250):
        assert run(seed).verdict.violations == [], f"obo sim --seed {seed}"
