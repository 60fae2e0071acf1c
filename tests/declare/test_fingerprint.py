"""A short word for a state: the same for equal states, in whatever order they came up, and else another one."""

from collections import Counter, OrderedDict, defaultdict, deque
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.declare import Object
from framework.declare.portable import NotPortable
from framework.declare.portable.fingerprint import fingerprint
from framework.orb.state.tracker import Tracker


class Colour(Enum):
    RED = 1
    BLUE = 2


class Point:
    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y


class Thing(Object):
    colour: Colour
    point: Point


def thing(**attributes: Any) -> Thing:
    made = Thing()
    vars(made).update(attributes)
    return made


def print_of(value: Any) -> str:
    return fingerprint(thing(value=value))


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner)
)


@given(VALUES, VALUES)
def test_equal_iff_the_states_are(one: Any, other: Any) -> None:
    same = repr(_sorted(one)) == repr(_sorted(other))  # repr tells True from 1, and 0.0 from -0.0
    assert (print_of(one) == print_of(other)) is same


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((repr(k), _sorted(v)) for k, v in value.items()), "dict"
    if isinstance(value, list | tuple):
        return type(value)(map(_sorted, value))
    return value


def test_order_counts_only_where_it_is_a_part_of_the_state() -> None:
    for kind in (dict, Counter, lambda pairs: defaultdict(int, pairs)):
        assert print_of(kind([("a", 1), ("b", 2)])) == print_of(kind([("b", 2), ("a", 1)]))
    assert print_of({"a", "b", "c"}) == print_of({"c", "b", "a"})
    assert fingerprint(thing(a=1, b=2)) == fingerprint(thing(b=2, a=1))
    one, other = Point(1, 2), Point(0, 2)
    vars(other).clear()
    other.y, other.x = 2, 1
    assert print_of(one) == print_of(other) != print_of(Point(2, 1))
    for sequence in (list, tuple, deque, lambda pairs: OrderedDict.fromkeys(pairs, 0)):
        assert print_of(sequence([1, 2])) != print_of(sequence([2, 1]))


@pytest.mark.parametrize(
    "values",
    [
        (1, True, 1.0, "1", b"1", [1], (1,), {1}, frozenset((1,)), {1: 1}, deque([1])),
        (Colour.RED, Colour.BLUE, 1 << 70, (1 << 70) + 1, -(1 << 70)),
        ({"a": [1], "b": []}, {"a": [], "b": [1]}, {"a": {"b": 1}}, {"b": {"a": 1}}, "\ud800", "\ud801"),
    ],
)
def test_what_differs_is_told_apart(values: tuple[Any, ...]) -> None:
    assert len({print_of(v) for v in values}) == len(values)


def test_containers_that_note_their_changes_count_as_plain_ones() -> None:
    plain = {"list": [1, [2]], "dict": {"a": {1, 2}}, "deque": deque([1], 3)}
    tracked = thing(**plain)
    Tracker(vars(tracked), "Thing")
    assert fingerprint(tracked) == fingerprint(thing(list=[1, [2]], dict={"a": {2, 1}}, deque=deque([1], 3)))


def test_what_cannot_travel_cannot_be_compared() -> None:
    with pytest.raises(NotPortable, match="cannot travel"):
        print_of(object())
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NotPortable, match="too deeply"):
        print_of(deep)
