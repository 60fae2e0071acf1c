"""Worlds with more of what is rare: other seeds keep theirs, and faults that those hardly show are caught."""

import pytest

from framework.sim.program import random_shape

from .test_transactions import fault
from .tran_mutants import TRAN_MUTANTS

FIRST = 20_000_000


def test_only_seeds_from_there_on_have_more_of_it() -> None:
    assert random_shape(str(FIRST - 1), {"transactions": True}).rare == 0.0
    assert random_shape(str(FIRST), {}).rare == 0.0
    assert random_shape(str(FIRST), {"transactions": True}).rare > 0.0


@pytest.mark.rotating(4)
def test_a_client_that_commits_too_early_is_caught() -> None:
    """In none of 78 worlds from seed 1000 on."""
    seeds = range(FIRST, FIRST + 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*TRAN_MUTANTS["a client commits before all have answered"])
        found = next((seed for seed in seeds if fault(seed, "links")), None)
    assert found is not None
    assert fault(found, "links") == ""
