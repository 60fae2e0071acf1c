"""A node leaves and comes back within one change of view: its old life is among those who leave, its new one among
those who join. Nothing of the one may be taken for the other (protocol.md §10.7)."""

import pytest

from framework.com.events import Installed
from framework.com.receipt import CREC
from framework.com.words import Promise
from framework.ids import Node, Replica
from tests.paper.group_stage import GroupStage

FOUR = "n1 n2 n3 n4"
N3 = Node("n3")


def stage() -> GroupStage:
    s = GroupStage(FOUR, FOUR)
    s.object("f", FOUR, "w/w", reads="r")
    s.object("g", "n1 n3", "a/a")
    s.wait(30)
    return s


def again(s: GroupStage, leaves: bool) -> None:
    """n3 ends and starts, before anybody has noticed, or while the others let it go."""
    if leaves:
        s.hold_words(Promise, "n2->n1", "n4->n1")
        s.evict("n1", "n3")
        s.wait(20)
        assert any(s.com(n).member.frozen for n in ("n1", "n2", "n4")), "a change is under way"
    s.crash("n3")
    s.lose_all()
    s.join("n3")
    s.wait(20)
    s.release_words()
    s.until(lambda: s.complete(FOUR))


def one_change(s: GroupStage) -> Installed:
    """All who stay have installed one view, in which n3 has left and joined."""
    (found,) = {(e.view, e.left, e.joined) for n in ("n1", "n2", "n4") for e in s.told(n, Installed)}
    return Installed(*found)


@pytest.mark.parametrize("leaves", [False, True])
def test_in_one_change(leaves: bool) -> None:
    s = stage()
    again(s, leaves)
    view = one_change(s)
    assert view.left == view.joined == (N3,) and view.view.life(N3) == 2
    assert s.com("n3").lives.mine == 2 and all(s.com(n).links[N3].theirs == 2 for n in ("n1", "n2", "n4"))
    assert s.finish().violations == []


@pytest.mark.parametrize("leaves", [False, True])
def test_what_was_under_way_to_the_old_life_is_not_awaited_from_the_new_one(leaves: bool) -> None:
    s = stage()
    s.hold("n1->n3")
    client = s.client("T", "n1")
    client.sync("f.w", CREC, "m")
    client.oneway("g.a", "a")
    assert client.answers(1) == []
    again(s, leaves)
    s.wait(40)
    one_change(s)
    for at in ("f@n1", "f@n2", "f@n4"):
        assert s.delivered(at) == ["m"]
    assert s.delivered("f@n3") == [], "the new life has it in its state"
    for at in ("f@n1", "f@n2", "f@n4"):
        s.instance("m", at).commit()
    s.settle()
    assert sorted(client.answers(1)) == ["f@n1", "f@n2", "f@n4"]
    assert s.com("n3").unready == {}
    assert s.finish().violations == []


@pytest.mark.parametrize("leaves", [False, True])
def test_what_the_old_life_sent_is_not_mixed_up_with_what_the_new_one_sends(leaves: bool) -> None:
    """The old one sent m1, which reached n1, and m2, which reached nobody; the new one sends m3, after the others sent
    something that follows m1."""
    s = stage()
    s.hold("n3->n2", "n3->n4")
    old = s.client("T", "n3")
    old.oneway("f.w@n1,n2,n4", "m1")
    s.hold("n3->n1")
    old.oneway("f.w@n1,n2,n4", "m2")
    again(s, leaves)
    one_change(s)
    s.client("U", "n1").oneway("f.w", "later")
    s.settle()
    assert not s.com("n3").unready
    s.client("V", "n3").oneway("f.w", "m3")
    s.settle()
    for at in ("f@n1", "f@n2", "f@n4"):
        done = s.delivered(at)
        assert done[0] == "m1" and sorted(done) == ["later", "m1", "m3"]
    assert s.finish().violations == []


def test_frames_of_the_old_life_that_come_late_are_not_used() -> None:
    s = stage()
    s.hold("n3->n1")
    s.client("T", "n3").oneway("f.w@n1", "m1")
    s.crash("n3")
    s.join("n3")
    s.until(lambda: s.complete(FOUR))
    assert s.delivered("f@n1") == []
    s.release("n3->n1")  # what the old life had sent comes only now
    s.wait(30)
    assert s.delivered("f@n1") == []
    assert s.com("n1").hosts[Replica("f@n1")].arrived[N3] == 1 << 32
    assert s.finish().violations == []
