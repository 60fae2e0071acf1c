"""Cancelling a call: what becomes of it in the backlog, in the queue, while it runs, and after it (com/cancel.py)."""

from typing import Any

import pytest

from framework.com.core import Com
from framework.com.events import (
    AnyEffect,
    Cancel,
    Collect,
    Completed,
    Deliver,
    Received,
    Stop,
    Submit,
    Tick,
    Transmit,
    Writable,
)
from framework.com.messages import Cancel as CancelMessage
from framework.com.messages import Part, Response, decode
from framework.com.receipt import SREC
from framework.errors import BadMessage, BadRequest
from framework.footprint import Footprint
from framework.ids import Replica, Sid

from .fingerprint import fingerprint
from .test_backlog import full, is_empty, left, received, submit
from .trio import N1, N2, F, G, arrived, delivered, group, nodes, outgoing, request, to, write

HERE = Replica("g@n1")


def cancel(no: int = 1, target: str = HERE) -> CancelMessage:
    return CancelMessage(1, group(no), Replica(target))


def one() -> Com:
    return nodes()[N1]


def to_n2(com: Com) -> list[Any]:
    frames = [e.data for e in com.step(Writable(N2), 0.0) if isinstance(e, Transmit)]
    return [m for data in frames for m in decode(data, N1).messages]


def stops(effects: list[AnyEffect]) -> list[Sid]:
    return [e.sid for e in effects if isinstance(e, Stop)]


# the callee


def test_one_that_waits_keeps_its_place_and_is_not_performed() -> None:
    com = one()
    effects = com.step(arrived(request(1), request(2), request(3), cancel(2)), 0.0)
    [first] = delivered(effects)
    effects = com.step(Completed(first, True), 0.0)
    [second] = [e for e in effects if isinstance(e, Deliver)]
    assert second.request.group == group(2) and second.cancelled
    effects = com.step(Completed(second.sid, False, b"cancelled"), 0.0)
    [third] = [e for e in effects if isinstance(e, Deliver)]
    assert third.request.group == group(3) and not third.cancelled
    statuses = [(m.group, m.status) for m in to_n2(com) if isinstance(m, Response)]
    assert statuses == [(group(1), "ok"), (group(2), "error")]
    assert not com.hosts[HERE]._cancelled


def test_one_that_runs_is_stopped() -> None:
    com = one()
    [sid] = delivered(com.step(arrived(request(1)), 0.0))
    assert stops(com.step(arrived(cancel(1), number=2), 0.0)) == [sid]
    com.step(Completed(sid, False), 0.0)
    assert not stops(com.step(arrived(cancel(1), number=3), 0.0))  # it is over


def test_what_it_has_called_is_recalled_also_when_it_does_not_wait() -> None:
    com = one()
    [sid] = delivered(com.step(arrived(request(1)), 0.0))
    com.step(Submit(sid, 1, "async", "ucast", (outgoing("f", "w", "f@n2"),)), 0.0)
    sent = to_n2(com)[0]
    com.step(arrived(cancel(1), number=2), 0.0)
    assert CancelMessage(1, sent.group, Replica("f@n2")) in to_n2(com)


def test_of_one_that_is_done_but_waits_for_its_calls_only_these_are_stopped() -> None:
    com = one()
    [sid] = delivered(com.step(arrived(request(1)), 0.0))
    com.step(Submit(sid, 1, "async", "ucast", (outgoing("f", "w", "f@n2"),)), 0.0)
    com.step(Completed(sid, True), 0.0)
    to_n2(com)
    assert not stops(com.step(arrived(cancel(1), number=2), 0.0))
    assert [m for m in to_n2(com) if isinstance(m, CancelMessage)]


@pytest.mark.parametrize(
    "many",
    [
        request(1, copies=2),
        request(1, dests=to("g@n1", "g@n2"), parts=(Part(G, Footprint("r", None, True)),)),
        request(1, dests=to("f@n2", "g@n1"), parts=(Part(F, Footprint("x", None, True)), Part(G, Footprint("b")))),
    ],
    ids=["several replicas call", "several replicas read", "a pcast that changes something"],
)
def test_one_of_many_is_carried_through(many: Any) -> None:
    com = one()
    [sid] = delivered(com.step(arrived(many), 0.0))
    assert not stops(com.step(arrived(cancel(1), number=2), 0.0))
    com.step(Completed(sid, True), 0.0)


def test_a_change_of_several_replicas_that_waits_is_carried_through() -> None:
    com = one()
    com.step(arrived(write(1), cancel(1, "f@n1")), 0.0)
    assert not com.hosts[Replica("f@n1")]._cancelled


def test_a_pcast_that_only_reads_is_stopped() -> None:
    parts = (Part(F, Footprint("x", None, True)), Part(G, Footprint("b", None, True)))
    com = one()
    [sid] = delivered(com.step(arrived(request(1, dests=to("f@n2", "g@n1"), parts=parts)), 0.0))
    assert stops(com.step(arrived(cancel(1), number=2), 0.0)) == [sid]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (CancelMessage(1, group(1, "tran@n3"), HERE), "was not sent by n2"),
        (cancel(1, "g@n2"), "is not on n1"),
        (cancel(1, "x@n1"), "is not on n1"),
    ],
)
def test_only_the_origin_cancels_and_only_here(bad: CancelMessage, why: str) -> None:
    com = one()
    com.step(arrived(request(1)), 0.0)
    before = fingerprint(com)
    with pytest.raises(BadMessage, match=why):
        com.step(arrived(bad, number=2), 0.0)
    assert fingerprint(com) == before


def test_a_cancel_of_what_is_not_known_is_nothing() -> None:
    com = one()
    assert not stops(com.step(arrived(cancel(7)), 0.0))
    assert not com.hosts[HERE]._cancelled


# the caller


def test_a_client_is_not_told_of_a_call_that_it_has_cancelled() -> None:
    com = one()
    com.step(Submit("ann", 1, "sync", "ucast", (outgoing("f", "w", "f@n2"),), SREC, 5.0), 0.0)
    sent = to_n2(com)[0]
    com.step(Cancel("ann", 1), 0.0)
    assert to_n2(com) == [CancelMessage(1, sent.group, Replica("f@n2"))]
    answer = Response(1, sent.group, Replica("f@n2"), "ok", b"", False, True, (), ())
    effects = com.step(arrived(answer), 10.0)
    assert not [e for e in effects if isinstance(e, Received)]
    assert not com.calls._waiting and not com.calls.sessions["ann"].calls
    with pytest.raises(BadRequest, match="no receipt left"):
        com.step(Collect("ann", 1, SREC), 0.0)


@pytest.mark.parametrize("who", ["bob", Sid(9, HERE)])
def test_cancelling_what_is_over_or_was_never_is_nothing(who: Any) -> None:
    assert one().step(Cancel(who, 1), 0.0) == []


def test_an_instance_that_gave_up_a_call_ends_when_it_is_answered() -> None:
    com = one()
    [sid] = delivered(com.step(arrived(request(1)), 0.0))
    com.step(Submit(sid, 1, "sync", "ucast", (outgoing("f", "w", "f@n2"),), SREC), 0.0)
    sent = to_n2(com)[0]
    com.step(Cancel(sid, 1), 0.0)
    com.step(Completed(sid, True), 0.0)
    assert sid in com.instances
    answer = Response(1, sent.group, Replica("f@n2"), "error", b"", False, True, (), ())
    com.step(arrived(answer, number=2), 0.0)
    assert sid not in com.instances and not com.calls._waiting


def test_an_instance_that_gave_up_a_call_ends_at_the_deadline_of_that() -> None:
    """Else two that wait for each other would never end, though nobody waits for them."""
    com = one()
    [sid] = delivered(com.step(arrived(request(1)), 0.0))
    com.step(Submit(sid, 1, "sync", "ucast", (outgoing("f", "w", "f@n2"),), SREC, 5.0), 0.0)
    com.step(Cancel(sid, 1), 0.0)
    com.step(Completed(sid, False), 0.0)
    com.step(Tick(), 4.0)
    assert sid in com.instances
    com.step(Tick(), 6.0)
    assert sid not in com.instances and not com.calls._waiting


def test_what_has_not_left_never_happens() -> None:
    s = full()
    submit(s, 2, "sync", receipt=SREC, deadline=5.0)
    submit(s, 3, "sync", receipt=SREC)
    s.do("i", Cancel("ann", 2))
    s.do("i", Cancel("ann", 3))
    s.tick(10.0)
    s.release()
    s.settle()
    assert left(s) == [("ann", 1)] and received(s.clients["ann"]) == [] and is_empty(s)
