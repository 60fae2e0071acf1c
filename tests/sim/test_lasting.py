"""Transactions of durable objects, in worlds in which all nodes crash at bad moments; and proof that a rule which is
switched off is noticed (framework/com/lasting.py)."""

import pytest

from tests.tiers import only_full

from .test_transactions import fault
from .tran_mutants import LASTING_MUTANTS

#: A seed that shows it. The rules that are missing here are tested in tests/com/test_lasting.py: seeds that show
#: them are rare, because what a disk has not got is sent again by others.
WHERE = {
    "what is in doubt is dropped": 24,
    "what is in doubt is kept": 2,
    "a root answers before its outcome is on disk": 93,
}


#: 624: tran began without a node that knew of a commit. 1486: a state was given away, and on disk there, before any
#: disk had the outcome of what was committed in it. 1688: committed calls back were forgotten while their root was
#: performed again.
@pytest.mark.parametrize("seed", [0, 1, 2, 624, 1486, 1688, *map(only_full, range(3, 12))])
def test_what_was_committed_survives_a_crash_of_all(seed: int) -> None:
    assert not fault(seed, "all", lasting=True)


@pytest.mark.parametrize("name", LASTING_MUTANTS)
def test_a_rule_that_is_switched_off_is_caught(name: str) -> None:
    owner, attribute, replacement = LASTING_MUTANTS[name]
    assert not fault(WHERE[name], "all", lasting=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, attribute, replacement)
        assert fault(WHERE[name], "all", lasting=True)
