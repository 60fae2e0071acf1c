"""What survivors have from the departed, its union, and how it is used (framework.com.flush, absence, lives)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com import flush
from framework.com.core import Com
from framework.com.entry import Entry
from framework.com.events import Deliver
from framework.com.lives import Lives, first_of
from framework.com.messages import Part, Request
from framework.com.order import Absence, Order
from framework.com.view import View
from framework.com.words import Decision, Placed, Report
from framework.footprint import Footprint, Relation
from framework.ids import GroupId, Invocation, Node, ObjectName, Replica, Stamp
from tests.com.trio import EVERYWHERE, G, W, group, nodes, request, to, write
from tests.tiers import examples

N1, N2, N3, N4 = (Node(f"n{i}") for i in range(1, 5))
quick = settings(derandomize=True, deadline=None, max_examples=examples(25, 100))
OUT = Decision(View(2, (N1, N3), (1, 1), (1, 1)), (N2,))  # n2 departs


# the union


def a_request(no: int, at: str) -> Request:
    return write(no, target=at, dests=to("f@n1", "f@n3", seq=no))


placed = st.builds(Placed, st.builds(group, st.integers(1, 4)), st.sampled_from(EVERYWHERE), st.just(7))
requests = st.builds(a_request, st.integers(1, 4), st.sampled_from(["f@n1", "f@n3"]))
reports = st.builds(Report, st.lists(placed, max_size=4).map(tuple), st.lists(requests, max_size=4).map(tuple))


@quick
@given(st.lists(reports, min_size=1, max_size=4))
def test_the_union_has_what_anybody_has(some: list[Report]) -> None:
    union = flush.union(some)
    assert set(union.proposals) == {p for r in some for p in r.proposals}
    assert {r.group for r in union.requests} == {r.group for one in some for r in one.requests}
    assert len({(r.group, r.target.partition("@")[0]) for r in union.requests}) == len(union.requests)


@quick
@given(st.lists(reports, min_size=1, max_size=4), st.randoms())
def test_the_union_does_not_depend_on_who_is_asked_first(some: list[Report], chance: Any) -> None:
    """Up to the target, which each destination sets to itself: any replica of the object holds the same content."""

    def content(report: Report) -> Any:
        return report.proposals, [(r.group, r.number) for r in report.requests]

    other = list(some)
    chance.shuffle(other)
    assert content(flush.union(some)) == content(flush.union(other))
    assert content(flush.union([flush.union(some[:1]), flush.union(some)])) == content(flush.union(some))


# which requests go on


def goes_on(*requests: Request) -> list[Request]:
    return flush._completed(after(), Decision(OUT.view, OUT.left, (), Report((), requests)))


def after() -> Lives:
    lives = Lives(N1, View(1, (N1, N2, N3)))
    lives.install(OUT.view, OUT.left, ())
    return lives


def test_a_request_that_one_survivor_has_goes_on() -> None:
    one = a_request(1, "f@n1")
    assert goes_on(one) == [one]
    alive = flush._alive(after(), [one])
    assert alive == {(Replica("f@n1"), N2): {1}, (Replica("f@n3"), N2): {1}}


def test_no_number_is_alive_at_the_departed() -> None:
    one = write(1, dests=to("f@n1", "f@n2", "f@n3"))
    assert (Replica("f@n2"), N2) not in flush._alive(after(), [one])


def test_no_number_is_alive_at_a_life_that_began_later() -> None:
    """f@n3 was a destination in version 1; in version 2 there is another life of it."""
    lives = Lives(N1, View(1, (N1, N2, N3)))
    lives.install(View(2, (N1, N3), (1, 2)), [N2, N3], [N3])
    assert flush._alive(lives, [a_request(1, "f@n1")]) == {(Replica("f@n1"), N2): {1}}


def pcast(at: str) -> Request:
    return request(1, target=at, dests=to("f@n1", "g@n1"), parts=(*W, Part(G, Footprint("a"))), ordered=True)


def test_half_of_an_act_is_void() -> None:
    """It needs agreement, and nobody has the part of g: it cannot have been agreed."""
    assert goes_on(pcast("f@n1")) == []
    assert len(goes_on(pcast("f@n1"), pcast("g@n1"))) == 2


def test_half_of_an_act_that_needs_no_agreement_goes_on() -> None:
    """Each of its parts is performed by itself, perhaps already."""
    loose = pcast("f@n1")
    loose = Request(**{**{f: getattr(loose, f) for f in loose.__struct_fields__}, "ordered": False})
    assert goes_on(loose) == [loose]


def test_a_part_that_only_the_departed_would_perform_is_not_missed() -> None:
    one = request(1, target="f@n1", dests=to("f@n1", "g@n2"), parts=(*W, Part(G, Footprint("a"))), ordered=True)
    assert goes_on(one) == [one]


# what is reported


def test_a_report_has_what_came_from_those_who_leave_and_nothing_else() -> None:
    com = nodes()[N1]
    com.hosts[Replica("f@n1")].arrive(write(1, dests=to("f@n1", "f@n2", "f@n3")))
    other = write(1, group=group(1, "tran@n3"), dests=to("f@n1", "f@n2", "f@n3"), number=9)
    com.hosts[Replica("f@n1")].arrive(other)
    com.hosts[Replica("f@n1")].order.propose(group(1, "tran@n3"), Replica("f@n2"), 11)
    com.hosts[Replica("f@n1")].order.propose(group(1, "tran@n3"), Replica("f@n3"), 9)
    report = flush.report(com, [N2])
    assert [r.group for r in report.requests] == [group(1)]
    assert report.proposals == (Placed(group(1, "tran@n3"), Replica("f@n2"), 11),)
    assert flush.report(com, []) == Report()


def test_what_is_delivered_is_reported_until_all_have_it() -> None:
    """The one replica has used it; another one may still need it."""
    com = nodes()[N1]
    host = com.hosts[Replica("f@n1")]
    host.arrive(write(1, parts=(Part(ObjectName("f"), Footprint("r")),), ordered=False))
    assert host.order.entries == {} and len(host.kept) == 1
    assert [r.group for r in flush.report(com, [N2]).requests] == [group(1)]
    host.kept.prune(host.com.known)
    assert len(host.kept) == 1
    com.known.ranges(Replica("f@n2"), N2).add(1)
    host.kept.prune(host.com.known)
    assert flush.report(com, [N2]).requests == ()


# lives


def test_lives() -> None:
    lives = Lives(N1, View(1, (N1, N2, N3)))
    assert (lives.mine, lives.base(N1, Replica("f@n2"))) == (1, 0)
    lives.install(View(2, (N1, N3), (1, 1)), [N2], [])
    assert lives.gone(Replica("f@n2"), 1) and lives.gone(Replica("f@n2"), 2) and not lives.gone(Replica("f@n3"), 1)
    assert lives.base(N2, Replica("f@n1")) == lives.base(N1, Replica("f@n2")) == first_of(2)
    assert lives.base(N1, Replica("f@n3")) == 0, "those who stay go on counting"
    lives.install(View(3, (N1, N2, N3), (1, 3, 1)), [], [N2])
    assert lives.gone(Replica("f@n2"), 2), "it went to the life before"
    assert not lives.gone(Replica("f@n2"), 3)
    assert lives.base(N2, Replica("f@n3")) == first_of(3)


@quick
@given(st.lists(st.tuples(st.sampled_from([N2, N3, N4]), st.booleans()), max_size=8))
def test_the_base_never_comes_down_and_is_the_same_everywhere(moves: list[tuple[Node, bool]]) -> None:
    """One who was there from the beginning and one who joined later begin to count at the same number."""
    since = {N1: 1, N2: 1, N3: 1, N4: 1}
    lives = Lives(N1, View(1, tuple(since)))
    version = 1
    for node, comes_back in moves:
        before = {(a, b): lives.base(a, Replica(f"f@{b}")) for a in since for b in since}
        version += 1
        joined = [node] if comes_back or node not in since else []
        left = [node] if node in since else []
        since.pop(node, None)
        if joined:
            since[node] = version
        members = tuple(sorted(since))
        view = View(version, members, tuple(since[n] for n in members))
        lives.install(view, left, joined)
        for (a, b), base in before.items():
            assert lives.base(a, Replica(f"f@{b}")) >= base
        for other in members:
            if other == N1:
                continue
            fresh = Lives(other, view)
            for a in members:
                assert fresh.base(a, Replica(f"f@{other}")) == lives.base(a, Replica(f"f@{other}"))


# the queue without the departed


def order() -> tuple[Order, Lives]:
    lives = Lives(N1, View(1, (N1, N2, N3)))
    return Order(Replica("f@n1"), Relation([("w", "w")]), True, lives), lives


def entry(queue: Order, no: int = 1, origin: str = "tran@n3", version: int = 1) -> Entry:
    return queue.announce(group(no, origin), Stamp(5, group(no, origin)), Footprint("w"), to(*EVERYWHERE), version)


def leave(queue: Order, lives: Lives, union: dict[GroupId, dict[Replica, int]], alive: set[GroupId]) -> list[Entry]:
    lives.install(View(2, (N1, N3), (1, 1)), [N2], [])
    return queue.absence.depart(queue, [N2], union, alive)


def test_nobody_waits_for_the_departed() -> None:
    queue, lives = order()
    one = entry(queue)
    assert one.wanted == 3
    leave(queue, lives, {}, set())
    assert (one.wanted, one.gone, one.heard) == (2, (Replica("f@n2"),), 0)
    assert not queue.propose(one.group, Replica("f@n2"), 99), "its word does not count any more"
    assert queue.propose(one.group, Replica("f@n3"), 9)


def test_a_proposal_counts_iff_the_union_has_it() -> None:
    """n1 has heard n2's proposal, and the others have not: they use the union, so n1 does, too."""
    for union, heard in (({}, 0), ({group(1, "tran@n3"): {Replica("f@n2"): 8}}, 8)):
        queue, lives = order()
        one = entry(queue)
        queue.propose(one.group, Replica("f@n2"), 6)
        leave(queue, lives, union, set())
        assert (one.proposals, one.heard) == ({}, heard)


def test_what_becomes_known_later_is_treated_alike() -> None:
    """The request was on its way to n1 when the view changed. It was sent in version 1: n2 counts as the union says."""
    queue, lives = order()
    leave(queue, lives, {group(1, "tran@n3"): {Replica("f@n2"): 8}}, set())
    late, new = entry(queue), entry(queue, 2, version=2)
    assert (late.wanted, late.heard) == (2, 8)
    assert new.gone == (), "what is sent in view 2 has no departed destination"


def test_what_nobody_has_is_void() -> None:
    queue, lives = order()
    lost, saved, other = entry(queue, 1, "tran@n2"), entry(queue, 2, "tran@n2"), entry(queue, 3)
    assert leave(queue, lives, {}, {saved.group}) == [lost]
    queue.forget(lost)
    assert set(queue.entries) == {saved.group, other.group}


def test_what_has_started_is_not_void() -> None:
    queue, lives = order()
    one = entry(queue, 1, "tran@n2")
    one.started = True
    assert leave(queue, lives, {}, set()) == []


def test_proposals_of_the_departed_are_forgotten_in_the_end() -> None:
    queue, lives = order()
    union = {group(n, "tran@n3"): {Replica("f@n2"): 8} for n in (1, 2)}
    leave(queue, lives, union, set())
    queue.absence.forget([group(1, "tran@n3")])
    assert (entry(queue, 1).heard, entry(queue, 2).heard) == (8, 0)


def test_without_lives_nobody_is_gone() -> None:
    absence = Absence(None)
    one = Entry(group(1), Stamp(5, group(1)), Footprint("w"), to(*EVERYWHERE))
    absence.enter(one, 1)
    assert (one.wanted, absence.base(N1, Replica("f@n2"))) == (3, 0)


@pytest.mark.parametrize("field", ["invocation", "args"])
def test_an_announced_request_that_comes_with_the_flush_is_whole(field: str) -> None:
    """n1 knew of it by an announcement; the union brings it: it is performed with all that its origin gave."""
    com = nodes()[N1]
    host = com.hosts[Replica("f@n1")]
    brought = write(1, number=6, invocation=Invocation("eve", (3,)), args=b"whole")
    host.order.announce(brought.group, Stamp(6, brought.group), Footprint("w"), brought.dests)
    host.com.waiting.setdefault(brought.group, []).append(host)
    host.bring(brought)
    found = host.order.entries[brought.group].request
    assert found is not None and getattr(found, field) == getattr(brought, field)
    host.bring(brought)
    assert len(host.order.entries) == 1, "it is here already"


# what a void request stood for


def survives(*brought: Request) -> Decision:
    return Decision(OUT.view, OUT.left, (), Report((), brought))


def free(no: int = 1, **change: Any) -> Request:
    """f.x at n1: it conflicts with nothing, so it needs no agreement."""
    fields = {"dests": to("f@n1", seq=no), "parts": (Part(ObjectName("f"), Footprint("x")),), "ordered": False}
    return write(no, **{**fields, **change})


def follows(*numbers: int) -> Request:
    """A call of a client that has moved from n2 to n3, after these requests of n2."""
    context = ((Replica("f@n1"), tuple((N2, n) for n in numbers)),)
    return free(group=group(9, "tran@n3"), invocation=Invocation("eve", (9,)), number=9, context=context)


def performed(com: Com) -> list[GroupId]:
    return [e.request.group for e in com._effects if isinstance(e, Deliver)]


def test_who_needs_no_agreement_waits_for_what_a_void_request_stood_for() -> None:
    """n2 sent 1, then 2, and only 1 is in the union. Who follows 2 names 2 alone; it comes after the view change."""
    com = nodes()[N1]
    one = write(1, dests=to("f@n1", "f@n3"))
    flush.install(com, survives(one))
    host = com.hosts[Replica("f@n1")]
    host.arrive(follows(2))
    assert performed(com) == []
    host.order.propose(one.group, Replica("f@n3"), one.number)
    host.flush()
    assert performed(com) == [one.group, group(9, "tran@n3")]


def test_what_the_flush_brings_does_not_let_through_who_waits_for_a_void_request() -> None:
    """It is here already and names 1 and 3; 3 is void, and 2 stands in its place. The union brings 1 first."""
    com = nodes()[N1]
    host = com.hosts[Replica("f@n1")]
    host.arrive(follows(1, 3))
    one, two = free(1), write(2, dests=to("f@n1", "f@n3", seq=2))
    flush.install(com, survives(one, two))
    assert performed(com) == [one.group]
    host.order.propose(two.group, Replica("f@n3"), two.number)
    host.flush()
    assert performed(com) == [one.group, two.group, group(9, "tran@n3")]


ALL = ("f@n1", "f@n2", "f@n3", "g@n1")


def act(no: int, at: str, origin: str = "tran@n2", after: tuple[int, ...] = (), **change: Any) -> Request:
    """f.w everywhere and g.a at n1, after these requests of n2."""
    context = tuple((Replica(r), tuple((N2, n) for n in after)) for r in ALL) if after else ()
    parts = (*W, Part(G, Footprint("a")))
    who = Invocation(origin.partition("@")[2], (no,))
    fields = {"group": group(no, origin), "number": 4 + no, "invocation": who, "context": context, "parts": parts}
    return request(no, **{"target": at, "dests": to(*ALL, seq=no), "ordered": True, **fields, **change})


def test_who_has_a_place_behind_a_void_request_comes_after_what_that_one_stood_for() -> None:
    """n2 sent 1, then 2, to the same destinations; n3 has sent 3 after 2, to these as well: all three are proposed at
    f@n1. Of 2 nobody has the part of g. The flush brings what f@n2 has proposed for 1, and it said nothing of 3."""
    com = nodes()[N1]
    f, g = com.hosts[Replica("f@n1")], com.hosts[Replica("g@n1")]
    one, two, three = act(1, "f@n1"), act(2, "f@n1", after=(1,)), act(3, "f@n1", "tran@n3", after=(2,))
    for each in (one, two, three):
        f.arrive(each)
    g.arrive(act(1, "g@n1"))
    assert all(f.order.entries[r.group].proposal is not None for r in (one, two, three))
    union = Report((Placed(one.group, Replica("f@n2"), 50),), (one, act(1, "g@n1")))
    flush.install(com, Decision(OUT.view, OUT.left, (), union))
    assert two.group not in f.order.entries
    third, first = f.order.entries[three.group], f.order.entries[one.group]
    for entry in (third, first):
        assert third.stamp is None, "it waits for what 2 stood for"
        for at in ("f@n3", "g@n1"):
            f.order.propose(entry.group, Replica(at), entry.first.number)
    assert first.stamp is not None and first.stamp.number == 50
    assert third.stamp is not None and third.stamp > first.stamp


def test_what_a_line_of_void_requests_stood_for() -> None:
    """As above, but 2 and 3 are void, one behind the other; 4 does not need what the departed have proposed."""
    com = nodes()[N1]
    f = com.hosts[Replica("f@n1")]
    line = [act(1, "f@n1"), act(2, "f@n1", after=(1,)), act(3, "f@n1", after=(2,)), act(4, "f@n1", "tran@n3", (3,))]
    for each in line:
        f.arrive(each)
    flush.install(com, survives(line[0], act(1, "g@n1")))
    assert list(f.order.entries) == [line[0].group, line[3].group]
    assert (N2, 1) in f.order.entries[line[3].group].preds
    f.order.propose(line[3].group, Replica("f@n3"), 8)
    f.order.propose(line[3].group, Replica("g@n1"), 8)
    assert f.order.entries[line[3].group].stamp is None
