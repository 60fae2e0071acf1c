"""Taking back what one instance changed, beside others."""

import asyncio
import logging
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from copy import deepcopy
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.receipt import CREC
from framework.errors import RemoteError
from framework.orb.state.base import Tracked
from framework.orb.state.tracker import Tracker
from framework.orb.undo import Undo
from tests.orb.test_calls import play  # noqa: F401
from tests.tiers import examples

LEAVES = st.one_of(st.integers(-5, 5), st.text("ab", max_size=2), st.booleans(), st.none())
STATES = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
            st.lists(inner, max_size=3),
            st.sets(st.integers(0, 3)),
        ),
        max_leaves=8,
    ),
    max_size=3,
)


class Point:
    def __init__(self, x):
        self.x = x


def host(state, opaque=False):
    """A state as a node hosts it; with something in it that cannot be tracked, it is copied for each call."""
    if opaque:
        state["opaque"] = bytearray(b"opaque")
    tracker = Tracker(state)
    assert tracker.copying == opaque
    return tracker


def is_tracked(value):
    """As a whole."""
    if isinstance(value, dict):
        return isinstance(value, Tracked) and all(map(is_tracked, value.values()))
    if isinstance(value, list | deque):
        return isinstance(value, Tracked) and all(map(is_tracked, value))
    return isinstance(value, Tracked) or not isinstance(value, set)


def put(state, new):
    """Change ``state`` into ``new``, in place where both have a dict."""
    for key in [k for k in state if k not in new and k != "opaque"]:
        del state[key]
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(state.get(key), dict):
            put(state[key], value)
        else:
            state[key] = value


@settings(deadline=None, max_examples=examples(25, 100))
@given(STATES, STATES, st.booleans())
def test_alone_everything_is_as_before(before, after, opaque):
    state = deepcopy(before)
    tracker = host(state, opaque)
    before = deepcopy(state)
    undo = Undo(tracker)
    undo.begin()
    put(state, deepcopy(after))
    undo.take_back()
    undo.end()
    assert state == before


@settings(deadline=None, max_examples=examples(25, 100))
@given(STATES, STATES, STATES, st.booleans())
def test_also_over_a_pause_in_which_nobody_else_acts(before, first, second, opaque):
    state = deepcopy(before)
    tracker = host(state, opaque)
    before = deepcopy(state)
    undo = Undo(tracker)
    for step in (first, second):
        undo.begin()
        put(state, deepcopy(step))
        undo.pause()
    undo.take_back()
    undo.end()
    assert state == before


@settings(deadline=None, max_examples=examples(25, 100))
@given(STATES, STATES)
def test_what_an_instance_leaves_behind_is_tracked(before, after):
    state = deepcopy(before)
    tracker = host(state)
    undo = Undo(tracker)
    undo.begin()
    put(state, deepcopy(after))
    undo.end()
    assert state == after
    assert tracker.pending == []
    assert all(map(is_tracked, state.values()))


@pytest.mark.parametrize("opaque", [False, True])
def test_what_others_did_meanwhile_stays(opaque):
    state = {"sum": 1, "by": {"ann": 2}, "seen": {"a"}, "log": ["x"], "counts": [1, 1]}
    tracker = host(state, opaque)
    mine, other = Undo(tracker), Undo(tracker)
    mine.begin()
    state["sum"] += 10
    state["by"]["ann"] += 10
    state["by"]["new"] = 10
    state["seen"].add("b")
    state["counts"][1] += 10
    mine.pause()
    other.begin()
    state["sum"] += 100
    state["by"]["ann"] += 100
    state["by"]["new"] += 100
    state["by"]["other"] = 5
    state["seen"].add("c")
    state["counts"][1] += 100
    other.end()
    mine.take_back()
    state.pop("opaque", None)
    assert state == {
        "sum": 101,
        "by": {"ann": 102, "new": 100, "other": 5},
        "seen": {"a", "c"},
        "log": ["x"],
        "counts": [1, 101],
    }


@pytest.mark.parametrize("opaque", [False, True])
def test_both_may_raise(opaque):
    state = {"sum": 1, "by": {"ann": 2}, "seen": set()}
    tracker = host(state, opaque)
    before = deepcopy(state)
    one, two = Undo(tracker), Undo(tracker)
    for undo, amount in ((one, 10), (two, 100), (one, 1000)):
        undo.begin()
        state["sum"] += amount
        state["by"]["ann"] += amount
        state["seen"].add(amount)
        undo.pause()
    one.take_back()
    assert (state["sum"], state["by"], state["seen"]) == (101, {"ann": 102}, {100})
    two.take_back()
    assert state == before


def test_lists_with_what_others_did_meanwhile():
    state = {"log": ["a", "b"], "queue": deque([1, 2, 3]), "sorted": [3, 1, 2]}
    tracker = host(state)
    mine, other = Undo(tracker), Undo(tracker)
    mine.begin()
    state["log"] += ["mine", "too"]
    state["queue"].popleft()
    state["sorted"].sort()
    mine.pause()
    other.begin()
    state["log"].append("other")
    state["queue"].append(4)
    state["sorted"].append(9)
    other.end()
    mine.take_back()
    assert state["log"] == ["a", "b", "other"]
    assert state["queue"] == deque([1, 2, 3, 4])
    assert state["sorted"] == [1, 2, 3, 9], "a mere change of order stays, when others have built on it"


def test_a_later_value_stays():
    state = {"name": "a", "d": {"k": "a"}, "gone": 5}
    tracker = host(state)
    mine, other = Undo(tracker), Undo(tracker)
    mine.begin()
    state["name"] = state["d"]["k"] = "mine"
    state["gone"] = 6
    mine.pause()
    other.begin()
    state["name"] = state["d"]["k"] = "other"
    del state["gone"]
    other.end()
    mine.take_back()
    assert state == {"name": "other", "d": {"k": "other"}}


def test_in_place():
    state = {"by": {"ann": 2, "deep": [{"x": {1}}]}}
    tracker = host(state)
    by, deep, x = state["by"], state["by"]["deep"], state["by"]["deep"][0]["x"]
    undo = Undo(tracker)
    undo.begin()
    state["by"]["ann"] = 3
    x.add(2)
    deep.clear()
    state["by"] = {}
    undo.take_back()
    assert state["by"] is by and by["deep"] is deep and deep[0]["x"] is x
    assert state == {"by": {"ann": 2, "deep": [{"x": {1}}]}}


def test_one_container_under_two_names_stays_one():
    shared = {"n": [1]}
    state = {"a": shared, "b": shared, "c": [shared["n"]]}
    del shared
    tracker = host(state)
    assert tracker.pending == []
    assert state["a"] is state["b"] and state["c"][0] is state["a"]["n"]
    undo = Undo(tracker)
    undo.begin()
    state["a"]["n"].append(7)
    undo.take_back()
    assert state == {"a": {"n": [1]}, "b": {"n": [1]}, "c": [[1]]}


def test_a_container_that_holds_itself():
    loop = []
    loop.append(loop)
    state = {"loop": loop}
    del loop
    tracker = host(state)
    assert isinstance(state["loop"], Tracked) and state["loop"][0] is state["loop"] and tracker.pending == []


# containers that a method makes


def test_writes_through_a_variable_are_not_lost():
    state = {"entries": {}}
    tracker = host(state)
    undo, other = Undo(tracker), Undo(tracker)
    undo.begin()
    entry = {"state": "open", "log": []}
    state["entries"][1] = entry
    entry["state"] = "asked"
    undo.pause()  # a call to another object
    other.begin()
    other.end()
    undo.begin()
    entry["state"] = "paid"
    entry["log"].append("paid")
    undo.end()
    assert state == {"entries": {1: {"state": "paid", "log": ["paid"]}}}
    assert tracker.pending, "the variable still exists"
    entry["late"] = True
    del entry
    other.begin()
    other.end()
    assert tracker.pending == [] and is_tracked(state["entries"])
    assert state["entries"][1]["late"]


def test_an_inner_container_in_a_variable():
    state = {}
    tracker = host(state)
    undo = Undo(tracker)
    undo.begin()
    inner = []
    state["outer"] = {"inner": inner}
    undo.end()
    assert isinstance(state["outer"], Tracked) and state["outer"]["inner"] is inner
    undo.begin()
    inner.append(1)
    undo.take_back()
    assert inner == [] and state["outer"]["inner"] is inner
    del inner
    undo.end()
    assert is_tracked(state["outer"])


def test_what_a_variable_reaches_stays_plain_also_under_another_name():
    state = {}
    tracker = host(state)
    undo = Undo(tracker)
    undo.begin()
    outer = {"inner": []}
    state["outer"], state["inner"] = outer, outer["inner"]
    undo.end()
    outer["inner"].append(1)
    assert state["inner"] == [1] and state["inner"] is outer["inner"]
    del outer
    undo.end()
    assert is_tracked(state["outer"]) and state["inner"] is state["outer"]["inner"] and tracker.pending == []


def test_what_others_do_to_a_container_that_is_still_plain_is_taken_back():
    state = {"entries": OrderedDict(), "names": deque()}
    tracker = host(state)
    maker, other = Undo(tracker), Undo(tracker)
    maker.begin()
    entry = {"n": 1, "seen": {1}, "log": [1], "deep": {"queue": deque([1]), "by": Counter(a=1)}}
    entry["order"] = OrderedDict(a=1, b=2)
    state["entries"]["e"] = entry
    state["names"].append(entry["log"])
    maker.pause()
    other.begin()
    met = state["entries"]["e"]
    met["n"] += 1
    met["seen"].add(2)
    met["log"].append(2)
    met["deep"]["queue"].append(2)
    met["deep"]["by"]["b"] += 1
    met["new"] = []
    met["order"].move_to_end("a")
    other.take_back()
    other.end()
    assert list(entry.pop("order")) == ["a", "b"]
    assert entry == {"n": 1, "seen": {1}, "log": [1], "deep": {"queue": deque([1]), "by": Counter(a=1)}}
    assert state["entries"]["e"] is entry and state["names"][0] is entry["log"]
    maker.take_back()
    assert state == {"entries": OrderedDict(), "names": deque()}


def test_a_plain_container_that_was_taken_out_and_came_back_is_not_forgotten():
    state = {"d": {}}
    tracker = host(state)
    maker, taker, third = Undo(tracker), Undo(tracker), Undo(tracker)
    maker.begin()
    held = {}
    state["d"]["x"] = held
    maker.end()
    taker.begin()
    state["d"].clear()
    taker.pause()
    third.begin()
    third.end()
    taker.take_back()
    taker.end()
    assert state["d"]["x"] is held
    third.begin()
    held["y"] = 1
    third.take_back()
    assert held == {}
    del held
    third.end()
    assert is_tracked(state["d"])


def test_a_container_that_a_global_holds_stays_what_it_is():
    shared = ["a"]
    state = {"shared": shared, "d": {}}
    tracker = host(state)
    assert state["shared"] is shared
    for _ in range(3):
        undo = Undo(tracker)
        undo.begin()
        shared.append("b")
        state["d"]["again"] = shared
        undo.take_back()
        undo.end()
        undo.begin()
        state["d"]["again"] = shared
        undo.end()
    assert shared == ["a"]
    assert len(tracker.pending) == 2, "each place is noted once"


def test_elements_of_a_list_are_found_where_they_have_moved():
    state = {"l": [0, 1, 2]}
    tracker = host(state)
    undo = Undo(tracker)
    undo.begin()
    state["l"].append({"x": 1})
    state["l"].insert(0, [])
    state["l"].pop(1)
    undo.end()
    assert state["l"] == [[], 1, 2, {"x": 1}] and is_tracked(state["l"]) and tracker.pending == []


def test_what_is_stored_and_dropped_is_forgotten():
    state = {"l": []}
    tracker = host(state)
    undo = Undo(tracker)
    undo.begin()
    state["l"].append([])
    state["l"].pop()
    state["x"] = {}
    state["x"] = 1
    undo.end()
    assert state == {"l": [], "x": 1} and tracker.pending == []


def test_a_tracked_container_in_a_plain_one_is_noted_once():
    state = {"a": {"n": 1}}
    tracker = host(state)
    maker, mine, other = Undo(tracker), Undo(tracker), Undo(tracker)
    maker.begin()
    held = {"same": state["a"]}
    state["held"] = held
    maker.end()
    for undo, amount in ((mine, 10), (other, 100)):
        undo.begin()
        held["same"]["n"] += amount
        undo.pause()
    mine.take_back()
    assert state["a"] == {"n": 101} and held["same"] is state["a"]


@pytest.mark.parametrize("method", ["keep", "keep_async"])
def test_on_a_node_arguments_that_a_method_keeps_are_tracked_when_it_has_ended(play, method):  # noqa: F811
    async def act(c, orb):
        keep = getattr(orb.object("odd"), method).with_(receipt=CREC)
        with pytest.raises(RemoteError, match="on purpose"):
            await keep(["no"], True)
        assert [vars(o) for o in c.objects("odd")] == [{"log": []}] * 3
        await keep(["a", "bb"], False)
        with pytest.raises(RemoteError, match="on purpose"):
            await keep(["no"], True)
        kept = {"names": ["a", "bb"], "by length": {1: ["a"], 2: ["bb"]}}
        assert [vars(o) for o in c.objects("odd")] == [{"log": ["a", "bb"], "kept": kept}] * 3
        for resident in (r for n in c.nodes.values() for name, r in n.life.residents.items() if name.startswith("odd")):
            assert is_tracked(resident.object.kept) and not resident.tracker.pending and not resident.tracker.copying

    play(act)


# what cannot be tracked


def test_attributes_of_objects_are_taken_back_in_place_and_one_by_one():
    state = {"p": Point(1), "l": [Point(1)]}
    tracker = Tracker(state)
    p, first = state["p"], state["l"][0]
    mine, other = Undo(tracker), Undo(tracker)
    mine.begin()
    p.x = first.x = 2
    p.mine = True
    mine.pause()
    other.begin()
    p.other = True
    other.end()
    mine.take_back()
    assert state["p"] is p and vars(p) == {"x": 1, "other": True}
    assert state["l"][0] is first and first.x == 1


def test_objects_that_are_copied_in_their_own_way():
    """A logger is copied as itself; its handlers are nobody's state."""
    logger = logging.getLogger("obo.test")
    logger.addHandler(logging.NullHandler())
    state = {"log": logger, "n": 1}
    undo = Undo(Tracker(state))
    undo.begin()
    state["n"] = 2
    undo.take_back()
    assert state == {"log": logger, "n": 1}


def test_values_of_unknown_types_are_put_back_whole():
    class Odd:
        def __eq__(self, other):
            raise ValueError("which of the elements?")

        __hash__ = None

    state = {"b": bytearray(b"a"), "t": ([1], 2), "odd": Odd()}
    tracker = Tracker(state)
    undo = Undo(tracker)
    undo.begin()
    state["b"] += b"b"
    state["t"][0].append(2)
    del state["odd"]
    undo.take_back()
    assert state["b"] == b"a" and state["t"] == ([1], 2) and type(state["odd"]) is Odd


@dataclass(frozen=True)
class Frozen:
    x: object


class Loose(msgspec.Struct):
    x: int


class Fixed(msgspec.Struct, frozen=True):
    x: object


@pytest.mark.parametrize("value", [Point(1), bytearray(), (1, [2]), Frozen([]), Loose(1), Fixed({}), threading.Lock()])
@pytest.mark.parametrize("place", ["attribute", "key", "element", "inner"])
def test_from_the_first_unknown_value_on_the_state_is_copied(value, place, caplog):
    state = {"d": {"n": 1}, "l": []}
    tracker = Tracker(state, "bank")
    early, undo = Undo(tracker), Undo(tracker)
    early.begin()
    state["d"]["n"] += 10
    early.pause()
    assert not tracker.copying
    undo.begin()
    if place == "attribute":
        state["v"] = value
    elif place == "key":
        state["d"]["v"] = value
    elif place == "element":
        state["l"].append(value)
    else:
        state["l"].append({"v": value})
    with caplog.at_level(logging.INFO):
        undo.end()
    assert tracker.copying
    assert f"state of bank holds a {type(value).__qualname__}" in caplog.text
    if type(value) is type(threading.Lock()):
        with pytest.raises(TypeError, match=r"a lock in the state of an object cannot be copied .* keep it outside"):
            early.begin()
        return
    early.begin()
    state["d"]["n"] += 100
    early.take_back()
    assert state["d"]["n"] == 1


@pytest.mark.parametrize(
    "value", [1, "a", (1, ("b", 2.0)), frozenset({1}), Frozen((1, 2)), Fixed(1), range(3), None, b"", int, len]
)
def test_what_never_changes_needs_nothing(value):
    assert not Tracker({"v": value, "d": {"v": value}}).copying


def test_mutable_keys_and_elements_are_unknown_values():
    for make in (lambda p: {p: 1}, lambda p: {p}, lambda p: {(p, 1): 1}):
        assert Tracker({"v": make(Point(1))}).copying
    for change in (lambda s: s["s"].add(Point(1)), lambda s: s["d"].update({Point(1): 1})):
        state = {"s": set(), "d": {}}
        tracker = host(state)
        undo = Undo(tracker)
        undo.begin()
        change(state)
        undo.end()
        assert tracker.copying


def test_a_state_that_is_copied_is_not_looked_at_any_more():
    state = {"odd": Point(1), "l": []}
    tracker = Tracker(state)
    for n in range(3):
        undo = Undo(tracker)
        undo.begin()
        state["l"].append([n])
        state["odd"] = {}
        undo.end()
    assert tracker.copying and tracker.pending == []


def test_two_states_do_not_share_a_tracked_container():
    one = {"l": []}
    first = Tracker(one)
    second = Tracker({"l": one["l"]})
    assert not first.copying and second.copying


# attributes


def test_attributes_by_any_way():
    class Thing:
        @property
        def twice(self):
            return self._n * 2

        @twice.setter
        def twice(self, value):
            self._n = value // 2

    thing = Thing()
    thing._n, thing.a, thing.b = 1, [], "b"
    undo = Undo(Tracker(vars(thing)))
    undo.begin()
    thing.twice = 8
    del thing.a
    vars(thing)["c"] = 1
    thing.__dict__.update(b="c")
    undo.take_back()
    assert vars(thing) == {"_n": 1, "a": [], "b": "b"}
    undo.begin()
    del thing.b
    thing.c = thing.a
    undo.take_back()
    assert vars(thing) == {"_n": 1, "a": [], "b": "b"}


def test_nothing_is_noted_without_a_turn():
    state = {"d": {}, "l": [], "s": set(), "q": deque(maxlen=1), "o": OrderedDict(a=1, b=2), "dd": defaultdict(list)}
    host(state)
    state["d"]["x"] = 1
    state["l"].append(1)
    state["s"].add(1)
    state["q"].extend([1, 2])
    state["o"].move_to_end("a")
    state["dd"]["x"].append(1)
    assert state["d"] == {"x": 1} and state["l"] == [1] and state["s"] == {1} and state["q"] == deque([2])
    assert list(state["o"]) == ["b", "a"] and state["dd"] == {"x": [1]}


def test_a_coroutine_that_waits_holds_what_it_knows():
    """The same as with threads: a frame that exists is a reference."""
    state = {"d": {}}
    tracker = host(state)

    async def method(undo, go):
        undo.begin()
        entry = state["d"].setdefault("e", {})
        undo.pause()
        await go.wait()
        undo.begin()
        entry["late"] = 1

    async def main():
        go, undo, other = asyncio.Event(), Undo(tracker), Undo(tracker)
        task = asyncio.create_task(method(undo, go))
        await asyncio.sleep(0)
        other.begin()
        other.end()
        assert not isinstance(state["d"]["e"], Tracked)
        go.set()
        await task
        undo.end()

    asyncio.run(main())
    assert state == {"d": {"e": {"late": 1}}} and is_tracked(state["d"]) and tracker.pending == []
