"""Proof that worlds whose group changes find a fault: each rule of membership is switched off and noticed."""

import pytest

from framework.errors import OboError
from framework.sim.run import Options, run

from .member_mutants import MEMBER_FOCUS, MEMBER_FROM, MEMBER_MUTANTS

SEEDS = 150


def fault(seed: int, shape: dict[str, object]) -> str:
    """What is wrong with the run of this seed; empty if nothing is."""
    try:
        violations = run(seed, Options(shape, "all")).verdict.violations
    except (OboError, AssertionError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return str(violations[0]) if violations else ""


@pytest.mark.rotating(12)
@pytest.mark.parametrize("name", MEMBER_MUTANTS)
def test_a_rule_of_membership_that_is_switched_off_is_caught(name: str) -> None:
    """At a seed at which nothing is wrong with the rule on."""
    owner, attribute, replacement = MEMBER_MUTANTS[name]
    shape = MEMBER_FOCUS.get(name, {})
    first = MEMBER_FROM.get(name, 0)
    for seed in range(first, first + SEEDS):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, attribute, replacement)
            found = fault(seed, shape)
        if found and not fault(seed, shape):
            return
    pytest.fail(f"{name}: {SEEDS} seeds without a violation")
