"""Calls that once were accepted although no peer takes them: their frame was refused again and again, and nothing else
could come through that link. They are refused where they are submitted, and nothing has changed."""

from typing import Any

import pytest

from framework.com.check import CLOCK, MANY
from framework.com.events import Collect, Outgoing, Received, Session, Submit, Tick
from framework.com.receipt import CREC, DREC, SREC, Receipt
from framework.errors import BadRequest
from framework.footprint import Footprint
from framework.ids import ObjectName
from tests.paper.stage import Instance, Stage

from .scene import Scene
from .test_bad_events import F, refused, running, submit
from .trio import EVERYWHERE, N1, nodes, outgoing

NAN = float("nan")


def session(at: str = "f@n1", origin: str = "n1", seq: int = 1, clock: int = 0) -> dict[str, Any]:
    return {"sessions": (Session(context=((at, ((origin, seq),)),), clock=clock, after="x"),)}  # type: ignore[arg-type]


def keyed(*keys: tuple[str, str]) -> dict[str, Any]:
    return {"parts": (Outgoing(ObjectName("f"), Footprint("w", keys), b"", F),)}  # type: ignore[arg-type]


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("answers to later calls", {"done": 5}, "done 5 of call 1: a client has no answers to calls after this one"),
    ("answers below none", {"done": -1}, "done -1 of call 1"),
    ("a number of 64 bits", {"call": 1 << 64}, "call number 18446744073709551616"),
    ("the first number too many", {"call": MANY}, f"call number {MANY}"),
    ("a session that knows an unknown replica", session(at="zz@n1"), "session 'x': names the unknown replica 'zz@n1'"),
    ("a session that knows request 0", session(seq=0), "names request 0 of 'n1' to f@n1"),
    ("a session that knows too high a request", session(seq=MANY), "names request"),
    ("a session that knows an unknown node", session(origin="n9"), "names request 1 of 'n9' to f@n1"),
    ("a session after the end of clocks", session(clock=CLOCK), "clock 4503599627370496 is out of range"),
    ("a session before the first clock", session(clock=-1), "clock -1 is out of range"),
    ("no kind", {"kind": "foo", "receipt": None}, "no kind 'foo'"),
    ("no transmission", {"transmission": "foo"}, "transmission 'foo'"),
    ("a client without a name", {"caller": ""}, "client name"),
    ("a client whose name is a path", {"caller": "a/b c"}, "client name"),
    ("neither client nor instance", {"caller": 5}, "caller 5 is neither a client's name nor an instance"),
    ("a deadline that is no number", {"deadline": NAN}, "the deadline is not a number"),
    ("a key twice", keyed(("k", "w"), ("k", "w")), "names a key twice"),
    ("a key twice, in two modes", keyed(("k", "w"), ("k", "r")), "names a key twice"),
    ("no receipt of that name", {"receipt": Receipt("bogus")}, "no receipt 'bogus'; there are"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("change", "says"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_a_call(change: dict[str, Any], says: str) -> None:
    assert says in refused(Scene(), submit(**change))


JUST_RIGHT: list[dict[str, Any]] = [
    {"call": 5, "done": 5}, {"call": MANY - 1}, session(), session(clock=1 << 30), {"deadline": float("inf")},
    {"caller": "zoe-1.x"}, keyed(("k", "w"), ("l", "w")),
]  # fmt: skip


@pytest.mark.parametrize("change", JUST_RIGHT, ids=str)
def test_a_call_that_is_just_right(change: dict[str, Any]) -> None:
    assert Scene().com.step(submit(**change), 1.0)


def stage() -> Stage:
    out = Stage("i j")
    out.object("f", "j", "w/w", at_once=True)
    return out


@pytest.mark.parametrize("change", [{"done": 5}, {"done": -1}, {"call": 1 << 70}, session("zz@q")], ids=str)
def test_others_are_not_concerned(change: dict[str, Any]) -> None:
    """One bad call of one client used to stop the link for all."""
    s = stage()
    with pytest.raises(BadRequest):
        s.client("bad", "i").send("f.w@j", "", "sync", SREC, **change)
    good = s.client("good", "i")
    good.sync("f.w@j", SREC, "m")
    assert [r.complete for r in good.received] == [True]
    assert s.finish().violations == []


def test_collect_with_what_is_no_receipt_or_deadline() -> None:
    scene = Scene()
    later = next(c.number for c in scene.com.calls.sessions["ann"].calls.values() if c.receipt is None)
    bogus = Receipt("bogus")  # type: ignore[arg-type]
    assert "no receipt 'bogus'" in refused(scene, Collect("ann", later, bogus))
    assert "not a number" in refused(scene, Collect("ann", later, DREC, NAN))


def test_a_deadline_that_is_no_number_stops_no_other() -> None:
    """It sorts nowhere: deadlines behind it in the heap never passed."""
    com = nodes()[N1]
    parts = (outgoing("f", "w", *EVERYWHERE),)
    with pytest.raises(BadRequest):
        com.step(Submit("ann", 1, "sync", "mcast", parts, CREC, NAN), 0.0)
    com.step(Submit("ann", 2, "sync", "mcast", parts, CREC, 1.0), 0.0)
    assert [e.call for e in com.step(Tick(), 5.0) if isinstance(e, Received)] == [2]


# numbers of an instance's calls: a number that is used again is taken for a copy, and gets the other's answer


def test_an_instance_says_nothing_about_answers() -> None:
    scene = Scene()
    event = submit(caller=running(scene, "g@n1"), kind="async", receipt=None, call=3, done=1)
    assert "done 1 of call 3" in refused(scene, event)


def calling() -> tuple[Stage, Instance]:
    s = Stage("i j")
    s.object("f", "j", "w/w", at_once=True)
    s.object("h", "j", "w/w", at_once=True)
    s.object("g", "i", "w/w")
    s.client("T", "i").sync("g.w@i", SREC, "A")
    return s, s.instance("A", "g@i")


def test_a_pcast_uses_a_number_for_each_object() -> None:
    s, caller = calling()
    caller.sync("f.w@j h.w@j", CREC, "p q")
    with pytest.raises(BadRequest, match="call number 2; the next free one is 3"):
        caller.send("h.w@j", "x", "sync", SREC, call=2)
    caller.send("h.w@j", "x", "sync", SREC, call=3)
    assert s.delivered("h@j") == ["q", "x"]
    assert s.finish().violations == []


@pytest.mark.parametrize("kind", ["oneway", "async"])
def test_a_call_without_receipt_uses_its_number(kind: Any) -> None:
    s, caller = calling()
    caller.send("f.w@j", "first", kind)
    with pytest.raises(BadRequest, match="call number 1; the next free one is 2"):
        caller.send("f.w@j", "again", kind, call=1)
    assert s.delivered("f@j") == ["first"]


def test_a_number_that_was_received_is_used() -> None:
    _, caller = calling()
    caller.sync("f.w@j", SREC, "first")
    assert len(caller.received) == 1
    with pytest.raises(BadRequest, match="call number 1"):
        caller.send("f.w@j", "again", "sync", SREC, call=1)
