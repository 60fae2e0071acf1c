"""A node that is not a member (framework.com.outsider): it asks to be one, or forms a group with the others."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.events import Arrived, Tick, Transmit, Writable
from framework.com.link import Timing
from framework.com.messages import Frame, encode
from framework.com.outsider import Admitted, Outsider
from framework.com.view import Directory, Placement, View
from framework.com.words import Ballot, Decided, Decision, Excluded, Hello, Prepare, decode
from framework.errors import BadMessage
from framework.footprint import Relation
from framework.ids import Node
from tests.paper.group_stage import GroupStage
from tests.tiers import examples

THREE = tuple(Node(f"n{i}") for i in (1, 2, 3))
N1, N2, N3 = THREE
TIMING = Timing(delta=10.0)
quick = settings(derandomize=True, deadline=None, max_examples=examples(25, 60))


def directory(*nodes: Node) -> Directory:
    return Directory(View(1, nodes or THREE), [Placement("f", Relation([]), nodes or THREE)])


def outsider(node: Node = N2, incarnation: int = 5, version: int = 0) -> Outsider:
    return Outsider(node, incarnation, directory(), TIMING, version)


def says(one: Outsider, now: float) -> Hello:
    """What it says to the others at this time."""
    effects = one.step(Tick(), now)
    words = {decode(e.data, one.node) for e in effects if isinstance(e, Transmit)}
    (word,) = words
    assert isinstance(word, Hello)
    return word


def hear(one: Outsider, word: Hello | Decided, now: float) -> View | None:
    effects = one.step(Arrived(word.source, encode(word)), now)
    views = [e.view for e in effects if isinstance(e, Admitted)]
    return views[0] if views else None


def admitted(one: Outsider, now: float) -> View | None:
    views = [e.view for e in one.step(Tick(), now) if isinstance(e, Admitted)]
    return views[0] if views else None


def test_it_says_hello_to_all_every_delta() -> None:
    one = outsider(version=4)
    effects = one.step(Tick(), 0.0)
    assert [e.peer for e in effects if isinstance(e, Transmit)] == [N1, N3]
    assert one.step(Tick(), 9.0) == []
    assert says(one, 10.0) == Hello(N2, 5, (), 4)


def test_a_group_admits_it() -> None:
    one = outsider()
    view = View(7, THREE, (1, 7, 1), (1, 5, 1))
    assert hear(one, Decided(N1, Decision(view, (), (N2,))), 1.0) == view
    assert one.admitted
    assert one.step(Tick(), 100.0) == [] and hear(one, Decided(N1, Decision(view)), 101.0) is None, "only once"


@pytest.mark.parametrize(
    "view",
    [
        View(7, (N1, N3)),  # without it
        View(7, THREE, (1, 7, 1), (1, 4, 1)),  # an earlier incarnation
        View(7, THREE, (1, 7, 1), (1, 6, 1)),  # one that it is not yet
        View(7, THREE, (1, 3, 1), (1, 5, 1)),  # it began before: a view that is over for it
    ],
)
def test_a_view_that_does_not_mean_this_very_node(view: View) -> None:
    one = outsider()
    assert hear(one, Decided(N1, Decision(view)), 1.0) is None
    assert not one.admitted


def talk(
    outsiders: dict[Node, Outsider], now: float, cut: frozenset[frozenset[Node]] = frozenset()
) -> dict[Node, View]:
    """All say hello, and hear each other where nothing is cut. Who is admitted by itself?"""
    found = {}
    for one in list(outsiders.values()):
        for effect in one.step(Tick(), now):
            if isinstance(effect, Admitted):
                found[one.node] = effect.view
            elif isinstance(effect, Transmit) and frozenset([one.node, effect.peer]) not in cut:
                if effect.peer in outsiders:
                    outsiders[effect.peer].step(Arrived(one.node, effect.data), now)
    return found


def all_three(versions: tuple[int, ...] = (0, 0, 0)) -> dict[Node, Outsider]:
    return {n: outsider(n, i, v) for i, (n, v) in enumerate(zip(THREE, versions, strict=True), 3)}


def formed(outsiders: dict[Node, Outsider], start: float = 0.0, rounds: int = 6) -> View | None:
    for n in range(rounds):
        found = talk(outsiders, start + 10.0 * n)
        if found:
            assert found.keys() == {N1}, "the first by name makes the view"
            return found[N1]
    return None


def test_all_together_form_a_group() -> None:
    outsiders = all_three()
    view = formed(outsiders)
    assert view == View(1, THREE, (1, 1, 1), (3, 4, 5)) and view.formed
    for node in (N2, N3):
        assert hear(outsiders[node], Decided(N1, Decision(view, (), THREE)), 99.0) == view


@quick
@given(st.tuples(*[st.integers(0, 9)] * 3))
def test_the_first_version_is_above_all_that_anybody_remembers(versions: tuple[int, int, int]) -> None:
    view = formed(all_three(versions))
    assert view is not None and view.version == max(versions) + 1
    assert view.since == (view.version,) * 3, "all begin with it"


@pytest.mark.parametrize("missing", THREE)
def test_who_is_missing_might_be_in_a_group_that_goes_on(missing: Node) -> None:
    outsiders = {n: o for n, o in all_three().items() if n != missing}
    assert formed(outsiders) is None
    assert all(o.missing() == [missing] for o in outsiders.values())


@pytest.mark.parametrize("pair", [frozenset(p) for p in combinations(THREE, 2)])
def test_all_must_have_heard_each_other(pair: frozenset[Node]) -> None:
    """n1 hears both, but these two do not hear each other: not yet."""
    outsiders = all_three()
    for n in range(6):
        assert talk(outsiders, 10.0 * n, frozenset([pair])) == {}
    assert formed(outsiders, 60.0) is not None


def test_a_single_node_forms_its_group_at_once() -> None:
    one = Outsider(N1, 3, directory(N1), TIMING, 4)
    assert admitted(one, 0.0) == View(5, (N1,), (5,), (3,))


def test_a_restarted_incarnation_is_not_mixed_up() -> None:
    """n3 restarts after the others have heard it. No group is formed with the process that is gone."""
    outsiders = all_three()
    talk(outsiders, 0.0)
    talk(outsiders, 10.0)
    outsiders[N3] = outsider(N3, 9)
    hear(outsiders[N1], says(outsiders[N3], 15.0), 15.0)
    assert admitted(outsiders[N1], 16.0) is None, "n2 has heard the old one, and n3 nobody"
    view = formed(outsiders, 20.0)
    assert view is not None and view.incarnation(N3) == 9


def test_a_view_of_an_incarnation_that_is_gone_is_not_taken() -> None:
    """n1 has made a view with n3 as it was; n2 knows of a later one and does not take it."""
    one = outsider()
    hear(one, Hello(N3, 9), 1.0)
    old = View(1, THREE, (1, 1, 1), (3, 5, 8))
    assert hear(one, Decided(N1, Decision(old, (), THREE)), 2.0) is None
    good = View(1, THREE, (1, 1, 1), (3, 5, 9))
    assert hear(one, Decided(N1, Decision(good, (), THREE)), 3.0) == good


def test_who_is_not_heard_for_long_is_forgotten() -> None:
    """It may be a member by now: no group is formed with it by what it said then."""
    one = outsider(N1)
    for node in (N2, N3):
        hear(one, Hello(node, 1), 0.0)
    assert one.missing() == []
    one.step(Tick(), 19 * TIMING.delta)
    assert one.missing() == []
    one.step(Tick(), 21 * TIMING.delta)
    assert one.missing() == [N2, N3]
    assert says(one, 23 * TIMING.delta).heard == ()


NONSENSE = {
    "in the name of another": (N1, encode(Hello(N3, 1)), "a word from n1 says it comes from 'n3'"),
    "from an unknown node": (Node("x9"), encode(Hello(Node("x9"), 1)), "that is no node here"),
    "no message": (N1, b"\xc1", "frame from n1"),
    "nothing": (N1, b"", "frame from n1"),
}


@pytest.mark.parametrize(("peer", "data", "text"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused(peer: Node, data: bytes, text: str) -> None:
    one = outsider()
    with pytest.raises(BadMessage, match=text):
        one.step(Arrived(peer, data), 1.0)
    assert one.others == {} and not one.admitted


@pytest.mark.parametrize(
    "word",
    [
        Frame(N1, 3, 1, 0, 0, 5),
        Prepare(N1, 1, 1, Ballot(1, N1), (N2,)),
        Excluded(N1, View(4, (N1, N3))),
    ],
    ids=lambda w: type(w).__name__,
)
def test_what_is_for_members_is_ignored(word: Frame | Prepare | Excluded) -> None:
    one = outsider()
    assert one.step(Arrived(N1, encode(word)), 1.0) == []
    assert one.others == {} and not one.admitted
    assert one.step(Writable(N1), 1.0) == []


def test_a_group_comes_up_though_one_restarted_while_it_was_formed() -> None:
    """n3 restarts when all had heard each other. n2 hears the new one, n1 does not yet, and makes the view with the old
    one. n2 does not take it. Two of three are there all the time and hear each other: a group has to come up."""
    stage = GroupStage("n1 n2 n3")
    for node in THREE:
        stage.crash(node)
    for node in THREE:
        stage.join(node)
    stage.tick(5.0)
    stage.tick(10.0, "n2", "n3")
    stage.crash("n3")
    stage.join("n3")
    stage.hold("n3->n1")
    stage.tick(10.0, "n3")
    stage.tick(1.0, "n1")
    assert stage.is_member("n1") and stage.view("n1").incarnation(N3) == 2
    stage.release()
    stage.until(lambda: not stage.is_member("n1"), most=5000.0)  # it sees that it is alone with a view nobody takes
    stage.join("n1")
    stage.until(lambda: stage.complete("n1 n2 n3"), most=5000.0)


def test_one_that_joins_forms_no_group_and_nobody_forms_one_with_it() -> None:
    for joins in THREE:
        outsiders = all_three()
        outsiders[joins] = Outsider(joins, 9, directory(), TIMING, joins=True)
        assert formed(outsiders) is None
    one = Outsider(N2, 9, directory(), TIMING, joins=True)
    view = View(4, THREE, (1, 4, 1), (3, 9, 5))
    assert hear(one, Decided(N1, Decision(view, (), (N2,))), 1.0) == view
