"""Who of the destinations of a call is there, and who counts (framework.com.present, caller.Call): for clients, who are
told when too few are left, and for instances, whose replicas must all come to the same result."""

from itertools import permutations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.caller import Call, Caller
from framework.com.core import Com
from framework.com.events import Outgoing, Submit
from framework.com.limits import Limits
from framework.com.lives import Lives
from framework.com.messages import Ancestor, Dest, Response
from framework.com.present import present
from framework.com.receipt import CREC, DREC, Receipt, quorum, srec
from framework.com.telling import Sent
from framework.com.view import Directory, Placement, View
from framework.errors import Unavailable
from framework.footprint import Footprint, Relation
from framework.ids import GroupId, Invocation, Node, ObjectName, Replica, Sid, node_of
from tests.paper.stage import Stage
from tests.tiers import examples

NODES = tuple(Node(f"n{i}") for i in range(1, 5))
N1, N2, N3, N4 = NODES
F = tuple(Replica(f"f@{n}") for n in NODES[:3])
G = tuple(Replica(f"g@{n}") for n in NODES[2:])
GROUP = GroupId(5, Replica("tran@n1"), 1)
quick = settings(derandomize=True, deadline=None, max_examples=examples(37, 150))


def call(receipt: Receipt, dests: tuple[Replica, ...] = F, nested: bool = False) -> Call:
    one = Call(1, GROUP, tuple(Dest(d, 1) for d in dests))
    one.receipt, one.nested = receipt, nested
    return one


def answer(one: Call, at: Replica) -> bool:
    return one.take(Response(1, GROUP, at, "ok", b"", False, True, (), ()))


def got(one: Call) -> list[Replica] | None:
    found = one.significant()
    return [r.replica for r in found] if found is not None else None


# calls that lose destinations

ONE_GONE = {
    # receipt: a client is left without hope?, an instance?
    CREC: (False, False),
    DREC: (False, False),
    quorum(2): (False, False),
    quorum(3): (True, False),
    srec(F[0]): (True, False),
    srec(F[1]): (False, False),
}


@pytest.mark.parametrize(("receipt", "nested"), [(r, n) for r in ONE_GONE for n in (False, True)], ids=str)
def test_one_of_three_departs(receipt: Receipt, nested: bool) -> None:
    one = call(receipt, nested=nested)
    assert not one.hopeless
    assert one.lose([N1])
    assert one.hopeless == ONE_GONE[receipt][nested]
    assert not one.lose([N1, N4]), "there is none of them left"


@pytest.mark.parametrize("receipt", ONE_GONE, ids=str)
@pytest.mark.parametrize("nested", [False, True])
def test_all_depart(receipt: Receipt, nested: bool) -> None:
    one = call(receipt, nested=nested)
    one.lose(NODES)
    assert one.hopeless and one.significant() is None
    assert one.finished and one.silent == set(), "its instance can end"


def test_an_answer_that_came_before_counts() -> None:
    """It was performed there; that the replica departed later changes nothing."""
    one = call(quorum(2))
    answer(one, F[0])
    one.lose([N1])
    assert F[0] in one.dests and not one.hopeless
    assert got(one) is None
    answer(one, F[2])
    assert got(one) == [F[0], F[2]]
    assert not answer(one, F[0]), "once"


def test_an_answer_of_the_departed_that_comes_late_is_not_taken() -> None:
    one = call(CREC)
    one.lose([N1])
    assert not answer(one, F[0])
    answer(one, F[1])
    assert got(one) is None
    answer(one, F[2])
    assert got(one) == [F[1], F[2]]


@pytest.mark.parametrize("nested", [False, True])
def test_each_object_of_a_pcast_counts_for_itself(nested: bool) -> None:
    """g had its replicas on n3 and n4; crec of both parts is without hope when nobody of g is left."""
    one = call(CREC, F[:2] + G, nested)
    one.lose([N3])
    assert not one.hopeless
    one.lose([N4])
    assert one.hopeless
    both = call(DREC, F[:2] + G, nested)
    both.lose([N3, N4])
    assert not both.hopeless, "the first of all is enough"


def test_a_nested_call_does_with_those_that_are_left() -> None:
    """Replicas of the callee answer alike, so a quorum that cannot be reached any more is no reason to fail: at another
    replica of the caller it may have been reached before."""
    one = call(quorum(3), nested=True)
    answer(one, F[1])
    assert got(one) is None
    one.lose([N1])
    assert got(one) is None, "n3 is still there"
    answer(one, F[2])
    assert got(one) == [F[1], F[2]]


def test_a_nested_srec_takes_another_one_when_its_source_is_gone() -> None:
    one = call(srec(F[0]), nested=True)
    answer(one, F[1])
    assert got(one) is None
    one.lose([N1])
    assert got(one) == [F[1]]


def test_who_has_no_state_is_not_waited_for() -> None:
    one = call(CREC, nested=True)
    one.waive([F[2]])
    answer(one, F[0])
    answer(one, F[1])
    assert got(one) == [F[0], F[1]] and one.waived == (F[2],)


def test_who_has_got_its_state_meanwhile_may_answer() -> None:
    one = call(CREC, nested=True)
    one.waive([F[2]])
    assert answer(one, F[2]) and one.waived == ()
    answer(one, F[0])
    assert got(one) is None
    answer(one, F[1])
    assert got(one) == [F[2], F[0], F[1]]


def test_who_has_no_state_is_waited_for_when_nobody_else_is_left() -> None:
    one = call(CREC, nested=True)
    one.waive([F[2]])
    one.lose([N1, N2])
    assert not one.hopeless and one.dests == (F[2],) and one.waived == ()
    one.lose([N3])
    assert one.hopeless


receipts = st.sampled_from([CREC, DREC, quorum(1), quorum(2), quorum(3), srec(F[0])])


@quick
@given(receipts, st.permutations(F), st.lists(st.booleans(), min_size=3, max_size=3), st.integers(0, 3))
def test_a_nested_call_completes_as_long_as_one_can_answer(
    receipt: Receipt, order: list[Replica], alive: list[bool], answered: int
) -> None:
    """Some answer, then some depart, then the rest answers. With one answer or one survivor it is complete, never
    without hope; with none it is without hope."""
    one = call(receipt, nested=True)
    for at in order[:answered]:
        answer(one, at)
    left = [at for at, stays in zip(order, alive, strict=True) if stays]
    one.lose([node_of(at) for at in order if at not in left])
    for at in left:
        answer(one, at)
    able = bool(left) or answered > 0
    assert one.hopeless != able
    assert (got(one) is not None) == able


@pytest.mark.parametrize("order", list(permutations(F)))
@pytest.mark.parametrize("receipt", [CREC, DREC, quorum(2), srec(F[0])], ids=str)
def test_a_clients_receipt_is_complete_or_without_hope(receipt: Receipt, order: tuple[Replica, ...]) -> None:
    """One answers, one departs, one answers: never both, and never neither in the end."""
    one = call(receipt)
    answer(one, order[0])
    one.lose([node_of(order[1])])
    answer(one, order[2])
    assert one.hopeless != (got(one) is not None)
    if receipt.source is not None:
        assert one.hopeless == (order[1] == receipt.source)


# who is there when a call is made


def com(members: tuple[Node, ...], unready: tuple[Replica, ...] = ()) -> Com:
    placements = [Placement("f", Relation([]), NODES[:3]), Placement("g", Relation([]), NODES[2:])]
    view = View(2, members, (1,) * len(members), (1,) * len(members), unready)
    return Com(N1, Directory(view, placements, NODES))


def submit(receipt: Receipt | None, nested: bool = False, g: bool = False, f: tuple[Replica, ...] = F) -> Submit:
    parts = [Outgoing(ObjectName("f"), Footprint("w"), b"", f)]
    parts += [Outgoing(ObjectName("g"), Footprint("w"), b"", G)] if g else []
    caller = Sid(7, Replica("f@n1")) if nested else "ann"
    return Submit(caller, 1, "sync" if receipt else "oneway", "pcast" if g else "mcast", tuple(parts), receipt)


def goes_to(here: Com, event: Submit) -> tuple[Replica, ...]:
    return tuple(r for part in present(here, event).parts for r in part.replicas)


def test_absent_replicas_are_left_out() -> None:
    assert goes_to(com((N1, N3)), submit(CREC)) == (F[0], F[2])
    full = submit(CREC)
    assert present(com(NODES), full) == full


def test_a_quorum_counts_against_all_replicas_that_an_object_has() -> None:
    assert goes_to(com((N1, N3)), submit(quorum(2))) == (F[0], F[2])
    says = "f: 1 of its replicas f@n1, f@n2, f@n3 can be reached and have a state, 2 are needed; view 2 has the members"
    with pytest.raises(Unavailable, match=says):
        present(com((N1, N4)), submit(quorum(2)))


def test_an_instance_takes_what_it_can_get() -> None:
    assert goes_to(com((N1, N4)), submit(quorum(2), nested=True)) == (F[0],)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("receipt", [CREC, None], ids=str)
def test_nobody_is_left(nested: bool, receipt: Receipt | None) -> None:
    with pytest.raises(Unavailable, match="g: 0 of its replicas g@n3, g@n4 can be reached and have a state, 1 is need"):
        present(com((N1, N2)), submit(receipt, nested, g=True))


def test_the_one_who_shall_answer_is_gone() -> None:
    with pytest.raises(Unavailable, match="f@n2 cannot be reached, or has no state yet; view 2 has the members n1, n3"):
        present(com((N1, N3)), submit(srec(F[1])))
    assert goes_to(com((N1, N3)), submit(srec(F[1]), nested=True)) == (F[0], F[2])


def test_to_all_or_to_those_that_have_a_state() -> None:
    """f@n3 waits for its state. What goes to all goes there, too; what goes to some does not, and what goes to one goes
    where it was sent."""
    here = com((N1, N2, N3), (F[2],))
    assert goes_to(here, submit(CREC)) == F
    assert goes_to(here, submit(CREC, f=F[1:])) == (F[1],)
    assert goes_to(here, submit(CREC, f=F[2:])) == (F[2],)
    with pytest.raises(Unavailable, match="f@n3 cannot be reached, or has no state yet"):
        present(here, submit(srec(F[2]), f=F[1:]))


class CalledByF(Caller):
    """An instance of g that an instance of f waits for."""

    @property
    def chain(self) -> tuple[Ancestor, ...]:
        return (Ancestor(ObjectName("f"), 1, F[1:]),)


def test_a_call_back_goes_wherever_its_ancestor_went() -> None:
    """f@n3 waits for its state, and will perform the instance of f that is called back. If the call did not go there,
    it would perform that instance without it, and its state would differ."""
    here = com((N1, N2, N3), (F[2],))
    caller = CalledByF(Sid(7, G[0]), Sid(7, G[0]), "", Invocation("c", (1, 1)))
    back = submit(CREC, nested=True, f=F[1:])
    assert present(here, back, caller=caller).parts[0].replicas == F[1:]
    independent = msgspec.structs.replace(back, independent=True)
    assert present(here, independent, caller=caller).parts[0].replicas == (F[1],)


# what other replicas of the caller may have been told


def through(*members: tuple[Node, ...]) -> Com:
    """A node that has been in these views, from 2 on."""
    here = com(members[0])
    for version, after in enumerate(members[1:], 3):
        before = here.lives.view.members
        joined, left = set(after) - set(before), set(before) - set(after)
        view = View(version, after, tuple([version if n in joined else here.lives.view.life(n) or 1 for n in after]))
        here.lives.install(view, left, joined)
    return here


def test_what_was_refused_to_another_replica_of_the_caller_is_refused() -> None:
    """f@n3 was not there in view 2. A replica of the caller that came to this call then has gone on without it."""
    here = through((N1, N2), NODES)
    event = submit(CREC, nested=True, f=F[2:])
    with pytest.raises(Unavailable, match="f: none of f@n3 was there in view 2, in which another replica of"):
        present(here, event, 2)
    assert present(here, event, 3) == event, "nobody performs this instance in view 2"
    assert present(here, event) == event, "nobody else performs it"


def test_what_was_refused_in_between_is_refused() -> None:
    here = through(NODES, (N1, N2, N4), NODES)
    with pytest.raises(Unavailable, match="was there in view 3"):
        present(here, submit(CREC, nested=True, f=F[2:]), 2)


def test_one_of_them_was_always_there() -> None:
    """n2 and n3 are started again, one after the other: nobody was refused."""
    here = through(NODES, (N1, N2, N4), NODES, (N1, N3, N4), NODES)
    event = submit(CREC, nested=True, f=F[1:])
    assert present(here, event, 2) == event


def test_each_object_of_a_pcast_must_have_been_there() -> None:
    here = through((N1, N2), NODES)
    with pytest.raises(Unavailable, match="g: none of g@n3, g@n4 was there in view 2"):
        present(here, submit(CREC, nested=True, g=True), 2)


def test_a_one_way_call_need_not_be_refused() -> None:
    here = through((N1, N2), NODES)
    event = submit(None, nested=True, f=F[2:])
    assert present(here, event, 2) == event


def test_who_is_not_there_now_is_said_first() -> None:
    with pytest.raises(Unavailable, match="f: 0 of its replicas f@n3 can be reached"):
        present(through((N1, N2)), submit(CREC, nested=True, f=F[2:]), 2)


# what is not promised (docs/membership.md)


def test_who_comes_to_a_call_when_the_last_replica_has_departed_is_refused_though_others_have_made_it() -> None:
    """f@n3 was there when the request of the instance was sent: another replica of the caller may have its answer."""
    early, late = through(NODES), through(NODES, (N1, N2, N4))
    event = submit(CREC, nested=True, f=F[2:])
    assert present(early, event, 2) == event
    with pytest.raises(Unavailable, match="f: 0 of its replicas f@n3 can be reached"):
        present(late, event, 2)
    one_left = submit(CREC, nested=True, f=F[1:])
    assert goes_to(late, one_left) == F[1:2], "with one that stays nobody is refused"


def test_whether_a_state_is_there_is_not_known_everywhere_at_the_same_time() -> None:
    """Two replicas of a caller in one view: an act on f@n3 alone and on g. One has heard of its state, one has not."""
    told, untold = com(NODES, F[2:]), com(NODES, F[2:])
    told.lives.pending.clear()
    event = submit(CREC, nested=True, g=True, f=F[2:])
    assert present(told, event, 2) == event
    with pytest.raises(Unavailable, match="0 of its replicas f@n3 can be reached and have a state"):
        present(untold, event, 2)
    whole = submit(CREC, nested=True, g=True)
    assert present(told, whole, 2) == present(untold, whole, 2) == whole, (
        "all replicas, or one object: nobody is refused"
    )
    alone = submit(CREC, nested=True, f=F[2:])
    assert present(told, alone, 2) == present(untold, alone, 2) == alone


# calls that wait, and leave in another view


def without(stage: Stage, node: str) -> pytest.MonkeyPatch:
    """Let a node be out of the view of i until the patch is undone."""
    patch = pytest.MonkeyPatch()
    lives = stage.com("i").lives
    left = tuple(n for n in lives.view.members if n != node)
    patch.setattr(lives, "view", msgspec.structs.replace(lives.view, members=left))
    return patch


def went_to(stage: Stage, call: int) -> list[str]:
    return [d.replica for _, e in stage.heard if isinstance(e, Sent) and e.call == call for d in e.dests]


def test_a_call_that_waits_for_a_peer_goes_to_those_that_came_meanwhile() -> None:
    """Else the replica that has got its state before would never perform it."""
    s = Stage("i j k", limits=Limits(queued=1, backlog=10))
    s.object("f", "j k", "w/w", at_once=True)
    s.mute("i->j")
    ann = s.client("ann", "i")
    ann.oneway("f.w@j", "first")
    patch = without(s, "k")
    s.do("i", ann.event("f.w", "oneway", None))
    assert went_to(s, 2) == []
    patch.undo()
    s.release()
    s.tick(1.0)
    assert went_to(s, 2) == ["f@j", "f@k"]
    assert s.finish().violations == []


def test_a_one_way_call_that_waits_for_the_commit_goes_to_those_that_came_meanwhile() -> None:
    s = Stage("i j k")
    s.object("a", "i", "m/m")
    s.object("f", "j k", "w/w", at_once=True)
    s.transactions()
    s.client("ann", "i").sync("a.m", CREC, "root")
    root = s.instance("root", "a@i")
    patch = without(s, "k")
    s.do("i", root.event("f.w", "oneway", None))
    patch.undo()
    root.commit()
    assert went_to(s, 1)[-2:] == ["f@j", "f@k"]
    assert s.finish().violations == []


def test_a_view_is_remembered_however_many_came_after_it() -> None:
    """In view 2 another replica of a caller was refused a call of G. This one comes to it 400 views later."""
    lives = Lives(N1, View(1, NODES))
    lives.install(View(2, (N1, N2), (1, 1)), (N3, N4), ())
    for version in range(3, 403):
        lives.install(View(version, NODES[: 3 + version % 2], (1, 1, 3, 3)[: 3 + version % 2]), (), ())
    found = lives.without(G, 1)
    assert found is not None and found.version == 2
    assert lives.without(G, 3) is None


@quick
@given(st.lists(st.sets(st.sampled_from(NODES[1:])), max_size=30), st.integers(1, 31), st.sets(st.sampled_from(NODES)))
def test_few_views_tell_what_all_would(others: list[set[Node]], since: int, asked: set[Node]) -> None:
    views = [View(1, NODES)] + [View(k, (N1, *sorted(some))) for k, some in enumerate(others, 2)]
    lives = Lives(N1, views[0])
    for view in views[1:]:
        lives.install(view, (), ())
    there = any(v.version >= since and asked.isdisjoint(v.members) for v in views)
    assert (lives.without([Replica(f"f@{n}") for n in asked], since) is not None) is there
