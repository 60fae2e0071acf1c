"""Ranges, contexts, delivered marks, receipts, the view: each against a model that anybody can check by eye."""

from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com import link as marks_module
from framework.com.caller import Call
from framework.com.context import Context, Known
from framework.com.link import Marks
from framework.com.messages import Dest, Mark, Response
from framework.com.ranges import Ranges, as_ranges
from framework.com.receipt import CREC, DREC, SREC, Receipt, check, complete, majority, quorum, srec
from framework.com.view import Directory, Placement, View
from framework.errors import BadRequest, NoSuchObject
from framework.footprint import Relation
from framework.ids import GroupId, Node, ObjectName, Replica, object_of
from tests.tiers import examples

quick = settings(derandomize=True, deadline=None, max_examples=examples(50, 200))
numbers = st.integers(1, 30)
spans = st.tuples(numbers, st.integers(0, 8)).map(lambda s: (s[0], s[0] + s[1]))
NODES = [Node("n1"), Node("n2")]
REPLICAS = [Replica("f@n1"), Replica("f@n2"), Replica("g@n1")]
a_mark = st.tuples(st.sampled_from(NODES), st.integers(1, 6))
contexts = st.dictionaries(st.sampled_from(REPLICAS), st.sets(a_mark, min_size=1), max_size=3)


# ranges


@quick
@given(changes=st.lists(numbers | st.lists(spans, max_size=3)))
def test_ranges_are_a_set(changes: list[Any]) -> None:
    ranges, model = Ranges(), set()
    for change in changes:
        if isinstance(change, int):
            ranges.add(change)
            model.add(change)
        else:
            ranges.add_all(change)
            model.update(n for first, last in change for n in range(first, last + 1))
        assert {n for n in range(1, 50) if n in ranges} == model
        assert all(n > ranges.low + 1 for n in ranges.above), "what is contiguous is one number"


@quick
@given(st.lists(numbers))
def test_as_ranges_and_back(some: list[int]) -> None:
    wire = as_ranges(some)
    assert [n for first, last in wire for n in range(first, last + 1)] == sorted(set(some))
    assert all(b[0] > a[1] + 1 for a, b in pairwise(wire)), "as few as possible"


def test_a_long_run_is_kept_as_one_number() -> None:
    ranges = Ranges()
    for n in range(1, 10_001):
        ranges.add(n)
    assert (ranges.low, ranges.above) == (10_000, set())
    ranges.add_all([(1, 1 << 52)])
    assert ranges.low == 1 << 52


# contexts (protocol.md §4)


def make(model: dict[Replica, set[Mark]]) -> Context:
    return Context({at: set(marks) for at, marks in model.items()})


@quick
@given(one=contexts, two=contexts, extra=a_mark)
def test_merge_is_union(one: dict[Replica, set[Mark]], two: dict[Replica, set[Mark]], extra: Mark) -> None:
    merged, other = make(one), make(two)
    merged.merge(other)
    union = {at: one.get(at, set()) | two.get(at, set()) for at in {*one, *two}}
    assert merged.entries == union
    assert len(merged) == sum(map(len, union.values()))
    wired = make(one)
    wired.merge_wire(other.wire())
    assert wired.entries == union
    merged.add(REPLICAS[0], extra)  # they share nothing
    wired.replace(REPLICAS[0], extra)
    assert other.entries == two


@quick
@given(model=contexts, known=st.dictionaries(st.tuples(st.sampled_from(REPLICAS), st.sampled_from(NODES)), spans))
def test_prune_drops_what_is_delivered(model: dict[Replica, set[Mark]], known: dict[Any, tuple[int, int]]) -> None:
    context, knows = make(model), Known()
    for (at, origin), span in known.items():
        knows.ranges(at, origin).add_all([span])
    context.prune(knows)
    left = {
        at: {m for m in marks if not ((at, m[0]) in known and known[at, m[0]][0] <= m[1] <= known[at, m[0]][1])}
        for at, marks in model.items()
    }
    assert context.entries == {at: marks for at, marks in left.items() if marks}
    assert bool(context) == any(left.values())


@quick
@given(model=contexts, mark=a_mark)
def test_after_sending_a_message_stands_for_those_of_its_origin(model: dict[Replica, set[Mark]], mark: Mark) -> None:
    """protocol.md §4.5: m itself waits for what it replaced. Not for what others sent: m may be void when its origin
    crashes (§10.5)."""
    context = make(model)
    context.replace(REPLICAS[0], mark)
    others = {m for m in model.get(REPLICAS[0], set()) if m[0] != mark[0]}
    assert context.entries == {**model, REPLICAS[0]: {mark} | others}


@quick
@given(model=contexts)
def test_equal_contexts_are_equal_bytes(model: dict[Replica, set[Mark]]) -> None:
    """A11: sorted on the wire, however they came about."""
    backwards = Context()
    for at in sorted(model, reverse=True):
        for mark in sorted(model[at], reverse=True):
            backwards.add(at, mark)
    wire = make(model).wire()
    assert wire == backwards.wire() == tuple((at, tuple(sorted(model[at]))) for at in sorted(model))


def test_entries_are_sets_and_not_maxima() -> None:
    """protocol.md §4.1: of two requests from one node the later may be delivered while the earlier waits."""
    context, knows = make({REPLICAS[0]: {(NODES[0], 1), (NODES[0], 2)}}), Known()
    knows.ranges(REPLICAS[0], NODES[0]).add(2)
    context.prune(knows)
    assert context.entries == {REPLICAS[0]: {(NODES[0], 1)}}


# delivered marks on their way (protocol.md §4.3)


class _Past:
    def __init__(self) -> None:
        self.delivered: dict[Node, Ranges] = {}


class _Host:
    """As much of a host as marks need."""

    def __init__(self) -> None:
        self.order = self
        self.past = _Past()


@quick
@given(happens=st.lists(st.tuples(st.sampled_from(REPLICAS), a_mark) | st.sampled_from(NODES), max_size=40))
@pytest.mark.parametrize("bound", [3, 1000])
def test_every_peer_is_told_every_mark(bound: int, happens: list[Any]) -> None:
    """Once each while it keeps up; the whole state when it has fallen behind the log. Never less."""
    hosts: dict[Replica, Any] = {r: _Host() for r in REPLICAS}
    was, marks_module.BOUND = marks_module.BOUND, bound
    try:
        marks = Marks(NODES, hosts)
        done: set[tuple[Replica, Mark]] = set()
        told: dict[Node, Any] = {n: set() for n in NODES}
        for what in [*happens, *NODES]:
            if isinstance(what, tuple):
                at, (origin, seq) = what
                if what not in done:
                    done.add(what)
                    hosts[at].past.delivered.setdefault(origin, Ranges()).add(seq)
                    marks.add(at, (origin, seq))
                assert len(marks._log) <= bound + 1
                continue
            news = [(at, (o, n)) for at, o, spans in marks.take(what) for a, b in spans for n in range(a, b + 1)]
            assert len(news) == len(set(news))
            if bound == 1000:
                assert told[what].isdisjoint(news), "told before"
            told[what] |= set(news)
            assert told[what] == done
    finally:
        marks_module.BOUND = was


def test_a_node_without_peers_keeps_no_log() -> None:
    marks = Marks([], {})
    marks.add(REPLICAS[0], (NODES[0], 1))
    assert marks._log == []


# receipts (P0 §3.2)

DESTS = (Replica("f@n1"), Replica("f@n2"), Replica("f@n3"), Replica("g@n1"), Replica("g@n2"))
RECEIPTS = [CREC, DREC, quorum(1), quorum(2), srec(DESTS[1]), srec(DESTS[4])]


def by_hand(receipt: Receipt, dests: tuple[Replica, ...], got: tuple[Replica, ...]) -> bool:
    if receipt.way == "crec":
        return set(got) == set(dests)
    if receipt.way == "drec":
        return len(got) >= 1
    if receipt.way == "srec":
        return receipt.source in got or (receipt.source is None and got == dests)
    objects = {d.partition("@")[0] for d in dests}
    return all(sum(g.startswith(f"{o}@") for g in got) >= receipt.r for o in objects)


@pytest.mark.parametrize("receipt", RECEIPTS, ids=str)
def test_complete_for_every_way_in_which_responses_can_come(receipt: Receipt) -> None:
    """Brute force over all orders; a receipt that is complete stays complete."""
    for length in range(len(DESTS) + 1):
        for got in permutations(DESTS, length):
            assert complete(receipt, DESTS, got) == by_hand(receipt, DESTS, got)


@pytest.mark.parametrize("receipt", RECEIPTS, ids=str)
def test_the_most_significant_response_completes_and_is_the_last_received(receipt: Receipt) -> None:
    """P0 Tables 1 and 2: what arrives later is not received, even if it is here already."""
    for got in permutations(DESTS):
        call = Call(1, GroupId(1, Replica("tran@n1"), 0), tuple(Dest(d, 1) for d in DESTS))
        call.receipt = receipt
        for at in got:
            assert call.take(Response(1, call.group, at, "ok", b"", False, True, (), ()))
        assert not call.take(Response(1, call.group, got[0], "ok", b"", False, True, (), ())), "it came before"
        significant = call.significant()
        assert significant is not None
        received = tuple(r.replica for r in significant)
        assert received == ((receipt.source,) if receipt.source else got[: len(received)]), "srec: from its source only"
        assert by_hand(receipt, DESTS, received)
        assert not by_hand(receipt, DESTS, received[:-1])


def test_a_response_from_elsewhere_is_none_of_this_call() -> None:
    call = Call(1, GroupId(1, Replica("tran@n1"), 0), (Dest(DESTS[0], 1),))
    assert not call.take(Response(1, call.group, DESTS[1], "ok", b"", False, True, (), ()))
    assert not call.finished


@pytest.mark.parametrize("n", range(1, 9))
def test_two_majorities_meet(n: int) -> None:
    assert 2 * majority(n).r > n
    assert 2 * (majority(n).r - 1) <= n


@quick
@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    way=st.sampled_from(["srec", "quorum", "crec", "drec"]),
    r=st.integers(-1, 4),
    source=st.none() | st.sampled_from(["o0@n0", "o1@n1", "o9@n9"]),
)
def test_a_receipt_is_refused_iff_it_can_never_complete(counts: list[int], way: Any, r: int, source: Any) -> None:
    """Or leaves open which response is meant."""
    dests = {ObjectName(f"o{i}"): [Replica(f"o{i}@n{j}") for j in range(c)] for i, c in enumerate(counts)}
    every = tuple(d for part in dests.values() for d in part)
    receipt = Receipt(way, r, source)
    if way == "srec":
        fine = len(every) == 1 if source is None else source in every
    elif way == "quorum":
        fine = r >= 1 and complete(receipt, every, every)
    else:
        fine = True
    if fine:
        check(receipt, dests)
        assert complete(receipt, every, every)
    else:
        with pytest.raises(BadRequest):
            check(receipt, dests)


def test_receipts_print_as_they_are_called() -> None:
    assert [str(r) for r in (CREC, DREC, SREC, quorum(2), srec(DESTS[0]))] == [
        "crec", "drec", "srec", "quorum(2)", "srec(f@n1)",
    ]  # fmt: skip


# the view


def test_a_directory_knows_where_objects_are() -> None:
    view = View(1, (Node("n1"), Node("n2"), Node("n3")))
    directory = Directory(view, [Placement("f", Relation(), ["n3", "n1"]), Placement("g", Relation(), ["n1"])])
    assert directory.find("f").replicas == ("f@n1", "f@n3")
    assert [r for _, r in directory.on(Node("n1"))] == ["f@n1", "g@n1"]
    assert directory.on(Node("n2")) == []
    assert {object_of(r) for _, r in directory.on(Node("n3"))} == {"f"}
    with pytest.raises(NoSuchObject, match="no object 'q'; there are: f, g"):
        directory.find("q")


@pytest.mark.parametrize("name", ["", "1f", "f@n1", "f g", "f/1", "f\n", "é", "f" * 64])
def test_names_are_names(name: str) -> None:
    with pytest.raises(BadRequest, match="object name"):
        Placement(name, Relation(), ["n1"])
    with pytest.raises(BadRequest, match="node name"):
        Directory(View(1, (Node(name),)), [])


def test_a_replica_outside_the_view() -> None:
    with pytest.raises(BadRequest, match="f@n9 is on a node that is not a member"):
        Directory(View(1, (Node("n1"),)), [Placement("f", Relation(), ["n1", "n9"])])
