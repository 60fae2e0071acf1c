"""A replica that is far behind: it got its state late, or its disk is slow. What waits there names much of what waits
there before it. Each request is looked at as often as something changes for it, not once for each of these."""

from typing import Any

import pytest

from framework.com.messages import Dest, Mark, Part, Request
from framework.com.order import START, Order
from framework.com.past import Past
from framework.footprint import WRITE, Footprint, Relation
from framework.ids import GroupId, Invocation, Node, ObjectName, Replica

HERE = Replica("f@n1")
ALL = (HERE, Replica("f@n2"), Replica("f@n3"))
MANY = 1 << 20
RELATION = Relation([("put", "put")])


def request(n: int) -> Request:
    dests = tuple(Dest(r, n) for r in ALL)
    parts = (Part(ObjectName("f"), Footprint("put", ((f"row {n}", WRITE),), False)),)
    group, call = GroupId(n, Replica("tran@n2"), 0), Invocation("c", (n,))
    return Request(1, group, call, "oneway", HERE, dests, parts, n, True, (), (), 1, 0, b"")


def waiting(count: int, follows: int = MANY) -> Order:
    """So many requests to a replica without a state, each behind all before it, or so many of them; agreed."""
    order = Order(HERE, RELATION)
    order.closed = True
    marks: list[Mark] = []
    for n in range(1, count + 1):
        mark = (Node("n2"), n)
        order.arrive(request(n), mark, tuple(marks[-follows:]) if follows else (), False)
        marks.append(mark)
        for other in ALL[1:]:
            assert order.propose(GroupId(n, Replica("tran@n2"), 0), other, n)
    order.out.clear()
    return order


@pytest.mark.parametrize("performed", [0.0, 0.5])
def test_a_state_comes(monkeypatch: pytest.MonkeyPatch, performed: float) -> None:
    """``performed``: the part of them that is in that state already."""
    count = 200
    order = waiting(count)
    looks = 0
    is_delivered, advance = Past.is_delivered, Order._advance

    def counted(self: Past, mark: Mark) -> bool:
        nonlocal looks
        looks += 1
        return is_delivered(self, mark)

    times: dict[GroupId, int] = {}

    def advanced(self: Order, entry: object) -> None:
        times[entry.group] = times.get(entry.group, 0) + 1  # type: ignore[attr-defined]
        advance(self, entry)  # type: ignore[arg-type]

    monkeypatch.setattr(Past, "is_delivered", counted)
    monkeypatch.setattr(Order, "_advance", advanced)
    order.take_over(lambda request: request.invocation.path[0] <= count * performed)
    order.open()
    while order.late.is_behind():
        order.catch_up()
    started = [entry.group.clock for what, entry in order.out if what is START]
    assert started == list(range(int(count * performed) + 1, count + 1))
    names = count * count // 2  # all predecessors of all of them together
    assert looks < 2 * names
    assert sum(times.values()) <= 4 * count


def test_requests_that_wait_for_nothing_but_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of them start with each tick; the others are not looked at for that."""
    count, looks, advance = 1000, 0, Order._advance
    order = waiting(count, follows=0)

    def advanced(self: Order, entry: Any) -> None:
        nonlocal looks
        looks += 1
        advance(self, entry)

    monkeypatch.setattr(Order, "_advance", advanced)
    order.open()
    while order.late.is_behind():
        order.catch_up()
    assert [entry.group.clock for what, entry in order.out if what is START] == list(range(1, count + 1))
    assert looks <= 2 * count


def test_much_that_has_waited_starts_in_larger_bits_after_a_while() -> None:
    """A state of a gigabyte came for minutes: what came meanwhile must not take minutes as well."""
    count = 10_000
    order = waiting(count, follows=0)
    bits: list[int] = []
    order.open()
    while True:
        bits.append(len([entry for what, entry in order.out if what is START]))
        order.out.clear()
        if not order.late.is_behind():
            break
        order.catch_up()
    assert sum(bits) == count
    assert bits[:100] == [8] * 100
    assert max(bits) == 64
    assert len(bits) < 600
