"""Circles of transactions that wait for each other (framework/com/deadlock.py)."""

from framework.com.deadlock import find, leading
from framework.com.messages import Edge
from framework.ids import Invocation


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
