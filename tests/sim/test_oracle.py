"""The oracle on traces made by hand: for each property of protocol.md §13 that it judges, and each clause of §2.2
behind A2, the smallest trace that is fine and the one that is not."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from framework.footprint import Footprint
from framework.sim.oracle import judge
from tests.sim.hand import Hand, Sender, Sent, both

# A1: no creation, no duplication


def test_a1_performed_once_at_each_destination_is_fine() -> None:
    hand = Hand()
    m = hand.send(hand.client("ann"), "f.w@n1,n2")
    hand.perform(m, "f@n1")
    hand.perform(m, "f@n2")
    verdict = hand.judge()
    assert verdict.violations == []
    assert (verdict.requests, verdict.delivered) == (2, 2)


def test_a1_performed_twice() -> None:
    hand = Hand()
    m = hand.send(hand.client("ann"), "f.c@n1")
    hand.perform(m, "f@n1")
    hand.perform(m, "f@n1")
    assert "performed ann/1 twice" in hand.judge().violations[0].text
    assert set(hand.blamed()) == {"A1"}


@both
def test_a1_a_call_repeated_through_another_node(right: bool) -> None:
    """The same invocation in another message group: a copy, to be answered and not performed."""
    hand = Hand()
    one, two = hand.send(hand.client("ann"), "f.c@n1"), hand.send(hand.client("ann", "n2"), "f.c@n1")
    assert one.invocations == two.invocations
    hand.perform(one, "f@n1")
    if right:
        hand.duplicate(two, "f@n1")
    else:
        hand.perform(two, "f@n1")
    assert set(hand.blamed()) == (set() if right else {"A1"})


def test_a1_not_sent_to_this_replica() -> None:
    hand = Hand()
    m = hand.send(hand.client("ann"), "f.c@n1")
    hand.perform(m, "f@n2")
    assert "f@n2 delivered 1:tran@n3:0, which was not sent to it" in [v.text for v in hand.judge().violations]


def test_a1_never_sent() -> None:
    hand = Hand()
    m = hand.send(hand.client("ann"), "f.c@n1")
    hand.perform(m, "f@n1")
    hand.traces["n3"].records.clear()
    verdict = hand.judge()
    assert [v.rule for v in verdict.violations] == ["A1"]
    assert "never sent" in verdict.violations[0].text


def test_a1_a_group_id_used_twice() -> None:
    hand = Hand()
    ann = hand.client("ann")
    hand.send(ann, "f.c@n1")
    ann.no = 0
    hand.send(ann, "f.c@n1")
    assert hand.blamed() == ["A1"]


def test_a1_sent_by_an_instance_that_was_never_started() -> None:
    hand = Hand()
    hand.send(Sender("5:f@n1", "ann/1"), "g.c@n1")
    assert hand.blamed() == ["A1"]


def test_a1_ended_but_not_running() -> None:
    hand = Hand()
    instance = hand.deliver(hand.send(hand.client("ann"), "f.c@n1"), "f@n1")
    hand.end(instance)
    hand.end(instance)
    assert hand.blamed() == ["A1"]


def test_a1_copies_that_are_none() -> None:
    hand = Hand()
    m = hand.send(hand.client("ann"), "f.c@n1,n2")
    hand.duplicate(m, "f@n1")  # nothing was performed there
    hand.perform(m, "f@n2")
    hand.duplicate(m, "f@n2")
    hand.duplicate(m, "f@n2")  # answered twice
    assert hand.blamed() == ["A1", "A1"]


# A2: significant order, clause by clause of protocol.md §2.2


@both
def test_a2_one_instance_sends_one_after_the_other(right: bool) -> None:
    """Rule 1."""
    hand = Hand()
    ann = hand.client("ann")
    m1, m2 = hand.send(ann, "f.c@n1"), hand.send(ann, "f.c@n1")
    hand.in_order("f@n1", right, m1, m2)
    assert hand.blamed() == ([] if right else ["A2"])


def test_a2_says_what_came_too_early() -> None:
    hand = Hand()
    ann = hand.client("ann")
    hand.in_order("f@n1", False, hand.send(ann, "f.c@n1"), hand.send(ann, "f.c@n1"))
    assert str(hand.judge().violations[0]) == ("A2: f@n1 delivered ann/2 before ann/1, which significantly precedes it")


def test_a2_different_clients_are_not_related() -> None:
    hand = Hand()
    m1, m2 = hand.send(hand.client("ann"), "f.c@n1,n2"), hand.send(hand.client("bob"), "f.c@n1,n2")
    hand.in_order("f@n1", True, m1, m2)
    hand.in_order("f@n2", False, m1, m2)
    assert hand.blamed() == []


@pytest.mark.parametrize("method", ["w", "c"])
@pytest.mark.parametrize("committed", [True, False])
@both
def test_a2_a_later_conflicting_instance_sends(method: str, committed: bool, right: bool) -> None:
    """Rule 1, second half. A compatible instance inherits nothing; an aborted one leaves nothing (protocol.md §4.1)."""
    hand = Hand()
    one, two = hand.send(hand.client("ann"), f"o.{method}@n1"), hand.send(hand.client("bob"), f"o.{method}@n1")
    first = hand.deliver(one, "o@n1")
    m1 = hand.send(first, "f.c@n2")
    hand.end(first, committed)
    second = hand.deliver(two, "o@n1")
    m2 = hand.send(second, "f.c@n2")
    hand.end(second)
    hand.in_order("f@n2", right, m1, m2)
    related = method == "w" and committed
    assert hand.blamed() == (["A2"] if related and not right else [])


@both
def test_a2_received_in_a_response(right: bool) -> None:
    """Rule 2: what the callee sent precedes what the caller sends after it has the response."""
    hand = Hand()
    ann = hand.client("ann")
    call = hand.send(ann, "g.c@n1", "sync")
    callee = hand.deliver(call, "g@n1")
    m1 = hand.send(callee, "f.c@n2")
    hand.end(callee)
    hand.receive(ann, call, "g@n1")
    m2 = hand.send(ann, "f.c@n2")
    hand.in_order("f@n2", right, m1, m2)
    assert hand.blamed() == ([] if right else ["A2"])


@both
def test_a2_without_the_response_nothing_is_received(right: bool) -> None:
    hand = Hand()
    ann = hand.client("ann")
    call = hand.send(ann, "g.c@n1", "async")
    callee = hand.deliver(call, "g@n1")
    m1 = hand.send(callee, "f.c@n2")
    hand.end(callee)
    m2 = hand.send(ann, "f.c@n2")
    hand.in_order("f@n2", right, m1, m2)
    assert hand.blamed() == []


@pytest.mark.parametrize(("received", "blamed"), [(("g@n1",), False), (("g@n2",), True), (("g@n1", "g@n2"), True)])
def test_a2_received_follows_the_receipt(received: tuple[str, ...], blamed: bool) -> None:
    """protocol.md §2.2, P0 Tables 1 and 2: under drec only the first response counts, under crec all of them."""
    hand = Hand()
    ann = hand.client("ann")
    call = hand.send(ann, "g.c@n1,n2", "sync")
    hand.perform(call, "g@n1")
    callee = hand.deliver(call, "g@n2")
    m1 = hand.send(callee, "f.c@n2")
    hand.end(callee)
    hand.receive(ann, call, *received)
    m2 = hand.send(ann, "f.c@n2")
    hand.in_order("f@n2", False, m1, m2)
    assert hand.blamed() == (["A2"] if blamed else [])


@pytest.mark.parametrize("method", ["w", "c"])
@both
def test_a2_received_by_an_earlier_conflicting_instance(method: str, right: bool) -> None:
    """Rule 2, second half."""
    hand = Hand()
    one, two = hand.send(hand.client("ann"), f"o.{method}@n1"), hand.send(hand.client("bob"), f"o.{method}@n1")
    first = hand.deliver(one, "o@n1")
    call = hand.send(first, "g.c@n1", "sync")
    callee = hand.deliver(call, "g@n1")
    m1 = hand.send(callee, "f.c@n2")
    hand.end(callee)
    hand.receive(first, call, "g@n1")
    hand.end(first)
    second = hand.deliver(two, "o@n1")
    m2 = hand.send(second, "f.c@n2")
    hand.end(second)
    hand.in_order("f@n2", right, m1, m2)
    assert hand.blamed() == (["A2"] if method == "w" and not right else [])


@both
def test_a2_through_a_third_message(right: bool) -> None:
    """Rule 3: m1 → m3 → m2."""
    hand = Hand()
    ann = hand.client("ann")
    m1, m3 = hand.send(ann, "f.c@n2"), hand.send(ann, "o.c@n1")
    instance = hand.deliver(m3, "o@n1")
    m2 = hand.send(instance, "f.c@n2")
    hand.end(instance)
    hand.in_order("f@n2", right, m1, m2)
    assert hand.blamed() == ([] if right else ["A2"])


@both
@pytest.mark.parametrize("transmission", ["f.c@n1,n2", "o.c@n1 f.c@n2"], ids=["mcast", "pcast"])
def test_a2_the_other_instances_of_a_message_group(transmission: str, right: bool) -> None:
    """protocol.md §2.2, P0 Fig. 5: if one instance of a message group precedes m, so do its other instances."""
    hand = Hand()
    m1 = hand.send(hand.client("ann"), transmission)
    instance = hand.deliver(m1, "f@n1" if transmission.startswith("f") else "o@n1")
    m2 = hand.send(instance, "f.c@n2")
    hand.end(instance)
    hand.in_order("f@n2", right, m1, m2)
    assert hand.blamed() == ([] if right else ["A2"])


@both
def test_a2_a_read_matters_to_its_own_instance(right: bool) -> None:
    """protocol.md §2.2, P1 §4."""
    hand = Hand()
    ann = hand.client("ann")
    read, m2 = hand.send(ann, "f.r@n2"), hand.send(ann, "f.c@n2")
    hand.in_order("f@n2", right, read, m2)
    assert hand.blamed() == ([] if right else ["A2"])


@both
@pytest.mark.parametrize("method", ["r", "c"])
def test_a2_a_read_need_not_be_remembered_after_that(method: str, right: bool) -> None:
    """protocol.md §2.2, P1 §4: it precedes nothing beyond its own instance; a request that changes state does."""
    hand = Hand()
    ann = hand.client("ann")
    m1, m3 = hand.send(ann, f"f.{method}@n2"), hand.send(ann, "o.c@n1")
    instance = hand.deliver(m3, "o@n1")
    m2 = hand.send(instance, "f.c@n2")
    hand.end(instance)
    hand.in_order("f@n2", right, m1, m2)
    assert hand.blamed() == (["A2"] if method == "c" and not right else [])


@pytest.mark.parametrize("method", ["r", "w"])
def test_a2_an_instance_that_only_reads_leaves_no_trace(method: str) -> None:
    """P1 §4: what its request brought is not inherited by a conflicting instance after it."""
    hand = Hand()
    ann = hand.client("ann")
    m0, brings = hand.send(ann, "f.c@n2"), hand.send(ann, f"o.{method}@n1")
    hand.perform(brings, "o@n1")
    after = hand.deliver(hand.send(hand.client("bob"), "o.w@n1"), "o@n1")
    m2 = hand.send(after, "f.c@n2")
    hand.end(after)
    hand.in_order("f@n2", False, m0, m2)
    assert hand.blamed() == (["A2"] if method == "w" else [])


def brought(m: Sent) -> dict[str, Any]:
    """What a session says that moves after it received m."""
    return {"sessions": (f"{m.group} received",)}


@both
def test_a2_a_session_that_moves(right: bool) -> None:
    """protocol.md §8.1: session order survives a change of home node."""
    hand = Hand()
    ann = hand.client("ann")
    call = hand.send(ann, "g.c@n1", "sync")
    callee = hand.deliver(call, "g@n1")
    m1 = hand.send(callee, "f.c@n2")
    hand.end(callee)
    hand.receive(ann, call, "g@n1")
    moved = hand.client("ann", "n2")
    m2 = hand.send(moved, "f.c@n2", call=2, **brought(call))
    hand.in_order("f@n2", right, m1, m2)
    assert hand.blamed() == ([] if right else ["A2"])


@both
def test_a2_a_call_back_stands_at_the_place_of_its_ancestor(right: bool) -> None:
    """protocol.md §6.2: what else precedes it may wait for the ancestor and comes later; other calls of the ancestor
    come first."""
    hand = Hand()
    ann = hand.client("ann")
    waits, passes_on = hand.send(ann, "o.c@n1"), hand.send(ann, "g.w@n1")
    hand.perform(passes_on, "g@n1")
    outer = hand.deliver(hand.send(hand.client("bob"), "o.w@n1", "sync"), "o@n1")
    inner = hand.deliver(hand.send(outer, "g.w@n1", "sync"), "g@n1")  # inherits ann's o.c
    own = None if right else hand.send(inner, "o.c@n1", "async")
    hand.perform(hand.send(inner, "o.w@n1", "sync"), "o@n1")
    if own is not None:
        hand.perform(own, "o@n1")
    hand.end(inner)
    hand.end(outer)
    hand.perform(waits, "o@n1")
    assert hand.blamed() == ([] if right else ["A2"])


# A3: one order of conflicting requests


@both
@pytest.mark.parametrize("methods", ["ww", "wr", "cc", "rr"])
def test_a3_two_replicas(methods: str, right: bool) -> None:
    hand = Hand()
    m1, m2 = (hand.send(hand.client(c), f"f.{m}@n1,n2") for c, m in zip(("ann", "bob"), methods, strict=True))
    hand.in_order("f@n1", True, m1, m2)
    hand.in_order("f@n2", right, m1, m2)
    conflict = methods in ("ww", "wr")
    assert hand.blamed() == (["A3"] if conflict and not right else [])
    assert hand.judge().ordered == (2 if conflict else 0)


@both
def test_a3_across_objects(right: bool) -> None:
    """Two acts that conflict on two objects have one order on both of them (pcast)."""
    hand = Hand()
    m1, m2 = (hand.send(hand.client(c), "f.w@n1 g.w@n2") for c in ("ann", "bob"))
    hand.in_order("f@n1", True, m1, m2)
    hand.in_order("g@n2", right, m1, m2)
    assert hand.blamed() == ([] if right else ["A3"])


def test_a3_without_a_common_destination_there_is_no_order() -> None:
    hand = Hand()
    m1, m2 = hand.send(hand.client("ann"), "f.w@n1"), hand.send(hand.client("bob"), "f.w@n2")
    hand.perform(m1, "f@n1")
    hand.perform(m2, "f@n2")
    assert hand.blamed() == []


@both
def test_a3_is_judged_by_keys(right: bool) -> None:
    hand = Hand()
    m1, m2 = hand.send(hand.client("ann"), "f.w@n1,n2"), hand.send(hand.client("bob"), "f.w@n1,n2")
    m1.parts["f"], m2.parts["f"] = Footprint("w", (("k", "w"),)), Footprint("w", (("k" if not right else "l", "w"),))
    hand.in_order("f@n1", True, m1, m2)
    hand.in_order("f@n2", False, m1, m2)
    assert hand.blamed() == ([] if right else ["A3"])


# A4: mutual exclusion


@pytest.mark.parametrize("method", ["w", "c"])
def test_a4_overlap(method: str) -> None:
    hand = Hand()
    m1, m2 = hand.send(hand.client("ann"), f"f.{method}@n1"), hand.send(hand.client("bob"), f"f.{method}@n1")
    first, second = hand.deliver(m1, "f@n1"), hand.deliver(m2, "f@n1")
    hand.end(first)
    hand.end(second)
    assert hand.blamed() == (["A4"] if method == "w" else [])


@pytest.mark.parametrize(("outer", "inner"), [("sync", "sync"), ("sync", "oneway"), ("oneway", "sync")])
def test_a4_an_ancestor_may_overlap_but_not_through_a_one_way_call(outer: str, inner: str) -> None:
    """protocol.md §6.2: the ancestor waits for it. Through a one-way call nobody waits."""
    hand = Hand()
    first = hand.deliver(hand.send(hand.client("ann"), "o.w@n1", "sync"), "o@n1")
    middle = hand.deliver(hand.send(first, "g.c@n1", outer), "g@n1")
    back = hand.deliver(hand.send(middle, "o.w@n1", inner), "o@n1")
    for instance in (back, middle, first):
        hand.end(instance)
    assert hand.blamed() == ([] if (outer, inner) == ("sync", "sync") else ["A4"])


def test_a4_somebody_elses_call_may_not_overlap() -> None:
    """ann/1 is no ancestor of ann/10 because its text begins so."""
    hand = Hand()
    ann = hand.client("ann")
    m1, m10 = hand.send(ann, "o.w@n1", "async"), hand.send(ann, "o.w@n1", "async", call=10)
    first, tenth = hand.deliver(m1, "o@n1"), hand.deliver(m10, "o@n1")
    hand.end(first)
    hand.end(tenth)
    assert hand.blamed() == ["A4"]


# A6, A7, A8, identifiers


@pytest.mark.parametrize(("method", "blamed"), [("w", True), ("r", False)])
def test_a7_a_change_commits_everywhere_or_nowhere(method: str, blamed: bool) -> None:
    """As when it was cancelled at one replica only. One that only reads may be aborted at some of them."""
    hand = Hand()
    m = hand.send(hand.client("a"), f"f.{method}@n1,n2")
    hand.perform(m, "f@n1")
    hand.end(hand.deliver(m, "f@n2"), committed=False)
    assert hand.blamed() == (["A7"] if blamed else [])


@both
def test_a6_one_view_one_member_list(right: bool) -> None:
    hand = Hand()
    if not right:
        hand.traces["n2"].header = replace(hand.traces["n2"].header, members=("n1", "n2"), since=())
    assert hand.blamed() == ([] if right else ["A6"])


@pytest.mark.parametrize(
    ("everywhere", "digest", "blamed"), [(True, "x", False), (True, "y", True), (False, "y", False)]
)
def test_a7_same_requests_same_state(everywhere: bool, digest: str, blamed: bool) -> None:
    hand = Hand()
    m = hand.send(hand.client("ann"), "f.w@n1,n2")
    hand.perform(m, "f@n1")
    if everywhere:
        hand.perform(m, "f@n2")
    hand.state("f@n1", "x")
    hand.state("f@n2", digest)
    assert hand.blamed() == (["A7"] if blamed else [])


def test_a7_an_aborted_request_leaves_no_trace_in_the_state() -> None:
    """A4's second half, seen in the state: who aborted it has the state of who never performed it."""
    hand = Hand()
    m = hand.send(hand.client("ann"), "f.w@n1,n2")
    hand.end(hand.deliver(m, "f@n1"), committed=False)
    hand.state("f@n1", "x")
    hand.state("f@n2", "y")
    assert hand.blamed() == ["A7"]


LIVE: list[tuple[str, Callable[[Hand, Sent], None], bool]] = [
    ("all is over", lambda h, m: (h.perform(m, "f@n1"), h.perform(m, "f@n2"), h.stop())[-1], False),
    ("never delivered", lambda h, m: (h.perform(m, "f@n1"), h.stop())[-1], True),
    ("never ended", lambda h, m: (h.perform(m, "f@n1"), h.deliver(m, "f@n2"), h.stop())[-1], True),
    ("says so itself", lambda h, m: (h.perform(m, "f@n1"), h.perform(m, "f@n2"), h.stop("a call"))[-1], True),
    ("still going on", lambda h, m: h.perform(m, "f@n1"), False),
]


@pytest.mark.parametrize(("play", "blamed"), [entry[1:] for entry in LIVE], ids=[entry[0] for entry in LIVE])
def test_a8_when_it_stops_everything_is_over(play: Callable[[Hand, Sent], None], blamed: bool) -> None:
    hand = Hand()
    play(hand, hand.send(hand.client("ann"), "f.w@n1,n2"))
    assert hand.blamed() == (["A8"] if blamed else [])


@both
def test_clocks_respect_who_came_first(right: bool) -> None:
    """P3 §4.1: an instance starts later than the one that sent its request."""
    hand = Hand()
    hand.clock = 10
    m = hand.send(hand.client("ann"), "f.w@n1")
    hand.end(hand.deliver(m, "f@n1", clock=12 if right else 11))
    assert hand.blamed() == ([] if right else ["P3 §4.1"])


def test_nothing_at_all_is_fine() -> None:
    assert Hand().blamed() == []
    assert judge([]).violations == []


def test_violations_are_bounded() -> None:
    """Of a run that is wrong throughout the first few are told."""
    hand = Hand()
    ann = hand.client("ann")
    hand.in_order("f@n1", False, *(hand.send(ann, "f.c@n1") for _ in range(60)))
    assert len(hand.blamed()) == 20
