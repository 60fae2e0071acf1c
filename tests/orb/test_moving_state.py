"""The state of an object as bytes and back; and what a replica does with it (docs/state.md)."""

import copy
import math
import re
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework import Object
from framework.declare.portable import NotPortable, tags
from framework.errors import BadMessage, DeclarationError
from framework.orb.performance import Resident
from framework.orb.state.base import Tracked
from framework.orb.undo import Undo
from framework.orb.workers import Workers
from framework.trace.digest import digest
from objects.bank import Bank
from objects.counter import Counter as CounterObject
from objects.file import File
from objects.travel import Car, Hotel
from tests.orb import movable
from tests.orb.movable import (
    Anything,
    Colour,
    FrozenRow,
    Key,
    Locked,
    Order,
    Own,
    Plain,
    Point,
    Right,
    Row,
    Size,
    Store,
)
from tests.tiers import examples

ALL = [
    *(
        None,
        True,
        0,
        -1,
        2**63,
        2**64,
        -(2**63) - 1,
        10**200,
        0.5,
        -0.0,
        math.inf,
        "",
        "ü",
        "\ud800 half",
        b"",
        b"\xff",
    ),
    *(Decimal("1.10"), Decimal("NaN"), UUID(int=7), date(2026, 2, 28), time(1, 2, 3, 4, tzinfo=UTC, fold=1)),
    *(datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")), datetime.max, timedelta(-1, 2, 3)),
    *(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1), "here")), timezone(timedelta(seconds=-90)), 1 + 2j),
    *(
        Fraction(1, 3),
        range(1, 10**30, 7),
        re.compile("a+", re.I),
        re.compile(b"b"),
        PurePosixPath("a/b"),
        bytearray(b"x"),
    ),
    *(
        Colour.GREEN,
        Size.LARGE,
        Right.READ | Right.WRITE,
        Right(0),
        Point(1, [2]),
        Key("k", 1),
        FrozenRow(cells=(1, 2)),
    ),
    *(
        (),
        [],
        {},
        set(),
        frozenset(),
        deque(),
        deque([1, 2], 2),
        OrderedDict(b=1, a=2),
        Counter(a=-1, b=0),
        (1, (2, [3])),
    ),
    *(defaultdict(None, a=1), defaultdict(int, a=1), defaultdict(movable.pair, a=[1, 2]), defaultdict(Order)),
    *("long " * 200_000, b"long" * 300_000, "ß" * 300_000),
]


def travelled(value):
    made, fresh = Anything(), Anything()
    made.value = value
    fresh.set_state(made.get_state())
    return fresh.value


def shown(value):
    """A text that differs where anything differs, the types too."""
    kind = type(value).__name__
    if isinstance(value, dict):
        pairs = [f"{shown(k)}: {shown(v)}" for k, v in value.items()]
        return f"{kind} {pairs}"
    if isinstance(value, set | frozenset):
        return f"{kind} {sorted(map(shown, value))}"
    if isinstance(value, list | tuple | deque):
        return f"{kind} {list(map(shown, value))}"
    if isinstance(value, Order | Plain):
        return f"{kind} {shown(vars(value))}"
    if isinstance(value, Row):
        return f"{kind} {shown(value.cells)} {value.colour}"
    return f"{kind} {value!r}"


@pytest.mark.parametrize("value", ALL, ids=lambda v: f"{type(v).__name__} {str(v)[:12]!a}")
def test_a_value_arrives_as_it_was(value):
    came = travelled(value)
    assert type(came) is type(value)
    assert shown(came) == shown(value)
    if value == value:
        assert came == value


def test_what_equality_does_not_see_arrives_too():
    assert math.copysign(1, travelled(-0.0)) == -1
    assert math.isnan(travelled(math.nan))
    berlin = travelled(datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")))
    assert berlin.utcoffset() == timedelta(hours=1)
    assert travelled(deque([1], 5)).maxlen == 5
    assert list(travelled(OrderedDict(b=1, a=2))) == ["b", "a"]
    assert travelled(defaultdict(movable.pair))["new"] == [0, 0]
    assert travelled(Decimal("1.10")).as_tuple() == Decimal("1.10").as_tuple()


def test_instances_of_the_users_classes_arrive():
    value = [Order("o", [Row({"a": Point(1, 2)}, Colour.GREEN)]), Plain({"b": Plain(None)}), {Key("k"): 1}]
    came = travelled(value)
    assert came[0] == value[0]
    assert came[1].value["b"].value is None
    assert came[2] == value[2]
    assert shown(came) == shown(value)


LEAVES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()),
    *(st.integers(-(2**200), 2**200), st.characters(), st.decimals(allow_nan=False), st.uuids(), st.fractions()),
    *(st.datetimes(timezones=st.none() | st.timezones()), st.dates(), st.times(), st.timedeltas()),
    *(st.sampled_from(Colour), st.sampled_from(Size), st.builds(Key, st.text(), st.integers())),
)
KEYS = st.recursive(LEAVES, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4)
VALUES = st.recursive(
    KEYS,
    lambda inner: st.one_of(
        *(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4), st.sets(KEYS, max_size=4)),
        *(st.tuples(inner, inner), st.builds(deque, st.lists(inner, max_size=3))),
        *(
            st.builds(OrderedDict, st.dictionaries(KEYS, inner, max_size=3)),
            st.builds(Order, st.text(), st.lists(inner)),
        ),
        *(st.builds(Point, st.integers(), inner), st.builds(Row, st.dictionaries(st.text(), inner, max_size=3))),
        st.builds(lambda d: defaultdict(list, d), st.dictionaries(KEYS, inner, max_size=3)),
        st.builds(Plain, inner),
    ),
    max_leaves=20,
)


@settings(max_examples=examples(75, 300), deadline=None)
@given(VALUES)
def test_nested_values_arrive_as_they_were(value):
    assert shown(travelled(value)) == shown(value)


@settings(max_examples=examples(25, 100), deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_of_an_object_that_a_node_hosts_too(value):
    """Its containers are tracked ones."""
    made, fresh = Anything(), Anything()
    made.value = copy.deepcopy(value)  # nobody else holds it
    resident = Resident(made, Workers(1, "w"))
    assert isinstance(made.value, Tracked) or resident.tracker.copying
    fresh.set_state(resident.object.get_state())
    assert shown(fresh.value) == shown(value)
    assert not isinstance(fresh.value, Tracked)


def test_chunks_are_small_and_nesting_may_be_deep():
    made = Anything()
    made.value = [{"text": "x" * 100, "n": n} for n in range(20_000)]
    chunks = list(made.get_state())
    assert len(chunks) > 5
    assert max(map(len, chunks)) < 2 * tags.CHUNK
    deep = []
    for _ in range(100_000):
        deep = [deep]
    came, depth = travelled(deep), 0
    while came:
        came, depth = came[0], depth + 1
    assert depth == 100_000
    while deep:  # Python frees it level by level
        deep = deep.pop()


def test_a_lambda_of_an_attribute_is_that_of_the_object_itself():
    made, fresh = Anything(), Anything()
    made.waiting["a"] = 1
    fresh.set_state(made.get_state())
    assert fresh.waiting == {"a": 1}
    assert fresh.waiting["b"] == ["made by the object"]


def test_attributes_of_the_framework_stay_here():
    made, fresh = Anything(), Anything()
    made._obo_secret = 1
    fresh.set_state(made.get_state())
    assert not hasattr(fresh, "_obo_secret")


@pytest.mark.parametrize("kind", [Bank, Car, CounterObject, File, Hotel], ids=lambda k: k.__name__)
def test_the_objects_that_come_along_can_travel(kind):
    made, fresh = kind(), kind()
    fresh.set_state(made.get_state())
    assert vars(fresh) == vars(made)


# what cannot travel


class Elsewhere:
    """Not of the module of the objects."""


def slotted():
    value = movable.Slotted()
    value.value = 1
    return value


class Words(list):
    pass


CIRCLE: list = []
CIRCLE.append((1, CIRCLE))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"a": [1, Elsewhere()]}, "Anything: self.value['a'][1] is a tests.orb.test_moving_state.Elsewhere, which"),
        ([Elsewhere()], "tests.orb.movable does not know its class: import Elsewhere there by name"),
        (lambda: 1, "self.value is a function, which cannot travel to another node: keep it out of the attributes"),
        ({(1, slotted()): 1}, "is a tests.orb.movable.Slotted"),
        (Plain({1: Words()}), "self.value.value[1] is a tests.orb.test_moving_state.Words"),
        ([defaultdict(lambda: 1)], "its default_factory has no name in the object's module: define a function there"),
        (CIRCLE, "it holds itself"),
        (open, "give Anything its own get_state and set_state"),
    ],
)
def test_what_cannot_travel_is_named(value, told):
    made = Anything()
    made.value = value
    with pytest.raises(NotPortable) as caught:
        list(made.get_state())
    assert told in str(caught.value)


def test_the_place_is_named_however_deep_it_is():
    with pytest.raises(NotPortable, match=re.escape("Locked: self.parts['a'][1].lines[0] is a _thread.lock, which")):
        Locked().get_state()


def test_classes_are_looked_up_and_never_imported():
    """A donor that says otherwise is refused, and so is one that makes what is no value out of a known name."""
    made = Anything()
    made.value = Plain(1)
    (chunk,) = made.get_state()
    tokens = msgspec.msgpack.decode(chunk)
    for name in ("subprocess.Popen", "builtins.object", "tests.orb.movable.Lock", "tests.orb.movable.Slotted", ""):
        for token in tokens:
            if isinstance(token, list) and token[0] == tags.INSTANCE:
                token[1] = name
        with pytest.raises(BadMessage, match=f"no state of Anything: nothing named '{name}'"):
            Anything().set_state([msgspec.msgpack.encode(tokens)])


@pytest.mark.parametrize(
    ("chunks", "told"),
    [
        ([], "does not begin"),
        ([b"\xc1"], "no state of Anything"),
        ([msgspec.msgpack.encode([[2, "Anything"]])], "version 2"),
        ([msgspec.msgpack.encode([[1, "Store"]])], "that of a Store"),
        ([msgspec.msgpack.encode([[1, "Anything"], [tags.DICT, 1], "value"])], "ends too early"),
        ([msgspec.msgpack.encode([[1, "Anything"], [tags.DICT, 0], 1])], "more follows"),
        ([msgspec.msgpack.encode([[1, "Anything"], [tags.LIST, 0]])], "attributes"),
        ([msgspec.msgpack.encode([[1, "Anything"], [tags.DICT, 1], "_obo_x", 1])], "belongs to the framework"),
        ([msgspec.msgpack.encode([[1, "Anything"], [tags.DICT, -1]])], "-1 elements"),
        ([msgspec.msgpack.encode([[1, "Anything"], [tags.DICT, 1], [tags.LIST, 0], 1])], "unhashable"),
        ([msgspec.msgpack.encode([[1, "Anything"], [999]])], "999"),
        ([msgspec.msgpack.encode([[1, "Anything"], []])], "no state"),
    ],
)
def test_bytes_that_are_no_state_are_refused_and_nothing_changes(chunks, told):
    made = Anything()
    made.value = before = {"a": 1}
    with pytest.raises(BadMessage, match=told):
        made.set_state(chunks)
    assert made.value is before


def test_the_names_cannot_be_called_from_outside():
    from framework import method

    with pytest.raises(DeclarationError, match="get_state"):

        class Wrong(Object):
            @method
            def get_state(self) -> list[bytes]:
                return []


# adopting


def filled():
    made = Store()
    for n, name in enumerate(["a", "b", "a"]):
        made.put(name, n)
    return made


def test_a_replica_adopts_a_state_and_tracks_it():
    donor = Resident(filled(), Workers(1, "w"))
    joiner = Resident(Store(), Workers(1, "w"))
    joiner.object.put("old", 1)
    target = joiner.object
    joiner.adopt(donor.object.get_state())
    assert joiner.object is target
    assert digest(vars(target)) == digest(vars(donor.object))
    assert all(isinstance(value, Tracked) for value in vars(target).values())
    assert isinstance(target.by["a"], Tracked)
    assert not joiner.tracker.pending and not joiner.tracker.copying
    before = digest(vars(target))
    undo = Undo(joiner.tracker)
    undo.begin()
    with pytest.raises(ValueError, match="on purpose"):
        target.put("a", 9, then_fail=True)
    assert digest(vars(target)) != before
    undo.take_back()
    undo.end()
    assert digest(vars(target)) == before


def test_a_bad_state_leaves_the_replica_as_it_was():
    joiner = Resident(filled(), Workers(1, "w"))
    before = digest(vars(joiner.object))
    chunks = Store().get_state()
    with pytest.raises(BadMessage):
        joiner.adopt([*chunks, b"garbage"])
    own = Resident(Own(), Workers(1, "w"))
    own.object.rows = [b"1"]
    with pytest.raises(ValueError, match="but there are 1"):
        own.adopt([b"2 rows", b"a"])
    assert digest(vars(joiner.object)) == before
    assert own.object.rows == [b"1"]


def test_a_class_with_its_own_ways_gets_the_chunks_it_gave():
    donor, joiner = Resident(Own(), Workers(1, "w")), Resident(Own(), Workers(1, "w"))
    donor.object.rows = [b"", b"a", b"b" * 10_000]
    joiner.adopt(donor.object.get_state())
    assert joiner.object.rows == donor.object.rows
