"""Compatibility identifiers (protocol.md §3.4): equal cids mean compatible; what conflicts inherits (§4.1)."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.context import Known
from framework.com.epoch import OFTEN, Agreed, Epoch
from framework.com.messages import WireContext
from framework.footprint import READ, WRITE, Footprint, Relation
from framework.ids import GroupId, Node, Replica, Sid, Stamp
from tests.tiers import examples

AT = Replica("f@n1")
METHODS = ("a", "b", "c")
pairs = st.lists(st.tuples(st.sampled_from(METHODS), st.sampled_from(METHODS)), min_size=1, max_size=4)
keys = st.none() | st.dictionaries(st.sampled_from("kl"), st.sampled_from([READ, WRITE]), max_size=2).map(
    lambda d: tuple(sorted(d.items()))
)
footprints = st.builds(Footprint, st.sampled_from(METHODS), keys)
steps = st.lists(footprints | st.tuples(st.integers(0, 5), st.booleans()), max_size=40)
quick = settings(derandomize=True, deadline=None, max_examples=examples(62, 250))


class History:
    """Instances on one replica: started when nothing that conflicts is running, ended in any order."""

    def __init__(self, declared: list[tuple[str, str]], bound: int) -> None:
        self.relation = Relation(declared)
        self.epoch = Epoch(Known(), bound)
        self.started: list[tuple[Footprint, Sid]] = []
        self.running: list[int] = []
        self.committed: list[tuple[Footprint, WireContext]] = []

    def start(self, f: Footprint) -> None:
        if any(self.relation.conflict(f, self.started[i][0]) for i in self.running):
            return
        n = len(self.started) + 1
        cid = self.epoch.enter(Sid(n, AT), *self.relation.slots(f), joins=False)
        self._inherits(f)
        self.running.append(len(self.started))
        self.started.append((f, cid))

    def end(self, which: int, commit: bool) -> None:
        if self.running:
            i = self.running.pop(which % len(self.running))
            f = self.started[i][0]
            if commit:
                context: WireContext = ((AT, ((Node("n1"), i + 1),)),)
                self.epoch.commit(self.relation.slots(f)[0], (context,))
                self.committed.append((f, context))

    def _inherits(self, f: Footprint) -> None:
        """protocol.md §4.1: what an instance that conflicts with it committed before is in its base."""
        base = set(dict(self.epoch.base_wire).get(AT, ()))
        assert self.epoch.base_wire == self.epoch.base.wire()
        for earlier, context in self.committed:
            if self.relation.conflict(f, earlier):
                assert set(context[0][1]) <= base, f"{f} does not inherit from {earlier}"

    def run(self, steps: list[Any]) -> None:
        for step in steps:
            if isinstance(step, Footprint):
                self.start(step)
            else:
                self.end(*step)


@quick
@given(declared=pairs, steps=steps, bound=st.sampled_from([0, 2, 1000]))
def test_equal_cids_are_compatible(declared: list[tuple[str, str]], steps: list[Any], bound: int) -> None:
    history = History(declared, bound)
    history.run(steps)
    for i, (f, cid) in enumerate(history.started):
        for g, other in history.started[:i]:
            if cid == other:
                assert not history.relation.conflict(f, g), f"{f} and {g} both have {cid}"


@quick
@given(declared=pairs, steps=steps)
def test_a_cid_is_the_sid_of_the_first_of_its_epoch(declared: list[tuple[str, str]], steps: list[Any]) -> None:
    history = History(declared, 1000)
    history.run(steps)
    seen: set[Sid] = set()
    for n, (_, cid) in enumerate(history.started, 1):
        assert cid in seen or cid == Sid(n, AT)
        seen.add(cid)
    cids = [cid for _, cid in history.started]
    assert cids == sorted(cids), "an epoch that is closed stays closed"


@quick
@given(steps=steps)
def test_what_is_compatible_shares_a_cid_and_inherits_nothing(steps: list[Any]) -> None:
    """That is what the cid is for (protocol.md §4.1)."""
    history = History([("x", "x")], 1000)
    history.run(steps)
    assert len({cid for _, cid in history.started}) <= 1
    assert history.epoch.base_wire == ()


def test_abort_leaves_nothing() -> None:
    """protocol.md §4.1: nothing is merged."""
    history = History([("a", "a")], 1000)
    history.start(Footprint("a"))
    history.end(0, commit=False)
    history.start(Footprint("a"))
    assert history.epoch.base_wire == ()


def test_a_call_that_joins_its_running_ancestor_opens_an_epoch() -> None:
    """It conflicts with what is running, so it must not share its cid."""
    relation, epoch = Relation([("a", "a")]), Epoch(Known())
    f = Footprint("a")
    one = epoch.enter(Sid(1, AT), *relation.slots(f), joins=False)
    two = epoch.enter(Sid(2, AT), *relation.slots(f), joins=True)
    assert (one, two) == (Sid(1, AT), Sid(2, AT))


def test_slots_and_contexts_are_bounded() -> None:
    """An epoch is closed early when it grows (protocol.md §3.4); what is known to be delivered is dropped (§4.2)."""
    relation, known = Relation([("a", "a")]), Known()
    epoch = Epoch(known, bound=10)
    for n in range(1, 500):
        places, meets = relation.slots(Footprint("a", ((str(n), WRITE),)))
        epoch.enter(Sid(n, AT), places, meets, joins=False)
        epoch.commit(places, (((AT, ((Node("n1"), n),)),),))
        known.ranges(AT, Node("n1")).add(n)
        assert len(epoch.slots) <= 14
        assert len(epoch.context) <= 64
        assert len(epoch.base) <= 64


def test_an_epoch_that_lasts_remembers_only_what_is_under_way() -> None:
    """Requests that conflict with nobody who calls: the epoch is never closed."""
    relation, known = Relation([("a", "b")]), Known()
    epoch = Epoch(known)
    there = Replica("x@n2")
    for n in range(1, 3 * OFTEN):
        places, meets = relation.slots(Footprint("a", None))
        epoch.enter(Sid(n, AT), places, meets, joins=False)
        marks = ((there, ((Node("n1"), n),)),)
        epoch.commit(places, (marks,), Agreed(places, meets, Stamp(n, GroupId(n, AT, 0)), marks))
        known.ranges(there, Node("n1")).add(n)
        assert len(epoch._agreed) <= OFTEN
    assert epoch.cid == Sid(1, AT)


def test_a_request_stands_for_those_that_it_conflicts_with_and_for_no_others() -> None:
    """At the other replicas a request that was agreed waits for earlier ones that conflict with it. So a context that
    names it need not name them, but has to name all others."""
    relation, there = Relation([("a", "a"), ("b", "b"), ("a", "c"), ("b", "c"), ("c", "c")]), Replica("f@n2")
    for method, left in (("b", {1, 3}), ("a", {3})):
        epoch = Epoch(Known())
        for n, name in enumerate(("a", "c", method, "c"), 1):
            places, meets = relation.slots(Footprint(name))
            epoch.enter(Sid(n, AT), places, meets, joins=False)
            if name == "c":
                epoch.commit(places)
            else:
                marks: WireContext = ((there, ((Node("n1"), n),)),)
                agreed = Agreed(places, meets, Stamp(n, GroupId(n, AT, 0)), marks)
                epoch.commit(places, (marks,), agreed)
        assert {n for _, n in dict(epoch.base_wire)[there]} == left


def test_a_request_does_not_stand_for_a_later_one() -> None:
    """They may end in another order than that of their stamps, if a call back came in between."""
    places, meets = Relation([("a", "a")]).slots(Footprint("a"))
    one, two = (Agreed(places, meets, Stamp(n, GroupId(n, AT, 0)), ()) for n in (1, 2))
    assert two.follows(one) and not one.follows(two)
