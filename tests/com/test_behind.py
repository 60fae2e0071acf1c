"""Contexts while a replica is behind, because it waits for its state or its disk is slow (protocol.md §4.5).

They name the last word of each session, not all that was ever sent to that replica. Else each request would cost more
than the one before it, and a node that joins would bring the others to a stand.
"""

import random

import pytest

from framework.com.core import PATIENCE
from framework.com.host import MARK
from framework.com.limits import Limits
from framework.com.messages import Request, Response
from framework.com.receipt import quorum
from framework.ids import Node, Replica
from tests.paper.group_stage import GroupStage
from tests.paper.stage import Stage

BEHIND = Replica("f@n3")
CLIENTS = 4


def stage(limits: Limits | None = None) -> Stage:
    """Three replicas; nothing starts at the third."""
    s = Stage("n1 n2 n3", limits=limits)
    s.object("f", "n1 n2 n3", "w/w w/r", reads="r")
    s.com("n3").hosts[BEHIND].order.closed = True
    return s


def commit_all(s: Stage) -> None:
    while going := [i for i in s.instances.values() if not i.over]:
        for instance in going:
            instance.commit(b"done")


def load(s: Stage, calls: int, rows: int, ahead: int = 1) -> None:
    """Sessions at two nodes, each with ``ahead`` calls in flight."""
    draw = random.Random(1)
    clients = [s.client(f"c{i}", f"n{1 + i % 2}") for i in range(CLIENTS)]
    for n in range(calls):
        clients[n % CLIENTS].sync(f"f.w(row{draw.randrange(rows)})", quorum(2), f"m{n}")
        if (n + 1) % (ahead * CLIENTS) == 0:
            commit_all(s)
    commit_all(s)


def names(s: Stage) -> int:
    """The most that a message, or what waits at the replica that is behind, names."""
    posted = [m for n in s.nodes for m in s.com(n).posted if isinstance(m, Request | Response)]
    wire = [sum(len(marks) for _, marks in m.context) for m in posted]
    return max(*wire, *[len(e.preds) for e in s.com("n3").hosts[BEHIND].order.entries.values()])


@pytest.mark.parametrize("rows", [1, 10, 1000])
@pytest.mark.parametrize("ahead", [1, 3])
def test_what_is_named_does_not_grow(rows: int, ahead: int) -> None:
    s = stage()
    load(s, 240, rows, ahead)
    assert names(s) <= 2 * ahead * CLIENTS


def test_a_read_stands_for_nothing() -> None:
    """It is forgotten before what it follows is (P1 §4)."""
    s = stage()
    s.client("ann", "n1").sync("f.w(a)", quorum(2), "first")
    caller = s.com("n1").calls.sessions["ann"]
    context = caller.context.wire()
    assert caller.brings(s.parts("f.w(a)"), context) == context != ()
    assert caller.brings(s.parts("f.r(a)"), context) == ()
    assert caller.brings(s.parts("f.w(a)@n1,n2"), context) == context[:2]


def test_what_is_not_agreed_stands_for_nothing() -> None:
    """Its origin may crash, and nobody else knows what it stood for."""
    s = stage()
    ann, bob = s.client("ann", "n1"), s.client("bob", "n2")
    bob.sync("f.w(a)", quorum(2), "first")
    commit_all(s)
    ann.sync("f.w(a)", quorum(2), "second")
    commit_all(s)  # ann has heard of the first
    s.hold("n1->n2", "n1->n3")
    ann.later("f.w(c)", "third")
    ann.later("f.w(d)", "fourth")
    assert "first" in s.carried("third")[BEHIND]
    assert "first" in s.carried("fourth")[BEHIND]
    s.release()
    commit_all(s)
    ann.sync("f.w(e)", quorum(2), "fifth")
    assert s.carried("fifth")[BEHIND] == {"fourth"}  # agreed by now, whether or not anybody wants the answers


# who takes more calls of clients


def crowded(s: Stage) -> list[bool]:
    s.tick(1.0)
    return [s.com(n).crowded for n in s.nodes]


def test_a_replica_without_a_state_does_not_hold_clients_back() -> None:
    """Others go on: what they do is kept for it, up to a bound."""
    s = stage(Limits(waiting=5, behind=40))
    load(s, 40, 10)
    assert crowded(s) == [False, False, False]
    load(s, 1, 10)
    assert crowded(s) == [True, True, True]
    s.com("n3").hosts[BEHIND].adopted()
    while s.com("n3").hosts[BEHIND].order.entries:
        s.tick(1.0)
        commit_all(s)
    s.tick(2 * s.timing.delta)
    assert crowded(s) == [False, False, False]


def test_clients_are_held_back_while_much_waits() -> None:
    s = stage(Limits(waiting=5, behind=40))
    ann = s.client("ann", "n1")
    ann.later("f.w(a)")
    for _ in range(5):
        ann.later("f.w(a)")
    assert crowded(s) == [False, False, False]
    ann.later("f.w(a)")
    assert crowded(s) == [True, True, False]  # the third one has no state: it may have more before it
    commit_all(s)
    assert crowded(s) == [False, False, False]


def test_clients_are_held_back_while_large_requests_wait() -> None:
    s = stage(Limits(bytes=1000))
    ann = s.client("ann", "n1")
    ann.send("f.w(a)", kind="async", data=500 * b"x")
    commit_all(s)
    assert crowded(s) == [False, False, False]
    ann.send("f.w(a)", kind="async", data=501 * b"x")
    commit_all(s)
    assert crowded(s) == [True, True, True]  # the first two keep them for the third
    s.com("n3").hosts[BEHIND].adopted()
    for _ in range(4):
        commit_all(s)
        s.tick(2 * s.timing.delta)
    assert crowded(s) == [False, False, False]
    assert [s.com(n).hosts[Replica(f"f@{n}")].kept.size for n in s.nodes] == [0, 0, 0]


# what is named is enough


@pytest.mark.parametrize("seed", range(5))
def test_a_state_that_comes_late(seed: int) -> None:
    """Sessions at two nodes hear of each other; the joiner delivers all of it in an order that they allow."""
    s = GroupStage("n1 n2 n3", "n1 n2")
    s.object("f", "n1 n2 n3", "w/w", at_once=True)
    s.carry_state = False
    s.wait(30)
    s.join("n3")
    s.until(lambda: s.version("n3") == 2 and s.complete("n1 n2 n3"))
    s.wait(20)
    here = Replica("f@n1")
    part, ticket = s.com("n1").handover.keep(here), s._player(Node("n1")).recorder.ticket(here)
    draw = random.Random(seed)
    clients = [s.client(f"c{i}", f"n{1 + i % 2}") for i in range(CLIENTS)]
    for n in range(120):
        clients[draw.randrange(CLIENTS)].sync(f"f.w(row{draw.randrange(6)})", quorum(2), f"m{n}")
    assert s.delivered(BEHIND) == []
    s._take(Node("n3"), BEHIND, ticket, part)
    s.wait(100)
    assert len(s.delivered(BEHIND)) == 120
    assert s.finish().violations == []


def test_a_replica_that_gets_no_state_is_done_without() -> None:
    """Clients wait for it, but not for long. It comes back, and begins anew."""
    s = GroupStage("n1 n2 n3", "n1 n2", limits=Limits(behind=20))
    s.object("f", "n1 n2 n3", "w/w", at_once=True)
    s.carry_state = False
    s.wait(30)
    s.join("n3")
    s.until(lambda: s.version("n1") == 2 and s.complete("n1 n2 n3"))
    ann = s.client("ann", "n1")
    for n in range(20):
        ann.sync(f"f.w(row{n})", quorum(2))
    s.wait(2 * PATIENCE * s.timing.delta)
    assert s.version("n1") == 2 and not s.com("n1").crowded
    ann.sync("f.w", quorum(2))
    s.wait(PATIENCE * s.timing.delta / 2)
    assert s.version("n1") == 2 and s.com("n1").crowded
    s.until(lambda: s.members("n1") == "n1 n2")
    s.wait(40)
    assert not s.com("n1").crowded
    s.carry_state = True
    s.join("n3")
    s.until(lambda: s.version("n1") == 4 and s.complete("n1 n2 n3"))
    s.wait(100)
    assert not s.com("n3").unready and not s.com("n1").crowded
    ann.sync("f.w", quorum(3), "last")
    s.wait(100)
    assert s.delivered(BEHIND) == ["last"]
    assert s.finish().violations == []


def test_what_requests_follow_counts_as_well() -> None:
    s = stage()
    ann, bob = s.client("ann", "n1"), s.client("bob", "n2")
    bob.sync("f.w(a)", quorum(2))
    commit_all(s)
    kept = s.com("n1").hosts[Replica("f@n1")].kept
    before = kept.size
    ann.sync("f.w(a)", quorum(2), "second")
    commit_all(s)
    ann.send("f.w(a)", "third", "async", data=7 * b"x")
    follows = sum(len(names) for names in s.carried("third").values())
    assert follows and kept.size == before + MARK * follows + 7
