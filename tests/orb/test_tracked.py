"""Tracked containers: as the plain ones in every respect, and every change can be taken back."""

import copy
import json
from collections import Counter, OrderedDict, defaultdict, deque

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from framework.orb.state.base import Tracked
from framework.orb.state.kinds import PLAIN_TYPES, tracked_copy
from framework.orb.state.tracker import Tracker
from framework.orb.undo import Undo
from framework.trace.digest import digest
from tests.tiers import examples

KEYS = st.sampled_from("abcde")
SMALL = st.integers(0, 6)
INDEX = st.integers(-7, 7)
LISTS = st.lists(SMALL, max_size=6)
PAIRS = st.dictionaries(KEYS, SMALL, max_size=4)
SLICES = st.builds(slice, *[st.none() | INDEX] * 2, st.none() | st.sampled_from([1, 2, -1, -2]))
SETS = st.sets(SMALL, max_size=5)

PLAIN = {
    "dict": PAIRS,
    "OrderedDict": PAIRS.map(OrderedDict),
    "defaultdict": PAIRS.map(lambda p: defaultdict(int, p)),
    "Counter": PAIRS.map(Counter),
    "list": LISTS,
    "deque": st.builds(deque, LISTS, st.none() | st.integers(0, 7)),
    "set": SETS,
}


def refuse_threes(value):
    if value == 3:
        raise ValueError("not a three")
    return value


def augmented(sign):
    """``value |= other`` and the like; like the statement, it must give the same object."""

    def change(target, other):
        names = {"target": target, "other": other}
        exec(f"target {sign} other", names)
        assert names["target"] is target

    change.__name__ = sign
    return change


def called(name, *kinds, **by_name):
    def change(target, *args, **kwargs):
        return getattr(target, name)(*args, **kwargs)

    change.__name__ = name
    return st.tuples(st.just(change), st.tuples(*kinds), st.fixed_dictionaries(by_name))


def op(change, *kinds):
    return st.tuples(st.just(change), st.tuples(*kinds), st.just({}))


def set_item(target, place, value):
    target[place] = value


def del_item(target, place):
    del target[place]


MAPPING = [
    op(set_item, KEYS, SMALL),
    op(del_item, KEYS),
    called("pop", KEYS),
    called("pop", KEYS, SMALL),
    called("popitem"),
    called("clear"),
    called("setdefault", KEYS, SMALL),
    called("update", PAIRS),
    called("update", PAIRS, x=SMALL),
    called("update", a=SMALL, y=SMALL),
    op(augmented("|="), PAIRS),
]
SEQUENCE = [
    called("append", SMALL),
    called("extend", LISTS),
    op(lambda target: target.extend(target)),
    called("insert", INDEX, SMALL),
    called("pop"),
    called("remove", SMALL),
    called("clear"),
    called("reverse"),
    op(set_item, INDEX, SMALL),
    op(del_item, INDEX),
    op(augmented("+="), LISTS),
    op(augmented("*="), st.integers(-1, 3)),
]
CHANGES = {
    "dict": MAPPING,
    "defaultdict": [*MAPPING, op(lambda target, key: target[key], KEYS)],
    "OrderedDict": [
        *MAPPING,
        called("move_to_end", KEYS),
        called("move_to_end", KEYS, last=st.booleans()),
        called("popitem", last=st.booleans()),
        called("pop", KEYS, default=SMALL),
    ],
    "Counter": [
        *[c for c in MAPPING if c is not MAPPING[-1]],
        called("update", LISTS),
        called("subtract", LISTS),
        called("subtract", PAIRS),
        *(op(augmented(sign), PAIRS.map(Counter)) for sign in ("+=", "-=", "|=", "&=")),
    ],
    "list": [
        *SEQUENCE,
        called("pop", INDEX),
        called("sort"),
        called("sort", reverse=st.booleans(), key=st.just(lambda v: -v)),
        called("sort", key=st.just(refuse_threes)),
        op(set_item, SLICES, LISTS),
        op(lambda target, place: target.__setitem__(place, target), SLICES),
        op(del_item, SLICES),
    ],
    "deque": [
        *SEQUENCE,
        called("appendleft", SMALL),
        called("popleft"),
        called("extendleft", LISTS),
        called("rotate"),
        called("rotate", INDEX),
    ],
    "set": [
        *(called(name, SMALL) for name in ("add", "discard", "remove")),
        called("pop"),
        called("clear"),
        *(called(name, LISTS, SETS) for name in ("update", "difference_update", "intersection_update")),
        *(called(name) for name in ("update", "difference_update", "intersection_update")),
        called("symmetric_difference_update", LISTS),
        *(op(augmented(sign), SETS | SETS.map(frozenset)) for sign in ("|=", "-=", "&=", "^=")),
        *(op(lambda target, name=name: getattr(target, name)(target)) for name in ("__isub__", "__ixor__", "update")),
    ],
}
KINDS = sorted(PLAIN)


def attempt(change, target):
    method, args, kwargs = change
    try:
        return method(target, *copy.deepcopy(args), **kwargs)
    except (LookupError, ValueError, TypeError) as error:
        return type(error)


def shown(value):
    """With order where equality counts it, and what else makes a difference later."""
    return repr(value) if isinstance(value, list | deque | OrderedDict) else (value, type(value))


def program(kind):
    return st.tuples(PLAIN[kind], st.lists(st.one_of(CHANGES[kind]), max_size=8))


def test_every_mutator_is_noted():
    """Nothing by which a plain type can change is left to the plain type."""
    mutators = {
        "dict": "__setitem__ __delitem__ pop popitem clear setdefault update __ior__",
        "OrderedDict": "__setitem__ __delitem__ pop popitem clear setdefault update __ior__ move_to_end",
        "list": "append extend insert pop remove clear sort reverse __setitem__ __delitem__ __iadd__ __imul__",
        "deque": "append appendleft extend extendleft insert pop popleft remove clear reverse rotate "
        "__setitem__ __delitem__ __iadd__ __imul__",
        "set": "add discard remove pop clear update difference_update intersection_update symmetric_difference_update "
        "__ior__ __iand__ __isub__ __ixor__",
    }
    for plain in PLAIN_TYPES:
        base = "dict" if issubclass(plain, dict) and plain is not OrderedDict else plain.__name__
        kind = type(tracked_copy(plain(), Tracker({})))
        for name in mutators[base].split():
            owner = next(c for c in kind.__mro__ if name in vars(c))
            assert issubclass(owner, Tracked) or (plain is Counter and name == "__ior__"), (plain, name, owner)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=examples(25, 100))
@given(st.data())
def test_changes_do_what_they_do_to_the_plain_one(kind, data):
    plain, steps = data.draw(program(kind))
    state = {"it": copy.deepcopy(plain)}
    tracker = Tracker(state)
    undo = Undo(tracker)
    for logged in (True, False):
        if logged:
            undo.begin()
        for step in steps:
            if step[0].__name__ == "pop" and kind == "set":
                continue  # any element
            assert attempt(step, plain) == attempt(step, state["it"])
            assert plain == state["it"] and shown(plain) == shown(copy.copy(state["it"])), step[0].__name__
        undo.end()
    assert isinstance(state["it"], Tracked)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=examples(25, 100))
@given(st.data())
def test_a_lone_instance_that_raises_leaves_it_exactly_as_it_was(kind, data):
    plain, steps = data.draw(program(kind))
    state = {"it": copy.deepcopy(plain), "nested": [{"in": copy.deepcopy(plain)}]}
    tracker = Tracker(state)
    before, places = copy.deepcopy(state), (state["it"], state["nested"], state["nested"][0]["in"])
    undo = Undo(tracker)
    undo.begin()
    for n, step in enumerate(steps):
        attempt(step, places[0])
        attempt(step, places[2])
        state["nested"].append({"new": [n]})
        if n % 3 == 2:
            state["it"] = [n]  # and it changes while it is not in the state
            undo.pause()
            undo.begin()
    undo.take_back()
    undo.end()
    assert state == before
    assert shown(copy.copy(state["it"])) == shown(plain)
    assert shown(copy.copy(state["nested"][0]["in"])) == shown(plain)
    assert places[0] is state["it"] and places[1] is state["nested"] and places[2] is state["nested"][0]["in"]
    assert tracker.pending == []


def test_sorting_that_fails_half_way():
    before = [3, 1, 2, "a", 0]
    state = {"l": [*before]}
    undo = Undo(Tracker(state))
    undo.begin()
    with pytest.raises(TypeError):
        state["l"].sort()
    assert state["l"] != before, "Python leaves it half sorted"
    undo.take_back()
    assert state["l"] == before


# two at once

WHO = ("mine", "other")
PLACES = ("plain", "counted", "ordered", "listed")


def add(state, who, where, amount):
    """Numbers that both add to."""
    if where == "listed":
        state["listed"][0] += amount
    elif where == "attribute":
        state["sum"] = state.get("sum", 0) + amount
    else:
        state[where]["sum"] = state[where].get("sum", 0) + amount


def set_own(state, who, where, value):
    """Keys and elements of its own."""
    if where in ("plain", "counted", "ordered"):
        state[where][who, value] = value
    elif where == "listed":
        state["listed"].append((who, value))
    else:
        state["set"].add((who, value))
        state["set"] ^= {(who, value + 1)}


def drop_own(state, who, where, value):
    if where in ("plain", "counted", "ordered"):
        state[where].pop((who, value), None)
    elif where == "listed":
        if (who, value) in state["listed"]:
            state["listed"].remove((who, value))
    else:
        state["set"].discard((who, value))


def make_own(state, who, where, value):
    """A container of its own that it changes further."""
    entry = state["plain"].setdefault((who, "made", value), {"n": 0, "log": []})
    entry["n"] += 1
    entry["log"].append(value)


STEPS = st.tuples(
    st.sampled_from(WHO),
    st.sampled_from([add, set_own, drop_own, make_own]),
    st.sampled_from([*PLACES, "attribute"]),
    st.integers(1, 3),
    st.booleans(),
)


def fresh_state(opaque):
    state = {"plain": {}, "counted": Counter(), "ordered": OrderedDict(), "listed": [0], "set": set(), "sum": 0}
    for who in WHO:
        for value in (1, 2):
            for where in PLACES:
                set_own(state, who, where, value)
    return state | ({"opaque": bytearray(b"x")} if opaque else {})


def comparable(state):
    """Lists that two append to, and ordered dicts, have the order of what was done: compared without."""
    return {k: sorted(map(repr, v)) if k == "listed" else dict(v) if k == "ordered" else v for k, v in state.items()}


@settings(deadline=None, max_examples=examples(25, 100))
@given(st.lists(STEPS, max_size=20), st.booleans(), st.booleans())
@example([("mine", add, "attribute", 1, True), ("other", add, "attribute", 2, True)], False, False)
def test_beside_a_compatible_one_only_its_own_is_taken_back(steps, opaque, ends_first):
    if opaque:  # a list that is copied and compared can be put back only as a whole: not if another has changed it, too
        steps = [step for step in steps if step[2] != "listed"]
    state, alone = fresh_state(opaque), fresh_state(opaque)
    tracker = Tracker(state)
    undos = {who: Undo(tracker) for who in WHO}
    for who, change, where, value, _ in steps:
        undos[who].begin()
        change(state, who, where, value)
        undos[who].pause()
        if who == "other":
            change(alone, who, where, value)
    if ends_first:
        undos["other"].end()
    undos["mine"].take_back()
    undos["mine"].end()
    undos["other"].end()
    for where in ("plain", "ordered"):  # to add nothing to what is not there, or to find 0 there, is the same sum
        for it in (state[where], alone[where]):
            if it.get("sum") == 0:
                del it["sum"]
    assert comparable(state) == comparable(alone)
    assert not tracker.pending


# as the plain ones


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=examples(25, 100))
@given(st.data())
def test_reads_and_copies_are_those_of_the_plain_one(kind, data):
    plain = data.draw(PLAIN[kind])
    tracked = tracked_copy(plain, Tracker({}))
    assert isinstance(tracked, type(plain)) and tracked == plain and plain == tracked
    assert repr(tracked) == repr(plain) and str(tracked) == str(plain) and f"{[tracked]}" == f"{[plain]}"
    assert list(tracked) == list(plain) and len(tracked) == len(plain) and bool(tracked) == bool(plain)
    assert digest({"x": tracked}) == digest({"x": plain})
    copies = [copy.copy(tracked), copy.deepcopy(tracked), tracked.copy(), copy.deepcopy([tracked])[0]]
    for made in copies:
        assert type(made) is type(plain) and made == plain
    if kind == "deque":
        assert {made.maxlen for made in [tracked, *copies]} == {plain.maxlen}
    elif kind == "defaultdict":
        assert {made.default_factory for made in [tracked, *copies]} == {int}
    if kind != "deque":  # msgspec does not take it, plain or not
        assert msgspec.msgpack.encode(tracked) == msgspec.msgpack.encode(plain)
    if isinstance(plain, dict | list):
        assert json.dumps(tracked) == json.dumps(plain)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_of_them_is_plain(kind):
    plain = {"list": [1], "deque": deque([1]), "set": {1}}.get(kind) or {
        "dict": dict,
        "OrderedDict": OrderedDict,
        "Counter": Counter,
        "defaultdict": lambda v: defaultdict(int, v),
    }[kind]({"a": 1})
    tracked = tracked_copy(plain, Tracker({}))
    made = {
        "__add__": lambda v: v + plain,
        "__mul__": lambda v: v * 2,
        "__or__": lambda v: v | plain,
        "__ror__": lambda v: plain | v,
        "__and__": lambda v: v & plain,
        "__sub__": lambda v: v - plain,
        "__xor__": lambda v: v ^ plain,
        "__neg__": lambda v: -v,
        "union": lambda v: v.union([2]),
        "difference": lambda v: v.difference([2]),
        "intersection": lambda v: v.intersection([2]),
        "symmetric_difference": lambda v: v.symmetric_difference([2]),
        "slice": lambda v: v[:],
        "fromkeys": lambda v: type(v).fromkeys("a"),
        "class": lambda v: type(v)(),
    }
    for name, make in made.items():
        try:
            expected = make(plain)
        except (TypeError, AttributeError, NotImplementedError):
            continue
        result = make(tracked)
        assert type(result) is type(expected) and result == expected, name


def test_a_shared_or_cyclic_one_is_copied_as_such():
    state = {"loop": [], "pair": [{}]}
    state["loop"].append(state["loop"])
    state["pair"].append(state["pair"][0])
    Tracker(state)
    made = copy.deepcopy(state)
    assert type(made["loop"]) is list and made["loop"][0] is made["loop"]
    assert made["pair"][0] is made["pair"][1] and type(made["pair"][0]) is dict


@pytest.mark.parametrize(
    ("make", "other"), [(lambda: set(), [1]), (lambda: [], 5), (lambda: {}, 5), (lambda: deque(), 5), (Counter, 5)]
)
@pytest.mark.parametrize("sign", ["|=", "+=", "-=", "*="])
def test_what_the_plain_one_refuses_is_refused_alike(make, other, sign):
    def outcome(value):
        names = {"value": value, "other": other}
        try:
            exec(f"value {sign} other", names)
        except Exception as error:
            return type(error)
        return names["value"]

    assert outcome(make()) == outcome(tracked_copy(make(), Tracker({})))
