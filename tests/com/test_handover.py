"""How the state of a replica goes to a node that has joined (framework.com.handover), step by step."""

from typing import Any

import pytest

from framework.com import order
from framework.com.events import Deliver, Evict, Give, Snapshot, Take
from framework.com.messages import Frame
from framework.com.receipt import CREC, SREC
from framework.com.telling import Duplicate
from framework.com.words import Accept, Decided
from framework.errors import BadMessage, BadRequest, Unavailable
from framework.ids import Node, Replica
from tests.com.fingerprint import fingerprint
from tests.paper.group_stage import STEP, TIMING, GroupStage

N4 = Node("n4")
HERE, THERE = Replica("f@n1"), Replica("f@n4")
DELTA = TIMING.delta


def stage(members: str = "n1 n2 n3") -> GroupStage:
    """f with writes that conflict; h calls f. Nobody asks for states by itself."""
    s = GroupStage("n1 n2 n3 n4", members)
    s.object("f", "n1 n2 n3 n4", "w/w", reads="r")
    s.object("h", "n2")
    s.carry_state = False
    s.wait(30)
    return s


def joined(s: GroupStage) -> GroupStage:
    """n4 is a member, without the state of f."""
    s.join("n4")
    s.until(lambda: s.version("n4") == 2 and s.complete("n1 n2 n3 n4"))
    s.wait(20)
    assert s.com("n4").unready == {THERE: (Node("n1"), Node("n2"), Node("n3"))}
    return s


def ask(s: GroupStage, life: int = 2) -> None:
    s.do("n1", Give(HERE, N4, life))


def given(s: GroupStage, node: str = "n1") -> list[Snapshot]:
    return s.told(node, Snapshot)


def has_state(s: GroupStage) -> bool:
    return not s.com("n4").unready


# the one who gives


def test_an_idle_replica_gives_at_once() -> None:
    s = joined(stage())
    ask(s)
    assert [(e.replica, e.to) for e in given(s)] == [(HERE, N4)]
    assert has_state(s)
    assert s.finish().violations == []


def test_the_others_learn_who_has_its_state() -> None:
    s = joined(stage())
    assert all(THERE in s.com(n).lives.pending for n in ("n1", "n2", "n3", "n4"))
    ask(s)
    s.wait(10)
    assert not any(s.com(n).lives.pending for n in ("n1", "n2", "n3", "n4"))


def test_it_is_told_when_all_others_have_acknowledged_it() -> None:
    """Calls that the others send go to it only then."""
    s = joined(stage())
    ask(s)
    s.until(lambda: has_state(s))
    assert not s.com("n4").handover.told
    s.until(lambda: s.com("n4").handover.told)
    assert not any(THERE in s.com(n).lives.pending for n in ("n1", "n2", "n3", "n4"))


def test_what_runs_since_an_earlier_view_ends_first() -> None:
    """It does not go to the joiner; so the state must have it. The replica is not closed for that: it may last."""
    s = stage()
    s.client("T", "n1").oneway("f.w@n1,n2,n3", "old")
    joined(s)
    ask(s)
    assert not s.com("n1").hosts[HERE].order.closed
    s.wait(10 * DELTA)
    assert given(s) == []
    s.client("U", "n2").oneway("f.p", "new")
    assert "new" in s.delivered("f@n1"), "it goes on meanwhile"
    s.instance("new", "f@n1").commit()
    assert given(s) == []
    s.instance("old", "f@n1").commit()
    s.tick(STEP)
    assert len(given(s)) == 1 and has_state(s)
    assert s.delivered("f@n4") == [], "both are in the state"
    assert s.finish().violations == []


def test_what_waits_since_an_earlier_view_is_performed_first() -> None:
    s = stage()
    client = s.client("T", "n1")
    client.oneway("f.w@n1,n2,n3", "one")
    client.oneway("f.w@n1,n2,n3", "two")
    joined(s)
    ask(s)
    s.instance("one", "f@n1").commit()
    assert s.delivered("f@n1") == ["one", "two"] and given(s) == []
    s.instance("two", "f@n1").commit()
    s.tick(STEP)
    assert len(given(s)) == 1
    assert s.finish().violations == []


def test_what_is_not_agreed_since_an_earlier_view_is_waited_for() -> None:
    """Nothing runs at the donor; but a request of view 1 is there that n3 has not got yet."""
    s = stage()
    s.hold_words(Frame, "n1->n3")
    s.client("T", "n1").oneway("f.w@n1,n2,n3", "old")
    joined(s)
    assert s.waiting("f@n1") == ["old"]
    ask(s)
    s.wait(10)
    assert given(s) == []
    s.release_words()
    s.wait(30)
    s.instance("old", "f@n1").commit()
    s.wait(10)
    assert len(given(s)) == 1
    assert s.finish().violations == []


def test_what_may_still_come_of_an_earlier_view_is_waited_for() -> None:
    """n3 has not installed the view yet: it may send requests that do not go to the joiner."""
    s = stage()
    s.hold_words(Decided, "*->n3")
    s.join("n4")
    s.until(lambda: s.version("n4") == 2)
    s.wait(10)
    ask(s)
    s.client("T", "n3").oneway("f.w@n1,n2,n3", "late")
    assert given(s) == []
    s.instance("late", "f@n1").commit()
    s.wait(10)
    assert given(s) == [], "n3 has not said that it was the last"
    s.release_words()
    s.wait(10)
    assert len(given(s)) == 1 and s.delivered("f@n4") == []
    assert s.finish().violations == []


def busy() -> GroupStage:
    """A request of the joiner's view is running at the donor when n4 asks."""
    s = joined(stage())
    s.client("T", "n1").oneway("f.p", "long")
    assert s.delivered("f@n1") == ["long"] and s.delivered("f@n4") == []
    ask(s)
    assert given(s) == []
    s.client("U", "n2").oneway("f.p", "next")
    return s


def test_who_only_reads_is_not_waited_for() -> None:
    """It is not in the state, and the joiner reads by itself."""
    s = joined(stage())
    s.client("T", "n1").oneway("f.r", "read")
    assert s.delivered("f@n1") == ["read"]
    ask(s)
    assert len(given(s)) == 1 and has_state(s)
    assert not s.com("n1").hosts[HERE].order.closed
    assert s.delivered("f@n4") == ["read"]
    assert s.finish().violations == []


def test_who_reads_and_has_called_others_is_waited_for() -> None:
    """What it has called may have come back, and changed the state: that would be half in it."""
    s = joined(stage())
    s.client("T", "n1").oneway("f.r@n1", "read")
    s.instance("read", "f@n1").oneway("h.p", "other")
    ask(s)
    assert given(s) == [] and s.com("n1").hosts[HERE].order.closed
    s.instance("read", "f@n1").commit()
    s.tick(STEP)
    assert len(given(s)) == 1
    assert s.finish().violations == []


def test_closed_for_a_moment() -> None:
    """What comes now waits until the running one has ended: else there might never be a moment with whole requests."""
    s = busy()
    assert s.delivered("f@n2") == ["long", "next"]
    assert s.delivered("f@n1") == ["long"] and s.com("n1").hosts[HERE].order.closed
    s.instance("long", "f@n1").commit()
    assert len(given(s)) == 1
    kinds = [type(e) for n, e in s.heard if n == "n1" and isinstance(e, Snapshot | Deliver)]
    assert kinds == [Deliver, Snapshot, Deliver], "the state first, then the next request"
    s.instance("next", "f@n1").commit()
    assert s.delivered("f@n4") == ["next"], "long is in the state, next is not"
    assert s.finish().violations == []


def test_opened_again_after_a_while() -> None:
    """Two objects that call each other must not wait for each other. After a while it is closed again."""
    s = busy()
    s.wait(4 * DELTA)
    assert s.delivered("f@n1") == ["long"]
    s.wait(2 * STEP)
    assert s.delivered("f@n1") == ["long", "next"] and given(s) == []
    s.wait(10 * DELTA)
    assert not s.com("n1").hosts[HERE].order.closed
    s.wait(8 * DELTA)
    assert s.com("n1").hosts[HERE].order.closed
    for name in ("long", "next"):
        s.instance(name, "f@n1").commit()
    assert len(given(s)) == 1
    assert s.finish().violations == []


def test_calls_back_to_what_runs_go_on() -> None:
    """f calls h, and h calls f back: that is part of the instance for which the others wait."""
    s = joined(stage())
    s.client("T", "n1").sync("f.w", CREC, "A")
    for at in ("f@n1", "f@n2", "f@n3"):
        s.instance("A", at).sync("h.x", SREC, "B")
    ask(s)
    assert s.com("n1").hosts[HERE].order.closed
    s.instance("B", "h@n2").sync("f.w", CREC, "C")
    assert s.delivered("f@n1") == ["A", "C"]
    for at in ("f@n1", "f@n2", "f@n3"):
        s.instance("C", at).commit()
    s.instance("B", "h@n2").commit()
    assert given(s) == []
    s.instance("A", "f@n1").commit()
    assert len(given(s)) == 1
    assert s.finish().violations == []


def test_asking_twice_is_harmless() -> None:
    s = busy()
    ask(s)
    ask(s)
    s.instance("long", "f@n1").commit()
    assert len(given(s)) == 1
    ask(s)
    s.instance("next", "f@n1").commit()
    assert len(given(s)) == 1, "it has its state by now, and has said so"
    assert s.finish().violations == []


def test_who_has_no_state_gives_when_it_has_one() -> None:
    """n4 asks n3, which has just joined itself."""
    s = GroupStage("n1 n2 n3 n4", "n1 n2")
    s.object("f", "n1 n2 n3 n4", "w/w")
    s.carry_state = False
    s.wait(30)
    for n, node in ((2, "n3"), (3, "n4")):
        s.join(node)
        s.until(lambda n=n: s.version("n1") == n)  # type: ignore[misc]
    s.wait(20)
    s.do("n3", Give(Replica("f@n3"), N4, 3))
    assert given(s, "n3") == []
    s.do("n1", Give(HERE, Node("n3"), 2))
    assert [e.to for e in given(s, "n3")] == ["n4"] and has_state(s)
    assert s.finish().violations == []


def test_who_asks_and_departs_is_forgotten() -> None:
    """The replica was closed for it: it is opened again with the view that excludes the joiner."""
    s = busy()
    s.crash("n4")
    s.do("n1", Evict(N4))
    s.until(lambda: s.version("n1") == 3, most=3 * DELTA)
    assert s.delivered("f@n1") == ["long", "next"]
    s.instance("long", "f@n1").commit()
    s.instance("next", "f@n1").commit()
    assert given(s) == []
    assert s.finish().violations == []


def test_a_life_that_the_donor_has_not_heard_of_yet() -> None:
    s = stage()
    s.hold_words(Decided, "*->n3")
    s.join("n4")
    s.until(lambda: s.version("n4") == 2)
    s.do("n3", Give(Replica("f@n3"), N4, 2))
    assert given(s, "n3") == []
    s.release_words()
    s.wait(20)
    assert len(given(s, "n3")) == 1 and has_state(s)
    assert s.finish().violations == []


# the one who takes


def test_nothing_starts_without_a_state() -> None:
    """It takes part in agreement all the same: the others do not wait for its state."""
    s = joined(stage())
    s.client("T", "n2").oneway("f.w", "m")
    assert s.delivered("f@n1") == ["m"] and s.delivered("f@n4") == []
    s.instance("m", "f@n1").commit()
    ask(s)
    assert has_state(s)
    assert s.delivered("f@n4") == [], "it is in the state"
    assert [e.invocation for e in s.told("n4", Duplicate)] == [s.sent("m").invocation]
    s.client("U", "n2").oneway("f.w", "later")
    for at in ("f@n1", "f@n2", "f@n3"):
        if s.delivered(at)[-1] == "m":
            s.instance("m", at).commit()
    assert s.delivered("f@n4") == ["later"]
    assert s.finish().violations == []


def test_who_has_waited_for_long_catches_up_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for its proposals: it does not start all at once. What conflicts keeps its order."""
    monkeypatch.setattr(order, "AT_ONCE", 3)
    s = GroupStage("n1 n2 n3 n4", "n1 n2 n3")
    s.object("f", "n1 n2 n3 n4", "v/w w/w", at_once=True)
    s.carry_state = False
    s.wait(30)
    joined(s)
    part, ticket = s.com("n1").handover.keep(HERE), s._player(Node("n1")).recorder.ticket(HERE)  # it comes late
    client, waiting = s.client("T", "n2"), [f"v{i}" for i in range(8)]
    for name in waiting:
        client.oneway("f.v", name)
    client.oneway("f.w", "last")
    assert s.delivered("f@n4") == []
    s._take(N4, THERE, ticket, part)
    s._run()
    assert s.delivered("f@n4") == waiting[:3]
    s.client("U", "n4").oneway("f.v", "new")
    assert "new" not in s.delivered("f@n4"), "it follows what waits"
    s.wait(4 * STEP)
    assert s.delivered("f@n4") == [*waiting, "last", "new"]
    assert s.finish().violations == []


def test_so_does_what_came_meanwhile_and_follows_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all of it would start in one step, with the last that it waits for."""
    monkeypatch.setattr(order, "AT_ONCE", 3)
    s = GroupStage("n1 n2 n3 n4", "n1 n2 n3")
    s.object("f", "n1 n2 n3 n4", "v/w w/w", at_once=True)
    s.carry_state = False
    s.wait(30)
    joined(s)
    part, ticket = s.com("n1").handover.keep(HERE), s._player(Node("n1")).recorder.ticket(HERE)
    client, waiting, later = s.client("T", "n2"), [f"v{i}" for i in range(12)], [f"w{i}" for i in range(12)]
    for name in waiting:
        client.oneway("f.v", name)
    s._take(N4, THERE, ticket, part)
    s._run()
    for name in later:
        client.oneway("f.v", name)
    begun = [len(s.delivered("f@n4"))]
    for _ in range(9):
        s.wait(STEP)
        begun.append(len(s.delivered("f@n4")))
    assert begun == [3, 6, 9, 12, 15, 18, 21, 24, 24, 24]
    assert not s.com("n4").hosts[THERE].order.late.behind
    assert s.delivered("f@n4") == [*waiting, *later] and s.finish().violations == []


def test_it_catches_up_also_if_more_comes_than_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "AT_ONCE", 1)
    s = GroupStage("n1 n2 n3 n4", "n1 n2 n3")
    s.object("f", "n1 n2 n3 n4", "v/w w/w", at_once=True)
    s.carry_state = False
    s.wait(30)
    joined(s)
    part, ticket = s.com("n1").handover.keep(HERE), s._player(Node("n1")).recorder.ticket(HERE)
    client = s.client("T", "n2")
    for i in range(4):
        client.oneway("f.v", f"a{i}")
    s._take(N4, THERE, ticket, part)
    s._run()
    for i in range(40):
        client.oneway("f.v", f"b{i}")
        client.oneway("f.v", f"c{i}")
        s.wait(STEP)
    assert not s.com("n4").hosts[THERE].order.late.behind and len(s.delivered("f@n4")) == 84
    assert s.finish().violations == []


def test_what_is_in_the_state_is_answered_from_it() -> None:
    """The joiner answers with what the donor's replica said."""
    s = joined(stage())
    client = s.client("T", "n2")
    client.sync("f.w", CREC, "m")
    for at in ("f@n1", "f@n2", "f@n3"):
        s.instance("m", at).commit(b"done")
    assert client.received == [], "all four are waited for"
    ask(s)
    (receipt,) = client.received
    assert {(r.replica, r.body) for r in receipt.responses} == {(f"f@n{i}", b"done") for i in range(1, 5)}
    assert s.finish().violations == []


def test_the_initial_state() -> None:
    """Nobody has a state to give: it begins as an object begins."""
    s = joined(stage())
    s._players[N4].recorder.adopt(s.now, THERE, "")
    s.do("n4", Take(THERE, b""))
    assert has_state(s)
    s.client("T", "n2").oneway("f.p@n4", "m")
    assert s.delivered("f@n4") == ["m"]


BAD: dict[str, tuple[str, Any, type[Exception], str]] = {
    "of a replica elsewhere": ("n1", Give(Replica("f@n2"), N4, 2), BadRequest, "no replica f@n2 at n1"),
    "to nobody": ("n1", Give(HERE, Node("x9"), 2), BadRequest, "'x9' in its life 2 is no node"),
    "to itself": ("n1", Give(HERE, Node("n1"), 2), BadRequest, "'n1' in its life 2 is no node"),
    "to a first life": ("n1", Give(HERE, N4, 1), BadRequest, "'n4' in its life 1 is no node"),
    "taken by one who has it": ("n1", Take(HERE, b""), BadRequest, "f@n1 does not wait for a state at n1"),
    "taken elsewhere": ("n4", Take(HERE, b""), BadRequest, "f@n1 does not wait for a state at n4"),
    "not a part": ("n4", Take(THERE, b"\xc1"), BadMessage, "the state of f@n4 cannot be used"),
    "a part cut off": ("n4", Take(THERE, b"\x93\x05"), BadMessage, "the state of f@n4 cannot be used"),
    "another kind of part": ("n4", Take(THERE, b"\x93\xa1x\x90\x90"), BadMessage, "the state of f@n4 cannot be used"),
}


@pytest.mark.parametrize(("node", "event", "error", "says"), BAD.values(), ids=BAD)
def test_bad_wishes_and_parts(node: str, event: Any, error: type[Exception], says: str) -> None:
    s = joined(stage())
    before = fingerprint(s.com(node))
    with pytest.raises(error, match=says):
        s.do(node, event)
    assert fingerprint(s.com(node)) == before


def test_no_state_is_taken_while_the_view_changes() -> None:
    """n4 has promised, and said that it has no state: the next view says so. What is brought then is brought again."""
    s = joined(stage())
    s.hold_words(Accept, "*->*")
    s.do("n1", Evict(Node("n3")))
    s.tick(STEP)
    assert s.com("n4").member.state == "changing"
    ask(s)
    with pytest.raises(Unavailable, match="the view is changing: f@n4 cannot take a state now"):
        s.do("n4", Take(THERE, given(s)[-1].part))
    assert not has_state(s) and THERE in s.com("n2").lives.pending
    s.release_words()
    s.until(lambda: s.complete("n1 n2 n4"))
    ask(s)
    s.wait(20)
    assert has_state(s) and not any(s.com(n).lives.pending for n in ("n1", "n2", "n4"))
    assert s.finish().violations == []
