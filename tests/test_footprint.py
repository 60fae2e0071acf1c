"""Conflict of footprints (PROTOCOL §1), and its form for an index: f and g conflict iff places(f) meets meets(g)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.footprint import READ, WRITE, Footprint, Relation

METHODS = ("a", "b", "c", "bare", "all")  # also names that resemble the slots of the index
pairs = st.lists(st.tuples(st.sampled_from(METHODS), st.sampled_from(METHODS)), max_size=8)
keys = st.dictionaries(
    st.sampled_from(["k", "l", "wk", "rk", "", "\x00all"]), st.sampled_from([READ, WRITE]), max_size=3
)
footprints = st.builds(
    Footprint,
    st.sampled_from((*METHODS, "free")),
    st.none() | keys.map(lambda d: tuple(sorted(d.items()))),
    st.booleans(),
)
quick = settings(derandomize=True, deadline=None, max_examples=300)


def naive(declared: list[tuple[str, str]], f: Footprint, g: Footprint) -> bool:
    """As §1 says it."""
    if (f.method, g.method) not in declared and (g.method, f.method) not in declared:
        return False
    if f.keys is None or g.keys is None:
        return True
    return any(k == l and not (m == n == READ) for k, m in f.keys for l, n in g.keys)  # noqa: E741


@quick
@given(declared=pairs, f=footprints, g=footprints)
def test_conflict_is_the_definition(declared: list[tuple[str, str]], f: Footprint, g: Footprint) -> None:
    relation = Relation(declared)
    assert relation.conflict(f, g) == naive(declared, f, g)
    assert relation.conflict(f, g) == relation.conflict(g, f)


@quick
@given(declared=pairs, f=footprints, g=footprints)
def test_the_index_says_the_same(declared: list[tuple[str, str]], f: Footprint, g: Footprint) -> None:
    relation = Relation(declared)
    (places, _), (_, meets) = relation.slots(f), relation.slots(g)
    assert (not set(places).isdisjoint(meets)) == relation.conflict(f, g)
    assert len(set(places)) == len(places)


@quick
@given(declared=pairs, f=footprints)
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


def test_a_call_without_keys_meets_every_key_and_one_with_no_keys_none() -> None:
    relation = Relation([("a", "a")])
    assert relation.conflict(Footprint("a"), Footprint("a", (("k", READ),)))
    assert not relation.conflict(Footprint("a", ()), Footprint("a", (("k", WRITE),)))


def test_they_print_short() -> None:
    assert str(Footprint("a")) == "a"
    assert str(Footprint("a", ())) == "a()"
    assert str(Footprint("a", (("k", READ), ("l", WRITE)))) == "a(k:r, l:w)"
