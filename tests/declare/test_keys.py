"""Keys: equal values give equal strings, footprints are small and sorted, odd values are refused."""

from collections import namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework import BadRequest, Object, method
from framework.declare import declaration
from framework.declare.keys import LONGEST, OddKeyError, canonical
from framework.declare.keyspec import MOST

Point = namedtuple("Point", "x y")


class Color(Enum):
    RED = 1


class Level(IntEnum):
    LOW = 1


class Day(StrEnum):
    FRI = "fri"


class OldDay(str, Enum):  # noqa: UP042  # whose str() is not its value
    FRI = "fri"


class Folded(str):
    def __eq__(self, other):
        return self.lower() == str(other).lower()

    def __hash__(self):
        return hash(self.lower())


_scalars = st.one_of(
    st.text(max_size=3),
    st.integers(-3, 3),
    st.booleans(),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 2.5]),
    st.sampled_from([Decimal("1"), Decimal("1.00"), Decimal("0.5"), Decimal("1E+1"), Decimal("-0")]),
    st.fractions(-2, 2, max_denominator=2),
    st.binary(max_size=2),
    st.sampled_from([Color.RED, Level.LOW, Day.FRI, OldDay.FRI, "fri", "#1", "'", "", "<None"]),
    st.none(),
)
_keys = st.recursive(
    _scalars, lambda k: st.lists(k, max_size=3).map(tuple) | st.frozensets(k, max_size=3), max_leaves=5
)


@given(_keys, _keys)
def test_the_same_key_iff_the_same_string(a, b):
    assert (a == b) == (canonical(a) == canonical(b))


@pytest.mark.parametrize(
    "equal",
    [
        [1, True, 1.0, Decimal(1), Decimal("1.000"), Fraction(1), Level.LOW],
        [0, False, -0.0, Decimal("-0"), Decimal("0E+999999999")],
        [0.1, Decimal(0.1), Fraction(0.1)],  # noqa: RUF032  # exactly the float
        [float("inf"), Decimal("Infinity")],
        [10**20, Decimal("1E+20"), 1e20],
        ["fri", Day.FRI, OldDay.FRI],
        [(1, 2), Point(1, 2), (True, 2.0)],
        [frozenset([0, 8]), frozenset([8, 0])],  # which iterate differently
        [
            datetime(2024, 1, 1, 12, tzinfo=UTC),
            datetime(2024, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        ],
        [datetime(2024, 1, 1, 2, fold=0), datetime(2024, 1, 1, 2, fold=1)],
        [timedelta(days=1), timedelta(hours=24)],
    ],
)
def test_equal_keys_are_one(equal):
    assert all(a == b for a in equal for b in equal)
    assert len({canonical(k) for k in equal}) == 1


def test_different_keys_are_written_apart():
    different = [
        "1", 1, "#1", b"1", (1,), ((1,),), (1, 2), ("1", 2), (12,), frozenset({1}), None, "None", Color.RED, "",
        "'", "''", "ann", "Ann", date(2024, 1, 1), datetime(2024, 1, 1), "2024-01-01", time(1), UUID(int=1),
        float("inf"), "inf", 0.1, Decimal("0.1"), ("a", "b,c"), ("a,b", "c"), "x" * 100, "x" * 101,
    ]  # fmt: skip
    assert len({canonical(k) for k in different}) == len(different)


def test_a_text_reads_as_itself_and_a_long_one_is_short():
    assert canonical("ann") == "ann"
    assert canonical("é") == "é"
    for long in ["x" * 10_000, "é" * 100, b"x" * 1000, tuple(range(1000)), 2**1000]:
        assert len(canonical(long)) <= LONGEST


@pytest.mark.parametrize(
    "odd",
    [
        [1], {}, {1}, bytearray(b"x"), object(), 1j, Folded("A"), "\ud800", "é\udfff" * 80, Decimal("1E+999999999"),
        Decimal("1E-999999999"), 1 << 5000, (1, [2]), time(1, tzinfo=UTC),
    ],
)  # fmt: skip
def test_odd_values_are_refused(odd):
    with pytest.raises(OddKeyError):
        canonical(odd)


class Box(Object):
    @method(key="cell")
    def one(self, cell: str | None) -> None: ...
    @method(key="cell", readonly=True)
    def read_one(self, cell: str) -> int: ...
    @method(key=("source", "target"))
    def two(self, source: str, target: str | None) -> None: ...
    @method(key={"source": "read", "target": "write"})
    def modes(self, source: str, target: str) -> None: ...
    @method
    def bare(self, cell: str) -> None: ...
    @method(readonly=True)
    def read_bare(self) -> int: ...
    @method(key=lambda cells: cells)
    def many(self, by: int, cells: list[str]) -> None: ...
    @method(key=lambda cell, by: {cell: "read", by: "w"})
    def dict_of(self, by: str, cell: str) -> None: ...
    @method(key=lambda name: name.lower())
    def folded(self, name: str) -> None: ...
    @method(key=lambda name: (c for c in name), readonly=True)
    def letters(self, name: str) -> None: ...
    @method(key=lambda what: what, readonly=True)
    def anything(self, what: dict[str, str | None]) -> None: ...
    @method(key=lambda: "fixed")
    def fixed(self) -> None: ...
    @method(key="day")
    def on(self, day: date) -> None: ...
    @method(key="any_")
    def untyped(self, any_: list[str] | str) -> None: ...


def keys(name, *values):
    found = declaration(Box).methods[name]
    footprint = found.footprint(found.bind(*values))
    assert footprint.method == name
    assert footprint.readonly == found.readonly
    return footprint.keys


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("one", "a"), (("a", "w"),)),
        (("one", None), None),
        (("read_one", "a"), (("a", "r"),)),
        (("two", "b", "a"), (("a", "w"), ("b", "w"))),
        (("two", "a", "a"), (("a", "w"),)),
        (("two", "a", None), None),
        (("modes", "b", "a"), (("a", "w"), ("b", "r"))),
        (("modes", "a", "a"), (("a", "w"),)),
        (("bare", "a"), None),
        (("read_bare",), None),
        (("many", 1, ["c", "a", "c"]), (("a", "w"), ("c", "w"))),
        (("many", 1, []), None),
        (("many", 1, [str(i) for i in range(MOST + 1)]), None),
        (("dict_of", "b", "a"), (("a", "r"), ("b", "w"))),
        (("dict_of", "a", "a"), (("a", "w"),)),
        (("folded", "Ann"), (("ann", "w"),)),
        (("letters", "ab"), (("a", "r"), ("b", "r"))),
        (("anything", {"a": "r"}), (("a", "r"),)),
        (("anything", {"a": "read"}), (("a", "r"),)),
        (("fixed",), (("fixed", "w"),)),
    ],
)
def test_keys_of_calls(call, expected):
    assert keys(*call) == expected


def test_modes_merge_to_write_whatever_their_order():
    class Both(Object):
        @method(key={"a": "write", "b": "read"})
        def go(self, a: str, b: str) -> None: ...

    assert declaration(Both).methods["go"].footprint(("x", "x")).keys == (("x", "w"),)


def test_a_caller_who_sends_a_date_as_text_meets_the_one_who_sends_a_date():
    # msgspec reads a date from a text: bind must hand on what the replicas will see.
    assert keys("on", "2024-01-01") == keys("on", date(2024, 1, 1))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("untyped", ["a"]), ["Box.untyped", "any_=['a']", "list cannot be a key", "str, int"]),
        (("anything", {"a": "write"}), ["Box.anything", "'a'", "readonly"]),
        (("anything", {"a": "append"}), ["Box.anything", "mode 'append'"]),
    ],
)
def test_odd_calls(call, words):
    with pytest.raises(BadRequest) as caught:
        keys(*call)
    for word in words:
        assert word in str(caught.value)


def test_a_key_function_that_fails():
    class Fails(Object):
        @method(key=lambda i: 1 // i)
        def go(self, i: int) -> None: ...

    with pytest.raises(BadRequest, match=r"Fails\.go: its key function raised ZeroDivisionError"):
        declaration(Fails).methods["go"].footprint((0,))


def test_description_for_tables():
    described = {name: m.key for name, m in declaration(Box).methods.items()}
    assert described["one"] == "cell"
    assert described["two"] == "source, target"
    assert described["modes"] == "source:r, target:w"
    assert described["many"] == "function(cells)"
    assert described["bare"] == ""
