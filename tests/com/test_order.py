"""One replica's queue against a naive reading of protocol.md §5: everything is looked at every time.

The real queue says what it does, step by step; the model allows each step or not, and after each event there must be
nothing left that protocol.md §5 allows. So the model decides neither who is looked at first nor how anything is found.
"""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.entry import Entry
from framework.com.messages import Ancestor, Dest, Mark, Part, Request
from framework.com.order import START, Order
from framework.footprint import READ, WRITE, Footprint, Relation
from framework.ids import TRAN, GroupId, Invocation, Node, ObjectName, Replica, Stamp
from tests.tiers import examples

HERE = Replica("f@n1")
ALL = (HERE, Replica("f@n2"), Replica("f@n3"))
METHODS = ("a", "b", "c")
pairs = st.lists(st.tuples(st.sampled_from(METHODS), st.sampled_from(METHODS)), min_size=1, max_size=5)
keys = st.none() | st.dictionaries(st.sampled_from("kl"), st.sampled_from([READ, WRITE]), min_size=1).map(
    lambda d: tuple(sorted(d.items()))
)
quick = settings(derandomize=True, deadline=None, max_examples=examples(75, 300))


class Known:
    """A request as the model sees it."""

    def __init__(self, n: int, footprint: Footprint, number: int, dests: int, preds: frozenset[int]) -> None:
        self.n = n
        self.footprint = footprint
        self.group = GroupId(n, Replica("tran@n2"), 0)
        self.first = Stamp(number, self.group)
        self.dests = ALL[:dests]
        self.preds = preds  # numbers of requests
        self.mark: Mark = (Node("n2"), n)
        self.announced = self.here = self.safe = self.started = self.ended = False
        self.proposal: Stamp | None = None
        self.proposals: dict[Replica, int] = {}
        self.knowing: set[Replica] = set()
        self.stamp: Stamp | None = None

    @property
    def ordered(self) -> bool:
        return len(self.dests) > 1

    def request(self) -> Request:
        dests = tuple(Dest(r, self.n) for r in self.dests)
        part = (Part(ObjectName("f"), self.footprint),)
        call, number = Invocation("c", (self.n,)), self.first.number
        return Request(
            1, self.group, call, "oneway", HERE, dests, part, number, self.ordered, (), (), 1, 0, b""
        )  # fmt: skip


class Model:
    """protocol.md §5, sentence by sentence."""

    def __init__(self, relation: Relation, requests: list[Known]) -> None:
        self.relation = relation
        self.requests = {r.n: r for r in requests}
        self.by_group = {r.group: r for r in requests}

    def conflicting(self, m: Known) -> list[Known]:
        return [o for o in self.requests.values() if o is not m and self.relation.conflict(m.footprint, o.footprint)]

    def may_be_proposed(self, m: Known) -> bool:
        """protocol.md §5.1: each predecessor is delivered, or agreed, or, with the same destinations, at least
        proposed."""
        before = [self.requests[n] for n in m.preds]
        return m.here and all(
            p.started or p.stamp or (p.proposal and p.ordered and m.ordered and p.dests == m.dests) for p in before
        )

    def proposal(self, m: Known) -> Stamp:
        """protocol.md §5.2: the origin stamp, unless a conflicting request seen here or a predecessor is at least as
        high."""
        others = [*self.conflicting(m), *(self.requests[n] for n in m.preds)]
        stamps = [s for o in others for s in (o.proposal, o.stamp) if s is not None]
        highest = max(stamps, default=None)
        if highest is None or highest < m.first:
            return m.first
        return Stamp(highest.number + 1, m.group)

    def may_be_agreed(self, m: Known) -> bool:
        """protocol.md §5.3: all proposals are here and the predecessors are agreed."""
        complete = not m.ordered or set(m.proposals) == set(m.dests)
        return m.proposal is not None and complete and all(self.requests[n].stamp for n in m.preds)

    def is_safe(self, m: Known) -> bool:
        """protocol.md §5.3: fast if all proposals equal the origin stamp, else when all say that they know the
        stamp."""
        if m.stamp is None:
            return False
        return not m.ordered or m.stamp == m.first or m.knowing | {HERE} == set(m.dests)

    def may_be_delivered(self, m: Known) -> bool:
        """protocol.md §5.4."""
        if not m.safe or m.started or not all(self.requests[n].started for n in m.preds):
            return False
        assert m.stamp is not None
        for o in self.conflicting(m):
            if o.started:
                if not o.ended:
                    return False  # a conflicting instance is running
                continue
            if len(o.dests) == 1 and len(m.dests) > 1:
                continue  # no other replica knows of it
            place = o.stamp or o.proposal
            if place is not None and place < m.stamp:
                return False  # waiting here with a smaller stamp, proposed or agreed
            if (o.here or o.announced) and not o.safe and o.first < m.stamp:
                return False  # known here with a smaller origin stamp, and unsafe
        return True


class Checked(Order):
    """The real queue, asking the model before each step."""

    model: Model

    def _of(self, entry: Entry) -> Known:
        return self.model.by_group[entry.group]

    def _propose(self, entry: Entry) -> bool:
        m = self._of(entry)
        allowed, expected = self.model.may_be_proposed(m), self.model.proposal(m)
        done = super()._propose(entry)
        assert done == allowed, f"{entry} proposed: {done}, allowed: {allowed}"
        if done:
            assert entry.proposal == expected, f"{entry} proposed {entry.proposal}, expected {expected}"
            m.proposal = entry.proposal
            m.proposals[HERE] = expected.number
        return done

    def _direct(self, entry: Entry) -> None:
        m = self._of(entry)
        assert not m.ordered and self.model.may_be_proposed(m)
        assert entry.stamp == entry.proposal == self.model.proposal(m)
        m.stamp = m.proposal = entry.stamp
        m.safe = True
        assert self.model.may_be_delivered(m), f"{entry} delivered too early"
        m.started = True
        super()._direct(entry)

    def _fix(self, entry: Entry) -> None:
        m = self._of(entry)
        assert self.model.may_be_agreed(m), f"{entry} agreed too early"
        m.stamp = Stamp(max(m.proposals.values()), m.group)
        super()._fix(entry)
        assert entry.stamp == m.stamp

    def _secure(self, entry: Entry, fast: bool) -> None:
        m = self._of(entry)
        if not m.ordered:
            m.stamp = entry.stamp
            assert m.stamp == m.proposal
        assert self.model.is_safe(m), f"{entry} safe too early"
        assert fast == (not m.ordered or m.stamp == m.first)
        m.safe = True
        super()._secure(entry, fast)

    def _start(self, entry: Entry) -> None:
        m = self._of(entry)
        assert self.model.may_be_delivered(m), f"{entry} delivered too early"
        m.started = True
        super()._start(entry)


def agreeable(model: Model, m: Known) -> bool:
    """Without agreement a request has its place as soon as it has one here; no proposals, nothing to wait for."""
    return m.ordered and m.stamp is None and model.may_be_agreed(m)


def nothing_left(model: Model) -> None:
    for m in model.requests.values():
        assert m.proposal or not model.may_be_proposed(m), f"request {m.n} could be proposed"
        assert not agreeable(model, m), f"request {m.n} could be agreed"
        assert m.safe or not model.is_safe(m), f"request {m.n} is safe, but nobody noticed"
        assert not model.may_be_delivered(m), f"request {m.n} could be delivered"


@st.composite
def plays(draw: st.DrawFn) -> tuple[Relation, list[Known], list[tuple[str, int, int, int]]]:
    relation = Relation(draw(pairs))
    count = draw(st.integers(1, 7))
    requests = []
    for n in range(1, count + 1):
        footprint = Footprint(draw(st.sampled_from(METHODS)), draw(keys))
        before = draw(st.frozensets(st.integers(1, n - 1), max_size=2)) if n > 1 else frozenset()
        requests.append(Known(n, footprint, draw(st.integers(1, 6)), draw(st.sampled_from([1, 2, 3, 3])), before))
    kinds = st.sampled_from(["arrive", "arrive", "announce", "propose", "propose", "know", "know", "end"])
    event = st.tuples(kinds, st.integers(1, count), st.integers(1, 2), st.integers(0, 3))
    return relation, requests, draw(st.lists(event, max_size=50))


def perform(order: Order, m: Known, what: str, other: int, raised: int, entries: dict[int, Entry]) -> None:
    """Give the queue this event, if it is one that can happen now."""
    if what == "arrive" and not m.here:
        m.here = True
        entries[m.n] = order.arrive(m.request(), m.mark, [(Node("n2"), n) for n in sorted(m.preds)], False)
    elif what == "announce" and not m.here and m.ordered:
        m.announced = True
        order.announce(m.group, m.first, m.footprint, tuple(Dest(r, m.n) for r in m.dests))
    elif what == "propose" and other < len(m.dests) and (m.here or m.announced) and ALL[other] not in m.proposals:
        m.proposals[ALL[other]] = m.first.number + raised
        order.propose(m.group, ALL[other], m.first.number + raised)
    elif what == "know" and other < len(m.dests) and (m.here or m.announced):
        m.knowing.add(ALL[other])
        order.know(m.group, ALL[other])
    elif what == "end" and m.started and not m.ended:
        m.ended = True
        order.end(entries[m.n])


@quick
@given(play=plays())
def test_the_queue_does_what_the_protocol_says(play: Any) -> None:
    relation, requests, events = play
    order = Checked(HERE, relation)
    order.model = Model(relation, requests)
    entries: dict[int, Entry] = {}
    everything = [
        *(("arrive", m.n, 0, 0) for m in requests),
        *(("propose", m.n, other, 0) for m in requests for other in (1, 2)),
        *(("know", m.n, other, 0) for m in requests for other in (1, 2)),
        *(("end", m.n, 0, 0) for _ in requests for m in requests),
    ]
    for what, n, other, raised in [*events, *everything]:
        perform(order, order.model.requests[n], what, other, raised, entries)
        nothing_left(order.model)
    started = [e.group.clock for what, e in order.out if what is START]
    assert len(started) == len(set(started)), "performed once"
    for m in requests:
        if m.started:
            assert order.past.is_delivered(m.mark)
            assert m.group not in order.entries, "nothing is remembered one by one of what is settled"


def test_compatible_requests_never_wait_for_each_other() -> None:
    """protocol.md §5.4: a line of waiting ones on another key delays nobody."""
    relation = Relation([("a", "a")])
    waiting = [Known(n, Footprint("a", (("k", WRITE),)), n, 1, frozenset()) for n in range(1, 6)]
    beside = Known(9, Footprint("a", (("l", WRITE),)), 9, 1, frozenset())
    order = Order(HERE, relation)
    for m in (*waiting, beside):
        order.arrive(m.request(), m.mark, (), False)
    assert [e.group.clock for what, e in order.out if what is START] == [1, 9]


def test_proposals_for_what_nobody_knows_are_of_no_use() -> None:
    order = Order(HERE, Relation([("a", "a")]))
    m = Known(1, Footprint("a"), 1, 2, frozenset())
    assert not order.propose(m.group, ALL[1], 5)
    assert not order.know(m.group, ALL[1])
    order.arrive(m.request(), m.mark, (), False)
    assert not order.propose(m.group, ALL[2], 5), "it does not go there"
    assert not order.know(m.group, ALL[2])
    assert order.propose(m.group, ALL[1], 1)


def test_why_a_request_waits_can_be_told() -> None:
    order = Order(HERE, Relation([("a", "a")]))
    one, two = (Known(n, Footprint("a"), n, 1, frozenset()) for n in (1, 2))
    three = Known(3, Footprint("a"), 3, 2, frozenset())
    order.arrive(one.request(), one.mark, (), False)
    waits = order.arrive(two.request(), two.mark, (), False)
    assert str(order.blockers(waits)) == "conflicts with <1:tran@n2:0 a 1/1:tran@n2:0>"
    held = order.arrive(three.request(), three.mark, [(Node("n2"), 4)], False)
    assert str(order.blockers(held)) == "held for ('n2', 4)"
    announced = order.announce(GroupId(7, HERE, 0), Stamp(7, GroupId(7, HERE, 0)), Footprint("a"), ())
    assert str(order.blockers(announced)) == "announced, not here yet"


def test_an_announced_request_of_an_aborted_transaction_lets_others_go_when_it_comes() -> None:
    """It has no place among those that conflict any more, so what waited for its announcement must look again."""
    order = Order(HERE, Relation([("a", "a")]))
    order.roots, order.aborted = (TRAN,), lambda name: True
    one, two = Known(1, Footprint("a"), 1, 2, frozenset()), Known(2, Footprint("a"), 2, 1, frozenset())
    order.announce(one.group, one.first, one.footprint, tuple(Dest(r, 1) for r in one.dests))
    order.arrive(two.request(), two.mark, (), False)
    assert [e.group for what, e in order.out if what is START] == []
    part = msgspec.structs.replace(one.request(), chain=(Ancestor(TRAN, 1, (Replica("tran@n2"),)),))
    order.arrive(part, one.mark, (), False)
    assert [e.group for what, e in order.out if what is START] == [two.group]
