"""A bounded window per link (protocol.md §9.3): a sender that outruns it waits, nothing is dropped."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.events import Collect, Deliver, Outgoing, Received, Submit, Writable
from framework.com.limits import Limits
from framework.com.link import Timing
from framework.com.receipt import CREC
from framework.com.telling import Sent
from framework.errors import ResourceExhausted, Unavailable
from framework.footprint import Footprint
from framework.ids import Node, ObjectName, Replica
from tests.paper.stage import Stage

from .fingerprint import fingerprint

TIGHT = Timing(delta=10.0, ask_after=5.0, resend_after=20.0, window=2, batch=3)
N2 = Node("n2")


def stage_of(queued: int, backlog: int) -> Stage:
    stage = Stage("n1 n2", TIGHT, Limits(queued=queued, backlog=backlog))
    stage.object("f", "n2", at_once=True)
    stage.object("g", "n1", at_once=True)
    return stage


def call(client: str, number: int, name: str = "f", at: str = "n2") -> Submit:
    part = Outgoing(ObjectName(name), Footprint("m"), b"", (Replica(f"{name}@{at}"),))
    return Submit(client, number, "oneway", "ucast", (part,))


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    queued=st.integers(1, 6),
    clients=st.lists(st.integers(0, 2), min_size=1, max_size=60),
    releases=st.sets(st.integers(0, 59)),
)
def test_calls_wait_and_keep_the_order_of_their_client(queued: int, clients: list[int], releases: set[int]) -> None:
    stage = stage_of(queued, 1000)
    com = stage.com("n1")
    stage.mute("n1->n2")
    numbers: dict[str, int] = defaultdict(int)
    for i, c in enumerate(clients):
        name = f"c{c}"
        numbers[name] += 1
        stage.do("n1", call(name, numbers[name]))
        assert com.links[N2].queued <= queued
        if i in releases:
            stage.release("n1->n2")
            stage.mute("n1->n2")
    stage.settle()
    done = [e.request.invocation for _, e in stage.heard if isinstance(e, Deliver)]
    for name, last in numbers.items():
        assert [i.path[0] for i in done if i.client == name] == list(range(1, last + 1))
    sent = [e for _, e in stage.heard if isinstance(e, Sent)]
    assert len(sent) == len(clients)
    assert not com.calls.backlog.lines


def test_the_bound_is_told_and_changes_nothing() -> None:
    stage = stage_of(queued=2, backlog=3)
    stage.mute("n1->n2")
    for n in range(1, 6):
        stage.do("n1", call("ann", n))
    com = stage.com("n1")
    before = fingerprint(com)
    with pytest.raises(ResourceExhausted, match="n1 already holds 3 calls for peers that do not keep up; try again"):
        com.step(call("ann", 6), 1.0)
    with pytest.raises(Unavailable):
        com.step(call("newcomer", 1), 1.0)
    assert fingerprint(com) == before
    stage.release()
    stage.do("n1", call("ann", 6))
    stage.settle()
    assert [e.request.invocation.path for _, e in stage.heard if isinstance(e, Deliver)] == [(n,) for n in range(1, 7)]


def test_who_does_not_go_there_waits_only_behind_others() -> None:
    """Calls that wait are sent in their order; while none waits, other peers are not concerned."""
    stage = stage_of(queued=1, backlog=10)
    stage.mute("n1->n2")
    stage.do("n1", call("ann", 1))
    stage.do("n1", call("bob", 1, "g", "n1"))
    assert stage.delivered("g@n1") == ["bob/1"]
    stage.do("n1", call("ann", 2))
    stage.do("n1", call("ann", 3, "g", "n1"))
    assert stage.delivered("g@n1") == ["bob/1"]
    stage.release()
    stage.settle()
    assert stage.delivered("g@n1") == ["bob/1", "ann/3"]
    assert stage.delivered("f@n2") == ["ann/1", "ann/2"]


def test_a_call_that_waits_can_be_collected() -> None:
    stage = stage_of(queued=1, backlog=10)
    stage.mute("n1->n2")
    ann = stage.client("ann", "n1")
    stage.do("n1", call("ann", 1))
    part = Outgoing(ObjectName("f"), Footprint("m"), b"", (Replica("f@n2"),))
    stage.do("n1", Submit("ann", 2, "async", "ucast", (part,)))
    stage.do("n1", Collect("ann", 2, CREC))
    assert not [e for _, e in stage.heard if isinstance(e, Sent) and e.call == 2]
    stage.release()
    stage.settle()
    assert [r.call for r in ann.received] == [2]
    assert all(isinstance(r, Received) and r.complete for r in ann.received)


def test_instances_are_not_held_up() -> None:
    """What is running must be able to end: only calls of clients wait."""
    stage = Stage("n1 n2", TIGHT, Limits(queued=1, backlog=0))
    stage.object("f", "n2")
    stage.object("g", "n1")
    stage.client("ann", "n1").oneway("g.m", "running")
    stage.mute("n1->n2")
    instance = stage.instance("running", "g@n1")
    for n in range(5):
        instance.oneway("f.m", f"nested {n}")
    assert stage.com("n1").links[N2].queued == 5
    with pytest.raises(ResourceExhausted):
        stage.com("n1").step(call("bob", 1), 1.0)


def test_the_window_is_respected() -> None:
    """Unacknowledged frames are bounded; what does not fit stays in the queue."""
    stage = stage_of(queued=1000, backlog=1000)
    stage.hold("n1->n2")
    for n in range(1, 21):
        stage.do("n1", call("ann", n))
        stage.do("n1", Writable(N2))
    link = stage.com("n1").links[N2]
    assert link.unacked == TIGHT.window
    assert link.queued == 20 - 2
    stage.release()
    stage.settle()
    assert len(stage.delivered("f@n2")) == 20
