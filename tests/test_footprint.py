"""Conflict of footprints (protocol.md §2.1), and its form for an index: f and g conflict iff places(f) meets
meets(g)."""

from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.footprint import INTENDS_READ, INTENDS_WRITE, READ, WRITE, Footprint, Mode, Relation
from tests.tiers import examples

METHODS = ("a", "b", "c", "bare", "all")  # also names that resemble the slots of the index
pairs = st.lists(st.tuples(st.sampled_from(METHODS), st.sampled_from(METHODS)), max_size=8)
keys = st.dictionaries(
    st.sampled_from(["k", "l", "wk", "rk", "iwk", "", "\x00all"]), st.sampled_from(get_args(Mode)), max_size=3
)
footprints = st.builds(
    Footprint,
    st.sampled_from((*METHODS, "free")),
    st.none() | keys.map(lambda d: tuple(sorted(d.items()))),
    st.booleans(),
)
plain = footprints.filter(lambda f: f.keys is None or {m for _, m in f.keys} <= {READ, WRITE})
quick = settings(derandomize=True, deadline=None, max_examples=examples(75, 300))


def naive(declared: list[tuple[str, str]], f: Footprint, g: Footprint) -> bool:
    """As protocol.md §2.1 says it."""
    if (f.method, g.method) not in declared and (g.method, f.method) not in declared:
        return False
    if f.keys is None or g.keys is None:
        return True
    met = [{m, n} for k, m in f.keys for l, n in g.keys if k == l]  # noqa: E741
    whole_read, parts = {READ, INTENDS_READ}, {INTENDS_READ, INTENDS_WRITE}
    return any(not (modes <= whole_read or modes <= parts) for modes in met)


@quick
@given(declared=pairs, f=footprints, g=footprints)
def test_conflict_is_the_definition(declared: list[tuple[str, str]], f: Footprint, g: Footprint) -> None:
    relation = Relation(declared)
    assert relation.conflict(f, g) == naive(declared, f, g)
    assert relation.conflict(f, g) == relation.conflict(g, f)


@quick
@given(declared=pairs, f=footprints, g=footprints)
def test_the_index_says_the_same(declared: list[tuple[str, str]], f: Footprint, g: Footprint) -> None:
    relation = Relation(declared, intentions=True)
    (places, _), (_, meets) = relation.slots(f), relation.slots(g)
    assert (not set(places).isdisjoint(meets)) == relation.conflict(f, g)
    assert len(set(places)) == len(places)


@quick
@given(declared=pairs, f=plain, g=plain)
def test_the_index_says_the_same_without_intentions(
    declared: list[tuple[str, str]], f: Footprint, g: Footprint
) -> None:
    relation = Relation(declared)
    assert (not set(relation.slots(f)[0]).isdisjoint(relation.slots(g)[1])) == relation.conflict(f, g)
    assert not any("\x00i" in slot for slot in relation.slots(f)[1] if "\x00iwk" not in slot)


@quick
@given(declared=pairs, f=plain)
def test_a_free_method_conflicts_with_nothing_and_stands_nowhere(declared: list[tuple[str, str]], f: Footprint) -> None:
    relation = Relation(declared)
    free = not any(f.method in pair for pair in declared)
    assert relation.free(f.method) == free
    assert (relation.slots(f)[0] == ()) == free


def test_what_is_remembered_is_bounded() -> None:
    relation = Relation([("a", "a")])
    for i in range(10_000):
        f = Footprint("a", ((str(i), WRITE),))
        assert relation.slots(f) == relation.slots(f)
    assert len(relation._slots) <= 4096


def test_footprints_with_many_keys_are_not_remembered() -> None:
    """They hardly ever come again: of calls that travel together, for example."""
    relation = Relation([("m", "m")])
    few, many = (Footprint("m", tuple((f"k{i}", "w") for i in range(n))) for n in (6, 7))
    assert relation.slots(few) is relation.slots(few)
    assert relation.slots(many) is not relation.slots(many)
    assert len(relation._slots) == 1


def test_a_call_without_keys_meets_every_key_and_one_with_no_keys_none() -> None:
    relation = Relation([("a", "a")])
    assert relation.conflict(Footprint("a"), Footprint("a", (("k", READ),)))
    assert not relation.conflict(Footprint("a", ()), Footprint("a", (("k", WRITE),)))


def test_methods_with_equal_rows_share_their_slots() -> None:
    relation = Relation([("a", "a"), ("a", "b"), ("b", "b"), ("c", "a"), ("c", "b")], intentions=True)
    a, b, c = (relation.slots(Footprint(m, (("k", WRITE),))) for m in "abc")
    assert a == b != c
    assert len(a[1]) == 2 * 5 and len(c[1]) == 5  # against two kinds of methods, and one: no key, and four modes


def test_rows_of_a_table_meet_the_whole_and_not_each_other() -> None:
    relation = Relation([("a", "a")], intentions=True)
    first = Footprint("a", (("t", INTENDS_WRITE), ("t 1", WRITE)))
    second = Footprint("a", (("t", INTENDS_WRITE), ("t 2", WRITE)))
    one = Footprint("a", (("t", INTENDS_READ), ("t 1", READ)))
    assert relation.conflict(first, first) and relation.conflict(first, one)
    assert not relation.conflict(first, second) and not relation.conflict(one, second)
    assert relation.conflict(first, Footprint("a", (("t", READ),))) and not relation.conflict(
        one, Footprint("a", (("t", READ),))
    )


def test_they_print_short() -> None:
    assert str(Footprint("a")) == "a"
    assert str(Footprint("a", ())) == "a()"
    assert str(Footprint("a", (("k", READ), ("l", WRITE)))) == "a(k:r, l:w)"
