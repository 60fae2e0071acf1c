"""What a driver or a client may ask for and cannot have: BadRequest that says why, and nothing has changed.

Events are given to a node that is in the middle of something (tests.com.scene). See also test_back_pressure.py.
"""

from typing import Any

import pytest

from framework.com.events import (
    Collect,
    Completed,
    Connected,
    Leave,
    Outgoing,
    Submit,
    Tick,
    Wake,
    Writable,
)
from framework.com.receipt import CREC, DREC, SREC, quorum, srec
from framework.errors import BadRequest, NoSuchObject
from framework.footprint import Footprint
from framework.ids import Node, ObjectName, Replica, Sid
from tests.paper.stage import Stage

from .fingerprint import fingerprint
from .scene import Scene

F = tuple(Replica(f"f@n{i}") for i in (1, 2, 3))
G = tuple(Replica(f"g@n{i}") for i in (1, 2))


def part(name: str = "f", to: tuple[Replica, ...] = F) -> Outgoing:
    return Outgoing(ObjectName(name), Footprint("w"), b"", to)


def intended() -> Outgoing:
    return Outgoing(ObjectName("f"), Footprint("w", (("k", "iw"),)), b"", F)


def submit(**change: Any) -> Submit:
    fields: dict[str, Any] = {
        "caller": "zoe", "call": 1, "kind": "sync", "transmission": "mcast", "parts": (part(),), "receipt": CREC,
    }  # fmt: skip
    return Submit(**{**fields, **change})


def refused(scene: Scene, event: Any) -> str:
    before = fingerprint(scene.com)
    with pytest.raises(BadRequest) as caught:
        scene.com.step(event, 1.0)
    assert fingerprint(scene.com) == before, f"{caught.value}: refused, but the state has changed"
    assert caught.value.happened is False
    return str(caught.value)


def test_the_plain_call_is_taken() -> None:
    """Guards what follows: only what is changed is wrong."""
    assert Scene().com.step(submit(), 1.0)


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("unknown object", {"parts": (part("q"),)}, "no object 'q'; there are: f, g, h"),
    ("replicas of another object", {"parts": (part("f", G),)}, "f has the replicas"),
    ("replica on no node", {"parts": (part("f", (Replica("f@n9"),)),)}, "are wrong"),
    ("no replica", {"parts": (part("f", ()),)}, "destinations () are wrong"),
    ("a replica twice", {"parts": (part("f", (F[0], F[0])),)}, "are wrong"),
    ("ucast to two", {"transmission": "ucast", "parts": (part("f", F[:2]),)}, "ucast goes to one replica"),
    ("nothing", {"parts": ()}, "this one names none"),
    ("pcast of nothing", {"parts": (), "transmission": "pcast"}, "this one names none"),
    ("an object twice", {"parts": (part(), part()), "transmission": "pcast"}, "names each object once"),
    ("mcast of two requests", {"parts": (part(), part("g", G))}, "mcast sends one request; pcast sends different"),
    ("ucast of two", {"parts": (part(), part("g", G)), "transmission": "ucast"}, "ucast sends one request"),
    ("a mode of other classes", {"parts": (intended(),)}, "a mode that its class does not use"),
    ("one-way with a receipt", {"kind": "oneway"}, "a one-way request has no response to wait for"),
    ("quorum of more than there are", {"receipt": quorum(4)}, "quorum(4) can never complete: f gets the request at 3"),
    ("quorum of none", {"receipt": quorum(0)}, "at least one response is needed"),
    ("quorum below none", {"receipt": quorum(-1)}, "at least one response is needed"),
    (
        "quorum too large for one part",
        {"parts": (part(), part("g", G)), "transmission": "pcast", "receipt": quorum(3)},
        "quorum(3) can never complete: g gets the request at 2",
    ),
    ("srec of many", {"receipt": SREC}, "srec of 3 destinations: name the source"),
    ("srec from elsewhere", {"receipt": srec(G[0])}, "srec from g@n1, which is not among the destinations"),
    ("a negative call number", {"call": -1}, "call number -1; the next free one is 0"),
    ("an instance that is not there", {"caller": Sid(99, F[0])}, "no instance or session 99:f@n1 at n1"),
]


@pytest.mark.parametrize(("change", "says"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_a_call(change: dict[str, Any], says: str) -> None:
    assert says in refused(Scene(), submit(**change))


def test_an_unknown_object_is_told_apart() -> None:
    with pytest.raises(NoSuchObject):
        Scene().com.step(submit(parts=(part("q"),)), 1.0)


def running(scene: Scene, at: str) -> Sid:
    return next(sid for sid in scene.com.instances if sid.replica == at)


def test_an_instance_uses_each_call_number_once() -> None:
    """Replicas number alike (protocol.md §3.2): the second use of a number would be taken for a copy."""
    scene = Scene()
    sid = running(scene, "g@n1")
    call = submit(caller=sid, kind="async", receipt=None)
    scene.com.step(call, 1.0)
    assert "call number 1; the next free one is 2" in refused(scene, call)


def test_an_instance_that_is_complete_sends_nothing() -> None:
    """It still waits for the answer to an asynchronous call (P1 §2.4), but its method is over."""
    scene = Scene()
    sid = running(scene, "g@n1")
    scene.com.step(submit(caller=sid, kind="async", receipt=None), 1.0)
    scene.com.step(Completed(sid, True), 1.0)
    assert sid in scene.com.instances
    assert "has been completed; it cannot send any more" in refused(scene, submit(caller=sid, call=2))
    assert f"no instance {sid} is being performed at n1" in refused(scene, Completed(sid, True))


def test_an_instance_that_has_ended_sends_nothing() -> None:
    scene = Scene()
    sid = running(scene, "g@n1")
    scene.com.step(Completed(sid, True), 1.0)
    assert f"no instance or session {sid} at n1" in refused(scene, submit(caller=sid))
    assert "no instance" in refused(scene, Completed(sid, False))


def test_completed_by_whom_nobody_knows() -> None:
    scene = Scene()
    assert "no instance 99:f@n1 is being performed at n1" in refused(scene, Completed(Sid(99, F[0]), True))
    assert "no instance" in refused(scene, Completed(Sid(1, Replica("f@n2")), True))
    session = scene.com.calls.sessions["ann"].sid
    assert "no instance" in refused(scene, Completed(session, True))


def test_an_instance_that_waits_cannot_be_complete() -> None:
    scene = Scene()
    sid = running(scene, "g@n1")
    scene.com.step(submit(caller=sid), 1.0)
    assert "still waits for a receipt" in refused(scene, Completed(sid, True))


def test_collect() -> None:
    scene = Scene()
    ann = scene.com.calls.sessions["ann"]
    later = next(c.number for c in ann.calls.values() if c.receipt is None)
    waited = next(c.number for c in ann.calls.values() if c.receipt is not None)
    assert f"call {waited} of ann has no receipt left" in refused(scene, Collect("ann", waited, CREC))
    assert "call 1 of ann has no receipt left" in refused(scene, Collect("ann", 1, CREC))  # it was one-way
    assert "call 77 of ann" in refused(scene, Collect("ann", 77, CREC))
    assert "no instance or session zoe at n1" in refused(scene, Collect("zoe", 1, CREC))
    assert "no instance or session 99:f@n1" in refused(scene, Collect(Sid(99, F[0]), 1, CREC))
    assert "quorum(3) can never complete: g" in refused(scene, Collect("ann", later, quorum(3)))
    assert "name the source" in refused(scene, Collect("ann", later, SREC))
    assert "not among the destinations" in refused(scene, Collect("ann", later, srec(Replica("h@n3"))))
    scene.com.step(Collect("ann", later, CREC), 1.0)
    assert "no receipt left to wait for" in refused(scene, Collect("ann", later, CREC))


def test_collect_after_everything_was_received() -> None:
    stage = Stage("n1 n2")
    stage.object("f", "n1 n2", "w/w", at_once=True)
    ann = stage.client("ann", "n1")
    ann.later("f.w", "m")
    ann.collect(1, DREC)
    assert len(ann.received) == 1
    with pytest.raises(BadRequest, match="call 1 of ann has no receipt left"):
        stage.do("n1", Collect("ann", 1, DREC))


def test_leave() -> None:
    scene = Scene()
    assert "no session of client 'zoe' at n1" in refused(scene, Leave("zoe"))
    scene.com.step(Leave("ann"), 1.0)
    assert "no session of client 'ann'" in refused(scene, Leave("ann"))
    assert "ann" not in scene.com.calls.sessions
    assert not [c for c in scene.com.calls.callers.values() if c.client]


@pytest.mark.parametrize("event", [Writable, Connected])
@pytest.mark.parametrize("peer", ["n9", "n1", ""])
def test_a_peer_that_is_none(event: type[Any], peer: str) -> None:
    assert f"{peer!r} is not a peer of n1" in refused(Scene(), event(Node(peer)))


@pytest.mark.parametrize("thing", [None, 3, "Tick", Tick, {}, ()], ids=str)
def test_not_an_event(thing: Any) -> None:
    assert f"{type(thing).__name__} is not an event of the com layer" in refused(Scene(), thing)


def test_an_effect_is_not_an_event() -> None:
    assert "Wake is not an event of the com layer" in refused(Scene(), Wake(Node("n2")))


def test_a_call_back_to_where_its_ancestor_does_not_run() -> None:
    """A call back joins the instance that waits for it; it goes where that one runs, and nowhere else."""
    stage = Stage("n1 n2")
    stage.object("f", "n1 n2", "w/w")
    stage.object("g", "n1", "a/a")
    stage.client("ann", "n1").sync("f.w@n1", SREC, "m")
    stage.instance("m", "f@n1").sync("g.a", SREC, "nested")
    inner = stage.instance("nested", "g@n1")
    com = stage.com("n1")
    before = fingerprint(com)
    outside = Submit(inner.sid, 1, "sync", "mcast", (part("f", (Replica("f@n1"), Replica("f@n2"))),), CREC)
    with pytest.raises(BadRequest, match="runs at f@n1 only; call it there"):
        com.step(outside, 1.0)
    both = (part("f", (Replica("f@n1"),)), part("g", (Replica("g@n1"),)))
    with pytest.raises(BadRequest, match="call it back by ucast or mcast"):
        com.step(Submit(inner.sid, 1, "sync", "pcast", both, CREC), 1.0)
    assert fingerprint(com) == before
    com.step(Submit(inner.sid, 1, "oneway", "mcast", outside.parts), 1.0)  # nobody waits for a one-way call
