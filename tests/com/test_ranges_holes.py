"""Sets of delivered requests when lives end (framework.com.ranges, context, past): all up to a base is over, but for a
few that the flush keeps alive."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.context import Context, Known
from framework.com.lives import first_of, life_of
from framework.com.past import Past
from framework.com.ranges import LONG, Ranges
from framework.ids import GroupId, Node, Replica, Stamp
from tests.tiers import examples

quick = settings(derandomize=True, deadline=None, max_examples=examples(50, 200))
MOST = 40
numbers = st.integers(1, MOST)
N1, N2 = Node("n1"), Node("n2")
HERE, THERE = Replica("f@n1"), Replica("f@n2")


def elements(ranges: Ranges, most: int = MOST + 12) -> set[int]:
    return {n for n in range(1, most) if n in ranges}


def made(some: Iterable[int]) -> Ranges:
    ranges = Ranges()
    for n in some:
        ranges.add(n)
    return ranges


@quick
@given(st.sets(numbers), numbers, st.sets(numbers))
def test_close(before: set[int], low: int, alive: set[int]) -> None:
    """All up to ``low`` is over, but for what is alive there; what was in stays in, also above."""
    ranges = made(before)
    ranges.close(low, alive)
    assert elements(ranges) == before | ({*range(1, low + 1)} - alive)


@quick
@given(st.sets(numbers), st.lists(st.tuples(numbers, st.sets(numbers)), min_size=2, max_size=4))
def test_close_again(before: set[int], closes: list[tuple[int, set[int]]]) -> None:
    """Lives end one after the other, with higher and higher bases. What an earlier end left alive stays alive."""
    ranges, low, holes = made(before), 0, set()
    for more, alive in closes:
        low += more
        holes |= {n for n in alive if n not in ranges and n <= low}
        ranges.close(low, alive)
    assert elements(ranges, 5 * MOST) == (before | {*range(1, low + 1)}) - holes


@quick
@given(st.sets(numbers), numbers, st.sets(numbers), st.lists(numbers))
def test_holes_are_filled_one_by_one(before: set[int], low: int, alive: set[int], later: list[int]) -> None:
    ranges = made(before)
    ranges.close(low, alive)
    model = elements(ranges)
    for n in later:
        ranges.add(n)
        model.add(n)
        assert elements(ranges) == model


@quick
@given(st.sets(numbers), numbers, st.sets(numbers), st.tuples(numbers, st.integers(0, 8)))
def test_holes_are_filled_by_ranges(before: set[int], low: int, alive: set[int], span: tuple[int, int]) -> None:
    ranges = made(before)
    ranges.close(low, alive)
    model = elements(ranges) | {*range(span[0], span[0] + span[1] + 1)}
    ranges.add_all([(span[0], span[0] + span[1])])
    assert elements(ranges) == model


@quick
@given(st.sets(numbers), numbers, st.sets(numbers))
def test_on_the_wire_and_back(before: set[int], low: int, alive: set[int]) -> None:
    ranges = made(before)
    ranges.close(low, alive)
    copy = Ranges()
    copy.add_all(ranges.wire())
    assert elements(copy) == elements(ranges)


@quick
@given(st.sets(numbers, max_size=10), st.sets(numbers, max_size=10), st.sets(st.integers(1, 10)))
def test_on_the_wire_and_back_across_a_life(before: set[int], alive: set[int], after: set[int]) -> None:
    """The base of a later life is 2^32 away: that many numbers are never put down one by one."""
    base = first_of(2)
    ranges = made(before)
    ranges.close(base, alive)
    for n in after:
        ranges.add(base + n)
    copy = Ranges()
    copy.add_all(ranges.wire())
    for at in (*range(1, MOST + 1), base - 1, base, *range(base + 1, base + 12)):
        assert (at in copy) == (at in ranges), at
    assert len(copy.above) <= len(after) and len(copy.holes or ()) <= len(alive)


def test_below() -> None:
    """What a void request stood for: those of the same life, sent before it, that are alive."""
    ranges = made([1, 2])
    ranges.close(20, {3, 7, 12})
    assert ranges.below(12) == [3, 7]
    assert ranges.below(3) == []
    assert ranges.below(100) == [3, 7, 12]
    ranges.add(3)
    assert ranges.below(12) == [7]
    assert made([1]).below(5) == []


def test_a_long_range_far_away_is_not_put_down_one_by_one() -> None:
    ranges = Ranges()
    ranges.add_all([(3 * LONG, 5 * LONG)])
    assert not ranges.above and ranges.low == 0


def test_bases_of_lives() -> None:
    assert first_of(1) == 0
    assert first_of(3) == 2 << 32
    assert life_of(first_of(3)) == life_of(first_of(3) + 77) == first_of(3)
    assert life_of(77) == 0


# what a node knows (Known), what a replica remembers (Past)


def of_lives(version: int, *moved: Node) -> Known:
    """As ``Lives.base`` has it, when these nodes moved in this version."""
    bases = {n: first_of(version) for n in moved}
    return Known(lambda origin, at: max(bases.get(origin, 0), bases.get(Node(at.partition("@")[2]), 0)))


def test_known_forgets_what_went_to_and_from_the_departed() -> None:
    known = of_lives(2, N2)
    known.ranges(HERE, N2).low = 3  # as it was before the change
    known.ranges(THERE, N1).low = 1
    known.close([N2], {})
    assert (HERE, (N2, 4)) in known, "void: nobody has it"
    assert (THERE, (N1, 9)) in known, "its destination is gone"
    assert (HERE, (N2, first_of(2) + 1)) not in known, "the next life's"


def test_known_keeps_what_is_alive() -> None:
    known = of_lives(2, N2)
    known.close([N2], {(HERE, N2): {5, 7}})
    assert (HERE, (N2, 5)) not in known and (HERE, (N2, 6)) in known
    assert known.missing(HERE, {(N2, 7)}) == {(N2, 7)}
    assert known.missing(HERE, {(N2, 8)}) == {(N2, 5), (N2, 7)}, "8 is void; it stood for those before it"
    known.ranges(HERE, N2).add(5)
    known.ranges(HERE, N2).add(7)
    assert known.missing(HERE, {(N2, 7), (N2, 8)}) == set()


def test_known_has_no_holes_at_the_departed() -> None:
    """A request that was alive at a replica is over when that departs itself."""
    known = of_lives(2, N2)
    known.close([N2], {(HERE, N2): {5}})
    after = of_lives(3, N1, N2)
    after._at = known._at
    after.close([N1], {})
    assert (HERE, (N2, 5)) in after


def test_a_context_names_what_is_alive_instead_of_what_is_void() -> None:
    known = of_lives(2, N2)
    known.close([N2], {(HERE, N2): {5}})
    context = Context({HERE: {(N2, 9)}, THERE: {(N1, 3)}})
    context.prune(known)
    assert context.wire() == ((HERE, ((N2, 5),)),)


def test_past_closes_and_tells_what_comes_instead() -> None:
    past = Past(lambda origin: first_of(2))
    past.delivered[N2] = made([1, 2])
    past.close(N2, {4, 6})
    assert past.is_delivered((N2, 5)) and not past.is_delivered((N2, 4))
    assert past.instead((N2, 5)) == [(N2, 4)]
    past.deliver((N2, 6), Stamp(3, GroupId(1, HERE, 1)))
    assert past.instead((N2, 6)) == [], "it was delivered: it is not void"
    assert past.instead((N1, 5)) == []
