"""P2, "Flexible Group Communication for Dynamic Membership Changes", §3 and §5: how the members agree who is one.

The paper assumes that no message takes longer than δ; here a majority of a view decides the next one
(protocol.md §14.1), so that a slow member can be taken for dead without harm. What follows from that is said at each
test. O_1 is ``o1`` here.
"""

from collections.abc import Callable
from random import Random

import pytest

from framework.com.events import Installed, Out
from framework.com.receipt import CREC, quorum
from framework.com.telling import Changing
from framework.com.words import Accept, Accepted, Decided, Decision, Excluded, Hello, Prepare, Promise
from framework.errors import BadRequest
from framework.ids import Node, Replica
from tests.paper.group_stage import STEP, TIMING, GroupStage

SetUp = Callable[..., GroupStage]
FIVE = "o1 o2 o3 o4 o5"
FOUR = "o1 o2 o4 o5"  # without o3
FIRST = "o1 o2 o3 o4"


def five(set_up_group: SetUp, more: str = "") -> GroupStage:
    stage = set_up_group(f"{FIVE} {more}", FIVE)
    stage.object("f", f"{FIVE} {more}", "w/w", at_once=True)
    stage.wait(30)
    return stage


# P2 §3.1 complete group


def test_figure_2_complete_group(set_up_group: SetUp) -> None:
    """P2 §3.1, Fig. 2: a group is complete if all its members have the same view, which is the group itself. D joins; A
    has it in its view first. While B and C do not agree the group is not complete.

    Here D becomes a member by a decision, so A cannot be alone with its view for long: B and C have accepted it."""
    stage = set_up_group("a b c d", "a b c")
    stage.object("f", "a b c d", at_once=True)
    assert stage.complete("a b c")
    stage.hold_words(Decided, "a->b", "a->c")
    stage.join("d")
    stage.until(lambda: stage.members("a") == "a b c d")
    assert stage.members("b") == stage.members("c") == "a b c"
    assert not stage.complete("a b c d") and not stage.complete("a b c")
    stage.release_words()
    assert stage.complete("a b c d")
    assert stage.version("d") == 2


def test_a_lost_decision_is_told_again(set_up_group: SetUp) -> None:
    """P2 §3.1 once more: the paper's network loses nothing. Here it may: B and C see by the frames of A that it is in a
    later view, and A sees by theirs that they are not."""
    stage = set_up_group("a b c d", "a b c")
    stage.object("f", "a b c d", at_once=True)
    stage.hold_words(Decided, "a->b", "a->c")
    stage.join("d")
    stage.until(lambda: stage.members("a") == "a b c d")
    stage.lose_words()
    stage.until(lambda: stage.complete("a b c d"), most=3 * TIMING.delta)


# P2 §3.2 membership changes


def test_membership_change_1_an_object_joins(set_up_group: SetUp) -> None:
    """P2 §3.2 (1): m-change({O1..On}, On+1) = {O1..On, On+1}; all agree what changes, and in which version."""
    stage = five(set_up_group, "o6")
    stage.join("o6")
    stage.until(lambda: stage.complete(f"{FIVE} o6"))
    assert all(stage.installed(n) == [f"{FIVE} o6"] for n in FIVE.split())
    assert {stage.version(n) for n in f"{FIVE} o6".split()} == {2}
    assert [stage.view("o6").life(Node(n)) for n in ("o5", "o6")] == [1, 2]


def test_membership_change_2_an_object_leaves_in_order(set_up_group: SetUp) -> None:
    """P2 §3.2 (2): m-change({O1..On}, Oi) has all but Oi. A leave is no fault: nobody waits for a time-out, and the one
    who leaves is told that it went in order (protocol.md §10.10). The paper asks some other object to start the
    procedure; here the leaving one makes the attempt itself, as any member may, and counts in the majority that
    decides."""
    stage = five(set_up_group)
    stage.leave("o3")
    stage.tick(STEP)
    assert stage.complete(FOUR)
    (out,) = stage.told("o3", Out)
    assert "left in order" in out.why
    assert {w.source for w in stage.said(Prepare)} == {"o3"}


def test_the_last_majority_cannot_leave(set_up_group: SetUp) -> None:
    """P2 §3.2 lets anybody leave. Here each view holds a majority of the one before (A6): one of two cannot go, and is
    told so; nothing changes."""
    stage = set_up_group("a b")
    stage.object("f", "a b")
    stage.wait(30)
    with pytest.raises(BadRequest, match="without a only 1 of the 2 members of view 1 would be left; 2 are needed"):
        stage.leave("a")
    stage.wait(200)
    assert stage.complete("a b") and stage.version("a") == 1


# P2 §5.1 and §5.2 versions and detection


def test_the_version_goes_up_by_one(set_up_group: SetUp) -> None:
    """P2 §5.1, update of the version number: by one with each change, at every member. The first is 1 here, not 0."""
    stage = five(set_up_group, "o6")
    stage.leave("o3")
    stage.until(lambda: stage.version("o1") == 2)
    stage.join("o6")
    stage.until(lambda: stage.version("o1") == 3)
    stage.crash("o5")
    stage.until(lambda: stage.version("o1") == 4)
    assert [e.view.version for e in stage.told("o1", Installed)] == [2, 3, 4]
    assert stage.complete("o1 o2 o4 o6")


@pytest.mark.parametrize("by", FIVE.split())
def test_a_join_request_to_one_object_is_enough(set_up_group: SetUp, by: str) -> None:
    """P2 §5.2 (1): O6 sends its request to one object; that one tells the others. Whichever it is."""
    stage = five(set_up_group, "o6")
    for node in FIVE.split():
        if node != by:
            stage.hold_words(Hello, f"o6->{node}")
    stage.join("o6")
    stage.until(lambda: stage.complete(f"{FIVE} o6"), most=8 * TIMING.suspect_after)


def test_a_silent_object_is_detected_by_time(set_up_group: SetUp) -> None:
    """P2 §5.2 (3): no message from Oj for a predetermined time. The paper's 2δ is ``suspect_after`` here, or more where
    the peer is irregular (framework.com.detect). Before that, nothing happens."""
    stage = five(set_up_group)
    stage.crash("o3")
    stage.wait(TIMING.suspect_after - 2 * STEP)
    assert not stage.told("o1", Changing) and stage.version("o1") == 1
    stage.until(lambda: stage.complete(FOUR), most=TIMING.suspect_after)


@pytest.mark.parametrize("reached", FOUR.split())
def test_an_object_that_only_one_cannot_reach(set_up_group: SetUp, reached: str) -> None:
    """P2 §5.2 (3), "or cannot communicate with objects in G": one link is broken for good, so one of the two goes. The
    paper does not say which; here all end up with one view of a majority all the same, and the one that is out knows
    it, whether the one who suspects is the first by name or the last."""
    stage = five(set_up_group)
    stage.hold(f"{reached}<->o3")
    stage.until(lambda: stage.version("o5") > 1 or stage.version("o1") > 1)
    stage.wait(300)
    left = [n for n in FIVE.split() if stage.is_member(n)]
    assert len(left) == 4 and stage.complete(" ".join(left))
    assert {*FIVE.split()} - {*left} <= {reached, "o3"}


# P2 §5.3 membership procedure


def test_figure_4_join_and_leave(set_up_group: SetUp) -> None:
    """P2 §5.3, Fig. 4: O3 wants to leave and tells O1 (r1), O6 wants to join and tells O5 (r2). O1 sends L = {O3}, O5
    sends J = {O6}; all merge L and J by union and have one view {O1, O2, O4, O5, O6}, in one change.

    (The scan has L and J exchanged in the text of the figure.) Here L travels with Prepare and J with the promises; the
    decision holds both."""
    stage = five(set_up_group, "o6")
    for node in ("o1", "o2", "o3", "o4"):
        stage.hold_words(Hello, f"o6->{node}")
    stage.join("o6")
    stage.tick(STEP)
    assert not stage.told("o1", Changing), "o5 is not the first who tries"
    stage.evict("o1", "o3")  # r1
    stage.tick(STEP)
    assert stage.complete("o1 o2 o4 o5 o6") and stage.version("o6") == 2
    assert all(stage.installed(n) == ["o1 o2 o4 o5 o6"] for n in FOUR.split())
    (decision,) = decisions(stage)
    assert (decision.left, decision.joined) == (("o3",), ("o6",))
    assert [w.leaving for w in stage.said(Prepare, "o1")][:1] == [("o3",)]
    assert [[n for n, *_ in w.outsiders] for w in stage.said(Promise, "o5")] == [["o6"]]


def decisions(stage: GroupStage) -> list[Decision]:
    """All different ones that were told, by version."""
    found = {repr(w.decision): w.decision for w in stage.said(Decided)}
    return sorted(found.values(), key=lambda d: d.view.version)


def test_l_is_merged_by_union(set_up_group: SetUp) -> None:
    """P2 §5.3 (2): L_j := L_j ∪ L_i. O1 misses O6, the others miss O6 and O7, from which O1 has heard until later: the
    promises tell O1, and one change excludes both."""
    stage = set_up_group(f"{FIVE} o6 o7")
    stage.object("f", FIVE, at_once=True)
    stage.wait(30)
    stage.crash("o6")
    stage.hold("o7->o2", "o7->o3", "o7->o4", "o7->o5")
    stage.wait(50)
    stage.crash("o7")
    stage.until(lambda: stage.complete(FIVE), most=75)
    assert "o7" not in stage.com("o1").member.suspects, "o1 has not missed it itself"
    assert stage.installed("o1") == [FIVE]
    tried = [w.leaving for w in stage.said(Prepare, "o1")]
    assert tried[0] == ("o6",) and tried[-1] == ("o6", "o7"), "o1 began with what it knew itself"


def test_j_is_merged_by_union(set_up_group: SetUp) -> None:
    """P2 §5.3 (2): J_j := J_j ∪ J_i. O6 is heard by O2 alone, O7 by O4 alone; O1 makes the attempt, for a third reason,
    and has heard of neither."""
    stage = five(set_up_group, "o6 o7")
    for new, by in (("o6", "o2"), ("o7", "o4")):
        for node in FIVE.split():
            if node != by:
                stage.hold_words(Hello, f"{new}->{node}")
        stage.join(new)
    stage.tick(STEP)
    assert stage.com("o1").member.outsiders == {}
    stage.evict("o1", "o3")
    stage.tick(STEP)
    assert stage.complete(f"{FOUR} o6 o7") and stage.version("o1") == 2


def test_what_comes_while_updating_is_kept_for_the_next_change(set_up_group: SetUp) -> None:
    """P2 §5.3: requests that come in the updating state are stored, and the procedure begins again afterwards. O6 asks
    when the decision on O3 has been made; it is in the next view but one."""
    stage = five(set_up_group, "o6")
    stage.hold_words(Accepted, "*->o1")
    stage.evict("o1", "o3")
    stage.tick(STEP)
    assert stage.com("o1").member.state == "changing"
    stage.join("o6")
    stage.wait(20)
    stage.release_words()
    assert stage.installed("o1")[0] == FOUR
    stage.until(lambda: stage.complete(f"{FOUR} o6"))
    assert stage.installed("o1") == [FOUR, f"{FOUR} o6"]


def test_step_4_all_who_stay_must_have_spoken(set_up_group: SetUp) -> None:
    """P2 §5.3 (4): the membership is updated when a message from *every* object of the new one is there. Here, too, all
    who stay promise (a majority is not enough for the flush); the decision itself needs a majority of the view."""
    stage = five(set_up_group)
    stage.hold_words(Promise, "o5->o1")
    stage.evict("o1", "o3")
    stage.wait(20)
    assert {w.source for w in stage.said(Promise)} == {"o2", "o4"}
    assert not stage.said(Accept) and stage.version("o1") == 1
    stage.release_words()
    assert stage.complete(FOUR)


def test_normal_messages_are_sent_while_updating(set_up_group: SetUp) -> None:
    """P2 §5.3: "Oi does not stop the data transmission while the membership procedure is being executed" (A9)."""
    stage = five(set_up_group)
    stage.hold_words(Promise, "*->o1")
    stage.evict("o1", "o3")
    stage.tick(STEP)
    assert {stage.com(n).member.state for n in FOUR.split()} == {"changing"}
    client = stage.client("T", "o2")
    client.sync("f.w@o1,o2,o4,o5", CREC, "m")
    assert stage.version("o2") == 1 and len(client.received) == 1
    assert stage.delivered("f@o4") == stage.delivered("f@o5") == ["m"]


# P2 §5.4 faults while the membership changes


def test_fault_1_the_initiator_faults_before_its_message(set_up_group: SetUp) -> None:
    """P2 §5.4 (1): O1 knows that O3 is to leave and faults before it tells anybody. The others find out about O1 by
    time-out, and O2 initiates the procedure. That O3 was to leave is lost with O1: it stays."""
    stage = five(set_up_group)
    stage.evict("o1", "o3")
    stage.crash("o1")
    stage.until(lambda: stage.complete("o2 o3 o4 o5"))
    assert {w.source for w in stage.said(Prepare)} == {"o2"}
    assert stage.installed("o2") == ["o2 o3 o4 o5"]


def test_fault_2_the_initiator_faults_after_its_message(set_up_group: SetUp) -> None:
    """P2 §5.4 (2): O1 faults after it has sent m1. The others agree on {O1, O2, O4, O5} first, then on {O2, O4, O5}.

    Here that holds if the decision may have been made: some have accepted it. Then a later attempt must finish it."""
    stage = five(set_up_group)
    stage.hold_words(Accepted, "*->o1")
    stage.evict("o1", "o3")
    stage.tick(STEP)
    assert {w.source for w in stage.said(Accept)} == {"o1"}
    stage.crash("o1")
    stage.until(lambda: stage.complete("o2 o4 o5"))
    assert stage.installed("o2") == stage.installed("o4") == [FOUR, "o2 o4 o5"]


def test_fault_2_before_anybody_has_accepted(set_up_group: SetUp) -> None:
    """P2 §5.4 (2) again, but no member has got more than the first message of O1. Nothing can have been decided, so
    what O1 wanted is dropped here: the next attempt excludes O1, and O3, which is alive, stays."""
    stage = five(set_up_group)
    stage.hold_words(Promise, "*->o1")
    stage.evict("o1", "o3")
    stage.tick(STEP)
    assert stage.com("o4").member.state == "changing"
    stage.crash("o1")
    stage.until(lambda: stage.complete("o2 o3 o4 o5"))
    assert stage.installed("o4") == ["o2 o3 o4 o5"]


def test_fault_of_another_object_before_its_message(set_up_group: SetUp) -> None:
    """P2 §5.4, last case: O2 faults before it sends its membership message. The paper's objects agree with O2 in the
    view and exclude it afterwards. Here an attempt needs the promises of all who stay, so O2 leaves together with O3:
    one change, not two."""
    stage = five(set_up_group)
    stage.evict("o1", "o3")
    stage.crash("o2")
    stage.until(lambda: stage.complete("o1 o4 o5"))
    assert stage.installed("o1") == ["o1 o4 o5"]


def test_all_initiate_at_the_same_time(set_up_group: SetUp) -> None:
    """P2 §5.2: no coordinator; any object may initiate. All five do, for different reasons, at the same time."""
    stage = five(set_up_group, "o6")
    stage.join("o6")
    for node in ("o2", "o4", "o5"):
        stage.evict(node, "o3")
        stage.com(node).member._begin(frozenset([Node("o3")]), stage.now)  # they do not wait for each other
    stage.until(lambda: stage.complete("o1 o2 o4 o5 o6"))
    assert len({w.source for w in stage.said(Prepare)}) > 1
    assert stage.version("o6") <= 3


# P2 §5.4 theorem


@pytest.mark.parametrize("seed", range(25))
def test_theorem_same_version_same_members(set_up_group: SetUp, seed: int) -> None:
    """P2 §5.4, theorem: objects of the new membership have the same version number when the procedure terminates. And
    at every moment, who is in the same version has the same members (A6; the paper has bounded delay instead).

    Joins, leaves, evictions, crashes, words that are lost and links that are held, by chance."""
    chance = Random(seed)
    stage = five(set_up_group, "o6 o7")
    seen: dict[int, str] = {}
    for _ in range(6):
        upheave(stage, chance)
        for _ in range(chance.randrange(1, 30)):
            stage.tick(STEP)
            for node in stage.nodes:
                if stage.is_member(node):
                    assert seen.setdefault(stage.version(node), stage.members(node)) == stage.members(node)
        stage.release_words() if chance.random() < 0.5 else stage.lose_words()
        stage.release()
    stage.until(lambda: not stage.outsiders and len({stage.version(n) for n in stage.nodes if stage.is_member(n)}) == 1)
    there = [n for n in stage.nodes if stage.is_member(n)]
    stage.until(lambda: stage.complete(" ".join(there)))


def upheave(stage: GroupStage, chance: Random) -> None:
    """Something happens to the group, unless that would leave no majority."""
    there = [n for n in stage.nodes if stage.is_member(n)]
    newest = max((stage.view(n) for n in there), key=lambda v: v.version)
    members = [n for n in there if stage.version(n) == newest.version]
    away = [n for n in stage.nodes if n not in there and n not in stage.outsiders]
    what = chance.choice(["join", "leave", "evict", "crash", "words", "link"])
    if what == "words":
        kind = chance.choice([Prepare, Promise, Accept, Accepted, Decided, Hello])
        stage.hold_words(kind, f"{chance.choice(stage.nodes)}->*")
    elif what == "link":
        stage.hold("->".join(chance.sample(stage.nodes, 2)))
    elif what == "join" and away:
        stage.join(chance.choice(away))
    elif what == "crash" and len(members) - 1 >= max(newest.majority, 3):
        stage.crash(chance.choice(members))
    elif what in ("leave", "evict") and len(members) > 3:
        node = chance.choice(members)
        try:
            stage.leave(node) if what == "leave" else stage.evict(chance.choice(members), node)
        except BadRequest:
            pass  # too many are about to leave already


# P2 §2 assumption (4): partitions; and those who are excluded


def test_only_the_side_with_a_majority_goes_on(set_up_group: SetUp) -> None:
    """P2 §2 (4): network partitions may occur. The paper does not say what becomes of the two sides; each would agree
    on itself. Here only a majority decides (protocol.md §10.3): the other side changes nothing and says it is
    isolated."""
    stage = five(set_up_group)
    stage.hold_all("o4", "o5")
    stage.until(lambda: stage.complete("o1 o2 o3"))
    stage.wait(300)
    assert stage.isolated("o4") and stage.isolated("o5") and not stage.isolated("o1")
    assert stage.version("o4") == stage.version("o5") == 1
    assert not stage.told("o4", Changing), "it does not even try: two of five can decide nothing"
    client = stage.client("T", "o1")
    client.sync("f.w@o1,o2,o3", quorum(3), "m")
    assert len(client.received) == 1


def test_of_two_equal_sides_neither_goes_on(set_up_group: SetUp) -> None:
    """P2 §2 (4), in the view of four that is left of five: two of four decide nothing, although either side would be
    enough if it were sure that the other is dead. Of three and one, the three go on: what counts is the view before,
    not the nodes that were there once."""
    stage = five(set_up_group)
    stage.hold_all("o5")
    stage.until(lambda: stage.complete(FIRST))
    stage.hold_all("o3", "o4")
    stage.wait(300)
    assert all(stage.isolated(n) for n in FIRST.split())
    assert {stage.version(n) for n in FIRST.split()} == {2}
    stage.lose_all()
    stage.wait(200)
    assert not any(stage.isolated(n) for n in FIRST.split() if stage.is_member(n))
    stage.hold_all("o4")
    stage.until(lambda: all(not stage.isolated(n) and stage.version(n) > 2 for n in ("o1", "o2", "o3")))
    assert stage.isolated("o4") or not stage.is_member("o4")


def test_an_isolated_side_is_no_longer_isolated_when_it_hears_again(set_up_group: SetUp) -> None:
    """P2 §2 (4): nobody has a majority (2, 2 and 1 of 5), so nothing is decided; when the network is whole again the
    group is what it was."""
    stage = five(set_up_group)
    stage.hold_all("o1", "o2")
    stage.hold_all("o3", "o4")
    stage.wait(300)
    assert all(stage.isolated(n) for n in FIVE.split())
    stage.lose_all()
    stage.until(lambda: not any(stage.isolated(n) for n in FIVE.split()), most=TIMING.suspect_after)
    stage.wait(200)
    left = [n for n in FIVE.split() if stage.is_member(n)]
    assert stage.complete(" ".join(left)) and len(left) == 5


def test_the_excluded_notices_and_comes_back(set_up_group: SetUp) -> None:
    """P2 §3.1: the views of two objects may differ for a while, and a falsely suspected object still has the old one.
    In the paper it never learns. Here those who go on tell it when they hear it (protocol.md §10.8); it stops, and
    rejoins as a new life with the state of the others."""
    stage = five(set_up_group)
    stage.hold_all("o3")
    stage.until(lambda: stage.complete(FOUR))
    stage.client("T", "o1").sync("f.w@o1,o2,o4,o5", CREC, "m")
    assert stage.version("o3") == 1
    stage.lose_all()
    stage.until(lambda: not stage.is_member("o3"), most=5 * TIMING.delta)
    assert stage.said(Excluded)
    (out,) = stage.told("o3", Out)
    assert "of which this node is not a member" in out.why and "left in order" not in out.why
    stage.join("o3")
    stage.until(lambda: stage.complete(FIVE) and not stage.com("o3").unready)
    assert (stage.view("o1").life(Node("o3")), stage.version("o3")) == (3, 3)
    assert stage.ledgers[Replica("f@o3")].performed == 1
