"""What a replica remembers is bounded (protocol.md §5.2): too high a bound costs only a slow path, too low is a
fault."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com import past as past_module
from framework.com.entry import LOWEST, Entry
from framework.com.past import Past
from framework.footprint import WRITE, Footprint, Relation
from framework.ids import GroupId, Node, Replica, Stamp
from tests.tiers import examples

RELATION = Relation([("a", "a"), ("a", "b")])
quick = settings(derandomize=True, deadline=None, max_examples=examples(37, 150))
calls = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("klmn"), st.integers(1, 50)), max_size=40)


def entry(n: int, method: str, key: str) -> Entry:
    group = GroupId(n, Replica("tran@n1"), 0)
    out = Entry(group, Stamp(1, group), Footprint(method, ((key, WRITE),)), ())
    out.places, out.meets = RELATION.slots(out.footprint)
    return out


@quick
@given(calls=calls)
@pytest.mark.parametrize("fold", [3, 1000])
def test_the_highest_stamp_of_what_conflicts(fold: int, calls: list[tuple[str, str, int]]) -> None:
    """Exact while nothing is folded, and never too low."""
    was = past_module.FOLD, past_module.LATEST
    past_module.FOLD = past_module.LATEST = fold
    try:
        past, seen = Past(), []
        for n, (method, key, number) in enumerate(calls, 1):
            new = entry(n, method, key)
            met = [s for old, s in seen if RELATION.conflict(old.footprint, new.footprint)]
            bound = past.highest_conflicting(new)
            assert bound >= max(met, default=LOWEST)
            if fold == 1000:
                assert bound == max(met, default=LOWEST)
            if not new.meets:
                assert bound == LOWEST, "what conflicts with nothing is never slow"
            stamp = Stamp(number, new.group)
            past.promise(new, stamp)
            seen.append((new, stamp))
            for slot in new.places:
                assert max(past._top.get(slot, LOWEST), past._older.get(slot, LOWEST)) >= stamp, "the newest stay"
            assert len(past._top) + len(past._older) <= fold + 2 * len(new.places)
    finally:
        past_module.FOLD, past_module.LATEST = was


@quick
@given(marks=st.lists(st.tuples(st.sampled_from(["n1", "n2"]), st.integers(1, 12)), unique=True), data=st.data())
@pytest.mark.parametrize("fold", [3, 1000])
def test_what_is_delivered_is_never_forgotten(fold: int, marks: list[Any], data: st.DataObject) -> None:
    was = past_module.FOLD, past_module.LATEST
    past_module.FOLD = past_module.LATEST = fold
    try:
        past, stamps = Past(), {}
        for n, (node, seq) in enumerate(marks, 1):
            mark = (Node(node), seq)
            assert not past.is_delivered(mark)
            stamps[mark] = Stamp(data.draw(st.integers(1, 20)), GroupId(n, Replica("tran@n1"), 0))
            past.deliver(mark, stamps[mark])
            for known, stamp in stamps.items():
                assert past.is_delivered(known)
                assert past.stamp_of(known) >= stamp
            for known in list(stamps)[-fold:]:
                assert past.stamp_of(known) == stamps[known], "only the oldest are folded, one by one"
            assert len(past._stamps) == len(past._latest) <= fold
    finally:
        past_module.FOLD, past_module.LATEST = was
