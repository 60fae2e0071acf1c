"""How members decide the next view (framework.com.member): attempts, ballots, and words that make no sense."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.events import Arrived, Depart, Evict, Heard, Isolated, Out, Transmit
from framework.com.link import Timing
from framework.com.member import KEPT
from framework.com.messages import Frame, encode
from framework.com.telling import Dropped
from framework.com.view import View
from framework.com.words import (
    NONE,
    Accept,
    Accepted,
    Ballot,
    Decided,
    Decision,
    Excluded,
    Hello,
    Prepare,
    Promise,
    Refuse,
    Report,
    decode,
)
from framework.errors import BadMessage, BadRequest
from framework.ids import Node
from tests.com.council import FIVE, LATE, N1, N2, N3, N4, N5, Council, Word, but, of
from tests.com.fingerprint import fingerprint
from tests.tiers import examples

NEXT = Decision(View(2, (N1, N2, N3, N4), (1, 1, 1, 1), (1, 1, 1, 1)), (N5,))
quick = settings(derandomize=True, deadline=None, max_examples=examples(25, 60))


# attempts


def test_an_attempt() -> None:
    council = Council()
    council.attempt(N1, N5)
    assert {w.target for w in council.said(Prepare)} == {N2, N3, N4}, "not to the one who leaves, nor over the network"
    council.pass_on()
    assert {w.source for w in council.said(Promise)} == {N2, N3, N4}
    council.pass_on()
    assert len(council.said(Accept)) == 3
    council.pass_on()
    assert not council.views(N1)
    council.pass_on()
    assert {w.target for w in council.said(Decided)} == {N2, N3, N4, N5}
    council.run()
    assert all(council.views(n) == [council.com[N1].lives.view] for n in (N1, N2, N3, N4))
    assert council.views(N1)[0].members == (N1, N2, N3, N4)
    assert council.out(N5)


def test_a_majority_that_has_accepted_is_enough() -> None:
    """All who stay must promise; but the decision is made when three of five have accepted."""
    council = Council()
    council.attempt(N1, N5)
    council.run(but(Accept))
    council.pass_on(of(Accept, N2))
    council.pass_on(of(Accepted))
    assert not council.views(N1), "n1 and n2 are two"
    council.pass_on(of(Accept, N3))
    council.pass_on(of(Accepted))
    assert len(council.views(N1)) == 1


def test_the_same_word_twice_counts_once() -> None:
    council = Council()
    council.attempt(N1, N5)
    council.run(but(Accept))
    council.pass_on(of(Accept, N2))
    (word,) = council.said(Accepted)
    for _ in range(5):
        council.arrive(word)
    assert not council.views(N1)


def test_lost_words_are_said_again() -> None:
    council = Council()
    council.attempt(N1, N5)
    for _ in range(4):
        council.bag.clear()
        council.tick(N1)
        council.pass_on()
        council.tick(N1)
    council.bag.clear()
    for _ in range(10):
        council.tick(N1)
        council.run()
    assert len(council.views(N1)) == 1 == len(council.views(N4))


def test_a_later_ballot_is_refused_nowhere_and_an_earlier_one_is() -> None:
    """n1 and n2 try in the same round; (1, n2) is the later ballot."""
    council = Council()
    council.attempt(N1, N5)
    council.attempt(N2, N5)
    council.pass_on(of(Prepare, N3, N4))  # those of n1 first
    assert council.com[N3].member.promised == Ballot(1, N2)
    council.bag.clear()
    council.tick(N1)
    council.pass_on(of(Prepare, N3))
    (refused,) = [w.word for w in council.said(Refuse) if w.source == N3]
    assert (refused.ballot, refused.promised) == (Ballot(1, N1), Ballot(1, N2))
    assert council.com[N3].member.promised == Ballot(1, N2)
    council.pass_on(of(Refuse, N1))
    assert council.com[N1].member.attempt is None, "somebody else tries"


def test_who_was_refused_tries_later_with_a_higher_round() -> None:
    council = Council()
    council.attempt(N1, N5)
    ballot = Ballot(7, N3)
    council.step(N1, Arrived(N3, encode(Refuse(N3, 1, 1, Ballot(1, N1), ballot))))
    assert council.com[N1].member.attempt is None
    council.tick(N1, later=LATE)
    council.tick(N1, later=LATE)
    attempt = council.com[N1].member.attempt
    assert attempt is not None and attempt.ballot == Ballot(8, N1)


@pytest.mark.parametrize("far", [1.5, 5.0])
def test_two_that_want_different_views_do_not_overtake_each_other_for_ever(far: float) -> None:
    """n1 evicts n2, and n4 leaves: each of the two would try at once. n3 is far away, so that an attempt takes longer
    than they wait at first; and n2 and n1 take over what seems to be left half-way."""
    council = Council((N1, N2, N3, N4))
    council.step(N1, Evict(N2))
    council.step(N4, Depart())
    way: list[tuple[float, Word]] = []
    ballots: set[Ballot] = set()
    while council.com[N1].lives.view.members != (N1, N3) and council.now < 150.0:
        council.tick(*[n for n in council.com if not council.out(n)], later=0.25)
        ballots |= {w.word.ballot for w in council.said(Prepare)}
        way += [(council.now + (far if N3 in (w.source, w.target) else 0.25), w) for w in council.bag]
        council.bag, due = [], [w for at, w in way if at <= council.now]
        way = [(at, w) for at, w in way if at > council.now]
        for word in due:
            if not council.out(word.target):
                council.arrive(word)
    assert council.com[N1].lives.view.members == (N1, N3), f"{len(ballots)} ballots by {council.now:g}"


def test_an_earlier_accept_is_refused() -> None:
    council = Council()
    council.attempt(N1, N5)
    council.run(but(Accept))
    council.step(N3, Arrived(N2, encode(Prepare(N2, 1, 1, Ballot(2, N2), (N4,)))))
    council.bag = [w for w in council.bag if isinstance(w.word, Accept)]
    council.pass_on(of(Accept, N3))
    assert council.com[N3].member.accepted is None
    assert [w.word.promised for w in council.said(Refuse)] == [Ballot(2, N2)]


def test_what_one_has_accepted_is_carried_over() -> None:
    """n3 alone has accepted the decision of n1, which is gone. It may have been decided, for all that n2 knows."""
    council = Council()
    council.attempt(N1, N5)
    council.run(but(Accept))
    council.pass_on(of(Accept, N3))
    decision = council.com[N3].member.accepted[1]  # type: ignore[index]
    del council.com[N1]
    council.bag.clear()
    council.attempt(N2, N1)
    council.run()
    assert council.views(N2) == [decision.view], "n1 is a member of it, though it was to leave"
    for _ in range(4):
        council.tick(N2, later=LATE)
        council.run()
    assert [v.members for v in council.views(N2)] == [(N1, N2, N3, N4), (N2, N3, N4)]


def test_of_two_that_were_accepted_the_later_one_is_carried_over() -> None:
    council = Council()
    member = council.com[N1].member
    one = Decision(View(2, (N1, N2, N3, N4), (1,) * 4, (1,) * 4), (N5,))
    two = Decision(View(2, (N1, N2, N3, N5), (1,) * 4, (1,) * 4), (N4,))
    council.step(N1, Arrived(N3, encode(Prepare(N3, 1, 1, Ballot(3, N3), ()))))
    member._begin(frozenset(), council.now)
    assert member.attempt is not None
    ballot = member.attempt.ballot
    for node, accepted in ((N2, (Ballot(1, N5), one)), (N3, (Ballot(3, N3), two)), (N4, None), (N5, None)):
        council.step(N1, Arrived(node, encode(Promise(node, 1, 1, ballot, Report(), accepted=accepted))))
    assert {w.word.decision for w in council.said(Accept)} == {two}


def test_who_has_promised_thaws_only_with_the_next_view() -> None:
    """An attempt that was left half-way is finished by another one, here with a view of the same members."""
    council = Council()
    council.attempt(N1, N5)
    council.run(but(Promise))
    assert council.com[N3].member.frozen.keys() == {N5}
    del council.com[N1], council.com[N4].member.outsiders
    council.com[N4].member.outsiders = {}
    council.bag.clear()
    council.com[N3].member.unwanted.add(N1)
    for _ in range(6):
        council.tick(N2, N3, N4, N5, later=LATE)
        council.run()
    assert council.views(N3)[0].members == (N2, N3, N4, N5)
    assert council.com[N3].member.frozen == {} and council.com[N3].member.state == "steady"


Actions = list[tuple[str, int]]
actions = st.lists(st.tuples(st.sampled_from(["take", "take", "take", "lose", "twice", "tick"]), st.integers(0, 40)))


@quick
@given(actions=actions)
def test_one_decision_per_version(actions: Actions) -> None:
    """Three members try to get three different ones out, and words arrive in any order, twice, or never. There is one
    decision per version, whatever happens; and once words arrive, all who are left are in the same view."""
    council = Council()
    decided: dict[int, Any] = {}
    for node, without in ((N1, N5), (N2, N4), (N3, N1)):
        council.step(node, Evict(without))
    council.tick()
    for what, number in actions:
        if what == "tick":
            council.tick(FIVE[number % 5], later=LATE)
        elif council.bag:
            word = council.bag[number % len(council.bag)]
            if what != "twice":
                council.bag.remove(word)
            if what != "lose":
                council.arrive(word)
        look(council, decided)
    for _ in range(12):
        council.run()
        look(council, decided)
        council.tick(later=LATE)
    members = [n for n in FIVE if not council.out(n)]
    assert len({council.com[n].lives.view for n in members}) == 1
    assert council.com[members[0]].lives.view.members == tuple(members)
    assert 2 <= len(members) < 5, "each view has a majority of the one before"


def look(council: Council, decided: dict[int, Any]) -> None:
    for node in FIVE:
        for view in council.views(node):
            assert decided.setdefault(view.version, view) == view
        last = council.com[node].member.last
        if last is not None and last.view.version > 1:
            assert decided.setdefault(-last.view.version, last) == last, "the same flush, too"


# who is wanted, who is not


def test_eviction_of_a_stranger() -> None:
    council = Council((N1, N2, N3))
    with pytest.raises(BadRequest, match="'n4' is not a member of view 1: n1, n2, n3"):
        council.step(N1, Evict(N4))
    assert not council.com[N1].member.unwanted


def test_eviction_of_too_many() -> None:
    council = Council((N1, N2, N3))
    council.step(N1, Evict(N2))
    with pytest.raises(BadRequest, match="without n3 only 1 of the 3 members of view 1 would be left; 2 are needed"):
        council.step(N1, Evict(N3))
    assert council.com[N1].member.unwanted == {N2}


def test_a_member_leaves_in_order_with_the_help_of_the_others() -> None:
    council = Council((N1, N2, N3))
    council.step(N3, Depart())
    council.tick(N3)
    council.run()
    assert council.out(N3) and council.views(N1)[0].members == (N1, N2)
    (out,) = [e for e in council.heard[N3] if isinstance(e, Out)]
    assert "left in order" in out.why
    assert council.com[N3].step(Arrived(N1, b"anything"), 99.0) == [], "it is out: nothing reaches it"


def test_a_new_incarnation_ends_the_old_life() -> None:
    """n5 has crashed and is up again before anybody noticed: in one change the old life leaves, the new one joins."""
    council = Council()
    council.step(N1, Arrived(N5, encode(Hello(N5, 2))))
    council.tick(N1)
    del council.com[N5]
    council.run()
    (view,) = council.views(N1)
    assert view.members == FIVE and view.life(N5) == 2 and view.incarnation(N5) == 2
    assert council.com[N1].links[N5].theirs == 2


def test_who_wants_to_leave_stays_until_enough_are_left() -> None:
    """n2 has crashed, and the two others are about to leave: without each other neither of them could let it in again,
    and then nobody ever decided anything (A8)."""
    council = Council((N1, N2, N3))
    del council.com[N2]
    for node in (N1, N3):
        council.step(node, Depart())
    for _ in range(4):
        for node in (N1, N3):
            council.step(node, Arrived(N2, encode(Hello(N2, 2))))
        council.tick(later=LATE)
        council.run()
    first = council.views(N1)[0]
    assert (first.members, first.life(N2)) == ((N1, N2, N3), 2)
    assert council.views(N3)[0] == first


def test_an_outsider_that_is_not_heard_any_more_is_forgotten() -> None:
    council = Council((N1, N2, N3))
    council.step(N2, Arrived(N4, encode(Hello(N4, 2))))
    council.tick(N2)
    assert council.com[N2].member.outsiders.keys() == {N4}
    council.tick(N2, later=2 * LATE)
    assert council.com[N2].member.outsiders == {}


def test_a_member_that_missed_its_admission_is_told_again() -> None:
    """Its Hello has the incarnation that the view names: the decision did not reach it."""
    council = Council()
    council.step(N1, Arrived(N5, encode(Hello(N5, 1))))
    assert [w.target for w in council.said(Decided)] == [N5]
    assert council.com[N1].member.outsiders == {}


def test_isolated_and_back() -> None:
    council = Council((N1, N2, N3), Timing(suspect_after=30.0))
    for _ in range(40):
        council.tick(N1, later=1.0)
    assert [e.yes for e in council.heard[N1] if isinstance(e, Isolated)] == [True]
    assert council.com[N1].member.state == "isolated"
    assert not council.said(Prepare)
    council.hear(N1, N2)
    council.tick(N1, later=1.0)
    assert [e.yes for e in council.heard[N1] if isinstance(e, Isolated)] == [True, False]


def test_a_peer_that_sends_a_large_frame_is_not_suspected() -> None:
    """Pieces of it are all that comes from n2 for a while; n3 says nothing."""
    council = Council((N1, N2, N3), Timing(suspect_after=30.0))
    for _ in range(100):
        council.tick(N1, later=1.0)
        council.step(N1, Heard(N2))
    assert set(council.com[N1].member.suspects) == {N3}
    council.step(N1, Heard(Node("n9")))  # it is no member: that changes nothing
    assert set(council.com[N1].member.suspects) == {N3}


def test_what_was_on_its_way_before_a_cut_does_not_end_isolation() -> None:
    """Frames of n2 and n3 come when the network is whole again. They were sent before the two went on without n1."""
    council = Council((N1, N2, N3), Timing(suspect_after=30.0))
    for _ in range(40):
        council.tick(N1, later=1.0)
    assert council.com[N1].member.state == "isolated"
    for peer in (N2, N3):
        council.step(N1, Arrived(peer, encode(Frame(peer, 1, 0, 0, 0, 1))))
    council.tick(N1, later=1.0)
    assert not council.com[N1].member.suspects
    assert council.com[N1].member.state == "isolated" and not council.com[N1].member.sureness.whole
    council.hear(N1, N2)
    council.tick(N1, later=1.0)
    assert council.com[N1].member.state == "steady" and council.com[N1].member.sureness.whole


def test_who_stood_still_is_not_sure_before_a_majority_answers() -> None:
    """The others may have gone on without it meanwhile. It is not isolated: its calls go on."""
    council = Council(FIVE, Timing(suspect_after=30.0))
    com = council.com[N1]
    council.tick(N1)
    assert com.member.sureness.whole
    council.tick(N1, later=100.0)
    assert not com.member.sureness.whole and com.member.state == "steady"
    council.step(N1, Arrived(N2, encode(Frame(N2, 1, 0, 0, 0, 1))))
    council.hear(N1, N3)
    assert not com.member.sureness.whole, "n1 and n3 are two; n2 has acknowledged nothing"
    council.hear(N1, N4)
    assert com.member.sureness.whole
    council.tick(N1, later=1.0)
    assert com.member.sureness.whole


def test_a_view_that_was_decided_before_it_stood_still_proves_nothing() -> None:
    """A later one may be without it. Only those who stay are asked; who joins knows the view."""
    council = Council(FIVE, Timing(suspect_after=30.0))
    com = council.com[N1]
    council.tick(N1)
    council.tick(N1, later=100.0)
    council.step(N1, Arrived(N2, encode(Decided(N2, NEXT))))
    assert com.view == 2 and not com.member.sureness.whole
    council.hear(N1, N2, N3)
    assert com.member.sureness.whole


def test_all_that_are_isolated_find_out_that_nothing_has_changed() -> None:
    """Nobody could decide anything meanwhile: the view goes on, and nobody begins anew."""
    council = Council((N1, N2, N3), Timing(suspect_after=30.0))
    for _ in range(40):
        council.tick(later=1.0)
    for node in (N1, N2, N3):
        for peer in {N1, N2, N3} - {node}:
            council.step(node, Arrived(peer, encode(Frame(peer, 1, 0, 0, 0, 1))))
        council.tick(node, later=1.0)
        assert council.com[node].member.state == "isolated"
        council.hear(node, *({N1, N2, N3} - {node}))
        council.tick(node)
        assert council.com[node].member.state == "steady"


def test_who_was_left_out_for_its_silence_is_let_in_as_soon_as_it_is_heard_again() -> None:
    """n3 is heard by n1 first: n2 does not hear it yet, so it is not let in. Nobody waits longer than n2 does."""
    council = Council((N1, N2, N3), Timing(suspect_after=30.0))
    for _ in range(40):
        for node, other in ((N1, N2), (N2, N1)):
            council.hear(node, other)
            council.tick(node, later=0.5)
        council.run()
    assert council.com[N1].view == 2 == council.com[N2].view
    council.bag.clear()

    def asks(*nodes: Node) -> None:
        for _ in range(40):
            for node in nodes:
                council.step(node, Arrived(N3, encode(Hello(N3, 7))))
            for node, other in ((N1, N2), (N2, N1)):
                council.hear(node, other)
                council.tick(node, later=0.5)
            council.run()

    asks(N1)
    assert council.com[N1].lives.view.life(N3) is None and council.com[N1].view > 2, "refused"
    before = council.now
    council.step(N2, Arrived(N3, encode(Hello(N3, 7))))
    while council.com[N2].lives.view.life(N3) is None:
        council.hear(N1, N2), council.hear(N2, N1)
        council.tick(N1, N2, later=0.5)
        council.run()
        assert council.now - before < 3 * council.com[N2].member.patience, "three attempts at most"
    assert council.com[N1].lives.view.incarnation(N3) == 7


# words that make no sense


def unchanged(council: Council, node: Node, peer: Node, data: bytes, says: str = "") -> None:
    """Refused, if ``says`` says how, or without any consequence; and the state is what it was."""
    before = fingerprint(council.com[node])
    if says:
        with pytest.raises(BadMessage, match=says):
            council.step(node, Arrived(peer, data))
    else:
        council.step(node, Arrived(peer, data))
        assert council.bag == []
    assert fingerprint(council.com[node]) == before


FAR = View(1 << 40, FIVE, (1,) * 5, (1,) * 5)
NONSENSE = {
    "in the name of another": (N2, Hello(N3, 1), "from n2: says it comes from 'n3'"),
    "from an unknown node": (Node("x9"), Hello(Node("x9"), 1), "'x9', which is not a member"),
    "from itself": (N1, Hello(N1, 1), "'n1', which is not a member"),
    "a decision far ahead": (N2, Decided(N2, Decision(FAR)), "was decided, but n1 is in view 1"),
    "a prepare far ahead": (N2, Prepare(N2, 1, 1 << 40, Ballot(1, N2), ()), ""),
    "a promise far ahead": (N2, Promise(N2, 1, 1 << 40, Ballot(1, N2), Report()), ""),
    "an accept far ahead": (N2, Accept(N2, 1, 1 << 40, Ballot(1, N2), NEXT), ""),
    "an old decision": (N2, Decided(N2, Decision(View(1, FIVE))), ""),
    "excluded from the view it is in": (N2, Excluded(N2, View(1, (N2, N3))), ""),
    "excluded from a view that has it": (N2, Excluded(N2, View(9, FIVE)), ""),
    "a promise that nobody asked for": (N2, Promise(N2, 1, 1, Ballot(1, N1), Report()), ""),
    "accepted, but what?": (N2, Accepted(N2, 1, 1, Ballot(1, N1)), ""),
}


@pytest.mark.parametrize(("peer", "word", "says"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense(peer: Node, word: Any, says: str) -> None:
    unchanged(Council(), N1, peer, encode(word), says)


@pytest.mark.parametrize("word", [Prepare(N2, 1, 1, Ballot(2, N2), (N5,)), Decided(N2, NEXT), Hello(N2, 3)])
def test_what_is_cut_off_or_goes_on(word: Any) -> None:
    council = Council()
    data = encode(word)
    for end in range(len(data)):
        unchanged(council, N1, N2, data[:end], "frame from n2")
    unchanged(council, N1, N2, data + b"\0", "frame from n2")


def test_one_who_is_no_member_is_told_so() -> None:
    """A member of an earlier life votes: it does not know that it is over. Told at most once in a while."""
    council = Council((N1, N2, N3))
    word = encode(Prepare(N4, 1, 1, Ballot(1, N4), (N1,)))
    for _ in range(3):
        council.step(N1, Arrived(N4, word))
    assert [(w.target, type(w.word)) for w in council.bag] == [(N4, Excluded)]
    assert council.com[N1].member.promised == NONE


def test_who_is_to_leave_does_not_promise() -> None:
    council = Council()
    unchanged(council, N5, N1, encode(Prepare(N1, 1, 1, Ballot(1, N1), (N5,))))


def test_frames_of_a_later_view_are_kept_within_bounds() -> None:
    council = Council((N1, N2, N3))
    for n in range(KEPT + 100):
        council.com[N1].step(Arrived(N2, encode(Frame(N2, 2, n + 1, 0, 0, 1))), 1.0)
    assert len(council.com[N1].member.later) == KEPT


def test_frames_of_one_who_leaves_are_kept_and_used_if_it_stays() -> None:
    """n1 is frozen at n2 by an attempt that comes to nothing; the next view has n1, and what it said is heard."""
    council = Council((N1, N2, N3))
    com = council.com[N2]
    council.step(N2, Arrived(N3, encode(Prepare(N3, 1, 1, Ballot(1, N3), (N1,)))))
    assert [e for e in council.heard[N2] if isinstance(e, Dropped)] == []
    council.step(N2, Arrived(N1, encode(Frame(N1, 1, 0, 0, 0, 77))))
    assert com.clock < 77 and len(com.member.frozen[N1]) == 1
    same = View(2, (N1, N2, N3), (1, 1, 1), (1, 1, 1))
    council.step(N2, Arrived(N3, encode(Decided(N3, Decision(same)))))
    assert com.clock >= 77 and com.member.frozen == {}


def test_a_kept_frame_that_is_bad_is_told_not_raised() -> None:
    """It is examined when its view begins; the step that installs the view must not fail for it."""
    council = Council((N1, N2, N3))
    bad = Frame(N1, 2, 0, 99, 0, 1)  # acknowledges what was never sent
    council.step(N2, Arrived(N1, encode(bad)))
    same = View(2, (N1, N2, N3), (1, 1, 1), (1, 1, 1))
    council.step(N2, Arrived(N3, encode(Decided(N3, Decision(same)))))
    assert council.com[N2].view == 2
    assert any(isinstance(e, Dropped) and "acknowledges 99" in e.why for e in council.heard[N2])


def test_one_who_lags_is_told_the_decision() -> None:
    council = Council()
    council.attempt(N1, N5)
    council.run(lambda w: not (isinstance(w.word, Decided) and w.target == N4))
    council.bag.clear()
    assert (council.com[N1].view, council.com[N4].view) == (2, 1)
    council.now += 1.0
    council.step(N1, Arrived(N4, encode(Frame(N4, 1, 0, 0, 0, 1))))
    council.run()
    assert council.com[N4].view == 2


def test_words_are_not_frames_to_who_is_out_of_date() -> None:
    """Frames of one who was excluded get an answer that is a word: it works without a link."""
    council = Council()
    council.attempt(N1, N5)
    council.run(but(Decided))
    council.pass_on(of(Decided, N2, N3, N4))
    council.bag.clear()
    effects = council.com[N1].step(Arrived(N5, encode(Frame(N5, 1, 0, 0, 0, 1))), council.now + 1.0)
    (told,) = [e for e in effects if isinstance(e, Transmit)]
    word = decode(told.data, N1)
    assert isinstance(word, Excluded) and word.view.version == 2
    council.step(N5, Arrived(N1, told.data))
    assert council.out(N5)
