"""What is annotated with Any comes back as it went in; what is not pays nothing for it."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework import BadRequest, Object, declaration, method
from framework.declare.codec import Codec
from framework.declare.extended import writer

EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.binary(), st.text(),
    st.decimals(allow_nan=False), st.datetimes(), st.datetimes(timezones=st.just(EAST)), st.dates(), st.times(),
    st.timedeltas(), st.uuids(),
)  # fmt: skip
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def same(one, other):
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    zone = getattr(one, "utcoffset", lambda: None)
    return type(one) is type(other) and one == other and zone() == getattr(other, "utcoffset", lambda: None)()


@given(values)
def test_any_value_comes_back(value):
    assert same(Codec(Any).seen(value), value)


@given(st.lists(st.tuples(scalars, scalars)))
def test_rows_come_back(rows):
    class Rows(msgspec.Struct):
        rows: list[tuple[Any, ...]]
        count: int

    found = Codec(Rows).seen(Rows(rows, 1))
    assert found.count == 1
    assert all(same(list(a), list(b)) for a, b in zip(rows, found.rows, strict=True))


@given(st.lists(scalars) | st.dictionaries(st.text(), scalars))
def test_a_union_of_list_and_map(params):
    assert same(Codec(Sequence[Any] | Mapping[str, Any]).seen(params), params)


@dataclass(frozen=True, slots=True)
class Point:
    at: Any
    next: "Point | None" = None


class Pair(NamedTuple):
    one: int
    other: Any


class Named(TypedDict, total=False):
    one: int
    other: Any


D = Decimal("1.10")


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Point, Point(D, Point([D, {"x": D}]))),
        (Pair, Pair(1, D)),
        (Named, {"one": 1, "other": D}),
        (Named, {"one": 1}),
        (tuple[int, Any], (1, D)),
        (dict[str, list[Any]], {"a": [D, 1]}),
        (Any | None, D),
        (list[Point | int], [Point(D), 2]),
        (int | list[Any], [1 << 70, -(1 << 70), 1 << 63, (1 << 64) - 1, -(1 << 63)]),
    ],
)
def test_any_inside_of_other_types(annotation, value):
    found = Codec(annotation).seen(value)
    assert found == value
    assert type(found) is type(value)


def test_what_goes_in_is_not_changed():
    point, row = Point(D), [D, [D]]
    Codec(Any).pack(row)
    Codec(Point).pack(point)
    assert point.at is D
    assert row == [D, [D]]


@pytest.mark.parametrize(
    "annotation", [int, list[Decimal], dict[str, UUID], tuple[int, ...], dt.datetime, Point | None]
)
def test_only_any_pays(annotation):
    assert (writer(msgspec.inspect.type_info(annotation)) is None) == (annotation != Point | None)


def test_types_that_are_named_are_written_as_before():
    assert Codec(Decimal).pack(D) == msgspec.msgpack.encode("1.10")
    assert Codec(list[dt.date]).pack([dt.date(2024, 1, 2)]) == msgspec.msgpack.encode(["2024-01-02"])


class Anything(Object):
    @method(readonly=True)
    def back(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize(
    "code_and_data", [(99, b""), (1, b"many"), (2, b"\xff"), (6, b"short"), (5, b"1 2 3 4 5 6 7 8")]
)
def test_an_extension_that_means_nothing_is_refused(code_and_data):
    data = msgspec.msgpack.encode([msgspec.msgpack.Ext(*code_and_data)])
    with pytest.raises(BadRequest, match=f"extension type {code_and_data[0]}"):
        declaration(Anything).method("back").unpack(data)
