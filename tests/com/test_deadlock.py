"""Circles of transactions that wait for each other (framework/com/deadlock.py)."""

from types import SimpleNamespace

from framework.com.deadlock import Deadlock, find, leading, settled
from framework.com.entry import Entry
from framework.com.messages import Edge, Turns
from framework.com.reason import conflict
from framework.footprint import Footprint
from framework.ids import GroupId, Invocation, Replica, Stamp


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


def test_one_whose_place_is_not_agreed_is_not_waited_for():
    """It may come later. That is agreed on, and waits for nobody's end."""

    def entry(number):
        group = GroupId(number, Replica("tran@n1"), 0)
        return Entry(group, Stamp(number, group), Footprint("book"), ())

    late, early = entry(2), entry(1)
    late.request = object()
    host = SimpleNamespace(order=SimpleNamespace(blockers=lambda _: conflict(early)))
    assert Deadlock._behind(None, host, late) is None
    early.stamp = early.first
    assert Deadlock._behind(None, host, late) is early
