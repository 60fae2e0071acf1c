"""The oracle on runs in which lives end and begin, made by hand: for each property the smallest trace that is fine and
the one that is not. n3 crashes, or is excluded, unless it is said otherwise."""

import pytest

from framework.trace.record import Placed
from tests.sim.hand import NODES, Hand, Sent, both

ALL = ("f@n1", "f@n2", "f@n3")
TWO = ("n1", "n2")


def without_n3() -> Hand:
    """n3 has crashed; the others go on in view 2."""
    hand = Hand()
    hand.install(2, *TWO)
    return hand


def rejoined() -> Hand:
    """... and n3 is back as another life, in view 3."""
    hand = without_n3()
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    return hand


def states(hand: Hand, *but: str) -> None:
    """Everybody else who joined gets the state of n1."""
    for name in ("f", "g", "o"):
        if f"{name}@n3" not in but:
            hand.hand_over(f"{name}@n1", f"{name}@n3")


def write(hand: Hand, client: str = "ann", node: str = "n1", where: str = "n1,n2,n3") -> Sent:
    return hand.send(hand.client(client, node), f"f.w@{where}", "sync")


# what became of them


def test_a_crash_a_view_without_it_and_a_new_life_are_fine() -> None:
    hand = Hand()
    hand.perform(write(hand), *ALL)
    hand.install(2, *TWO)
    hand.perform(write(hand, "bob", where="n1,n2"), "f@n1", "f@n2")
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    states(hand)
    hand.perform(write(hand, "cid"), *ALL)
    for at in ALL:
        hand.state(at, "same")
    hand.stop()
    verdict = hand.judge(no_stop=5.0, ended=True)
    assert verdict.violations == []
    assert (verdict.views, verdict.crashed, verdict.adopted, verdict.delivered) == (3, 1, 3, 8)


def test_a1_what_was_adopted_is_not_performed_again() -> None:
    hand = Hand()
    m = write(hand)
    hand.perform(m, "f@n1", "f@n2")
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    states(hand)
    again = hand.send(hand.client("ann", "n2"), "f.w@n1,n2,n3")
    assert again.invocations == m.invocations
    hand.duplicate(again, "f@n1")
    hand.duplicate(again, "f@n2")
    hand.duplicate(again, "f@n3")
    assert hand.blamed() == []
    hand.perform(again, "f@n3")
    assert "f@n3#3 performed ann/1 twice" in hand.judge().violations[0].text


def test_a1_a_request_goes_to_the_lives_of_its_view() -> None:
    hand = Hand()
    m = write(hand)
    hand.perform(m, "f@n1", "f@n2")
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.adopt("f@n3", "")
    hand.perform(m, "f@n3")
    assert "f@n3#3 delivered 1:tran@n1:0, which was not sent to it" in [v.text for v in hand.judge().violations]


def test_a3_a_life_that_crashed_counts() -> None:
    hand = Hand()
    m1, m2 = write(hand), write(hand, "bob", "n2")
    hand.in_order("f@n1", True, m1, m2)
    hand.in_order("f@n2", True, m1, m2)
    hand.in_order("f@n3", False, m1, m2)
    hand.install(2, *TWO)
    assert set(hand.blamed()) == {"A3"}


@both
def test_a3_the_new_life_goes_on_in_the_order_of_its_donor(right: bool) -> None:
    hand = rejoined()
    m1, m2 = write(hand), write(hand, "bob", "n2")
    hand.in_order("f@n2", right, m1, m2)
    hand.perform(m1, "f@n1")
    states(hand)  # with m1 in it
    hand.perform(m2, "f@n1", "f@n3")
    assert hand.blamed() == ([] if right else ["A3", "A3"])


def test_a3_who_begins_anew_begins_another_order() -> None:
    """All lose their state, and clients repeat what nobody has answered, in any order."""
    hand = Hand()
    hand.perform(write(hand), *ALL)
    hand.perform(write(hand, "bob", "n2"), *ALL)
    for n in ("n1", "n2", "n3"):
        hand.join(n, 2, "n1#2", "n2#2", "n3#2")
        hand.adopt(f"f@{n}", "")
    hand.perform(write(hand, "bob", "n2"), *ALL)
    hand.perform(write(hand), *ALL)
    assert hand.blamed() == []


def test_a3_across_objects_when_one_of_them_has_lost_its_state() -> None:
    """The only replica of f crashes. bob's act and ann's are performed there again, but g has them as before."""
    hand = Hand()
    ann, bob = (hand.send(hand.client(c, "n1"), "f.w@n3 g.w@n1") for c in ("ann", "bob"))
    hand.in_order("f@n3", True, ann, bob)
    hand.in_order("g@n1", True, ann, bob)
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    hand.adopt("f@n3", "")
    bob, ann = (hand.send(hand.client(c, "n2"), "f.w@n3 g.w@n1") for c in ("bob", "ann"))
    hand.in_order("f@n3", True, bob, ann)
    assert hand.blamed() == []
    hand.install(4, "n1", "n3#3")  # and who gets its state goes on so
    hand.join("n2", 5, "n1", "n2#5", "n3#3")
    hand.install(5, "n1", "n2#5", "n3#3")
    hand.hand_over("f@n3", "f@n2")
    hand.perform(hand.send(hand.client("eve", "n1"), "f.w@n2 g.w@n1"), "f@n2", "g@n1")
    assert hand.blamed() == []


def test_a3_a_client_repeats_to_those_that_are_left() -> None:
    """n3 alone had ann's call and delivered it, without agreement with those that are left: they get it in a copy,
    later. (Were it delivered after agreement, it would be A5.)"""
    hand = Hand()
    lost, other = write(hand, "ann", "n3", "n3"), write(hand, "bob", "n2")
    hand.in_order("f@n3", True, lost, other)
    hand.perform(other, "f@n1", "f@n2")
    hand.install(2, *TWO)
    hand.perform(write(hand, "ann", "n1", "n1,n2"), "f@n1", "f@n2")
    hand.stop(at=TWO)
    assert hand.blamed() == []


@both
def test_a3_across_objects_a_read_is_repeated(right: bool) -> None:
    """bob's act changes g and reads f at n3, which crashes. g has the change for good; the answer to the read is lost,
    and no replica of f has performed it. So bob's copy reads what ann has written since then. One and the same message
    may not do so."""
    what = "g.w@n1,n2,n3 f.r@n3"
    hand = Hand()
    bob = hand.send(hand.client("bob", "n1"), what)
    if right:
        hand.perform(bob, "g@n1", "g@n2", "f@n3")
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    again = hand.send(hand.client("bob", "n2"), what)
    assert again.invocations == bob.invocations
    if not right:
        hand.perform(again, "g@n1", "g@n2")
    states(hand)
    ann = hand.send(hand.client("ann", "n1"), "g.w@n1,n2,n3 f.w@n1,n2,n3")
    hand.perform(ann, *ALL, "g@n1", "g@n2", "g@n3")
    hand.perform(again, "f@n3")
    assert set(hand.blamed()) == (set() if right else {"A3"})


# A2: what is void


@pytest.mark.parametrize("view", [1, 2])
def test_a2_a_request_of_one_that_has_gone_may_be_void(view: int) -> None:
    """ann sends two calls through n3, and only the second reaches the others. Once n3 is out, they need not wait for
    the first."""
    hand = Hand()
    ann = hand.client("ann", "n3")
    hand.send(ann, "f.w@n1,n2")
    second = hand.send(ann, "f.w@n1,n2")
    if view == 2:
        hand.install(2, *TWO)
    hand.perform(second, "f@n1", "f@n2")
    assert hand.blamed() == ([] if view == 2 else ["A2", "A2"])


def test_a2_what_comes_after_all_is_not_void() -> None:
    hand = Hand()
    ann = hand.client("ann", "n3")
    first, second = hand.send(ann, "f.w@n1,n2"), hand.send(ann, "f.w@n1,n2")
    hand.install(2, *TWO)
    hand.in_order("f@n1", False, first, second)
    assert hand.blamed() == ["A2"]


# A4, adopt


@both
def test_a4_nothing_is_performed_while_a_state_is_taken(right: bool) -> None:
    hand = rejoined()
    running = hand.deliver(write(hand, where="n1"), "f@n1")
    if right:
        hand.end(running)
    states(hand)
    if not right:
        hand.end(running)
    assert hand.blamed() == ([] if right else ["A4"])


@pytest.mark.parametrize("calls", [False, True])
def test_a4_who_only_reads_is_in_no_state_unless_it_has_called_others(calls: bool) -> None:
    hand = rejoined()
    running = hand.deliver(hand.send(hand.client("ann", "n1"), "f.r@n1", "sync"), "f@n1")
    if calls:
        hand.end(hand.deliver(hand.send(running, "g.c@n2"), "g@n2"))
    states(hand)
    hand.end(running)
    assert hand.blamed() == (["A4"] if calls else [])


def test_adopt_hands_on_what_the_donor_knew() -> None:
    """A2 across a transfer: what an instance at the donor sent precedes what a conflicting one at the joiner sends."""
    blamed = []
    for right in (True, False):
        hand = rejoined()
        first = hand.deliver(write(hand, where="n1"), "f@n1")
        m1 = hand.send(first, "g.c@n2")
        hand.end(first)
        states(hand)
        second = hand.deliver(write(hand, "bob", where="n3"), "f@n3")
        m2 = hand.send(second, "g.c@n2")
        hand.end(second)
        hand.in_order("g@n2", right, m1, m2)
        blamed.append(hand.blamed())
    assert blamed == [[], ["A2"]]


def test_adopt_what_the_donor_had_adopted() -> None:
    """From n1 to n3, and from there to n2: nothing is performed again, and nothing is missing."""
    hand = Hand()
    m = write(hand)
    hand.perform(m, "f@n1", "f@n2")
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    states(hand)
    hand.install(4, "n1", "n3#3")
    hand.join("n2", 5, "n1", "n2#5", "n3#3")
    hand.install(5, "n1", "n2#5", "n3#3")
    for name in ("f", "g", "o"):
        hand.hand_over(f"{name}@n3", f"{name}@n2")
    again = hand.send(hand.client("ann", "n3"), "f.w@n2")
    hand.duplicate(again, "f@n2")
    hand.stop()
    assert hand.blamed() == []
    n1 = hand.traces["n1"].records  # n1 crashes without writing down what it gave: then it is not known of both
    del n1[next(n for n, r in enumerate(n1) if r.event == "snapshot") :]
    verdict = hand.judge()
    assert (verdict.violations, verdict.torn) == ([], 3)


def test_adopt_counts_for_copies_that_are_on_the_way() -> None:
    hand = Hand()
    hand.perform(write(hand), "f@n1", "f@n2")
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    ann = hand.client("ann", "n2")
    hand.send(ann, "f.w@n3")  # again; and it is in the state that n3 gets now
    after = hand.send(ann, "f.w@n3")
    states(hand)
    hand.perform(after, "f@n3")
    assert hand.blamed() == []


@pytest.mark.parametrize("asked", ["known", "before", "meanwhile", "later", "never"])
def test_requests_may_wait_while_a_state_is_taken_or_asked_for(asked: str) -> None:
    """Otherwise compatible ones never wait. A replica that is asked may hold them back for a while and let them go,
    until it is known there that nobody waits for a state any more."""
    hand = rejoined() if asked != "never" else without_n3()
    if asked in ("known", "before"):
        states(hand)
    if asked == "known":
        hand.arrive(hand.send(hand.client("bob", "n3"), "o.c@n1"), "o@n1")
    m = hand.send(hand.client("ann", "n1"), "f.c@n1")
    hand.write("n1", event="agree", replica="f@n1", group=m.group, way="none")
    if asked == "meanwhile":
        states(hand)
    hand.arrive(m, "f@n1")
    hand.perform(m, "f@n1")
    if asked == "later":
        states(hand)
    assert hand.blamed() == (["OBO"] if asked in ("known", "never") else [])


@pytest.mark.parametrize("donor", ["n1", "n2"])
@pytest.mark.parametrize("sent", ["before", "after"])
def test_who_has_a_state_is_known_by_what_it_sends_then(donor: str, sent: str) -> None:
    """Whoever gave it: what n3 sent before it had its state says nothing."""
    hand = rejoined()
    bob = hand.client("bob", "n3")
    first = hand.send(bob, "o.c@n1")
    for name in ("f", "g", "o"):
        hand.hand_over(f"{name}@{donor}", f"{name}@n3")
    hand.arrive(first if sent == "before" else hand.send(bob, "o.c@n1"), "o@n1")
    m = hand.send(hand.client("ann", "n1"), "f.c@n1")
    hand.write("n1", event="agree", replica="f@n1", group=m.group, way="none")
    hand.arrive(m, "f@n1")
    hand.perform(m, "f@n1")
    assert hand.blamed() == (["OBO"] if sent == "after" else [])


def test_adopt_nothing_although_somebody_has_a_state() -> None:
    hand = Hand()
    hand.perform(write(hand), "f@n1", "f@n2")
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    states(hand, "f@n3")
    hand.adopt("f@n3", "")
    hand.stop()
    assert hand.blamed() == ["A7"]


def test_adopt_is_of_a_snapshot_that_was_taken() -> None:
    hand = rejoined()
    states(hand, "f@n3")
    hand.adopt("f@n3", "f@n1#1#99")
    hand.stop()
    assert hand.blamed()[0] == "A1"
    assert "f@n3 adopted f@n1#1#99, which nobody gave" in hand.judge().violations[0].text


def test_adopt_only_once_and_first() -> None:
    hand = rejoined()
    states(hand)
    hand.hand_over("f@n2", "f@n3")
    assert hand.blamed() == ["A1"]
    hand = rejoined()
    states(hand, "f@n3")
    hand.perform(write(hand), *ALL)
    assert hand.blamed() == ["A7"]
    assert "performed ann/1 before it had a state" in hand.judge().violations[0].text


@both
def test_adopt_takes_the_state_at_the_cut(right: bool) -> None:
    """protocol.md §11.1: what was sent in earlier views is in the state, what is sent later comes to the joiner
    itself."""
    hand = Hand()
    m = write(hand, where="n1,n2,n3")
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    if not right:
        states(hand)
    hand.perform(m, "f@n1", "f@n2")
    if right:
        states(hand)
    hand.stop()
    assert hand.blamed() == ([] if right else ["A7"])
    if not right:
        assert "f@n3#3 joined in view 3 without ann/1" in hand.judge().violations[0].text


def test_a7_a_state_in_the_middle_of_an_instance_is_not_compared() -> None:
    hand = Hand()
    hand.deliver(write(hand), "f@n1")
    hand.state("f@n1", "x")
    hand.state("f@n2", "y")
    assert hand.blamed() == []


@pytest.mark.parametrize(("digest", "blamed"), [("x", []), ("y", ["A7"])])
def test_a7_an_adopted_state_is_the_same_state(digest: str, blamed: list[str]) -> None:
    hand = Hand()
    hand.perform(write(hand, where="n1,n2"), "f@n1", "f@n2")
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    states(hand)
    hand.state("f@n1", "x")
    hand.state("f@n3", digest)
    assert hand.blamed() == blamed


def test_a_state_from_its_own_disk() -> None:
    """Everybody crashes and comes back: the ticket is of the own life before, up to the last record on disk."""
    hand = Hand(durable=True)
    ann = hand.client("ann", "n1")
    m = hand.send(ann, "f.w@n1,n2,n3", "sync")
    hand.perform(m, *ALL)
    hand.deliver(write(hand, "bob", "n2"), "f@n1")  # running when all crash
    hand.receive(ann, m, "f@n1", "f@n2")
    disk = {n: len(hand.traces[n].records) for n in ("n1", "n2", "n3")}
    everybody = ("n1#2", "n2#2", "n3#2")
    for n in disk:
        hand.join(n, 2, *everybody)
    for n, i in disk.items():
        for name in ("f", "g", "o"):
            hand.adopt(f"{name}@{n}", f"{name}@{n}#1#{i}")
    hand.perform(write(hand, "bob", "n2"), *ALL)
    hand.stop()
    assert hand.blamed() == []
    last = hand.traces["n3"].records
    hand.traces["n3"].records = [r for r in last if r.event != "deliver" and r.event != "end"]
    assert "A8" in hand.blamed()


# A5: uniformity


@pytest.mark.parametrize("way", ["fast", "slow", "none"])
@both
def test_a5_what_one_delivered_after_agreement_all_deliver(way: str, right: bool) -> None:
    hand = Hand()
    m = write(hand, node="n3")
    hand.perform(m, "f@n3", way=way)
    hand.install(2, *TWO)
    if right:
        hand.perform(m, "f@n1", "f@n2", way=way)
    hand.stop(at=TWO)
    assert hand.blamed() == ([] if right or way == "none" else ["A5", "A5"])


def test_a5_an_adopted_state_is_as_good() -> None:
    hand = Hand()
    m = write(hand, node="n3")
    hand.perform(m, "f@n1", "f@n3", way="fast")  # and n2 crashes instead
    hand.install(2, "n1", "n3")
    hand.join("n2", 3, "n1", "n2#3", "n3")
    hand.install(3, "n1", "n2#3", "n3")
    for name in ("f", "g", "o"):
        hand.hand_over(f"{name}@n3", f"{name}@n2")
    hand.stop()
    assert hand.blamed() == []


def test_a5_says_who_lacks_what() -> None:
    hand = Hand()
    hand.perform(write(hand, node="n3"), "f@n1", "f@n3", way="slow")
    hand.install(2, *TWO)
    hand.stop(at=TWO)
    assert [str(v) for v in hand.judge().violations] == [
        "A5: f@n1 delivered 1:tran@n3:0 (ann/1) after agreement, f@n2 never did"
    ]


@pytest.mark.parametrize(
    ("where", "method", "blamed"),
    [("n1,n2,n3", "w", True), ("n1,n2,n3", "c", False), ("n1,n2", "w", False)],
    ids=["violated", "compatible", "not sent to it"],
)
def test_a5_what_they_deliver_before_it_the_crashed_one_had_delivered_before_it(
    where: str, method: str, blamed: bool
) -> None:
    hand = Hand()
    other, m = hand.send(hand.client("bob", "n2"), f"f.{method}@{where}"), write(hand)
    hand.perform(m, "f@n3", way="fast")
    hand.install(2, *TWO)
    hand.in_order("f@n1", True, other, m)
    hand.in_order("f@n2", True, other, m)
    hand.stop(at=TWO)
    assert hand.blamed() == (["A5", "A5"] if blamed else [])


def test_a5_not_through_a_copy_either() -> None:
    """The survivors perform what n3 delivered only when the client repeats it: too late, after another."""
    hand = Hand()
    m, other = write(hand, node="n3"), write(hand, "bob", "n2")
    hand.perform(m, "f@n3", way="fast")
    hand.install(2, *TWO)
    again = write(hand, node="n1", where="n1,n2")
    for at in ("f@n1", "f@n2"):
        hand.in_order(at, True, other, again)
    hand.stop(at=TWO)
    assert hand.blamed() == ["A5", "A5"]


# A6: views


@pytest.mark.parametrize(
    ("views", "says"),
    [
        ([("n1 n2", "n1 n2")], ""),
        ([("n1 n2", "n1"), ("n2 n3", "n2")], "view 2 has two member lists: n1, n2; n2, n3 at n2"),
        ([("n1 n2#2", "n1")], "holds no majority of view 1"),
        ([("n1", "n1")], "view 2 (n1) holds no majority of view 1 (n1, n2, n3)"),
        ([("n2 n3", "n1")], "n1 installed view 2, of which it is no member"),
        ([("n1 n2", "n1 n2"), ("n1 n2 n3", "n1 n2")], "view 3 has n3, which was not in view 2: no new life"),
        ([("n1 n2", "n1 n2"), ("n1 n2 n3#3", "n1 n2")], ""),
    ],
)
def test_a6_views(views: list[tuple[str, str]], says: str) -> None:
    hand = Hand()
    version = 1
    for members, at in views:
        version = 2 if says.startswith("view 2 has two") else version + 1
        hand.install(version, *members.split(), at=at)
    verdict = hand.judge()
    if not says:
        assert verdict.violations == []
    else:
        assert any(v.rule == "A6" and says in v.text for v in verdict.violations)
        assert {v.rule for v in verdict.violations} == {"A6"}


@pytest.mark.parametrize(("members", "blamed"), [("n1#2 n2#2 n3#2", []), ("n1#2 n2#2", []), ("n1#2", ["A6"])])
def test_a6_formed_anew_after_a_crash_of_all(members: str, blamed: list[str]) -> None:
    hand = Hand()
    for m in members.split():
        hand.join(m.partition("#")[0], 2, *members.split())
    assert hand.blamed() == blamed


def test_a6_views_go_up_and_out_is_the_end() -> None:
    hand = without_n3()
    hand.install(2, *TWO, at="n1")
    assert hand.blamed() == ["A6"]
    hand = without_n3()
    hand.write("n3", event="out", why="excluded")
    assert hand.blamed() == []
    hand.write("n3", event="stop")
    assert hand.blamed() == ["A6"]


# A8: only those that are in the final view


def test_a8_nobody_waits_for_what_one_that_has_gone_sent_or_was_sent() -> None:
    hand = Hand()
    write(hand, "bob", "n3")  # dropped
    m = write(hand)
    hand.deliver(m, "f@n3")  # never ends
    hand.install(2, *TWO)
    hand.perform(m, "f@n1", "f@n2")
    hand.stop(at=TWO)
    assert hand.blamed(ended=True) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("never delivered", "1:tran@n1:0 (ann/1) was never delivered at f@n2"),
        ("never ended", "ann/1 at f@n2 never ended"),
        ("open", "n1 stopped with a call"),
        ("no state", "f@n3#3 never got its state"),
        ("old view", "n2 stopped in view 2; the last one is 3"),
    ],
)
def test_a8_what_is_left_over_in_the_final_view(wrong: str, says: str) -> None:
    hand = Hand()
    m = write(hand)
    hand.perform(m, "f@n1")
    if wrong == "never ended":
        hand.deliver(m, "f@n2")
    elif wrong != "never delivered":
        hand.perform(m, "f@n2")
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3", at="n1" if wrong == "old view" else "n1 n2")
    states(hand, "f@n3" if wrong == "no state" else "")
    hand.stop(*(["a call"] if wrong == "open" else []))
    violations = hand.judge().violations
    assert {v.rule for v in violations} == {"A8"}
    assert says in [v.text for v in violations]


def test_a8_a_dead_member_is_not_kept() -> None:
    """That the run has ended only the caller can know."""
    hand = Hand()
    hand.stop(at=TWO)
    assert hand.blamed() == []
    assert [str(v) for v in hand.judge(ended=True).violations] == ["A8: n3 has ended, but is still in view 1"]


# A9: no stop


def no_stop(delivered: float, conflicting: bool = False, origin: str = "n1", begun: str = "change") -> Hand:
    """n3 crashes at 10, the change lasts until 60; ann sends at 20."""
    hand = Hand()
    hand.at = 9.0
    if conflicting:
        hand.deliver(write(hand, "bob", "n2", "n1"), "f@n1")
    if begun == "change":
        hand.write("n1", event="change", members=("n3",))
    else:
        hand.perform(write(hand, "eve", "n3", "n3"), "f@n3")
    hand.at = 20.0
    m = write(hand, node=origin, where="n1,n2")
    hand.at = delivered
    hand.perform(m, "f@n1", "f@n2")
    hand.at = 60.0
    hand.install(2, *TWO)
    return hand


@pytest.mark.parametrize("begun", ["change", "crash"])
@both
def test_a9_what_survivors_send_each_other_is_delivered_meanwhile(right: bool, begun: str) -> None:
    hand = no_stop(30.0 if right else 61.0, begun=begun)
    assert hand.blamed(no_stop=20.0) == ([] if right else ["A9", "A9"])
    assert hand.blamed() == [], "without a bound it is not asked"


def test_a9_not_what_has_to_wait_or_comes_from_the_departed() -> None:
    verdict = no_stop(61.0, conflicting=True).judge(no_stop=20.0)
    assert [v.text.split()[0] for v in verdict.violations if v.rule == "A9"] == ["f@n2"], "at n1 another one is running"
    assert no_stop(61.0, origin="n3").blamed(no_stop=20.0) == []


def test_a9_not_what_waits_for_one_that_precedes_it() -> None:
    hand = Hand()
    ann = hand.client("ann", "n1")
    hand.at = 9.0
    hand.write("n1", event="change", members=("n3",))
    hand.at = 20.0
    first, second = hand.send(ann, "f.c@n1"), hand.send(ann, "f.c@n1")
    hand.at = 61.0
    hand.in_order("f@n1", True, first, second)
    hand.install(2, *TWO)
    assert [v.text.split()[2] for v in hand.judge(no_stop=20.0).violations] == ["ann/1"]


def silent(crashed: bool) -> Hand:
    """n3 joins in view 3, while n2 crashes, or is only slow; ann's request goes to n1 and n2. Both are in view 3."""
    hand = Hand()
    hand.at = 5.0
    hand.write("n1", event="change", members=("n3",))
    hand.install(2, *TWO)
    hand.at = 9.0
    hand.write("n1", event="change", members=())
    hand.write("n2", event="change", members=())
    hand.at = 20.0
    m = write(hand, node="n1", where="n1,n2")
    hand.install(3, "n1", "n2", "n3#3", at="n1" if crashed else "n1 n2")
    hand.at = 61.0
    if crashed:
        hand.install(4, "n1", "n3#3", at="n1")
        hand.perform(m, "f@n1")
    else:
        hand.perform(m, "f@n1", "f@n2")
    return hand


def test_a9_not_what_waits_for_a_life_that_ends_while_the_view_changes() -> None:
    """It is a member of the next view, too, and leaves only with the one after that."""
    assert silent(crashed=True).blamed(no_stop=20.0) == []
    assert silent(crashed=False).blamed(no_stop=20.0) == ["A9", "A9"]


@both
def test_a9_not_what_waits_for_what_its_caller_was_sent_after(right: bool) -> None:
    """ann reads f at n1, and calls g, which calls f at n1: the context of that call names the read."""
    hand = Hand()
    ann, bob = hand.client("ann", "n1"), hand.client("bob", "n1")
    hand.at = 9.0
    hand.write("n1", event="change", members=("n3",))
    hand.at = 20.0
    read = hand.send(ann if right else bob, "f.r@n1")
    outer = hand.deliver(hand.send(ann, "g.c@n1"), "g@n1")
    inner = hand.send(outer, "f.c@n1")
    hand.at = 61.0
    hand.in_order("f@n1", True, read, inner)
    hand.install(2, *TWO)
    blamed = [v.text.split()[2] for v in hand.judge(no_stop=20.0).violations if v.rule == "A9"]
    assert (inner.invocations["f"] in blamed) is not right


@pytest.mark.parametrize("late", ["state", "outcome"])
@both
def test_a9_not_what_waits_for_an_outcome_that_its_node_has_not_heard(right: bool, late: str) -> None:
    """ann aborts a transaction, and calls f at n2. tran there has no state yet, or not that outcome (500043)."""
    hand = Hand()
    hand.objects["tran"] = Placed(tuple(f"tran@{n}" for n in NODES), (("abort", "abort"),), False)
    if late == "state":
        hand.install(2, "n1", "n3", at="n1 n3")
        hand.join("n2", 3, "n1", "n2#3", "n3")
        hand.install(3, "n1", "n2#3", "n3", at="n1 n3")
        hand.hand_over("f@n1", "f@n2")
    ann, bob = hand.client("ann", "n1"), hand.client("bob", "n1")
    abort = hand.send(ann if right else bob, "tran.abort@n1,n2")
    hand.perform(abort, "tran@n1")
    hand.at = 9.0
    hand.write("n1", event="change", members=("n3",))
    hand.at = 20.0
    m = hand.send(ann, "f.c@n2")
    hand.at = 61.0
    if late == "state":
        hand.hand_over("tran@n1", "tran@n2")
    else:
        hand.perform(abort, "tran@n2")
    hand.perform(m, "f@n2")
    hand.install(4, "n1", "n2#3" if late == "state" else "n2", at="n1 n2")
    blamed = [v.text for v in hand.judge(no_stop=20.0).violations if v.rule == "A9"]
    assert any(m.invocations["f"] in text for text in blamed) is not right


# A10: nothing acknowledged is lost


def acknowledged(*received: str, durable: bool = False, nodes: str = "n1 n2 n3") -> tuple[Hand, Sent]:
    """ann's call is answered; nobody says that it was agreed on, so A5 does not ask."""
    hand = Hand(tuple(nodes.split()), durable=durable)
    ann = hand.client("ann", "n3")
    m = hand.send(ann, "f.w@n1,n2,n3", "sync")
    hand.perform(m, *received)
    hand.receive(ann, m, *received, receipt=f"quorum({len(received)})")
    return hand, m


@pytest.mark.parametrize(("received", "blamed"), [(("f@n1", "f@n3"), ["A10"]), (("f@n3",), [])])
def test_a10_what_a_majority_acknowledged_the_others_perform(received: tuple[str, ...], blamed: list[str]) -> None:
    hand, _ = acknowledged(*received)
    hand.install(2, *TWO)
    hand.stop(at=TWO)
    assert hand.blamed() == blamed
    assert hand.judge().unpromised == 0


def test_a10_and_not_only_to_abort_it() -> None:
    hand, m = acknowledged("f@n1", "f@n3")
    hand.install(2, *TWO)
    hand.end(hand.deliver(m, "f@n2"), committed=False)
    hand.stop(at=TWO)
    assert set(hand.blamed()) == {"A7", "A10"}


@pytest.mark.parametrize(("left", "unpromised"), [("n1 n4 n5", 1), ("n1 n2 n4 n5", 0)])
def test_a10_is_not_promised_when_a_change_takes_a_majority_of_the_replicas(left: str, unpromised: int) -> None:
    """Five nodes, three of them with a replica."""
    hand, _ = acknowledged("f@n2", "f@n3", nodes="n1 n2 n3 n4 n5")
    hand.install(2, *left.split())
    hand.stop(at=tuple(left.split()))
    assert hand.judge().unpromised == unpromised
    assert hand.blamed() == ([] if unpromised else ["A10"])


@both
def test_a10_who_joins_has_it_too(right: bool) -> None:
    hand, _ = acknowledged(*ALL)
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    states(hand, "" if right else "f@n3")
    if not right:
        hand.adopt("f@n3", "")
    hand.stop()
    assert hand.blamed() == ([] if right else ["A10"])


@pytest.mark.parametrize("durable", [False, True])
def test_a10_is_not_promised_when_all_crash_unless_the_object_is_durable(durable: bool) -> None:
    hand, _ = acknowledged(*ALL, durable=durable)
    everybody = ("n1#2", "n2#2", "n3#2")
    for n in ("n1", "n2", "n3"):
        hand.join(n, 2, *everybody)
        for name in ("f", "g", "o"):
            hand.adopt(f"{name}@{n}", "")
    hand.stop()
    assert hand.blamed() == (["A10"] * 3 if durable else [])
    assert hand.judge().unpromised == (0 if durable else 3)


def everybody_crashes(hand: Hand, ticket: str) -> None:
    """f begins with what is on the disk of n1."""
    everybody = ("n1#2", "n2#2", "n3#2")
    for n in ("n1", "n2", "n3"):
        hand.join(n, 2, *everybody)
        for name in ("f", "g", "o"):
            hand.adopt(f"{name}@{n}", ticket if name == "f" else "")


@pytest.mark.parametrize("durable", [False, True])
@both
def test_a10_what_a_read_has_told_of_is_not_lost(right: bool, durable: bool) -> None:
    """One replica has performed a change, and answered a read that follows it."""
    hand = Hand(durable=durable)
    ann, bob = hand.client("ann", "n3"), hand.client("bob", "n3")
    change = hand.send(ann, "f.w@n1,n2,n3")
    before = hand.snapshot("f@n1", "n3")
    hand.perform(change, "f@n1")
    read = hand.send(bob, "f.r@n1", "sync")
    hand.perform(read, "f@n1")
    hand.receive(bob, read, "f@n1", receipt="srec")
    everybody_crashes(hand, hand.snapshot("f@n1", "n3") if right else before)
    hand.stop()
    assert hand.blamed() == (["A10"] * 3 if durable and not right else [])


def test_a10_a_call_that_came_back_is_lost_with_the_one_that_waited() -> None:
    """It ended before that one, and was answered to the object between them."""
    hand = Hand(durable=True)
    ann = hand.client("ann", "n3")
    outer = hand.send(ann, "f.w@n1,n2,n3", "sync")
    waits = hand.deliver(outer, "f@n1")
    between = hand.deliver(hand.send(waits, "g.w@n1", "sync"), "g@n1")
    back = hand.send(between, "f.w@n1,n2,n3", "sync")
    hand.perform(back, "f@n1")
    for at in ("f@n2", "f@n3"):
        hand.deliver(outer, at)
        hand.perform(back, at)
    hand.receive(between, back, *ALL, receipt="quorum(2)")
    ticket = hand.snapshot("f@n1", "n3")
    everybody_crashes(hand, ticket)
    hand.stop()
    assert "A10" not in hand.blamed()
    assert hand.judge().unpromised


# torn: what a life that crashed has not written down


def test_a_receipt_of_what_a_crashed_life_did_not_write_down() -> None:
    hand = Hand()
    ann = hand.client("ann", "n1")
    m = hand.send(ann, "f.w@n1,n2,n3", "sync")
    hand.perform(m, "f@n1", "f@n2")
    hand.receive(ann, m, "f@n1", "f@n3")  # n3 has answered, but its records of that are lost
    hand.install(2, *TWO)
    hand.stop(at=TWO)
    verdict = hand.judge()
    assert (verdict.violations, verdict.torn, verdict.crashed) == ([], 1, 1)
    hand.write("n3", event="out")  # it did not crash: then it never performed it
    assert hand.blamed() == ["A1"]


def test_a_state_that_a_crashed_life_gave_without_writing_it_down() -> None:
    hand = Hand()
    hand.perform(write(hand, where="n1,n2"), "f@n1", "f@n2")
    hand.install(2, *TWO)
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    states(hand)
    hand.state("f@n3", "x")
    hand.install(4, "n2", "n3#3")
    n1 = hand.traces["n1"].records
    del n1[next(n for n, r in enumerate(n1) if r.event == "snapshot") :]
    hand.stop(at=("n2", "n3"))
    verdict = hand.judge()
    assert (verdict.violations, verdict.torn, verdict.crashed) == ([], 3, 2)


@pytest.mark.parametrize(("received", "blamed"), [(("f@n1", "f@n2"), []), (("f@n1",), ["P0 §3.2"])])
def test_crec_does_not_wait_for_those_that_have_gone(received: tuple[str, ...], blamed: list[str]) -> None:
    hand = Hand()
    ann = hand.client("ann", "n1")
    m = hand.send(ann, "f.w@n1,n2,n3", "sync")
    hand.perform(m, "f@n1", "f@n2")
    hand.install(2, *TWO)
    hand.receive(ann, m, *received, receipt="crec")
    assert hand.blamed() == blamed
