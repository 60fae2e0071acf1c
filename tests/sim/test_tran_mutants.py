"""Proof that worlds with transactions find a fault: each rule is switched off and noticed."""

import pytest

from framework.sim.run import Level

from .test_transactions import fault
from .tran_mutants import TRAN_MUTANTS

SEEDS = 60

#: What needs more than links that are slow.
LEVELS: dict[str, Level] = {"nobody gives way, and nobody aborts for others": "links"}


@pytest.mark.parametrize("name", TRAN_MUTANTS)
def test_a_rule_of_transactions_that_is_switched_off_is_caught(name: str) -> None:
    """At a seed at which nothing is wrong with the rule on."""
    owner, attribute, replacement = TRAN_MUTANTS[name]
    level = LEVELS.get(name, "links")
    for seed in range(SEEDS):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, attribute, replacement)
            found = fault(seed, level)
        if found and not fault(seed, level):
            return
    pytest.fail(f"{name}: {SEEDS} seeds without a violation")
