"""Proof that the attack can find a fault: each rule is switched off, and the oracle must notice within 300 seeds."""

import pytest

from framework.errors import OboError
from framework.sim.run import Options, run

from .mutants import FOCUS, MUTANTS

SEEDS = 300


def caught_at(seeds: int, shape: dict[str, object]) -> tuple[int, str] | None:
    """The first seed at which something is wrong, and what."""
    for seed in range(seeds):
        try:
            verdict = run(seed, Options(shape=shape)).verdict
        except (OboError, AssertionError, KeyError) as error:
            return seed, f"{type(error).__name__}: {error}"
        if verdict.violations:
            return seed, str(verdict.violations[0])
    return None


@pytest.mark.rotating(16)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_rule_that_is_switched_off_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, replacement = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, replacement)
    assert caught_at(SEEDS, FOCUS.get(name, {})) is not None, f"{name}: {SEEDS} seeds without a violation"


def _shapes() -> dict[str, dict[str, object]]:
    return {str(shape): shape for shape in ({}, *FOCUS.values())}


@pytest.mark.rotating(16)
@pytest.mark.parametrize("shape", _shapes().values(), ids=_shapes())
def test_with_all_rules_on_the_same_worlds_are_clean(shape: dict[str, object]) -> None:
    assert caught_at(30, shape) is None
