"""The sending side of a node: identifiers (protocol.md §3), what a caller's context becomes (§4.1), receipts,
deadlines."""

import pytest

from framework.com.caller import Caller
from framework.com.context import Known
from framework.com.events import Leave, Received, Tick
from framework.com.messages import Dest, Response
from framework.com.receipt import CREC, DREC, SREC
from framework.com.telling import Sent
from framework.ids import GroupId, Invocation, Node, Replica, Sid
from tests.paper.stage import Stage

F1, F2, G1 = Replica("f@n1"), Replica("f@n2"), Replica("g@n1")
N1 = Node("n1")


def a_stage(at_once: bool = False) -> Stage:
    stage = Stage("n1 n2")
    stage.object("f", "n1 n2", "w/w w/r", reads="r", at_once=at_once)
    stage.object("g", "n1 n2", "a/a", at_once=at_once)
    stage.object("h", "n1", at_once=at_once)
    return stage


# identifiers


def test_requests_to_a_replica_are_counted_per_node() -> None:
    """P3's SQ: whoever of the node sends them."""
    stage = a_stage(at_once=True)
    ann, bob, eve = stage.client("ann", "n1"), stage.client("bob", "n1"), stage.client("eve", "n2")
    seqs = [tuple(d.seq for d in who.oneway(what).dests) for who, what in (
        (ann, "f.w"), (bob, "f.w@n2"), (ann, "f.w"), (eve, "f.w"), (bob, "g.a@n1"),
    )]  # fmt: skip
    assert seqs == [(1, 1), (2,), (2, 3), (1, 1), (1,)]


def test_a_group_id_is_the_sid_of_its_sender_and_a_number() -> None:
    stage = a_stage(at_once=True)
    ann, bob = stage.client("ann", "n1"), stage.client("bob", "n1")
    sent = [who.oneway("f.w") for who in (ann, ann, bob)]
    assert [s.group.sid for s in sent] == [s.caller for s in sent]
    assert [s.group.no for s in sent] == [0, 1, 0]
    assert sent[0].caller == sent[1].caller != sent[2].caller
    assert sent[0].cid == sent[2].cid, "transactions are compatible with each other"


def test_invocation_ids_are_paths_of_call_numbers() -> None:
    """protocol.md §3.2. Each part of a pcast is an invocation of its own."""
    stage = a_stage()
    ann = stage.client("ann", "n1")
    sent = ann.later("f.w g.a", "m1 m2")
    assert sent.invocation == Invocation("ann", (1,))
    assert ann.next == 3
    nested = [stage.instance("m2", f"g@{n}").later("h.x", "nested") for n in ("n1", "n2")]
    assert [s.invocation for s in nested] == [Invocation("ann", (2, 1))] * 2, "the same at each replica of the caller"
    assert nested[0].group != nested[1].group
    assert stage.delivered("h@n1") == ["nested"], "performed once"


@pytest.mark.parametrize(
    ("what", "ordered"),
    [("f.w", True), ("f.r", True), ("f.w@n1", False), ("g.b", False), ("f.w@n1 g.b@n2", True), ("g.b h.x", False)],
)
def test_who_needs_agreement(what: str, ordered: bool) -> None:
    """protocol.md §5.3: not with one destination, nor if its methods conflict with nothing."""
    assert a_stage().client("ann", "n1").oneway(what).ordered is ordered


# context (protocol.md §4)


def a_caller() -> Caller:
    return Caller(Sid(1, G1), Sid(1, G1), "", Invocation("ann", (1,)))


def test_after_sending_the_entry_is_just_the_message() -> None:
    caller = a_caller()
    caller.sent(Dest(F1, 1), (N1, 1), "oneway", False)
    caller.sent(Dest(F2, 1), (N1, 1), "oneway", False)
    caller.sent(Dest(F1, 2), (N1, 2), "oneway", False)
    assert caller.knows(Known()) == ((F1, ((N1, 2),)), (F2, ((N1, 1),)))


def test_reads_are_for_its_own_instance() -> None:
    """P1 §4: later messages of the instance wait for them, its response does not tell of them."""
    caller = a_caller()
    caller.sent(Dest(F1, 1), (N1, 1), "sync", False)
    caller.sent(Dest(F1, 2), (N1, 2), "sync", True)
    assert caller.knows(Known()) == ((F1, ((N1, 1), (N1, 2))),)
    assert caller.leaves(Known()) == ((F1, ((N1, 1),)),)
    caller.sent(Dest(F1, 3), (N1, 3), "sync", False)
    assert caller.knows(Known()) == ((F1, ((N1, 3),)),), "this one waits for the read"


def test_what_is_known_to_be_delivered_is_not_carried() -> None:
    caller, known = a_caller(), Known()
    caller.sent(Dest(F1, 1), (N1, 1), "sync", True)
    caller.sent(Dest(F2, 1), (N1, 1), "sync", False)
    known.ranges(F1, N1).add(1)
    known.ranges(F2, N1).add(1)
    assert caller.knows(known) == ()


def test_receiving_merges_what_was_received() -> None:
    caller = a_caller()
    group = GroupId(1, G1, 0)
    caller.received([Response(1, group, F1, "ok", b"", False, True, ((F2, ((N1, 7),)),), ())])
    assert caller.knows(Known()) == ((F2, ((N1, 7),)),)
    assert caller.acted


def test_programs_of_synchronous_calls_carry_empty_contexts() -> None:
    """protocol.md §4.3: a sync response proves delivery."""
    stage = a_stage(at_once=True)
    ann = stage.client("ann", "n1")
    entries = [ann.sync(what, CREC).entries for what in ("f.w", "g.a", "f.r", "f.w g.a", "f.w")]
    assert entries == [0, 0, 0, 0, 0]


def test_one_way_calls_name_what_comes_first() -> None:
    stage = a_stage(at_once=True)
    stage.hold("n1->n2")
    ann = stage.client("ann", "n1")
    ann.oneway("f.w", "m1")
    ann.oneway("g.a", "m2")
    assert stage.carried("m2") == {"f@n1": {"m1"}, "f@n2": {"m1"}}


def test_a_chain_ends_at_a_one_way_call() -> None:
    """Nobody waits for it, so what it calls cannot join anybody."""
    stage = a_stage()
    stage.client("ann", "n1").sync("f.w", CREC, "m")
    outer = stage.instance("m", "f@n1")
    outer.later("g.a@n1", "waited")
    outer.oneway("h.x", "alone")
    assert [(a.object, a.length) for a in stage.request("waited").chain] == [("f", 1)]
    assert stage.request("alone").chain == ()


# receipts and deadlines


def receipts(stage: Stage) -> list[Received]:
    return [e for _, e in stage.heard if isinstance(e, Received)]


def test_a_deadline_that_passes() -> None:
    """A8: what has come by then is given, and that it is not all."""
    stage = a_stage()
    stage.hold("n2->n1")
    ann = stage.client("ann", "n1")
    ann.send("g.b", "m", "sync", CREC, deadline=8.0)
    stage.instance("m", "g@n1").commit(b"one")
    stage.instance("m", "g@n2").commit(b"two")
    stage.now = 7.9
    stage.do("n1", Tick())
    assert receipts(stage) == []
    stage.now = 8.0
    stage.do("n1", Tick())
    (over,) = receipts(stage)
    assert not over.complete
    assert [(r.replica, r.body) for r in over.responses] == [("g@n1", b"one")]
    stage.release()
    stage.tick(50.0)
    assert len(receipts(stage)) == 1, "what comes later is not received"


def test_a_deadline_that_is_kept() -> None:
    stage = a_stage(at_once=True)
    stage.client("ann", "n1").send("f.w", "m", "sync", CREC, deadline=8.0)
    stage.tick(100.0)
    assert [r.complete for r in receipts(stage)] == [True]


def test_deadlines_pass_in_their_order() -> None:
    stage = a_stage()
    ann = stage.client("ann", "n1")
    for n, deadline in enumerate((9.0, 3.0, 6.0), 1):
        ann.send("h.x", f"m{n}", "sync", SREC, deadline=deadline)
    stage.now = 6.5
    stage.do("n1", Tick())
    assert [r.call for r in receipts(stage)] == [2, 3]


def test_deadlines_of_what_is_answered_are_forgotten() -> None:
    """A call takes ten seconds of patience and a millisecond: thousands of deadlines would wait for nothing."""
    stage = a_stage(at_once=True)
    ann = stage.client("ann", "n1")
    for n in range(20):
        ann.send("h.x", f"m{n}", "sync", SREC, deadline=50.0)
    stage.now = 1.0
    stage.do("n1", Tick())
    assert len(stage.com("n1").calls._deadlines) == 0


def test_responses_that_came_before_they_were_wanted() -> None:
    """P0 Table 1: a drec of what is all here receives the first only."""
    stage = a_stage(at_once=True)
    ann = stage.client("ann", "n1")
    ann.later("f.w", "m")
    assert receipts(stage) == []
    ann.collect(1, DREC)
    assert len(ann.answers(1)) == 1


def test_a_client_that_repeats_a_call_is_answered_once() -> None:
    """protocol.md §8.1: with the same number; the first group is answered to nobody."""
    stage = a_stage()
    ann = stage.client("ann", "n1")
    ann.sync("h.x", SREC, "m")
    ann.send("h.x", "", "sync", SREC, call=1)
    stage.instance("m", "h@n1").commit(b"out")
    assert [(r.call, r.responses[0].body) for r in receipts(stage)] == [(1, b"out")]
    assert stage.delivered("h@n1") == ["m"]


def test_a_client_that_has_left_gets_nothing() -> None:
    stage = a_stage()
    stage.client("ann", "n1").sync("h.x", SREC, "m")
    stage.do("n1", Leave("ann"))
    stage.instance("m", "h@n1").commit()
    assert receipts(stage) == []
    assert stage.com("n1").calls._waiting == {}
    assert stage.finish().violations == []


def test_a_new_session_of_the_same_name_is_another_sender() -> None:
    stage = a_stage(at_once=True)
    ann = stage.client("ann", "n1")
    first = ann.sync("h.x", SREC)
    stage.do("n1", Leave("ann"))
    second = ann.sync("h.x", SREC)
    assert isinstance(first, Sent)
    assert first.caller != second.caller


def test_an_instance_ends_when_each_object_it_called_has_answered() -> None:
    """P1 §2.4. Then nothing is remembered of it."""
    stage = a_stage()
    stage.client("ann", "n1").sync("h.x", SREC, "m")
    outer = stage.instance("m", "h@n1")
    outer.later("f.w", "nested")
    outer.commit(b"out")
    assert receipts(stage) == [], "it is performed, but what it called is not"
    stage.instance("nested", "f@n2").commit()
    assert [r.responses[0].body for r in receipts(stage)] == [b"out"], "one answer of the object is enough"
    assert outer.sid not in stage.com("n1").calls.callers
    assert outer.sid not in stage.com("n1").instances


@pytest.mark.parametrize("ok", [True, False])
def test_an_instance_does_not_wait_for_what_it_has_given_up(ok: bool) -> None:
    """A8: else two that call each other crosswise block both objects for ever."""
    stage = a_stage()
    stage.client("ann", "n1").sync("g.a@n1", SREC, "one")
    stage.client("bob", "n2").sync("f.w@n2", SREC, "two")
    one, two = stage.instance("one", "g@n1"), stage.instance("two", "f@n2")
    one.send("f.w@n2", "inner1", "sync", SREC, deadline=8.0)
    two.send("g.a@n1", "inner2", "sync", SREC, deadline=100.0)
    assert (stage.delivered("g@n1"), stage.delivered("f@n2")) == (["one"], ["two"])
    stage.tick(9.0)
    if ok:
        one.commit()
    else:
        one.abort()
    assert one.sid not in stage.com("n1").instances
    stage.instance("inner2", "g@n1").commit()
    two.commit()
    stage.instance("inner1", "f@n2").commit()
    assert stage.finish().violations == []
