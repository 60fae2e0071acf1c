"""Whose state counts after a crash of all, by what the holders say of theirs."""

import itertools

import pytest

from framework.ids import Invocation, Replica
from framework.orb.auditing import SAME, Word, judged
from framework.orb.position import with_all
from framework.orb.replaced import DIFFERS, UNREADABLE


def word(node, digest="d", performed=10, version=3, position=7, **more):
    return Word(Replica(f"t@{node}"), version, performed, position, digest, **more)


def source(*words, declared=3):
    found = judged(words, declared).source
    return found.partition("@")[2] if found is not None else None


CASES = {
    "all are the same": ([word("n1"), word("n2"), word("n3")], "n3"),
    "the most advanced of those that are the same": ([word("n1", performed=12), word("n2"), word("n3")], "n1"),
    "one differs": ([word("n1"), word("n2"), word("n3", "x")], "n2"),
    "the most advanced one differs": ([word("n1"), word("n2"), word("n3", "x", performed=99)], "n2"),
    "the one of the longest life differs": ([word("n1"), word("n2"), word("n3", "x", version=9)], "n2"),
    "three are different": ([word("n1"), word("n2", "x"), word("n3", "y")], None),
    "two differ, and one is not there": ([word("n1"), word("n2", "x")], None),
    "two differ, and one cannot be read": ([word("n1"), word("n2", "x"), word("n3", "", damaged=True)], None),
    "one cannot be read": ([word("n1"), word("n2"), word("n3", "", performed=99, damaged=True)], "n2"),
    "none can be read": ([word("n1", "", damaged=True), word("n2", "", damaged=True)], None),
    "only one holds a state": ([word("n2")], "n2"),
    "one lacks too much to be compared": ([word("n1", position=1), word("n2"), word("n3")], "n3"),
    "two lack the same, and agree": ([word("n1", position=1), word("n2", position=1), word("n3", performed=99)], "n3"),
    "an older version wrote them": ([word("n1", "", position=None), word("n2", "", performed=11, position=None)], "n2"),
    "the most advanced one cannot be compared": (
        [word("n1"), word("n2", "x"), word("n3", "", version=9, position=None)],
        "n3",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_whose_state_counts(case):
    words, wanted = CASES[case]
    for order in itertools.permutations(words):
        assert source(*order) == wanted


def test_what_is_said_of_each():
    found = judged([word("n1"), word("n2"), word("n3", "x"), word("n4"), word("n5", "", damaged=True, why="torn")], 5)
    assert found.each == {"t@n1": SAME, "t@n2": SAME, "t@n3": DIFFERS, "t@n4": SAME, "t@n5": UNREADABLE}
    assert found.text == "t@n3 DIFFERS from the 3 others, which agree; t@n5 cannot be read (torn)"


@pytest.mark.parametrize("declared", range(1, 6))
def test_no_minority_wins_where_digests_differ(declared):
    """All ways in which so many replicas can be there, readable, and have one of three states."""
    kinds = [None, *"xyz", "torn"]
    for each in itertools.product(kinds, repeat=declared):
        words = [
            word(f"n{i}", "" if kind == "torn" else kind, performed=i, damaged=kind == "torn")
            for i, kind in enumerate(each)
            if kind is not None
        ]
        if not words:
            continue
        found = judged(words, declared)
        said = [w.digest for w in words if not w.damaged]
        if found.source is not None:
            chosen = next(w for w in words if w.replica == found.source)
            assert not chosen.damaged
            assert len(set(said)) == 1 or 2 * said.count(chosen.digest) > declared
        else:
            assert not said or all(2 * said.count(digest) <= declared for digest in said)


def test_a_position_does_not_depend_on_the_order():
    calls = [Invocation(client, (n,)) for client in ("a", "b") for n in range(4)]
    assert with_all(0, calls) == with_all(0, reversed(calls)) == with_all(with_all(0, calls[:3]), calls[3:])
    assert len({with_all(0, calls[:n]) for n in range(9)}) == 9
    assert with_all(None, calls) is None
