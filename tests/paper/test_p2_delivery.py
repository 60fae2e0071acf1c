"""P2 §6: messages of different versions, the O rule and its theorems, on a group that changes.

The O rule: m1 precedes m2 if m1.VC ≤ m2.VC where both have the same version, else if m1.ver ≤ m2.ver. So the paper's
receiver keeps everything of the new version back until it has heard from all members in it. Here only what matters is
ordered (protocol.md §2.3): a message of an earlier version comes first where it precedes or conflicts, and contexts
name requests by numbers that no change of the group makes invalid (framework.com.lives), so they compare across
versions.
"""

from collections.abc import Callable
from itertools import pairwise

import pytest

from framework.com.messages import Frame
from framework.com.receipt import CREC
from framework.com.words import Decided, Promise
from tests.paper.group_stage import STEP, GroupStage

SetUp = Callable[..., GroupStage]
FIVE = "o1 o2 o3 o4 o5"
FOUR = "o1 o2 o4 o5"


def five(set_up_group: SetUp, more: str = "", at_once: bool = True) -> GroupStage:
    """f is everywhere, with writes that conflict; g only serves to send further."""
    stage = set_up_group(f"{FIVE} {more}", FIVE)
    stage.object("f", f"{FIVE} {more}", "w/w", reads="r", at_once=at_once)
    stage.object("g", FIVE)
    stage.wait(30)
    return stage


def without_o3(stage: GroupStage, *late: str) -> None:
    """o1 has o3 excluded; the decision does not reach ``late`` yet."""
    for node in late:
        stage.hold_words(Decided, f"*->{node}")
    stage.evict("o1", "o3")
    stage.tick(STEP)
    assert all(stage.version(n) == (1 if n in late else 2) for n in FOUR.split())


# the three cases


def test_case_1_a_later_version_is_kept(set_up_group: SetUp) -> None:
    """P2 §6 (1), m.ver > ver_i: O4 has not updated its version yet; m is stored until it has."""
    stage = five(set_up_group)
    without_o3(stage, "o4")
    stage.client("T", "o1").oneway("f.w@o2,o4", "m")
    assert stage.delivered("f@o4") == [] and stage.waiting("f@o4") == []
    assert len(stage.com("o4").member.later) > 0
    stage.release_words()
    assert stage.version("o4") == 2
    stage.wait(20)
    assert stage.delivered("f@o4") == stage.delivered("f@o2") == ["m"]


def test_case_2_an_earlier_version_from_a_member_of_both(set_up_group: SetUp) -> None:
    """P2 §6 (2), m.ver < ver_i: O4 sends m before it updates its version, O2 has updated: m is delivered."""
    stage = five(set_up_group)
    without_o3(stage, "o4")
    stage.client("T", "o4").oneway("f.r@o2", "m")
    assert (stage.version("o2"), stage.version("o4")) == (2, 1)
    assert stage.request("m").view == 1
    assert stage.delivered("f@o2") == ["m"]


def test_case_2_an_earlier_version_that_needs_agreement(set_up_group: SetUp) -> None:
    """P2 §6 (2) for a request that its destinations agree on, O3 among them. O1, O2 and O5, in version 2, know that
    nobody waits for O3; O4, which has sent it, learns that with the view."""
    stage = five(set_up_group)
    without_o3(stage, "o4")
    client = stage.client("T", "o4")
    client.sync("f.w@o1,o2,o3,o4,o5", CREC, "m")
    assert stage.delivered("f@o2") == stage.delivered("f@o5") == ["m"]
    assert stage.waiting("f@o4") == ["m"] and client.received == []
    stage.release_words()
    stage.wait(20)
    assert stage.version("o4") == 2
    assert all(stage.delivered(f"f@{n}") == ["m"] for n in FOUR.split())
    assert sorted(client.answers(1)) == [f"f@{n}" for n in FOUR.split()], "nobody waits for o3"


def test_case_3_the_same_version(set_up_group: SetUp) -> None:
    """P2 §6 (3), m.ver = ver_i: in the causal order, as ever. m2 is sent by one who has got m1."""
    stage = five(set_up_group)
    without_o3(stage)
    stage.hold("o1->o4")
    client = stage.client("T", "o1")
    client.oneway("f.w@o4", "m1")
    client.oneway("g.go@o2", "go")
    stage.instance("go", "g@o2").oneway("f.w@o4", "m2")
    assert stage.delivered("f@o4") == [] and stage.waiting("f@o4") == ["m2"]
    stage.release()
    assert stage.delivered("f@o4") == ["m1", "m2"]
    assert stage.precedes("m1", "m2")


# the O rule and its theorem


def across(set_up_group: SetUp) -> GroupStage:
    """T at O4 sends m1 to O2 and then wakes O5, all in version 1; m1 is on its way for long. O5 goes on in 2."""
    stage = five(set_up_group)
    stage.hold_words(Frame, "o4->o2")
    client = stage.client("T", "o4")
    client.oneway("f.w@o2", "m1")
    client.oneway("g.go@o5", "go")
    without_o3(stage)
    assert stage.delivered("f@o2") == []
    return stage


def test_o_rule_2_what_precedes_in_an_earlier_version_comes_first(set_up_group: SetUp) -> None:
    """P2 §6, O rule (2) and its theorem: m1.ver < m2.ver and m1 → m2: every destination delivers m1 first, though m2
    arrives first and its destination is in the later version."""
    stage = across(set_up_group)
    stage.instance("go", "g@o5").oneway("f.w@o2", "m2")
    assert [stage.request(m).view for m in ("m1", "m2")] == [1, 2]
    assert stage.precedes("m1", "m2")
    assert stage.waiting("f@o2") == ["m2"]
    stage.release_words()
    stage.wait(20)
    assert stage.delivered("f@o2") == ["m1", "m2"]


def test_o_rule_2_does_not_bind_what_is_not_related(set_up_group: SetUp) -> None:
    """P2 §6: the paper's O2 keeps m3, of version 2, back until no message of version 1 can come; its theorem says only
    that the O rule *suffices* for causal order. Here m3 conflicts with nothing and follows nothing: O2 does not wait
    for m1 (protocol.md §14.1, first rows)."""
    stage = across(set_up_group)
    stage.client("U", "o1").oneway("f.r@o2", "m3")
    assert stage.concurrent("m1", "m3")
    assert stage.delivered("f@o2") == ["m3"]


@pytest.mark.parametrize("known", [True, False])
def test_o_rule_conflicting_messages_of_two_versions_have_one_order(set_up_group: SetUp, known: bool) -> None:
    """P2 §6, O rule (2) where it matters without causality (P3's ⪯): m1 of version 1 and m2 of version 2 conflict and
    have common destinations, O2 and O4. One order holds at both.

    In the paper m1 is always the first of them. Here it is so if O2 knows of m1 in time; if m1 is on its way for long,
    O2 has given m2 its place and the two destinations agree on m1 after m2: nothing that anybody did says otherwise."""
    stage = five(set_up_group)
    stage.hold_words(Frame, "o2->o4" if known else "o4->o2")
    stage.client("T", "o4").oneway("f.w@o2,o4", "m1")
    without_o3(stage)
    stage.client("U", "o1").oneway("f.w@o2,o4", "m2")
    assert [stage.request(m).view for m in ("m1", "m2")] == [1, 2]
    assert stage.delivered("f@o4") == []
    stage.release_words()
    stage.wait(20)
    assert stage.delivered("f@o2") == stage.delivered("f@o4") == (["m1", "m2"] if known else ["m2", "m1"])


def test_change_of_vector_clock_scheme(set_up_group: SetUp) -> None:
    """P2 §6, "change of vector clock scheme": O_i knows that nothing of the old version can come when each member has
    sent something of the new one. Here each says so on its links (Moved). Messages do not wait for it; a joiner's state
    does: O1 gives none while O4 might still send requests of the old version, which do not go to the joiner."""
    stage = five(set_up_group, "o6")
    stage.hold_words(Decided, "*->o4")
    stage.join("o6")
    stage.until(lambda: stage.version("o6") == 2)
    stage.wait(20)
    assert stage.com("o4").view == 1 and stage.com("o6").unready
    stage.client("T", "o4").oneway("f.w@o1", "m")
    assert stage.delivered("f@o1") == ["m"] and stage.request("m").view == 1
    stage.release_words()
    stage.until(lambda: not stage.com("o6").unready)


def test_vector_of_another_dimension(set_up_group: SetUp) -> None:
    """P2 §5.1: the dimension of the vector changes when O6 joins, and m1.VC and m2.VC of two versions cannot be
    compared. Here m2, sent in version 2 with O6 among its destinations, names m1 of version 1 in its context."""
    stage = five(set_up_group, "o6")
    stage.hold_words(Frame, "o4->o2")
    client = stage.client("T", "o4")
    client.oneway("f.w@o2", "m1")
    client.oneway("g.go@o5", "go")
    stage.join("o6")
    stage.until(lambda: stage.version("o5") == 2 and stage.version("o6") == 2)
    stage.instance("go", "g@o5").oneway("f.w@o2,o6", "m2")
    assert stage.carried("m2") == {"f@o2": {"m1"}}
    stage.wait(10)
    assert stage.waiting("f@o2") == ["m2"]
    stage.release_words()
    stage.wait(40)
    assert stage.delivered("f@o2") == ["m1", "m2"] and stage.delivered("f@o6") == ["m2"]


# what the departed one sent: the paper leaves it open, protocol.md §10.5 does not


@pytest.mark.parametrize("reached", ["o2", "o4", "o5"])
def test_a_message_of_the_departed_that_one_survivor_has(set_up_group: SetUp, reached: str) -> None:
    """P2 §6 says nothing of m from an object that faults half-way. protocol.md §10.5: what one survivor has, all get by
    the flush, and deliver it before what is sent in the new version and conflicts."""
    stage = five(set_up_group)
    for node in FOUR.split():
        if node != reached:
            stage.hold(f"o3->{node}")
    stage.client("T", "o3").oneway("f.w@o2,o4,o5", "m")
    stage.crash("o3")
    stage.lose_all()
    assert all(stage.delivered(f"f@{n}") == [] for n in FOUR.split())
    stage.until(lambda: stage.complete(FOUR))
    stage.client("U", "o1").oneway("f.w@o2,o4,o5", "later")
    stage.wait(20)
    assert all(stage.delivered(f"f@{n}") == ["m", "later"] for n in ("o2", "o4", "o5"))


def test_a_message_of_the_departed_that_nobody_has_is_void(set_up_group: SetUp) -> None:
    """protocol.md §10.5: the context of m2 names m1 of O3, which nobody has got. m2 does not wait for it after the
    change."""
    stage = five(set_up_group)
    stage.hold("o3->o2")
    client = stage.client("T", "o3")
    client.oneway("f.w@o2", "m1")
    client.oneway("g.go@o5", "go")
    stage.instance("go", "g@o5").oneway("f.w@o2", "m2")
    assert stage.carried("m2") == {"f@o2": {"m1"}} and stage.waiting("f@o2") == ["m2"]
    stage.crash("o3")
    stage.lose_all()
    stage.until(lambda: stage.complete(FOUR))
    assert stage.delivered("f@o2") == ["m2"]


def test_contexts_do_not_name_what_is_void(set_up_group: SetUp) -> None:
    """protocol.md §10.5: O5 knows of m1 of O3, which nobody has got. What O5 sends after the change does not name
    it."""
    stage = five(set_up_group)
    stage.hold("o3->o2")
    client = stage.client("T", "o3")
    client.oneway("f.w@o2", "m1")
    client.oneway("g.go@o5", "go")
    assert stage.knows(stage.instance("go", "g@o5")) == {"f@o2": {"m1"}}
    stage.crash("o3")
    stage.lose_all()
    stage.until(lambda: stage.complete(FOUR))
    stage.instance("go", "g@o5").oneway("f.w@o4", "m2")
    assert stage.request("m2").context == ()


def test_what_the_excluded_sends_late_is_not_used(set_up_group: SetUp) -> None:
    """P2 §6 delivers what comes "from the objects in the new membership". m of O3, which is alive and excluded, arrives
    after the change: nobody delivers it, so nobody differs."""
    stage = five(set_up_group)
    stage.hold("o3->*")
    stage.client("T", "o3").oneway("f.w@o2,o4,o5", "m")
    stage.until(lambda: stage.complete(FOUR))
    stage.release()
    stage.wait(50)
    assert all(stage.delivered(f"f@{n}") == [] for n in ("o2", "o4", "o5"))
    assert not stage.is_member("o3")


# the last theorem


@pytest.mark.parametrize("late", ["o2", "o4", "o5"])
def test_theorem_causal_delivery_without_stop(set_up_group: SetUp, late: str) -> None:
    """P2 §6, last theorem: messages are causally delivered, without a stop, while the membership changes. A chain of
    messages, each sent by one who has got the one before: before, while, and after the group excludes O3 and takes O6
    in. ``late`` learns of each decision last."""
    stage = five(set_up_group, "o6", at_once=False)
    chain = ["m0"]
    stage.client("T", "o1").oneway("f.p@o1,o2,o4,o5", "m0")

    def go_on(node: str) -> None:
        """The instance of the last message at this node sends the next one, to all who stay."""
        name = f"m{len(chain)}"
        stage.instance(chain[-1], f"f@{node}").oneway("f.p@o1,o2,o4,o5", name)
        stage.tick(1.0)
        chain.append(name)
        assert stage.delivered(f"f@{node}")[-1] == name, "it does not wait for the change"

    go_on("o2")
    stage.hold_words(Promise, "*->o1")
    stage.evict("o1", "o3")
    stage.tick(STEP)
    assert stage.com("o4").member.state == "changing"
    go_on("o4")
    go_on("o5")
    stage.release_words()
    stage.hold_words(Decided, f"*->{late}")
    stage.join("o6")
    stage.until(lambda: stage.version("o1") == 3)
    go_on("o1")
    stage.release_words()
    stage.wait(40)
    go_on("o4")
    assert all(stage.delivered(f"f@{n}") == chain for n in FOUR.split())
    assert all(stage.precedes(a, b) for a, b in pairwise(chain))
