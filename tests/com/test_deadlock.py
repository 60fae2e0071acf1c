"""Circles of transactions that wait for each other (framework/com/deadlock.py)."""

from types import SimpleNamespace

import msgspec
import pytest

from framework.com import deadlock
from framework.com.deadlock import Deadlock, find, leading, settled
from framework.com.entry import Entry
from framework.com.events import Begin, Decide
from framework.com.messages import Edge, Turns, Waits
from framework.com.order import Reason, conflict
from framework.com.receipt import CREC, SREC, majority
from framework.footprint import Footprint
from framework.ids import GroupId, Invocation, Node, Replica, Stamp
from tests.paper.stage import TIMING, Stage


def name(number):
    return Invocation("c", (number,))


def graph(*pairs):
    after = {}
    for one, other in pairs:
        after.setdefault(name(one), {})[name(other)] = Edge(name(one), name(other), one, other, True, "o@n x")
    return after


def test_no_circle_in_a_line():
    after = graph(*[(n, n + 1) for n in range(1000)])
    assert leading(after) == set()
    assert find(after, name(0)) == []


def test_who_leads_into_a_circle_and_who_is_on_it():
    after = graph((1, 2), (2, 3), (3, 2), (3, 4), (4, 5))
    assert leading(after) == {name(1), name(2), name(3)}
    assert [e.waiter for e in find(after, name(3))] == [name(3), name(2)]
    assert find(after, name(1)) == []


def test_the_shortest_circle_is_told():
    after = graph((1, 2), (2, 3), (3, 1), (2, 1))
    assert [(e.waiter, e.holder) for e in find(after, name(1))] == [(name(1), name(2)), (name(2), name(1))]


def at(o, late, early, begun=False):
    """Transactions, by their calls of an object: call 12 is the second one of transaction 1."""
    one, other = name(late // 10), name(early // 10)
    return Edge(one, other, late, early, True, f"{o}@n x", turns=Turns(o, name(late), name(early), begun))


def test_replicas_that_do_not_agree_who_goes_first_make_no_circle():
    """A call is made by several replicas, and copies of it are under way: seen in examples/booking, with slow nodes."""
    late = at("car", 11, 21)
    assert settled([late, at("car", 21, 11)]) == []
    assert settled([late, at("car", 21, 11, begun=True)]) == [at("car", 21, 11, begun=True)]
    assert settled([at("car", 11, 21), at("car", 21, 31), at("car", 31, 11)]) == []


def test_a_circle_over_two_objects_or_two_keys_is_one():
    for edges in (
        [at("car", 11, 21), at("hotel", 22, 12)],
        [at("car", 11, 21), at("car", 21, 31, begun=True), at("hotel", 32, 12, begun=True)],
        [at("car", 12, 21, begun=True), at("car", 22, 11, begun=True)],
    ):
        assert settled(edges) == edges


def entry(number):
    group = GroupId(number, Replica("tran@n1"), 0)
    made = Entry(group, Stamp(number, group), Footprint("book"), ())
    made.request = object()
    return made


def test_one_whose_place_is_not_agreed_is_not_waited_for():
    """It may come later. That is agreed on, and waits for nobody's end."""

    late, early = entry(2), entry(1)
    host = SimpleNamespace(order=SimpleNamespace(blockers=lambda _: conflict(early)))
    assert Deadlock._behind(None, host, late) is None
    early.stamp = early.first
    assert Deadlock._behind(None, host, late) is early


def test_who_follows_what_was_performed_early_waits_for_what_that_follows():
    """A call that joins held work is performed before its own predecessors, and settled after them."""
    late, joined, early = entry(3), entry(2), entry(1)
    joined.started, joined.preds = True, [(Node("n1"), 7), (Node("n1"), 1)]
    here = {(Node("n1"), 1): early, (Node("n1"), 2): joined}
    order = SimpleNamespace(blockers=lambda _: Reason("", ((Node("n1"), 2),)), known=here.get)
    assert Deadlock._behind(None, SimpleNamespace(order=order), late) is early
    early.started = True
    assert Deadlock._behind(None, SimpleNamespace(order=order), late) is early


def test_a_circle_through_a_replica_that_has_not_performed_a_part_is_broken():
    """a asks for its commit while n3 has not performed all of it. There b has read what the rest of a waits for, and
    waits for what a holds."""
    stage = Stage("n1 n2 n3", msgspec.structs.replace(TIMING, hold_most=1e9))
    stage.object("g", "n1 n2 n3", "r/w w/w", reads="r", at_once=True)
    stage.transactions()
    a, b = stage.client("a", "n1"), stage.client("b", "n3")
    for client in (a, b):
        stage.do(client.node, Begin(client.who, 1, float("inf")))
        client.next = 2
    a.send("g.w(x)", "", "sync", CREC, tran=1)
    b.send("g.r(y:r)@n3", "", "sync", SREC, tran=1)
    a.send("g.w(y)", "", "sync", majority(3), tran=1)
    stage.do("n1", Decide("a", 4, 1, True))
    b.send("g.w(x)", "", "sync", CREC, tran=1)
    assert stage.com("n3").trans.is_aborted(Invocation("b", (1,))) is False
    assert not a.answers(4) and not b.answers(3)
    for _ in range(8):
        stage.tick(stage.timing.delta)
    assert stage.com("n3").trans.is_aborted(Invocation("b", (1,)))
    assert stage.finish().violations == []


@pytest.mark.parametrize("most", [1, 500])
def test_a_circle_is_found_however_many_others_wait_before_it(monkeypatch, most):
    """Five parts wait in a line at the same nodes, and are told first. Each message has one edge; so a report has six
    messages, and the circle is known with the last one, and seen again in the next report."""
    monkeypatch.setattr(deadlock, "MOST", most)
    stage = Stage("n1 n2 n3", msgspec.structs.replace(TIMING, hold_most=1e9))
    stage.object("g", "n1 n2 n3", "w/w", at_once=True)
    stage.object("z", "n1 n2 n3", "w/w", at_once=True)
    stage.transactions()
    clients = {who: stage.client(who, "n1") for who in "abcdefgh"}
    for client in clients.values():
        stage.do(client.node, Begin(client.who, 1, float("inf")))
        client.next = 2
    for who in "cdefgh":  # the first one holds it, the others stand in line
        clients[who].send("g.w(line)", "", "sync", CREC, tran=1)
    for who, key in ("a", "x"), ("b", "y"), ("a", "y"), ("b", "x"):
        clients[who].send(f"z.w({key})", "", "sync", CREC, tran=1)
    looks = 0
    while not stage.com("n1").trans.deadlock.victims and looks < 40:
        stage.tick(2 * stage.timing.delta)
        looks += 1
    aborted = [who for who in clients if stage.com("n2").trans.is_aborted(Invocation(who, (1,)))]
    assert aborted == ["b"]
    assert looks <= (4 if most == 500 else 4 + 2 * 7), looks


def reported(*messages):
    """A first member to which n2 has told this."""
    com = SimpleNamespace(
        node="n1", lives=SimpleNamespace(view=SimpleNamespace(members=("n1", "n2"), life=lambda _: 1))
    )
    first = Deadlock(com, SimpleNamespace(outcomes={}, abort=lambda name, why: None))
    for edges, more in messages:
        first.heard(Waits(1, "n2", edges, more))
    return first


def test_a_circle_counts_when_a_report_is_whole_and_told_again():
    there, back = (Edge(name(a), name(b), a, b, True, "o@n x") for a, b in ((1, 2), (2, 1)))
    first = reported(((there,), True), ((back,), True))
    first._judge()
    assert first._seen == frozenset(), "the report is not whole"
    first.heard(Waits(1, "n2", (), False))
    for _ in range(3):
        first._judge()
    assert first._seen and first.victims == 0, "it was told once"
    first.heard(Waits(1, "n2", (there, back), False))
    first._judge()
    assert first.victims == 1


def test_a_circle_counts_without_a_node_that_has_begun_a_new_life():
    """The new one may have nothing to tell, so it never tells again."""
    there, back = (Edge(name(a), name(b), a, b, True, "o@n x") for a, b in ((1, 2), (2, 1)))
    first = reported(((Edge(name(8), name(9), 8, 9, True, "o@n x"),), False))
    first.heard(Waits(1, "n1", (there, back), False))
    first._judge()
    first._com.lives.view.life = {"n1": 1, "n2": 2}.get
    first.heard(Waits(1, "n1", (there, back), False))
    first._judge()
    assert first.victims == 1
