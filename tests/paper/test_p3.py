"""P3, "Group Protocol for Supporting Object-based Ordered Delivery": all but Table 1, which has a module of its own."""

import copy
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import pytest

from framework.com.messages import Proposal, Response
from framework.com.telling import Dropped
from framework.declare import declaration
from framework.footprint import Footprint, Relation
from framework.ids import GroupId, Replica, Sid
from framework.sim.run import run
from framework.trace.files import Trace
from framework.trace.record import Record
from objects.counter import Counter
from tests.paper.stage import TIMING, Stage

SetUp = Callable[[str], Stage]

# P3 §2.2 conflict


def perform(counter: Counter, method: str) -> tuple[Any, int]:
    """[op(s)] and op(s): the output, and the state afterwards."""
    after = copy.deepcopy(counter)
    return getattr(after, method)(), after.value


def at(value: int) -> Counter:
    counter = Counter()
    counter.value = value
    return counter


def compatible(one: str, two: str, values: range = range(-2, 3)) -> bool:
    """Both orders give the same state, and each method the same output, from every state."""
    for value in values:
        first_out, middle = perform(at(value), one)
        second_out, end = perform(at(middle), two)
        if perform(at(value), two)[0] != second_out:
            return False
        back_out, back_end = perform(at(perform(at(value), two)[1]), one)
        if (back_out, back_end) != (first_out, end):
            return False
    return True


def test_compatibility_is_told_from_states_and_outputs() -> None:
    """P3 §2.2: compatible iff the states and the outputs do not depend on the order. Computed from the definition
    for all pairs of the counter's methods, it is what the counter declares."""
    relation = declaration(Counter).relation
    for one, two in product(("increment", "decrement", "show"), repeat=2):
        assert relation.methods(one, two) == (not compatible(one, two)), (one, two)


def test_the_counter_conflict_is_symmetric_but_not_transitive() -> None:
    """P3 §2.2 assumes that conflict is symmetric and transitive, and gives the counter as the example. Symmetric it
    is; increment conflicts with show and show with decrement, but increment does not conflict with decrement.
    protocol.md §14.1: here conflict is judged pairwise."""
    assert not compatible("increment", "show") and not compatible("show", "decrement")
    assert compatible("increment", "decrement") and compatible("decrement", "increment")
    relation = Relation([("increment", "show"), ("show", "decrement")])
    assert relation.methods("show", "increment")
    assert not relation.methods("increment", "decrement")


def counter_stage(set_up: SetUp) -> Stage:
    stage = set_up("c e k")
    stage.object("counter", "k", "increment/show decrement/show", reads="show")
    return stage


def test_compatible_methods_overlap_and_conflicting_ones_exclude_each_other(set_up: SetUp) -> None:
    """P3 §2.2: methods are mutually exclusive if they conflict; a request that conflicts with a running instance waits
    for it. The request in between does not keep a compatible one waiting longer than its own conflicts do."""
    stage = counter_stage(set_up)
    stage.client("T1", "c").oneway("counter.increment", "up")
    stage.client("T2", "e").oneway("counter.decrement", "down")
    stage.client("T3", "c").oneway("counter.show", "show")
    assert stage.delivered("counter@k") == ["up", "down"]
    stage.instance("up", "counter@k").commit()
    assert stage.waiting("counter@k") == ["show"]
    stage.instance("down", "counter@k").commit()
    assert stage.delivered("counter@k") == ["up", "down", "show"]


def test_equal_cids_mean_compatible_even_where_conflict_is_not_transitive(set_up: SetUp) -> None:
    """P3 §4.1 with the counter: increment and decrement share a cid; show opens a new one; the decrement that starts
    when show has ended must not share show's, nor fall back to the first."""
    stage = counter_stage(set_up)
    cids = []
    for n, method in enumerate(("increment", "decrement", "show", "show", "decrement")):
        stage.client(f"T{n}", "c").oneway(f"counter.{method}", f"m{n}")
        op = stage.instance(f"m{n}", "counter@k")
        cids.append(op.cid)
        op.commit()
    first, second, third, fourth, fifth = cids
    assert first == second
    assert third == fourth
    assert first < third < fifth


# P3 §4.1 identifiers, Figure 3


def test_figure_3_object_vector(set_up: SetUp) -> None:
    """P3 Fig. 3: op1 on o_i has the sid "1i"; its first sending event is "1i0", its second "1i1".

    o_i is the transaction object of node i here. m1 carries no predecessors (the paper's V = <0,0>), and after sending
    it op1 knows of it (<1i0,0>): m2 carries it, as long as m1 is not known to be delivered. Two departures: the clock
    also counts sending, so op2 at j is "3j" and not "2j"; and a context names only what is undelivered elsewhere, so
    op2 itself, whose m1 is delivered where it went, has nothing to name (protocol.md §4.2, §14.1)."""
    stage = set_up("i j")
    stage.object("o", "j")
    op1 = stage.client("op1", "i")
    m1 = op1.oneway("o.p", "m1")
    m2 = op1.oneway("o.p", "m2")
    assert m1.group == GroupId(1, Replica("tran@i"), 0)
    assert m1.group.sid == Sid(1, Replica("tran@i"))
    assert m2.group == GroupId(1, Replica("tran@i"), 1)
    assert stage.carried("m1") == {}
    assert stage.carried("m2") == {"o@j": {"m1"}}
    op2 = stage.instance("m1", "o@j")
    assert op2.sid == Sid(3, Replica("o@j"))
    assert stage.knows(op2) == {}


def test_figure_3_what_the_instance_of_m1_knows(set_up: SetUp) -> None:
    """P3 Fig. 3 with one destination more: op2 starts with V = <1i0,0>, that is m1 where it may be undelivered yet. o_j
    has it when op2 has committed. op3 is compatible with op2 and does not inherit it; op4, which conflicts with op2 and
    comes after it, does (protocol.md §4.1)."""
    stage = set_up("i j k e")
    stage.object("o", "j k", "w/v")
    stage.client("T0", "e").oneway("o.v@k", "busy")
    stage.client("op1", "i").oneway("o.w", "m1")
    op2 = stage.instance("m1", "o@j")
    assert stage.knows(op2) == {"o@k": {"m1"}}
    assert (stage.committed("o@j"), stage.base("o@j")) == ({}, {})
    op2.commit()
    assert (stage.committed("o@j"), stage.base("o@j")) == ({"o@k": {"m1"}}, {})
    stage.client("T3", "e").oneway("o.p@j", "op3")
    stage.client("T4", "e").oneway("o.v@j", "op4")
    assert stage.knows(stage.instance("op3", "o@j")) == {}
    assert stage.knows(stage.instance("op4", "o@j")) == {"o@k": {"m1"}}


def senders(trace: list[Trace]) -> dict[str, Record]:
    return {r.group: r for t in trace for r in t.records if r.event == "send"}


def sid(text: str) -> Sid:
    clock, _, where = text.partition(":")
    return Sid(int(clock), Replica(where))


@pytest.mark.parametrize("seed", range(4))
def test_sids_follow_the_start_of_instances(seed: int) -> None:
    """P3 §4.1, first property: sid(op) < sid(op') if op starts before op' does; in random runs. What a node does is
    in order, and who sends a request has started before who performs it."""
    traces = run(seed).traces
    sent = senders(traces)
    count = 0
    for trace in traces:
        started = [r for r in trace.records if r.event == "deliver"]
        assert [sid(r.sid) for r in started] == sorted({sid(r.sid) for r in started}, key=lambda s: s.clock)
        for r in started:
            assert sid(sent[r.group].sid) < sid(r.sid)
            count += 1
    assert count


@pytest.mark.parametrize("seed", range(6))
def test_equal_cids_mean_compatible_instances(seed: int) -> None:
    """P3 §4.1, second property: instances of a replica with equal cids are compatible, cids grow with sids, and of two
    that conflict the later one has the higher cid. In random runs, with keys and without transitivity."""
    traces = run(seed).traces
    for replica in sorted(traces[0].header.objects.items()):
        name, placed = replica
        relation = Relation(placed.conflicts)
        for where in placed.replicas:
            started = [r for t in traces for r in t.records if r.event == "deliver" and r.replica == where]
            for one, two in combinations(started, 2):
                assert sid(one.cid) <= sid(two.cid)
                assert one.footprint is not None and two.footprint is not None
                if relation.conflict(one.footprint, two.footprint):
                    assert one.cid != two.cid or two.invocation.startswith(one.invocation + "."), name


def test_commit_merges_and_abort_does_not(set_up: SetUp) -> None:
    """P3 §4.1: a commit merges the instance's vector into its object's, an abort does not change that. What the
    committed op1 sent precedes what op3 sends; what the aborted op2 sent does not."""
    stage = set_up("c i k l")
    stage.object("o", "i", "w/w")
    stage.object("d", "k l", "a/a b/b", at_once=True)
    stage.hold("l->k")
    for name, ends in (("m1", "commit"), ("m2", "abort"), ("m3", "commit")):
        stage.client(f"T{name}", "c").oneway("o.w", f"op{name}")
        op = stage.instance(f"op{name}", "o@i")
        op.oneway("d.a@k,l" if name != "m3" else "d.b@k", name)
        getattr(op, ends)()
    assert stage.carried("m3") == {"d@k": {"m1"}, "d@l": {"m1"}}
    assert stage.precedes("m1", "m3")
    assert stage.concurrent("m2", "m3")


# P3 §4.2 Figure 4, Table 2, ordering rule


def figure_4(set_up: SetUp, m1: str) -> Stage:
    """op1 and op2 overlap on o_i. op1 sends m1 to o_j and o_k, op2 sends m3 to o_k; op3 of m1 at j sends m2 to k."""
    stage = set_up("c e i j k")
    stage.object("o", "i", "w/w")
    stage.object("f", "j k", "m1/x", at_once=False)
    stage.client("T1", "c").oneway("o.p", "op1")
    stage.client("T2", "e").oneway("o.q", "op2")
    stage.client("T0", "e").oneway("f.x@k", "busy")
    if m1 == "on its way":
        stage.hold("i->k")
    stage.instance("op1", "o@i").oneway("f.m1" if m1 == "waiting" else "f.other", "m1")
    stage.instance("m1", "f@j").oneway("f.m2@k", "m2")
    return stage


def test_figure_4_table_2_identifiers(set_up: SetUp) -> None:
    """P3 Fig. 4 and Table 2: id, cid and V of m1, m2, m3.

    m1 and m3 have the same cid, because op1 and op2 are compatible; the cid of m2 is that of op3, which is its sid.
    V of m1 and m3 is empty; V of m2 names m1, at k where it matters."""
    stage = figure_4(set_up, "on its way")
    stage.instance("op2", "o@i").oneway("f.m3@k", "m3")
    op1, op2, op3 = stage.instance("op1", "o@i"), stage.instance("op2", "o@i"), stage.instance("m1", "f@j")
    m1, m2, m3 = (stage.sent(m) for m in ("m1", "m2", "m3"))
    assert op1.sid < op2.sid
    assert [m.group for m in (m1, m2, m3)] == [GroupId(*s, 0) for s in (op1.sid, op3.sid, op2.sid)]
    assert [m.cid for m in (m1, m2, m3)] == [op1.sid, op3.sid, op1.sid]
    assert [stage.carried(m) for m in ("m1", "m2", "m3")] == [{}, {"f@k": {"m1"}}, {}]
    assert m1.group < m2.group and m1.group < m3.group


def test_figure_4_m2_waits_for_m1(set_up: SetUp) -> None:
    """P3 Fig. 4: o_k gets m2 before m1 and delivers m1 first."""
    stage = figure_4(set_up, "on its way")
    assert stage.waiting("f@k") == ["m2"]
    stage.release()
    assert stage.delivered("f@k") == ["busy", "m1", "m2"]


def test_figure_4_m3_is_not_ordered(set_up: SetUp) -> None:
    """P3 Fig. 4: m1 ∥ m3 and m2 ∥ m3. o_k has m1 and cannot perform it yet; m3 passes, m2 does not."""
    stage = figure_4(set_up, "waiting")
    stage.instance("op2", "o@i").oneway("f.m3@k", "m3")
    assert stage.concurrent("m1", "m3") and stage.concurrent("m2", "m3") and stage.precedes("m1", "m2")
    assert stage.delivered("f@k") == ["busy", "m3"]
    assert stage.waiting("f@k") == ["m1", "m2"]
    stage.instance("busy", "f@k").commit()
    assert stage.delivered("f@k") == ["busy", "m3", "m1", "m2"]


def test_ordering_rule_one_sender(set_up: SetUp) -> None:
    """P3 §4.2, rule 1: messages of one object are ordered by id if one instance or conflicting instances sent them;
    those have different cids. Equal cids of different instances order nothing.

    The converse does not hold: op1 is compatible with op2 and yet in an earlier epoch, because op0 was. There the
    protocol may order more than the definition asks for (protocol.md §3.4)."""
    stage = set_up("c i k l")
    stage.object("o", "i", "w/w")
    stage.object("d", "k l", "a/a b/b", at_once=True)
    stage.hold("l->k")  # nothing is known to be delivered
    for n, method in enumerate(("w", "p", "w")):
        stage.client(f"T{n}", "c").oneway(f"o.{method}", f"op{n}")
        op = stage.instance(f"op{n}", "o@i")
        op.oneway("d.a", f"m{n}a")
        op.oneway("d.a", f"m{n}b")
        op.commit()
    names = [f"m{n}{x}" for n in range(3) for x in "ab"]
    for one, two in combinations(names, 2):
        m1, m2 = stage.sent(one), stage.sent(two)
        assert m1.group < m2.group
        different = {one[1], two[1]} == {"0", "2"}  # op0 and op2 conflict
        assert stage.precedes(one, two) == (m1.caller == m2.caller or different), (one, two)
        assert not different or m1.cid != m2.cid
    assert [stage.sent(m).cid == stage.sent("m0a").cid for m in names] == [True] * 4 + [False] * 2
    assert stage.carried("m1a") == {}
    assert all("m0b" in stage.carried("m2a")[at] for at in ("d@k", "d@l"))


def test_ordering_rule_two_senders(set_up: SetUp) -> None:
    """P3 §4.2, rule 2: of two objects' requests, the one that the other's vector knows comes first; where neither
    knows the other and they conflict, all common destinations agree on one order (OB-precedes, §3.1).
    protocol.md §14.1: by stamps, not by comparing origin identifiers, because an origin may crash in between."""
    stage = set_up("c e k l")
    stage.object("d", "k l", "a/a")
    stage.hold("c->l", "e->k")
    stage.client("T1", "c").oneway("d.a", "m1")
    stage.client("T2", "e").oneway("d.a", "m2")
    assert (stage.waiting("d@k"), stage.waiting("d@l")) == (["m1"], ["m2"])
    stage.settle()
    assert stage.delivered("d@k") == stage.delivered("d@l")
    assert sorted(stage.delivered("d@k")) == ["m1", "m2"]


def test_message_groups_share_their_id(set_up: SetUp) -> None:
    """P3 §4.3: m.id = (sid, no), one for all destinations; no counts the sending events of the instance."""
    stage = set_up("i j k")
    stage.object("d", "j k", at_once=True)
    client = stage.client("T", "i")
    client.oneway("d.a", "m1")
    client.oneway("d.a@k", "m2")
    assert stage.request("m1", "d@j").group == stage.request("m1", "d@k").group
    assert [stage.sent(m).group.no for m in ("m1", "m2")] == [0, 1]


# P3 §4.3 transmission and receipt


def test_message_fields(set_up: SetUp) -> None:
    """P3 §4.3: src, dst, typ, op, dat, id, cid, V and SQ of a request; a response has the id of its request.

    SQ counts per destination: m2 is the first message to l and the second to k. V is the sparse context. The cid does
    not travel: V says what it is for, and traces have it."""
    stage = set_up("i k l")
    stage.object("d", "k l", "a/a")
    client = stage.client("T", "i")
    client.oneway("d.a@k", "m1")
    client.later("d.a", "m2")
    m2 = stage.request("m2", "d@k")
    assert m2.group.replica == "tran@i"  # src
    assert [d.replica for d in m2.dests] == ["d@k", "d@l"]  # dst
    assert (stage.request("m1", "d@k").kind, m2.kind) == ("oneway", "async")  # typ
    assert m2.parts[0].footprint == Footprint("a")  # op
    assert stage.sent("m2").cid == m2.group.sid  # transactions are compatible with each other
    assert stage.carried("m2") == {"d@k": {"m1"}}  # V
    assert [d.seq for d in m2.dests] == [2, 1]  # SQ
    stage.instance("m1", "d@k").commit()
    stage.instance("m2", "d@k").commit(b"out")
    (response,) = [m for m in stage.com("k").posted if isinstance(m, Response)]
    assert (response.group, response.replica, response.body) == (m2.group, "d@k", b"out")


def test_a_gap_is_detected_asked_for_and_closed(set_up: SetUp) -> None:
    """P3 §4.3: m2 arrives while m1, sent before it, is missing. m2 is kept, not delivered; after a while the receiver
    asks, the sender sends m1 again, and both are delivered in their order."""
    stage = set_up("i k")
    stage.object("d", "k", at_once=True)
    client = stage.client("T", "i")
    stage.hold("i->k")
    client.oneway("d.a", "m1")
    assert stage.lose("i->k") == 1
    client.oneway("d.a", "m2")
    assert stage.delivered("d@k") == [] and stage.waiting("d@k") == []
    stage.tick(TIMING.ask_after / 2)
    assert stage.delivered("d@k") == []
    stage.tick(TIMING.ask_after)
    assert stage.delivered("d@k") == ["m1", "m2"]


def test_a_lost_message_is_resent_without_being_asked_for(set_up: SetUp) -> None:
    """P3 §4.4: o_i takes a message for lost that is not confirmed in 2δ, and sends it again."""
    assert TIMING.resend_after == 2 * TIMING.delta
    stage = set_up("i k")
    stage.object("d", "k", at_once=True)
    stage.hold("i->k")
    stage.client("T", "i").oneway("d.a", "m1")
    stage.lose("i->k")
    stage.tick(TIMING.resend_after - 1)
    assert stage.delivered("d@k") == []
    stage.tick(1)
    assert stage.delivered("d@k") == ["m1"]


def test_a_message_that_comes_twice_is_received_once(set_up: SetUp) -> None:
    """P3 §4.3: a sequence number below the expected one is not received again."""
    stage = set_up("i k")
    stage.object("d", "k", at_once=True)
    stage.client("T", "i").oneway("d.a", "m1")
    stage.repeat("i->k")
    assert stage.delivered("d@k") == ["m1"]
    assert any(isinstance(e, Dropped) and n == "k" for n, e in stage.heard)


# P3 §4.4 delivery


def test_ready_no_conflicting_instance_is_running(set_up: SetUp) -> None:
    """P3 §4.4, ready message: m waits while an instance that conflicts with it is performed; others do not."""
    stage = set_up("c e k")
    stage.object("d", "k", "a/a")
    stage.client("T1", "c").oneway("d.a", "m1")
    stage.client("T2", "e").oneway("d.a", "m2")
    stage.client("T3", "e").oneway("d.b", "m3")
    assert stage.delivered("d@k") == ["m1", "m3"]
    stage.instance("m1", "d@k").commit()
    assert stage.delivered("d@k") == ["m1", "m3", "m2"]


def test_stable_only_destinations_have_to_be_heard(set_up: SetUp) -> None:
    """P3 §4.4, stable message: nothing that precedes m can still come. P3 has to hear every object of the group for
    that; here the destinations agree among themselves (protocol.md §14.1). z is silent, and nobody waits for it; but
    without the proposal of l, k does not deliver."""
    stage = set_up("i k l z")
    stage.object("d", "k l", "a/a")
    stage.object("elsewhere", "z")
    stage.hold("z->*", "l->k")
    stage.client("T", "i").oneway("d.a", "m1")
    assert stage.delivered("d@l") == ["m1"]
    assert stage.delivered("d@k") == []
    stage.release("l->k")
    assert stage.delivered("d@k") == ["m1"]


def test_delivery_procedure_in_the_agreed_order(set_up: SetUp) -> None:
    """P3 §4.4, delivery procedure, with Theorem 4: the first of the receipt queue is delivered when it is stable and
    ready, and the order of three conflicting requests is the same at both replicas, however they arrive."""
    stage = set_up("c e g k l")
    stage.object("d", "k l", "a/a")
    stage.hold("c->l", "e->k", "g->l")
    for n, node in enumerate("ceg"):
        stage.client(f"T{n}", node).oneway("d.a", f"m{n}")
    stage.release("g->l")
    stage.release("e->k")
    stage.settle()
    assert len(stage.delivered("d@k")) == 3
    assert stage.delivered("d@k") == stage.delivered("d@l")


def test_heartbeat_after_delta(set_up: SetUp) -> None:
    """P3 §4.4: an object that had nothing to send for δ sends a message without data. Here it carries acknowledgement
    and clock for links; deliveries do not wait for it (protocol.md §14.1)."""
    stage = set_up("i k")
    stage.object("d", "k", at_once=True)
    frames: list[Any] = []
    stage.watch = lambda what, node, detail: frames.append(detail) if what == "frame" else None
    stage.client("T", "i").oneway("d.a", "m1")
    assert stage.delivered("d@k") == ["m1"]
    frames.clear()
    stage.tick(TIMING.delta / 2, "i")
    assert frames == []
    stage.tick(TIMING.delta / 2, "i")
    (frame,) = frames
    assert (frame.source, frame.number, frame.messages) == ("i", 0, ())


def test_a_proposal_confirms_the_receipt(set_up: SetUp) -> None:
    """P3 §4.4, receipt confirmation: here the proposal is one (protocol.md §5.2), and what was delivered is told as
    marks on frames that go out anyway, at the latest after δ."""
    stage = set_up("i k l")
    stage.object("d", "k l", "a/a", at_once=True)
    client = stage.client("T", "i")
    client.oneway("d.a", "m1")
    assert [type(m) for m in stage.com("k").posted] == [Proposal]
    client.oneway("d.a", "m2")
    assert stage.carried("m2") == {"d@k": {"m1"}, "d@l": {"m1"}}
    stage.tick(TIMING.delta)
    client.oneway("d.a", "m3")
    assert stage.carried("m3") == {}
