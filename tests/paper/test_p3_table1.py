"""P3 Table 1: when does m1 significantly precede m2? One test for each of its nine cells.

Where m1 → m2, the common destination is made to want m2 first: the frame with m1 is on its way, or m1 still lacks
something that m2 does not need. m2 then has to wait, and is delivered after m1. Where m1 ∥ m2, the same destination in
the same situation delivers m2 without waiting. m1 and m2 never conflict at the destination, so nothing but
significant precedency can be the reason. What the definitions say is asked of the oracle.

Links are FIFO here (protocol.md §9.1). Two messages from one node to one replica cannot overtake each other on their
way; so the S cells hold back the agreement on m1, not m1.
"""

from collections.abc import Callable

import pytest

from framework.com.receipt import SREC
from tests.paper.stage import Instance, Stage

SetUp = Callable[[str], Stage]


@pytest.fixture
def sending(set_up: SetUp) -> Stage:
    """o_i has w, which conflicts with itself, and p, which is compatible with all. m1 goes to d at k and l and
    needs agreement there, but l is not heard at k. m2 goes to k only and needs none."""
    stage = set_up("c i k l")
    stage.object("o", "i", "w/w")
    stage.object("d", "k l", "a/a b/b", at_once=True)
    stage.hold("l->k")
    return stage


def perform(stage: Stage, client: str, what: str, at: str) -> Instance:
    """A client of its own starts an instance, so that no session relates two of them."""
    name = f"{client}-op"
    stage.client(client, "c").oneway(what, name)
    return stage.instance(name, at)


def test_s1_one_instance_sends_both(sending: Stage) -> None:
    """P3 Table 1, S1: op1 sends m1 and then m2: m1 → m2."""
    op1 = perform(sending, "T1", "o.w", "o@i")
    op1.oneway("d.a@k,l", "m1")
    op1.oneway("d.b@k", "m2")
    assert sending.precedes("m1", "m2")
    assert sending.waiting("d@k") == ["m1", "m2"]
    sending.release()
    assert sending.delivered("d@k") == ["m1", "m2"]


def test_s2_1_a_conflicting_instance_sends_later(sending: Stage) -> None:
    """P3 Table 1, S2.1: op1 sends m1 and ends; op2 conflicts with op1, comes after it and sends m2: m1 → m2."""
    op1 = perform(sending, "T1", "o.w", "o@i")
    op1.oneway("d.a@k,l", "m1")
    op1.commit()
    op2 = perform(sending, "T2", "o.w", "o@i")
    op2.oneway("d.b@k", "m2")
    assert sending.precedes("m1", "m2")
    assert sending.waiting("d@k") == ["m1", "m2"]
    sending.release()
    assert sending.delivered("d@k") == ["m1", "m2"]


@pytest.mark.parametrize("ended", [False, True], ids=["op1 is running", "op1 has ended"])
def test_s2_2_a_compatible_instance_sends(sending: Stage, ended: bool) -> None:
    """P3 Table 1, S2.2: op1 sends m1, op2 is compatible with op1 and sends m2: m1 ∥ m2.

    P3 calls op1 and op2 concurrent while they overlap. Here compatible is enough: had op1 ended before op2 began,
    op2 still could not tell (protocol.md §3.4, epochs do not end when the object is idle)."""
    op1 = perform(sending, "T1", "o.w", "o@i")
    op1.oneway("d.a@k,l", "m1")
    if ended:
        op1.commit()
    op2 = perform(sending, "T2", "o.p", "o@i")
    op2.oneway("d.b@k", "m2")
    assert sending.concurrent("m1", "m2")
    assert sending.delivered("d@k") == ["m2"]
    sending.release()
    assert sending.delivered("d@k") == ["m2", "m1"]


@pytest.fixture
def receiving(set_up: SetUp) -> Stage:
    """m1 is a request to o at i and k; whoever performs it, or something else, at i sends m2 to o at k."""
    stage = set_up("c e i k")
    stage.object("o", "i k", "w/w v/w")
    return stage


def test_r1_one_instance_receives_and_sends(receiving: Stage) -> None:
    """P3 Table 1, R1: op1 is the instance of m1 at i and sends m2: m1 → m2, though m2 arrives first."""
    receiving.hold("c->k")
    receiving.client("T1", "c").oneway("o.p", "m1")
    receiving.instance("m1", "o@i").oneway("o.q@k", "m2")
    assert receiving.precedes("m1", "m2")
    assert receiving.waiting("o@k") == ["m2"]
    receiving.release()
    assert receiving.delivered("o@k") == ["m1", "m2"]


def test_r2_1_a_conflicting_instance_sends(receiving: Stage) -> None:
    """P3 Table 1, R2.1: op1 receives m1 and ends, op2 conflicts with it, comes after it and sends m2: m1 → m2.

    op1 and op2 conflict, so m1 needs agreement, and i cannot perform it before k has it. k has it, but is busy with
    something that conflicts with m1 and not with m2."""
    receiving.client("T0", "e").oneway("o.v@k", "busy")
    receiving.client("T1", "c").oneway("o.w", "m1")
    receiving.instance("m1", "o@i").commit()
    op2 = perform(receiving, "T2", "o.w@i", "o@i")
    op2.oneway("o.q@k", "m2")
    assert receiving.precedes("m1", "m2")
    assert receiving.waiting("o@k") == ["m1", "m2"]
    receiving.instance("busy", "o@k").commit()
    assert receiving.delivered("o@k") == ["busy", "m1", "m2"]


def test_r2_2_a_compatible_instance_sends(receiving: Stage) -> None:
    """P3 Table 1, R2.2: op1 receives m1, op2 is compatible with op1 and sends m2: m1 ∥ m2."""
    receiving.client("T0", "e").oneway("o.v@k", "busy")
    receiving.client("T1", "c").oneway("o.w", "m1")
    op2 = perform(receiving, "T2", "o.p@i", "o@i")
    op2.oneway("o.q@k", "m2")
    assert receiving.concurrent("m1", "m2")
    assert receiving.delivered("o@k") == ["busy", "m2"]
    receiving.instance("busy", "o@k").commit()
    assert receiving.delivered("o@k") == ["busy", "m2", "m1"]


def test_t1_one_instance_receives_both(set_up: SetUp) -> None:
    """P3 Table 1, T1: op1 receives m1 and then m2, the responses of two calls: m1 → m2.

    It receives them in the order in which it asks for them, whichever comes first over the network."""
    stage = set_up("c i x y")
    stage.object("o", "i")
    stage.object("first", "x", at_once=True)
    stage.object("second", "y", at_once=True)
    op1 = perform(stage, "T1", "o.p", "o@i")
    stage.hold("x->i")
    op1.later("first.p", "call1")
    op1.later("second.p", "call2")
    op1.collect(1, SREC)
    assert [r.call for r in op1.received] == []  # m2 is at i, m1 is not
    stage.release()
    op1.collect(2, SREC)
    assert [r.call for r in op1.received] == [1, 2]


def requests_crossing(stage: Stage, what: str) -> None:
    """T1 sends m1 and T2 sends m2, each to o at i and j; i gets m1 first and j gets m2 first."""
    stage.object("o", "i j", "w/w")
    stage.hold("c->j", "e->i")
    stage.client("T1", "c").oneway(what, "m1")
    stage.client("T2", "e").oneway(what, "m2")


def test_t2_1_conflicting_instances_receive(set_up: SetUp) -> None:
    """P3 Table 1, T2.1: op1 of m1 and op2 of m2 conflict, so one order holds wherever both are received, and op2
    starts when op1 has ended. Neither of m1, m2 precedes the other before: it is for the replicas to agree."""
    stage = set_up("c e i j")
    requests_crossing(stage, "o.w")
    assert stage.concurrent("m1", "m2")
    assert (stage.delivered("o@i"), stage.delivered("o@j")) == ([], [])
    stage.release()
    assert stage.delivered("o@i") == stage.delivered("o@j")
    (first,) = stage.delivered("o@i")
    second = {"m1": "m2", "m2": "m1"}[first]
    for at in ("o@i", "o@j"):
        stage.instance(first, at).commit()
        assert stage.delivered(at) == [first, second]


def test_t2_2_compatible_instances_receive(set_up: SetUp) -> None:
    """P3 Table 1, T2.2: op1 and op2 are compatible: m1 ∥ m2, each replica delivers them as they come."""
    stage = set_up("c e i j")
    requests_crossing(stage, "o.p")
    assert (stage.delivered("o@i"), stage.delivered("o@j")) == (["m1"], ["m2"])
    stage.release()
    assert (stage.delivered("o@i"), stage.delivered("o@j")) == (["m1", "m2"], ["m2", "m1"])
