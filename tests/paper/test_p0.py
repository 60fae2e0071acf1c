"""P0, on ordering messages that are unicast, multicast and paracast, and received singly, conjunctively, disjunctively.

The papers number computers p_s, p_t, p_u; the stages here have nodes s, t, u. An object of the group is an object with
one replica, mcast goes to replicas of one object, pcast to different objects. Receipts are for responses: a request
that arrives starts an instance, nobody waits for it (P0 §3.2 has both).
"""

from collections.abc import Callable
from itertools import permutations

import pytest

from framework.com.events import Received
from framework.com.receipt import CREC, DREC, SREC, Receipt
from framework.ids import GroupId, Replica, Sid
from tests.paper.stage import Stage

SetUp = Callable[[str], Stage]

# P0 §3.1 and §4.2 transmission


def test_ucast_mcast_pcast(set_up: SetUp) -> None:
    """P0 §3.1, Fig. 2: ucast is one request to one object, mcast one request to many, pcast different requests to many
    in one act. §4.2: the instances of one act share the id; those of serial acts do not."""
    stage = set_up("s t u")
    stage.object("a", "t u", at_once=True)
    stage.object("b", "u", at_once=True)
    client = stage.client("T", "s")
    sent = [client.oneway("a.p@t", "m0"), client.oneway("a.p@t,u", "m1"), client.oneway("a.p@t b.q@u", "m2 m3")]
    assert [m.transmission for m in sent] == ["ucast", "mcast", "pcast"]
    assert [[d.replica for d in m.dests] for m in sent] == [["a@t"], ["a@t", "a@u"], ["a@t", "b@u"]]
    assert stage.request("m1", "a@t").group == stage.request("m1", "a@u").group
    assert stage.request("m2", "a@t").group == stage.request("m3", "b@u").group
    assert stage.request("m2", "a@t").invocation != stage.request("m3", "b@u").invocation
    assert [m.group.no for m in sent] == [0, 1, 2]


@pytest.mark.parametrize("what", ["a.p@t,u", "a.p@t b.p@u"], ids=["mcast", "pcast"])
def test_the_instances_of_a_message_group_are_not_ordered(set_up: SetUp, what: str) -> None:
    """P0 §4.2: m1 ≡ m2 and m1 = m2 exclude m1 → m2. Neither names the other, and the one that is late delays nobody."""
    stage = set_up("s t u")
    stage.object("a", "t u")
    stage.object("b", "u")
    stage.hold("s->t")
    names = "m1 m2" if " " in what else "m1"
    stage.client("T", "s").oneway(what, names)
    at = "b@u" if " " in what else "a@u"
    assert stage.delivered(at) == [names.split()[-1]]
    assert stage.carried("m1") == {}
    assert not stage.precedes("m1", names.split()[-1])


def definition_1(set_up: SetUp, *methods: str) -> Stage:
    """Threads of these methods on o_s send m1, m2, ... to d; nothing of it is known to be delivered."""
    stage = set_up("c s k l")
    stage.object("o", "s", "w/w")
    stage.object("d", "k l", "a/a b/b")
    stage.hold("l->k")
    for n, method in enumerate(methods, 1):
        stage.client(f"T{n}", "c").oneway(f"o.{method}", f"t{n}")
        thread = stage.instance(f"t{n}", "o@s")
        thread.oneway("d.a@k,l" if n == 1 else "d.b@k", f"m{n}")
        if n < len(methods):
            thread.commit()
    return stage


def test_definition_1_same_thread(set_up: SetUp) -> None:
    """P0 Def. 1.1: one thread sends m1 and then m2 by different transmissions."""
    stage = definition_1(set_up, "w")
    stage.instance("t1", "o@s").oneway("d.b@k", "m2")
    assert stage.precedes("m1", "m2")
    assert stage.waiting("d@k") == ["m1", "m2"]


def test_definition_1_conflicting_threads(set_up: SetUp) -> None:
    """P0 Def. 1.2: conflicting threads send m1 and then m2."""
    stage = definition_1(set_up, "w", "w")
    assert stage.precedes("m1", "m2")
    assert stage.waiting("d@k") == ["m1", "m2"]


def test_definition_1_transitive(set_up: SetUp) -> None:
    """P0 Def. 1.3: m1 → m3 → m2. The thread that m3 starts at l sends m2; it has never heard of m1 but through m3."""
    stage = definition_1(set_up, "w")
    stage.instance("t1", "o@s").oneway("d.c@l", "m3")
    stage.instance("m3", "d@l").oneway("d.b@k", "m2")
    assert stage.precedes("m1", "m3") and stage.precedes("m3", "m2") and stage.precedes("m1", "m2")
    assert stage.carried("m2")["d@k"] == {"m1"}


def test_definition_1_independent(set_up: SetUp) -> None:
    """P0 Def. 1: threads that do not conflict send m1 and m2: m1 | m2, and m2 is not delayed by m1."""
    stage = definition_1(set_up, "w", "p")
    assert stage.concurrent("m1", "m2")
    assert stage.delivered("d@k") == ["m2"]


@pytest.mark.parametrize("figure", ["5(1)", "5(2)"])
@pytest.mark.parametrize("what", ["f.p@t,u", "f.p@t g.p@u"], ids=["mcast", "pcast"])
def test_figure_5_message_groups(set_up: SetUp, figure: str, what: str) -> None:
    """P0 Fig. 5: s sends m1 to t and m2 to u in one act; u performs m2 and sends m3 to t. m1 must come before m3.

    (1) m1 leaves first and is late. (2) m1 has not even left when m3 is delivered to the network: then m1 does not
    causally precede m3 in the traditional sense, and yet m1 → m3."""
    stage = set_up("s t u")
    stage.object("f", "t u")
    stage.object("g", "u")
    if figure == "5(1)":
        stage.hold("s->t")
    else:
        stage.mute("s->t")
    paracast = " " in what
    stage.client("T", "s").oneway(what, "m1 m2" if paracast else "m1")
    thread = stage.instance("m2", "g@u") if paracast else stage.instance("m1", "f@u")
    thread.oneway("f.q@t", "m3")
    assert stage.precedes("m1", "m3")
    assert stage.waiting("f@t") == ["m3"]
    stage.release()
    assert stage.delivered("f@t") == ["m1", "m3"]


def test_figure_5_serial_sending_differs(set_up: SetUp) -> None:
    """P0 Fig. 5(2) for contrast: by two acts, m2 to u and then m1 to t, m1 | m3 holds, and m3 may pass m1."""
    stage = set_up("s t u")
    stage.object("f", "t u")
    stage.hold("s->t")
    client = stage.client("T", "s")
    client.oneway("f.p@u", "m2")
    client.oneway("f.p@t", "m1")
    stage.instance("m2", "f@u").oneway("f.q@t", "m3")
    assert stage.concurrent("m1", "m3")
    assert stage.delivered("f@t") == ["m3"]


# P0 §3.2 and §4.3 receipt


def asked(set_up: SetUp, receipt: Receipt, what: str = "a.p") -> Stage:
    """A client at p asks a on w1 and w2 (and b on w3 and w4); no response has arrived."""
    stage = set_up("p w1 w2 w3 w4")
    stage.object("a", "w1 w2", at_once=True)
    stage.object("b", "w3 w4", at_once=True)
    stage.hold("*->p")
    stage.client("T", "p").send(what, "m", "async", receipt)
    return stage


def test_srec_receives_one(set_up: SetUp) -> None:
    """P0 §3.2: srec receives one message from the object it names."""
    stage = asked(set_up, SREC, "a.p@w2")
    assert stage.clients["T"].received == []
    stage.release("w2->p")
    assert stage.clients["T"].answers(1) == ["a@w2"]


@pytest.mark.parametrize("order", [("w1", "w2"), ("w2", "w1")])
def test_figure_6_most_significant_for_crec(set_up: SetUp, order: tuple[str, ...]) -> None:
    """P0 §3.2, Fig. 3(1), Fig. 6: crec blocks until all have come; the last to arrive is the most significant."""
    stage = asked(set_up, CREC)
    for n, node in enumerate(order):
        assert stage.clients["T"].received == [], n
        stage.release(f"{node}->p")
    assert stage.clients["T"].answers(1) == [f"a@{n}" for n in order]


@pytest.mark.parametrize("order", [("w1", "w2"), ("w2", "w1")])
def test_figure_6_most_significant_for_drec(set_up: SetUp, order: tuple[str, ...]) -> None:
    """P0 §3.2, Fig. 3(2), Fig. 6: drec is complete with the first, its most significant; others are not received."""
    stage = asked(set_up, DREC)
    for node in order:
        stage.release(f"{node}->p")
    (received,) = stage.clients["T"].received
    assert [r.replica for r in received.responses] == [f"a@{order[0]}"]


Times = dict[str, int]


class Group:
    """M(m) of a receipt, with the order in which its messages arrived at the network level."""

    def __init__(self, way: str, members: tuple[str, ...], times: Times) -> None:
        self.way = way
        self.members = members
        self.times = times

    def msg(self) -> str:
        """The most significant message: the first for drec, the last else."""
        choose = min if self.way == "drec" else max
        return choose(self.members, key=self.times.__getitem__)


Condition = Callable[[str, Group, str, Group, Times], bool]

TABLE_1: dict[tuple[str, str], Condition] = {
    ("srec", "srec"): lambda m1, one, m2, two, t: t[m1] < t[m2],
    ("srec", "crec"): lambda m1, one, m2, two, t: t[m1] < t[two.msg()],
    ("srec", "drec"): lambda m1, one, m2, two, t: t[m1] < t[m2] and m2 == two.msg(),
    ("crec", "srec"): lambda m1, one, m2, two, t: t[one.msg()] < t[m2],
    ("crec", "crec"): lambda m1, one, m2, two, t: t[one.msg()] < t[two.msg()],
    ("crec", "drec"): lambda m1, one, m2, two, t: t[one.msg()] < t[m2] and m2 == two.msg(),
    ("drec", "srec"): lambda m1, one, m2, two, t: t[m1] < t[m2] and m1 == one.msg(),
    ("drec", "crec"): lambda m1, one, m2, two, t: t[m1] < t[two.msg()] and m1 == one.msg(),
    ("drec", "drec"): lambda m1, one, m2, two, t: t[m1] < t[m2] and m1 == one.msg() and m2 == two.msg(),
}
RECEIPTS = {"srec": SREC, "crec": CREC, "drec": DREC}


def received_before(receipts: list[Received], m1: str, m2: str) -> bool:
    """m1 belongs to what a receipt received that was complete before the one that received m2."""
    rank = {r.replica: n for n, receipt in enumerate(receipts) for r in receipt.responses}
    return m1 in rank and m2 in rank and rank[m1] < rank[m2]


@pytest.mark.parametrize("ways", TABLE_1, ids="-".join)
def test_table_1_receipt_receipt(set_up: SetUp, ways: tuple[str, str]) -> None:
    """P0 Def. 2, Table 1: m1 → m2 for messages received by srec, crec, drec in one computer, each of the nine cells.

    A transaction waits for two receipts at the same time, and the responses arrive in every possible order. The
    conditions are written down as in the table; the scan has lost parts of the drec column, which are filled in as
    the drec row has them: m1 < m2 between most significant messages, and what is not most significant for its drec
    is not received and thus not related."""
    condition = TABLE_1[ways]
    sources = [("w1",) if ways[0] == "srec" else ("w1", "w2"), ("w3",) if ways[1] == "srec" else ("w3", "w4")]
    for order in permutations([*sources[0], *sources[1]]):
        stage = asked(set_up, RECEIPTS[ways[0]], f"a.p@{','.join(sources[0])}")
        client = stage.clients["T"]
        client.send(f"b.p@{','.join(sources[1])}", "n", "async", RECEIPTS[ways[1]])
        for node in order:
            stage.release(f"{node}->p")
        times = {("a@" if n in sources[0] else "b@") + n: i for i, n in enumerate(order)}
        one = Group(ways[0], tuple(f"a@{n}" for n in sources[0]), times)
        two = Group(ways[1], tuple(f"b@{n}" for n in sources[1]), times)
        for m1 in one.members:
            for m2 in two.members:
                holds = condition(m1, one, m2, two, times)
                assert received_before(client.received, m1, m2) == holds, (order, m1, m2)


# P0 §4.4 receipt and transmission

TRANSMISSIONS = {"ucast": "d.n@x", "mcast": "d.n@x,y", "pcast": "d.n@x e.n@y"}


def table_2(set_up: SetUp, what: str, receipt: Receipt) -> Stage:
    """T at p calls ``what``; a's thread sends ra and b's thread sends rb to d at x before they respond.

    ra and rb are on their way for long; so whether x delivers m2 before them tells what precedes m2."""
    stage = set_up("p s v x y")
    stage.object("a", "s")
    stage.object("b", "v")
    stage.object("d", "x y", at_once=True)
    stage.object("e", "y", at_once=True)
    stage.hold("s->x", "v->x")
    stage.client("T", "p").send(what, "ma mb", "async", receipt)
    stage.instance("ma", "a@s").oneway("d.n@x", "ra")
    if "b.m" in what:
        stage.instance("mb", "b@v").oneway("d.n@x", "rb")
    return stage


def then_send(stage: Stage, transmission: str) -> None:
    stage.clients["T"].oneway(TRANSMISSIONS[transmission], "m2 other" if transmission == "pcast" else "m2")


@pytest.mark.parametrize("transmission", TRANSMISSIONS)
def test_table_2_srec(set_up: SetUp, transmission: str) -> None:
    """P0 Def. 3, Table 2, row srec: m1 is received by srec, then m2 is sent by ucast, mcast or pcast: m1 → m2, and so
    does what precedes m1."""
    stage = table_2(set_up, "a.m", SREC)
    stage.instance("ma", "a@s").commit()
    then_send(stage, transmission)
    assert stage.precedes("ra", "m2")
    assert stage.waiting("d@x") == ["m2"]
    stage.release("s->x")
    assert stage.delivered("d@x") == ["ra", "m2"]


@pytest.mark.parametrize("transmission", TRANSMISSIONS)
def test_table_2_crec(set_up: SetUp, transmission: str) -> None:
    """P0 Table 2, row crec: msg(m1) < m2, and < first(m2) for mcast and pcast: both responses precede m2."""
    stage = table_2(set_up, "a.m b.m", CREC)
    stage.instance("ma", "a@s").commit()
    stage.instance("mb", "b@v").commit()
    then_send(stage, transmission)
    assert stage.precedes("ra", "m2") and stage.precedes("rb", "m2")
    stage.release("s->x")
    assert stage.waiting("d@x") == ["m2"]
    stage.release("v->x")
    assert stage.delivered("d@x") == ["ra", "rb", "m2"]


@pytest.mark.parametrize("transmission", TRANSMISSIONS)
def test_table_2_drec(set_up: SetUp, transmission: str) -> None:
    """P0 Table 2, row drec: m1 = msg(m1) is required: the first response precedes m2, the second one does not, though
    it has arrived at the computer before m2 is sent."""
    stage = table_2(set_up, "a.m b.m", DREC)
    stage.instance("ma", "a@s").commit()
    stage.instance("mb", "b@v").commit()
    then_send(stage, transmission)
    assert stage.precedes("ra", "m2") and stage.concurrent("rb", "m2")
    assert stage.waiting("d@x") == ["m2"]
    stage.release("s->x")
    assert stage.delivered("d@x") == ["ra", "m2"]


@pytest.mark.parametrize("transmission", TRANSMISSIONS)
@pytest.mark.parametrize("way", RECEIPTS)
def test_table_2_sent_before_the_receipt_is_complete(set_up: SetUp, way: str, transmission: str) -> None:
    """P0 Table 2, each cell where its condition does not hold: m2 is sent before msg(m1) has come. A response that is
    there already does not precede m2 while the crec is incomplete."""
    stage = table_2(set_up, "a.m" if way == "srec" else "a.m b.m", RECEIPTS[way])
    if way == "crec":
        stage.instance("ma", "a@s").commit()
    then_send(stage, transmission)
    assert stage.concurrent("ra", "m2")
    assert stage.delivered("d@x") == ["m2"]


def figure_7(set_up: SetUp) -> Stage:
    """Replicas of a caller at t and u ask s and v with drec; the work of s is r1, that of v is r2, both sent to k.

    Their one call makes one response m1 of s to t and u, and one response m2 of v to t and u: the figure's messages.
    """
    stage = set_up("c s t u v k")
    stage.object("o", "t u")
    stage.object("a", "s")
    stage.object("b", "v")
    stage.object("d", "k", at_once=True)
    stage.client("T", "c").oneway("o.p", "start")
    stage.hold("s->t", "s->u", "v->t", "v->u", "s->k", "v->k")
    for at in ("o@t", "o@u"):
        stage.instance("start", at).sync("a.p b.p", DREC, "ma mb")
    for name, at, work in (("ma", "a@s", "r1"), ("mb", "b@v", "r2")):
        thread = stage.instance(name, at)
        thread.oneway("d.n", work)
        thread.commit()
    return stage


def send_on(stage: Stage) -> None:
    """t sends m3 and u sends m4; they are no copies of one call: each follows what it has received."""
    stage.instance("start", "o@t").send("d.n", "m3", call=3)
    stage.instance("start", "o@u").send("d.n", "m4", call=4)


def test_figure_7_disjunctive_receipt(set_up: SetUp) -> None:
    """P0 Fig. 7: t gets m1 first and sends m3, u gets m2 first and sends m4: m1 → m3, m2 → m4, but m1 | m4 and
    m2 | m3. Told by r1, which precedes m1, and r2, which precedes m2."""
    stage = figure_7(set_up)
    for link in ("s->t", "v->u", "v->t", "s->u"):
        stage.release(link)
    send_on(stage)
    assert stage.precedes("r1", "m3") and stage.precedes("r2", "m4")
    assert stage.concurrent("r1", "m4") and stage.concurrent("r2", "m3")
    assert stage.waiting("d@k") == ["m3", "m4"]
    stage.release("v->k")
    assert stage.delivered("d@k") == ["r2", "m4"]
    stage.release("s->k")
    assert stage.delivered("d@k") == ["r2", "m4", "r1", "m3"]


def test_figure_7_other_order_of_receipt(set_up: SetUp) -> None:
    """P0 Fig. 7, second part: t, too, gets m2 first: m2 → m3 and m2 → m4; m1 precedes neither."""
    stage = figure_7(set_up)
    for link in ("v->t", "v->u", "s->t", "s->u"):
        stage.release(link)
    send_on(stage)
    assert stage.precedes("r2", "m3") and stage.precedes("r2", "m4")
    assert stage.concurrent("r1", "m3") and stage.concurrent("r1", "m4")
    stage.release("v->k")
    assert stage.delivered("d@k")[0] == "r2"
    assert sorted(stage.delivered("d@k")) == ["m3", "m4", "r2"]


# P0 §5 protocol


def test_figure_8_worked_example(set_up: SetUp) -> None:
    """P0 Fig. 8: T at s sends m1 to t and m2 to u in one act; the thread of m1 at t sends m3 to u.

    m1.id = m2.id, "011" in the paper: cid 0, thread 1, event 1. Here the id is (sid, no) and the cid is carried beside
    it. The thread at t starts with T's message in its vector, while the vector of t itself is still empty; m3 carries
    it, so u delivers m2 before m3. Here only what matters is carried: m2 at u, not m1 at t, which is delivered."""
    stage = set_up("s t u")
    stage.object("a", "t")
    stage.object("b", "u")
    stage.hold("s->u")
    sent = stage.client("T", "s").oneway("a.p b.p", "m1 m2")
    assert sent.group == GroupId(1, Replica("tran@s"), 0)
    assert sent.cid == Sid(1, Replica("tran@s"))
    assert stage.carried("m1") == stage.carried("m2") == {}
    thread = stage.instance("m1", "a@t")
    assert stage.knows(thread) == {"b@u": {"m2"}}
    assert (stage.committed("a@t"), stage.base("a@t")) == ({}, {})
    m3 = thread.oneway("b.q", "m3")
    assert stage.carried("m3") == {"b@u": {"m2"}}
    assert m3.group == GroupId(*thread.sid, 0)
    assert sent.group < m3.group
    assert stage.waiting("b@u") == ["m3"]
    stage.release()
    assert stage.delivered("b@u") == ["m2", "m3"]


def test_figure_8_commit_updates_the_vector_of_the_object(set_up: SetUp) -> None:
    """P0 §5: when the thread commits, its vector goes into that of the computer. Here into that of the replica, and
    for those that conflict with the thread: compatible threads do not inherit from each other (P3's cid)."""
    stage = set_up("c e s t u")
    stage.object("a", "t", "w/w")
    stage.object("b", "u", at_once=True)
    stage.hold("t->u")
    for n, method in enumerate("wpw", 1):
        stage.client(f"T{n}", "c").oneway(f"a.{method}", f"t{n}")
        thread = stage.instance(f"t{n}", "a@t")
        thread.oneway("b.q", f"m{n}")
        thread.commit()
    assert [stage.carried(m) for m in ("m1", "m2")] == [{}, {}]
    assert "m1" in stage.carried("m3")["b@u"]


def test_identifiers_of_transactions_and_events(set_up: SetUp) -> None:
    """P0 §5: tid grows with each transaction a computer initiates; iseq is the number of the sending act in the
    thread; ids compare first by thread and then by act. Transactions are compatible: they share a cid."""
    stage = set_up("s t")
    stage.object("a", "t", at_once=True)
    t1, t2 = stage.client("T1", "s"), stage.client("T2", "s")
    ids = [t1.oneway("a.p"), t2.oneway("a.p"), t1.oneway("a.p"), t2.oneway("a.p")]
    assert [m.group.no for m in ids] == [0, 0, 1, 1]
    assert ids[0].group < ids[2].group < ids[1].group < ids[3].group
    assert len({m.cid for m in ids}) == 1


def test_responses_are_matched_by_the_id_of_the_act(set_up: SetUp) -> None:
    """P0 §5: a receipt takes only responses that carry the id of its own act: a second call to the same object that is
    answered first does not complete the receipt of the first call."""
    stage = set_up("s t")
    stage.object("a", "t")
    client = stage.client("T", "s")
    client.send("a.p", "m1", "async", SREC)
    client.send("a.q", "m2", "async", SREC)
    stage.instance("m2", "a@t").commit(b"two")
    assert [r.call for r in client.received] == [2]
    stage.instance("m1", "a@t").commit(b"one")
    assert [r.responses[0].body for r in client.received] == [b"two", b"one"]
