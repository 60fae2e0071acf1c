"""A client's session (protocol.md §8.1): its order survives a change of node, and it costs what is still needed of
it."""

import pytest

from framework.com.events import Accepted, Received
from framework.com.limits import Limits
from framework.com.messages import Request
from framework.com.receipt import CREC, SREC
from framework.com.telling import Sent
from tests.paper.stage import Client, Stage


def test_what_is_sent_after_a_one_way_call_comes_after_it() -> None:
    """A session was given with answers only: after one-way calls a client that moved came before itself."""
    s = Stage("i j k")
    s.object("f", "k", "w/w")
    client = s.client("T", "i")
    s.hold("i->k")
    client.oneway("f.w@k", "m1")
    client.move("j")
    client.sync("f.w@k", SREC, "m2")
    assert s.delivered("f@k") == []
    assert s.precedes("m1", "m2")
    assert s.finish().violations == []
    assert s.delivered("f@k") == ["m1", "m2"]


def test_what_is_sent_after_an_answer_and_a_one_way_call() -> None:
    """The same when it has a session from an answer, but the one-way call is newer."""
    s = Stage("i j k")
    s.object("f", "k", "w/w")
    s.object("g", "i j", at_once=True)
    client = s.client("T", "i")
    client.sync("g.x@i", SREC, "m0")
    s.hold("i->k")
    client.oneway("f.w@k", "m1")
    client.move("j")
    client.sync("f.w@k", SREC, "m2")
    assert s.carried("m2") == {"f@k": {"m1"}}
    assert s.finish().violations == []
    assert s.delivered("f@k") == ["m1", "m2"]


def test_over_several_nodes() -> None:
    """What it brings to a node it also takes on from there."""
    s = Stage("i j l k")
    s.object("f", "k", "w/w")
    s.object("g", "l", "w/w", at_once=True)
    client = s.client("T", "i")
    s.hold("i->k")
    client.oneway("f.w@k", "m1")
    client.move("j")
    client.sync("g.w@l", SREC, "m2")
    client.move("l")
    client.sync("f.w@k", SREC, "m3")
    assert s.delivered("f@k") == []
    assert s.finish().violations == []
    assert s.delivered("f@k") == ["m1", "m3"]


def test_sessions_of_several_nodes_are_joined() -> None:
    """A client with answers of two nodes brings both."""
    s = Stage("i j l k")
    s.object("f", "k", "w/w w/v")
    one, two = s.client("T", "i"), s.client("U", "j")
    s.hold("i->k", "j->k")
    one.oneway("f.w@k", "m1")
    two.oneway("f.v@k", "m2")
    assert one.session is not None and two.session is not None
    s.client("V", "l").send("f.w@k", "m3", sessions=(one.session, two.session))
    assert s.carried("m3") == {"f@k": {"m1", "m2"}}
    s.settle()
    assert set(s.delivered("f@k")[:2]) == {"m1", "m2"}


def test_the_clock_of_a_session_travels_with_it() -> None:
    """Its context does not name what is known to be delivered; so its stamp must be higher (protocol.md §4.2)."""
    s = Stage("i j k")
    s.object("f", "i", "w/w", at_once=True)
    s.object("g", "k", at_once=True)
    busy, client = s.client("Z", "i"), s.client("T", "i")
    for _ in range(50):
        busy.sync("f.w@i", SREC)
    client.sync("f.w@i", SREC, "m1")
    s.hold("i->j")  # j has heard nothing of this
    client.move("j")
    m2 = client.oneway("g.w@k", "m2")
    assert m2.number > s.instance("m1", "f@i").effect.stamp.number
    assert s.precedes("m1", "m2")


def test_a_call_that_is_repeated_elsewhere_does_not_wait_for_itself() -> None:
    """It brings the session that it had before this very call: the first copy may be lost with its node."""
    s = Stage("i j k")
    s.object("f", "k", "w/w")
    client = s.client("T", "i")
    s.hold("i->k")
    client.sync("f.w@k", SREC, "m1")
    client.move("j")
    client.send("f.w@k", "m1", "sync", SREC, call=1)
    assert s.delivered("f@k") == ["m1"]
    s.instance("m1", "f@k").commit(b"out")
    assert client.answers(1) == ["f@k"]
    assert s.finish().violations == []
    assert s.delivered("f@k") == ["m1"]


@pytest.mark.parametrize("lost", [False, True])
def test_fail_over_of_a_ucast_performs_what_it_calls_once(lost: bool) -> None:
    """A nested call was forgotten with its answer; another replica of its caller, asked instead, performed it again."""
    s = Stage("i j k l")
    s.object("f", "j k", "w/w")
    s.object("g", "l", "w/w", at_once=True)
    client = s.client("T", "i")
    client.sync("f.w@j", SREC, "m")
    first = s.instance("m", "f@j")
    first.sync("g.w@l", SREC, "nested")
    s.hold("j->i")  # the answer does not come: the client asks another replica through another node
    if not lost:
        first.commit()
    client.move("k")
    client.send("f.w@k", "m", "sync", SREC, call=1)
    second = s.instance("m", "f@k")
    second.sync("g.w@l", SREC, "nested")
    assert s.delivered("g@l") == ["nested"]
    assert second.answers(1) == ["g@l"], "it is answered all the same"
    assert s.finish().violations == []


def accepted(s: Stage) -> list[tuple[str, int]]:
    return [(e.client, e.call) for _, e in s.heard if isinstance(e, Accepted)]


def test_each_client_call_that_leaves_is_accepted() -> None:
    """Once, when it leaves; calls of instances are none of a client."""
    s = Stage("i j", limits=Limits(queued=1))
    s.object("f", "j", "w/w")
    s.object("g", "i")
    client = s.client("T", "i")
    client.oneway("g.x@i", "m1")
    s.instance("m1", "g@i").oneway("g.x@i", "nested")
    s.mute("i->j")
    client.later("f.w@j", "m2")
    s.do("i", client.event("f.w@j", "oneway", None))
    assert accepted(s) == [("T", 1), ("T", 2)]
    s.release()
    assert accepted(s) == [("T", 1), ("T", 2), ("T", 3)]


def test_only_clients_whose_calls_have_left_have_a_session() -> None:
    s = Stage("i")
    s.object("f", "i", at_once=True)
    s.object("g", "i")
    client = s.client("T", "i")
    assert s.com("i").session("T") is None
    client.sync("g.x", SREC, "m")
    assert str(s.com("i").session("T").after).endswith(" sent")
    s.instance("m", "g@i").sync("f.x", SREC, "nested")
    s.instance("m", "g@i").commit()
    received = [e for _, e in s.heard if isinstance(e, Received)]
    assert [e.client for e in received] == ["", "T"]
    assert str(s.com("i").session("T").after).endswith(" received")


def test_a_call_says_which_sessions_it_was_given() -> None:
    s = Stage("i j")
    s.object("f", "i j", "w/w", at_once=True)
    client = s.client("T", "i")
    one = client.oneway("f.w", "m1")
    client.move("j")
    client.oneway("f.w", "m2")
    sent = [e.sessions for _, e in s.heard if isinstance(e, Sent)]
    assert sent == [(), (f"{one.group} sent",)]


# what it costs


def reads(count: int) -> list[int]:
    """The entries in the contexts of so many reads, one after the other, none delivered yet."""
    s = Stage("i k")
    s.object("f", "k", "w/r", reads="r")
    client = s.client("T", "i")
    s.hold("i->k")
    for _ in range(count):
        client.later("f.r@k")
    posted = [m for m in s.com("i").posted if isinstance(m, Request)]
    return [sum(len(marks) for _, marks in m.context) for m in posted]


def test_pipelined_reads_carry_the_last_one_only() -> None:
    """Each named all before it: the bytes of n reads grew with n²."""
    assert reads(100) == [0] + [1] * 99


def test_a_write_after_pipelined_reads_waits_for_all() -> None:
    s = Stage("i j k")
    s.object("f", "k", "w/r", reads="r")
    client = s.client("T", "i")
    s.hold("i->k")
    for n in range(5):
        client.later("f.r@k", f"r{n}")
    client.move("j")
    client.oneway("f.w@k", "w")
    assert s.carried("w") == {"f@k": {"r4"}}
    assert s.finish().violations == []
    assert s.delivered("f@k") == ["r0", "r1", "r2", "r3", "r4", "w"]


def come_back(s: Stage, client: Client, n: int) -> None:
    client.sync("f.w@j", SREC, f"a{n}")
    outer = s.instance(f"a{n}", "f@j")
    outer.sync("g.w@k", SREC, f"b{n}")
    inner = s.instance(f"b{n}", "g@k")
    inner.sync("f.w@j", SREC, f"c{n}")
    s.instance(f"c{n}", "f@j").commit()
    inner.commit()
    outer.commit()


def test_calls_that_came_back_are_forgotten_with_their_chain() -> None:
    """A session kept the marks of all calls that ever came back below it."""
    s = Stage("i j k")
    s.object("f", "j", "w/w")
    s.object("g", "k", "w/w")
    client = s.client("T", "i")
    for n in range(20):
        come_back(s, client, n)
    assert len(client.received) == 20
    assert len(s.com("i").calls.sessions["T"].joins) == 0
    assert s.finish().violations == []


def test_calls_that_a_client_does_not_want_any_more_are_forgotten() -> None:
    """Asynchronous calls that were never collected stayed for as long as the session."""
    s = Stage("i j")
    s.object("f", "j", "w/w", at_once=True)
    client, calls = s.client("T", "i"), s.com("i").calls
    for _ in range(20):
        client.later("f.w@j")
    assert sorted(calls.sessions["T"].calls) == list(range(1, 21))
    client.send("f.w@j", "", "async", done=15)
    assert sorted(calls.sessions["T"].calls) == list(range(15, 22))
    assert len(calls._waiting) == 7
    client.collect(15, CREC)
    assert client.answers(15) == ["f@j"]


def test_a_call_that_is_waited_for_is_not_forgotten() -> None:
    s = Stage("i j")
    s.object("f", "j", "w/w")
    client = s.client("T", "i")
    client.sync("f.w@j", SREC, "m1")
    client.send("f.w@j", "m2", "oneway", done=2)
    s.instance("m1", "f@j").commit()
    assert client.answers(1) == ["f@j"]
