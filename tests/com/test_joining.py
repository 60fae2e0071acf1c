"""Calls that come back to an object that waits for them (protocol.md §6.2): they are part of the instance that waits,
and at every replica they are performed at the same point of it."""

import pytest

from framework.com.receipt import CREC, DREC, SREC
from tests.paper.stage import Instance, Stage


def ring() -> Stage:
    """a calls b, b calls c, c calls a back; a has two replicas, so everything it does is done twice."""
    s = Stage("n1 n2 n3 n4")
    s.object("a", "n1 n2", "w/w w/z")
    s.object("b", "n3", "x/x")
    s.object("c", "n4", "y/y")
    return s


def start(s: Stage) -> tuple[Instance, Instance]:
    s.client("T", "n3").sync("a.w", CREC, "A")
    return s.instance("A", "a@n1"), s.instance("A", "a@n2")


def call_round(s: Stage, callers: tuple[Instance, ...], n: int) -> Instance:
    """Each of the callers calls b, whose one instance calls c: that one is about to call back."""
    for caller in callers:
        caller.sync("b.x", SREC, f"B{n}")
    s.instance(f"B{n}", "b@n3").sync("c.y", SREC, f"C{n}")
    return s.instance(f"C{n}", "c@n4")


def finish_round(s: Stage, n: int) -> None:
    s.instance(f"C{n}", "c@n4").commit()
    s.instance(f"B{n}", "b@n3").commit()


def test_a_response_waits_until_what_came_back_is_over() -> None:
    """One replica has performed the call back, and by drec that is enough for who made it. The other replica must not
    go on before it has, too."""
    s = ring()
    one, two = start(s)
    s.hold("n1->n2")  # n2 does not learn the stamp of what comes back
    call_round(s, (one, two), 1).sync("a.w", DREC, "D1")
    assert s.delivered("a@n2") == ["A"]
    s.instance("D1", "a@n1").commit()
    finish_round(s, 1)
    assert (len(one.received), len(two.received)) == (1, 0)
    s.release()
    assert len(two.received) == 0, "it is running, not over"
    s.instance("D1", "a@n2").commit()
    assert len(two.received) == 1
    assert s.finish().violations == []


def test_who_went_on_first_may_call_again() -> None:
    """a@n1 is in its second call while a@n2 still waits for what came back from the first one."""
    s = ring()
    one, two = start(s)
    s.hold("n1->n2")
    call_round(s, (one, two), 1).sync("a.w", DREC, "D1")
    s.instance("D1", "a@n1").commit()
    finish_round(s, 1)
    call_round(s, (one,), 2).sync("a.w", DREC, "D2")
    assert s.delivered("a@n1") == ["A", "D1", "D2"]
    assert s.delivered("a@n2") == ["A"]
    s.instance("D2", "a@n1").commit()
    finish_round(s, 2)
    one.commit()
    s.release()
    assert s.delivered("a@n2") == ["A", "D1"], "D2 is part of a call that a@n2 has not made yet"
    s.instance("D1", "a@n2").commit()
    assert s.delivered("a@n2") == ["A", "D1"]
    two.sync("b.x", SREC, "B2")
    assert s.delivered("a@n2") == ["A", "D1", "D2"]
    assert len(two.received) == 1
    s.instance("D2", "a@n2").commit()
    assert len(two.received) == 2
    two.commit()
    assert s.finish().violations == []
    assert s.delivered("b@n3") == ["B1", "B2"]


def test_one_way_calls_never_join() -> None:
    """Nobody waits for them: at one replica they would come in the middle of the instance, at another after it."""
    s = ring()
    one, two = start(s)
    call_round(s, (one, two), 1).oneway("a.w", "D")
    assert s.delivered("a@n1") == s.delivered("a@n2") == ["A"]
    finish_round(s, 1)
    assert len(one.received) == len(two.received) == 1, "nor is it waited for"
    assert s.delivered("a@n1") == s.delivered("a@n2") == ["A"]
    one.commit()
    two.commit()
    assert s.delivered("a@n1") == s.delivered("a@n2") == ["A", "D"]
    assert s.finish().violations == []


def test_an_asynchronous_call_joins() -> None:
    """Its caller ends only when it is answered (P1 §2.4), and the ancestor waits for that."""
    s = ring()
    one, two = start(s)
    call_round(s, (one, two), 1).later("a.w", "D")
    assert s.delivered("a@n1") == s.delivered("a@n2") == ["A", "D"]
    s.instance("C1", "c@n4").commit()
    assert s.instance("B1", "b@n3").received == []
    s.instance("D", "a@n1").commit()
    s.instance("D", "a@n2").commit()
    assert len(s.instance("B1", "b@n3").received) == 1
    assert s.finish().violations == []


def test_what_a_one_way_call_calls_does_not_join() -> None:
    """The chain of those who wait ends at a one-way call: b's instance is nothing that a waits for."""
    s = ring()
    one, two = start(s)
    for caller in (one, two):
        caller.oneway("b.x", "B")
        caller.sync("c.y", SREC, "C")  # it waits, but for something else
    s.instance("B", "b@n3").sync("a.w", CREC, "D")
    assert s.delivered("a@n1") == s.delivered("a@n2") == ["A"]
    s.instance("C", "c@n4").commit()
    one.commit()
    two.commit()
    assert s.delivered("a@n1") == s.delivered("a@n2") == ["A", "D"]
    assert s.finish().violations == []


def test_a_call_back_waits_until_its_caller_is_waited_for() -> None:
    """An asynchronous call may come back at any time; it joins when the instance waits for it."""
    s = ring()
    one, two = start(s)
    for caller in (one, two):
        caller.later("b.x", "B")
    s.instance("B", "b@n3").sync("a.w", CREC, "D")
    assert s.delivered("a@n1") == s.delivered("a@n2") == ["A"]
    one.collect(1, SREC)
    assert s.delivered("a@n1") == ["A", "D"]
    assert s.delivered("a@n2") == ["A"]
    two.collect(1, SREC)
    assert s.delivered("a@n2") == ["A", "D"]
    assert s.finish().violations == []


@pytest.mark.parametrize("late", ["n3->n1", "n3->n2", "n4->n1", "n4->n2"])
def test_two_calls_back_come_in_the_order_of_their_stamps(late: str) -> None:
    """Both join the same instance; whichever request comes late to whom, all replicas perform them alike."""
    s = ring()
    one, two = start(s)
    for caller in (one, two):
        caller.sync("b.x c.y", CREC, "B C")
    s.hold(late)
    s.instance("B", "b@n3").sync("a.w", CREC, "D")
    s.instance("C", "c@n4").sync("a.w", CREC, "E")
    s.release()
    orders = [s.delivered(at) for at in ("a@n1", "a@n2")]
    assert orders[0] == orders[1] and len(orders[0]) == 2, "they conflict: one after the other"
    first = orders[0][1]
    second = "E" if first == "D" else "D"
    s.instance(first, "a@n1").commit()
    assert s.delivered("a@n1") == ["A", first, second]
    assert s.delivered("a@n2") == ["A", first]
    stamps = {name: s.instance(name, "a@n1").effect.stamp for name in (first, second)}
    assert stamps[first] < stamps[second]
    assert s.finish().violations == []
    assert s.delivered("a@n2") == ["A", first, second]


def test_a_call_back_passes_who_waits_for_its_ancestor() -> None:
    """Else both would wait for ever: the request for the instance, and that one for the call back."""
    s = ring()
    one, two = start(s)
    s.client("U", "n3").oneway("a.w", "W")
    inner = call_round(s, (one, two), 1)
    inner.sync("a.w", CREC, "D")
    assert s.delivered("a@n1") == s.delivered("a@n2") == ["A", "D"]
    s.instance("D", "a@n1").commit()
    s.instance("D", "a@n2").commit()
    finish_round(s, 1)
    one.commit()
    two.commit()
    assert s.finish().violations == []
    assert s.delivered("a@n1") == s.delivered("a@n2") == ["A", "D", "W"]


def test_a_call_back_passes_who_waits_for_its_ancestor_through_others() -> None:
    """D conflicts with V, V with U, and U with A."""
    s = Stage("n1 n3 n4")
    s.object("a", "n1", "w/u u/v v/z")
    s.object("b", "n3", "x/x")
    s.object("c", "n4", "y/y")
    s.client("T", "n3").sync("a.w", CREC, "A")
    s.client("U", "n3").oneway("a.u", "U")
    s.client("V", "n3").oneway("a.v", "V")
    call_round(s, (s.instance("A", "a@n1"),), 1).sync("a.z", CREC, "D")
    assert s.delivered("a@n1") == ["A", "D"]
    assert s.finish().violations == []


DEEP = 1500  # more than Python lets functions call each other


@pytest.mark.parametrize(
    ("conflicts", "passes"), [("a/c d/e e/e e/c c/b a/b", True), ("d/e e/e e/c c/b a/b", False)], ids=["waits", "free"]
)
def test_a_call_back_behind_a_long_queue(conflicts: str, passes: bool) -> None:
    """Whether C waits for A was asked of each request before it in turn, by recursion: RecursionError at a thousand.

    A runs and is called back by B. Before B stand many e, which wait for D, and C behind them, which conflicts with B.
    B passes C iff that waits for A."""
    s = Stage("i j k")
    s.object("f", "j", conflicts)
    s.object("g", "k")
    s.client("R", "i").oneway("f.d@j", "D")
    s.client("T", "i").sync("f.a@j", SREC, "A")
    many = s.client("U", "k")
    for n in range(DEEP):
        many.oneway("f.e@j", f"e{n}")
    many.oneway("f.c@j", "C")
    s.instance("A", "f@j").sync("g.x@k", SREC, "X")
    s.instance("X", "g@k").sync("f.b@j", SREC, "B")
    assert s.delivered("f@j") == ["D", "A", *(["B"] if passes else [])]
