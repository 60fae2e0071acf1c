"""Deadlines pass in their order, whatever is answered meanwhile."""

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.calls import Deadlines
from framework.ids import GroupId, Replica
from tests.tiers import examples

quick = settings(derandomize=True, deadline=None, max_examples=examples(50, 200))


def group(n: int) -> GroupId:
    return GroupId(n, Replica("tran@n1"), 0)


def passed(deadlines: Deadlines, now: float, waiting: set[GroupId]) -> list[object]:
    found = []
    while (what := deadlines.pop(now, waiting)) is not None:
        found.append(what)
    return found


@quick
@given(due=st.lists(st.integers(0, 9), max_size=12), over=st.sets(st.integers(0, 11)), now=st.integers(0, 10))
def test_in_their_order(due: list[int], over: set[int], now: int) -> None:
    deadlines, waiting = Deadlines(), {group(n) for n in range(12) if n not in over}
    for n, at in enumerate(due):
        deadlines.add(float(at), group(n))
    expected = [group(n) for at, n in sorted((at, n) for n, at in enumerate(due)) if at <= now]
    assert [w for w in passed(deadlines, float(now), waiting) if w in waiting] == [w for w in expected if w in waiting]


def test_calls_that_have_not_left_are_kept_until_then() -> None:
    deadlines = Deadlines()
    deadlines.add(5.0, ("ann", 1))
    deadlines.add(6.0, group(1))
    assert passed(deadlines, 4.0, set()) == []
    assert passed(deadlines, 5.0, set()) == [("ann", 1)]
    assert len(deadlines) == 0
