"""Calls that wait for a peer that does not keep up (protocol.md §8.5): they keep their client's order and their
deadlines, can be collected and given up like others, and hold up nobody else. See also test_back_pressure.py."""

from typing import Any

import pytest

from framework.com.events import Collect, Leave, Submit
from framework.com.limits import Limits
from framework.com.receipt import CREC, DREC, SREC, quorum
from framework.com.telling import Sent
from framework.errors import BadRequest
from tests.paper.stage import Client, Stage

from .fingerprint import fingerprint
from .trio import outgoing

FAR = (outgoing("f", "w", "f@j"),)
NEAR = (outgoing("h", "w", "h@i"),)


def full() -> Stage:
    """Nothing leaves for j, and its queue is full: what ann sends there from call 2 on waits."""
    s = Stage("i j", limits=Limits(queued=1, backlog=10))
    s.object("f", "j", "w/w", at_once=True)
    s.object("h", "i", "w/w", at_once=True)
    s.mute("i->j")
    s.client("ann", "i").oneway("f.w@j", "ann/1")
    return s


def submit(s: Stage, call: int, kind: Any = "oneway", **more: Any) -> None:
    s.do("i", Submit(more.pop("client", "ann"), call, kind, "ucast", more.pop("parts", FAR), **more))


def left(s: Stage) -> list[tuple[str, int]]:
    return [(e.client, e.call) for _, e in s.heard if isinstance(e, Sent)]


def is_empty(s: Stage) -> bool:
    calls = s.com("i").calls
    return not calls.backlog.lines and calls.backlog.count == 0 and not calls._waiting


def received(client: Client) -> list[tuple[int, bool]]:
    return [(r.call, r.complete) for r in client.received]


def test_the_deadline_of_a_call_that_waits() -> None:
    """It passed unnoticed as long as the call had not left (A8)."""
    s = full()
    submit(s, 2, "sync", receipt=CREC, deadline=5.0)
    s.tick(4.0)
    assert received(s.clients["ann"]) == []
    s.tick(2.0)
    assert received(s.clients["ann"]) == [(2, False)]
    assert s.clients["ann"].received[0].group is None
    assert s.clients["ann"].received[0].responses == ()


def test_what_was_given_up_never_leaves() -> None:
    s = full()
    submit(s, 2, "sync", receipt=CREC, deadline=5.0)
    submit(s, 3)
    s.tick(10.0)
    s.release()
    s.settle()
    assert left(s) == [("ann", 1), ("ann", 3)]
    assert s.delivered("f@j") == ["ann/1", "ann/3"]
    assert received(s.clients["ann"]) == [(2, False)]
    assert is_empty(s)


def test_a_deadline_that_is_kept_is_not_told_again() -> None:
    """The call left in time: its deadline from before is of no account, its own still is."""
    s = full()
    submit(s, 2, "sync", receipt=CREC, deadline=5.0)
    s.release()
    s.tick(10.0)
    assert received(s.clients["ann"]) == [(2, True)]


def test_a_deadline_that_passes_after_it_has_left() -> None:
    s = full()
    submit(s, 2, "sync", receipt=CREC, deadline=5.0)
    s.hold("j->i")
    s.release("i->j")
    s.tick(6.0)
    assert received(s.clients["ann"]) == [(2, False)]
    assert s.clients["ann"].received[0].group is not None
    assert s.delivered("f@j") == ["ann/1", "ann/2"]


def test_a_deadline_is_that_of_its_collect() -> None:
    s = full()
    submit(s, 2, "async")
    s.do("i", Collect("ann", 2, CREC, 5.0))
    s.tick(6.0)
    assert received(s.clients["ann"]) == [(2, False)]
    assert s.com("i").calls.backlog.count == 0


def test_without_a_deadline_it_waits() -> None:
    s = full()
    submit(s, 2, "sync", receipt=CREC)
    s.tick(1000.0)
    assert received(s.clients["ann"]) == []
    s.release()
    s.settle()
    assert received(s.clients["ann"]) == [(2, True)]


def refused(s: Stage, event: Any) -> str:
    com = s.com("i")
    before = fingerprint(com)
    with pytest.raises(BadRequest) as caught:
        com.step(event, s.now)
    assert fingerprint(com) == before
    return str(caught.value)


@pytest.mark.parametrize(("kind", "receipt"), [("oneway", None), ("sync", CREC)])
def test_collect_of_a_call_that_has_no_receipt_left(kind: str, receipt: Any) -> None:
    """It was taken: for a one-way call it was never answered, of a synchronous one it replaced the receipt."""
    s = full()
    submit(s, 2, kind, receipt=receipt)
    assert "call 2 of ann has no receipt left" in refused(s, Collect("ann", 2, DREC))


def test_collect_that_can_never_complete() -> None:
    s = full()
    submit(s, 2, "async")
    assert "quorum(2) can never complete" in refused(s, Collect("ann", 2, quorum(2)))
    s.do("i", Collect("ann", 2, CREC))
    assert "no receipt left" in refused(s, Collect("ann", 2, CREC))


def test_leave_with_calls_that_wait() -> None:
    """They left later, in a session that nobody would ever end."""
    s = full()
    submit(s, 2)
    submit(s, 3, "sync", receipt=CREC, deadline=5.0)
    s.do("i", Leave("ann"))
    s.tick(10.0)
    s.release()
    s.settle()
    assert left(s) == [("ann", 1)]
    assert received(s.clients["ann"]) == []
    assert s.com("i").calls.sessions == {}
    assert is_empty(s)


def test_leave_before_the_first_call_has_left() -> None:
    """Such a client has calls that wait, but no session yet."""
    s = full()
    s.client("bob", "i")
    submit(s, 1, client="bob")
    s.do("i", Leave("bob"))
    assert "no session of client 'bob'" in refused(s, Leave("bob"))
    s.release()
    s.settle()
    assert left(s) == [("ann", 1)]


def test_other_clients_go_on() -> None:
    """All calls waited behind the first, also those of clients that had nothing to do with the slow peer."""
    s = full()
    submit(s, 2)
    bob = s.client("bob", "i")
    bob.sync("h.w@i", SREC, "near")
    assert received(bob) == [(1, True)]


def test_a_client_waits_behind_its_own_calls() -> None:
    s = full()
    submit(s, 2)
    submit(s, 3, parts=NEAR)
    assert s.delivered("h@i") == []
    s.release()
    s.settle()
    assert left(s) == [("ann", 1), ("ann", 2), ("ann", 3)]
    assert s.delivered("h@i") == ["ann/3"]


def test_a_number_that_comes_again_after_it_was_given_up() -> None:
    """The deadline of the first is of no account for the second."""
    s = full()
    submit(s, 2, "sync", receipt=CREC, deadline=5.0)
    s.tick(6.0)
    submit(s, 2, "sync", receipt=CREC, deadline=s.now + 100.0)
    s.tick(6.0)
    assert received(s.clients["ann"]) == [(2, False)]
    s.release()
    s.settle()
    assert received(s.clients["ann"]) == [(2, False), (2, True)]
    assert s.delivered("f@j") == ["ann/1", "ann/2"]
