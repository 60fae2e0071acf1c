"""Proof that worlds with transactions find a fault: each rule is switched off and noticed."""

import pytest

from framework.sim.run import Level
from tests.com import test_tran_order as conversations

from .test_transactions import fault
from .tran_mutants import ORDER_MUTANTS, TRAN_MUTANTS

#: Where to look: links that are slow, and many seeds; what needs more has a level and seeds of its own.
USUAL: tuple[Level, range] = ("links", range(60))
WHERE: dict[str, tuple[Level, range]] = {
    "votes have no order": ("links", range(1000, 1100)),
    "one vote is enough": ("links", range(1000, 1060)),
}


@pytest.mark.rotating(8)
@pytest.mark.parametrize("name", TRAN_MUTANTS)
def test_a_rule_of_transactions_that_is_switched_off_is_caught(name: str) -> None:
    """At a seed at which nothing is wrong with the rule on."""
    owner, attribute, replacement = TRAN_MUTANTS[name]
    level, seeds = WHERE.get(name, USUAL)
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, attribute, replacement)
            found = fault(seed, level)
        if found and not fault(seed, level):
            return
    pytest.fail(f"{name}: {len(seeds)} seeds without a violation")


@pytest.mark.parametrize("name", [name for name, (_, conversation) in ORDER_MUTANTS.items() if conversation])
def test_a_rule_of_order_that_is_switched_off_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (owner, attribute, replacement), conversation = ORDER_MUTANTS[name]
    monkeypatch.setattr(owner, attribute, replacement)
    with pytest.raises(AssertionError):
        getattr(conversations, f"test_{conversation}")()
