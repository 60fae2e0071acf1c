"""Instances that are over before what they did is safe: order goes on, and nobody is told (framework.com.answers)."""

from typing import Any

import msgspec
import pytest

from framework.com.core import Com
from framework.com.events import Completed, Deliver, Evict, Give, Safe, Snapshot, Stop, Submit, Take, Transmit, Writable
from framework.com.handed import Part
from framework.com.messages import Cancel as CancelMessage
from framework.com.messages import Response, decode
from framework.com.receipt import CREC, SREC, quorum
from framework.com.telling import Ended
from framework.errors import BadRequest
from framework.ids import Invocation, Node, Replica, Sid
from framework.trace.still_open import open_calls
from tests.paper.group_stage import STEP, GroupStage

from .fingerprint import fingerprint
from .trio import N1, N2, arrived, delivered, group, nodes, outgoing, request

HERE = Replica("g@n1")
N4 = Node("n4")


def one() -> Com:
    return nodes()[N1]


def told(com: Com) -> list[tuple[Any, str, bytes]]:
    """The responses that leave for n2 now."""
    frames = [e.data for e in com.step(Writable(N2), 0.0) if isinstance(e, Transmit)]
    messages = [m for data in frames for m in decode(data, N1).messages]
    return [(m.group, m.status, m.body) for m in messages if isinstance(m, Response)]


def unsafe(com: Com, no: int = 1, **change: Any) -> Sid:
    """The ``no``-th request is performed, and not safe."""
    [sid] = delivered(com.step(arrived(request(no, **change), number=no), 0.0))
    com.step(Completed(sid, True, b"out", True, safe=False), 0.0)
    return sid


# order goes on, nobody is told


def test_what_conflicts_begins_and_nobody_is_told_before_it_is_safe() -> None:
    com = one()
    [first] = delivered(com.step(arrived(request(1), request(2)), 0.0))
    effects = com.step(Completed(first, True, b"1", True, safe=False), 0.0)
    [second] = delivered(effects)
    assert [e.sid for e in effects if isinstance(e, Ended)] == [first]
    com.step(Completed(second, False, b"2", safe=False), 0.0)
    assert not com.instances and told(com) == []
    com.step(Safe((first, second)), 0.0)
    assert told(com) == [(group(1), "ok", b"1"), (group(2), "error", b"2")]
    assert not com.hosts[HERE].answers.unsafe


def test_the_next_one_has_another_cid() -> None:
    """For epochs it is over: who follows it inherits what it knew."""
    com = one()
    first = unsafe(com)
    [second] = [e for e in com.step(arrived(request(2), number=2), 0.0) if isinstance(e, Deliver)]
    assert second.cid == second.sid != first


def test_what_is_safe_at_once_is_answered_at_once() -> None:
    com = one()
    [sid] = delivered(com.step(arrived(request(1)), 0.0))
    com.step(Completed(sid, True), 0.0)
    assert told(com) == [(group(1), "ok", b"")]


def test_it_is_open_until_it_is_safe() -> None:
    """Who leaves in order waits for that: else the answer would get lost."""
    com = one()
    sid = unsafe(com)
    assert open_calls(com) == ["bob/1 performed at g@n1, but it is not safe yet, and nobody is told"]
    com.step(Safe((sid,)), 0.0)
    assert open_calls(com) == []


def test_one_that_waits_for_its_calls_is_answered_when_it_ends() -> None:
    com = one()
    [sid] = delivered(com.step(arrived(request(1)), 0.0))
    com.step(Submit(sid, 1, "async", "ucast", (outgoing("f", "w", "f@n2"),)), 0.0)
    com.step(Completed(sid, True, safe=False), 0.0)
    com.step(Safe((sid,)), 0.0)
    assert sid in com.instances and told(com) == []
    called = next(iter(com.calls._waiting))
    com.step(arrived(Response(1, called, Replica("f@n2"), "ok", b"", False, True, (), ()), number=2), 0.0)
    assert not com.instances and told(com) == [(group(1), "ok", b"")]


# copies


def test_a_copy_is_answered_when_it_is_safe() -> None:
    com = one()
    sid = unsafe(com)
    again = request(2, invocation=Invocation("bob", (1,)))
    com.step(arrived(again, number=2), 0.0)
    assert told(com) == []
    com.step(Safe((sid,)), 0.0)
    assert told(com) == [(group(1), "ok", b"out"), (group(2), "ok", b"out")]


def test_the_reply_is_kept_though_its_client_has_its_answers() -> None:
    """From other replicas. A copy that is under way must not find less than they said."""
    com = one()
    sid = unsafe(com)
    com.step(arrived(request(2, done=2), number=2), 0.0)
    assert com.hosts[HERE].replies.get(Invocation("bob", (1,))) is not None
    com.step(Safe((sid,)), 0.0)
    assert told(com) == [(group(1), "ok", b"out")]
    assert com.hosts[HERE].replies.get(Invocation("bob", (1,))) is None


# bad and late events


def test_what_is_not_known_or_safe_already_is_nothing() -> None:
    com = one()
    sid = unsafe(com)
    com.step(Safe((sid, sid)), 0.0)
    assert len(told(com)) == 1
    for other in (sid, Sid(99, HERE), Sid(1, Replica("g@n2")), Sid(1, Replica("q@n1"))):
        before = fingerprint(com)
        assert com.step(Safe((other,)), 0.0) == []
        assert fingerprint(com) == before
    assert com.step(Safe(()), 0.0) == []


def test_what_is_being_performed_cannot_be_safe() -> None:
    com = one()
    sid = unsafe(com)
    [running] = delivered(com.step(arrived(request(2), number=2), 0.0))
    before = fingerprint(com)
    with pytest.raises(BadRequest, match=f"instance {running} is still being performed at n1"):
        com.step(Safe((sid, running)), 0.0)
    assert fingerprint(com) == before


def test_it_is_completed_once() -> None:
    com = one()
    sid = unsafe(com)
    with pytest.raises(BadRequest, match="no instance"):
        com.step(Completed(sid, True), 0.0)


# cancelling


def test_cancelled_after_it_is_over_it_is_answered_all_the_same() -> None:
    com = one()
    sid = unsafe(com)
    effects = com.step(arrived(CancelMessage(1, group(1), HERE), number=2), 0.0)
    assert not [e for e in effects if isinstance(e, Stop)] and not com.hosts[HERE]._cancelled
    com.step(Safe((sid,)), 0.0)
    assert told(com) == [(group(1), "ok", b"out")]


# states


def stage() -> GroupStage:
    """f with writes that conflict; n4 is a member, without the state of f."""
    s = GroupStage("n1 n2 n3 n4", "n1 n2 n3")
    s.object("f", "n1 n2 n3 n4", "w/w")
    s.carry_state = False
    s.wait(30)
    s.join("n4")
    s.until(lambda: s.version("n4") == 2 and s.complete("n1 n2 n3 n4"))
    s.wait(20)
    return s


def snapshots(s: GroupStage) -> list[Snapshot]:
    return s.told("n1", Snapshot)


def test_no_state_is_given_before_all_in_it_is_safe() -> None:
    s = stage()
    client = s.client("T", "n1")
    client.sync("f.w", quorum(2), "m")
    instance = s.instance("m", "f@n1")
    instance.commit(b"out", safe=False)
    s.do("n1", Give(Replica("f@n1"), N4, 2))
    assert snapshots(s) == [] and s.com("n1").hosts[Replica("f@n1")].order.closed
    client.oneway("f.w", "next")
    assert s.delivered("f@n1") == ["m"], "closed for a moment: else it would never come to that"
    instance.safe()
    assert len(snapshots(s)) == 1 and not s.com("n4").unready
    assert s.delivered("f@n1") == ["m", "next"]
    s.instance("m", "f@n2").commit(b"out")
    s.instance("m", "f@n3").commit(b"out")
    assert client.answers(1)
    assert s.finish().violations == []


def test_it_does_not_stay_closed_for_a_disk_that_is_slow() -> None:
    s = stage()
    s.client("T", "n1").oneway("f.w", "m")
    s.instance("m", "f@n1").commit(safe=False)
    s.do("n1", Give(Replica("f@n1"), N4, 2))
    s.client("U", "n1").oneway("f.w", "next")
    s.wait(5 * s.timing.delta)
    assert s.delivered("f@n1") == ["m", "next"] and snapshots(s) == []
    s.instance("m", "f@n1").safe()
    s.instance("next", "f@n1").commit()
    s.tick(STEP)
    assert len(snapshots(s)) == 1
    assert s.finish().violations == []


def test_what_is_kept_with_a_state_has_the_reply_also_if_it_is_not_safe() -> None:
    """The state has what it did. Without the reply it would be done a second time in the next life."""
    com = one()
    unsafe(com)
    com.step(arrived(request(2), number=2), 0.0)  # and this is running
    part = msgspec.msgpack.decode(com.handover.keep(HERE), type=Part)
    assert [(t.invocation, t.status, t.body) for t in part.replies.replies] == [(Invocation("bob", (1,)), "ok", b"out")]
    assert part.replies.running == (Invocation("bob", (2,)),)


def test_who_takes_such_a_state_answers_from_it() -> None:
    com = one()
    unsafe(com)
    part = com.handover.keep(HERE)
    s = GroupStage("n1 n2", "n2")
    s.object("g", "n1 n2", "a/a")
    s.carry_state = False
    s.join("n1")
    s.until(lambda: s.version("n1") == 2)
    s.wait(20)
    s._players[N1].recorder.adopt(s.now, HERE, "")
    s.do("n1", Take(HERE, part))
    bob = s.client("bob", "n2")
    bob.sync("g.a@n1", SREC, "again")
    assert s.delivered("g@n1") == []
    assert [r.body for r in bob.received[0].responses] == [b"out"]


# the view changes


def test_the_view_changes_while_something_is_not_safe() -> None:
    """n3 departs; who waits for the answer of n1 gets it, in the new view."""
    s = GroupStage("n1 n2 n3")
    s.object("f", "n1 n2 n3", "w/w")
    s.wait(30)
    client = s.client("T", "n2")
    client.sync("f.w", CREC, "m")
    s.instance("m", "f@n1").commit(safe=False)
    s.instance("m", "f@n2").commit()
    s.crash("n3")
    s.do("n1", Evict(Node("n3")))
    s.until(lambda: s.complete("n1 n2"))
    assert client.received == []
    s.instance("m", "f@n1").safe()
    assert sorted(client.answers(1)) == ["f@n1", "f@n2"]
    assert s.finish().violations == []


def test_its_origin_departs_before_it_is_safe() -> None:
    """The client repeats it through another node: that copy waits, and gets the answer."""
    s = GroupStage("n1 n2 n3")
    s.object("f", "n1 n2", "w/w")
    s.wait(30)
    client = s.client("T", "n3")
    client.sync("f.w", quorum(2), "m")
    s.instance("m", "f@n1").commit(b"out", safe=False)
    s.instance("m", "f@n2").commit(b"out", safe=False)
    s.crash("n3")
    s.do("n1", Evict(Node("n3")))
    s.until(lambda: s.complete("n1 n2"))
    client.move("n2")
    client.send("f.w", "m", "sync", quorum(2), call=1)
    assert client.received == [] and s.delivered("f@n1") == ["m"]
    s.instance("m", "f@n1").safe()
    s.instance("m", "f@n2").safe()
    assert sorted(client.answers(1)) == ["f@n1", "f@n2"]
    assert s.finish().violations == []
