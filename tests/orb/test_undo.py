"""Taking back what one instance changed, beside others."""

from hypothesis import given
from hypothesis import strategies as st

from framework.orb.undo import Undo, copied

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


def put(state, new):
    """Change ``state`` into ``new``, in place where both have a dict."""
    for key in [k for k in state if k not in new]:
        del state[key]
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(state.get(key), dict):
            put(state[key], value)
        else:
            state[key] = value


@given(STATES, STATES)
def test_alone_everything_is_as_before(before, after):
    state = copied(before)
    undo = Undo(state)
    undo.begin()
    put(state, copied(after))
    undo.take_back()
    assert state == before


@given(STATES, STATES, STATES)
def test_also_over_a_pause_in_which_nobody_else_acts(before, first, second):
    state = copied(before)
    undo = Undo(state)
    for step in (first, second):
        undo.begin()
        put(state, copied(step))
        undo.pause()
    undo.take_back()
    assert state == before


def test_what_others_did_meanwhile_stays():
    state = {"sum": 1, "by": {"ann": 2}, "seen": {"a"}, "log": ["x"]}
    undo = Undo(state)
    undo.begin()
    state["sum"] += 10
    state["by"]["ann"] += 10
    state["by"]["new"] = 10
    state["seen"].add("b")
    undo.pause()
    state["sum"] += 100  # another one
    state["by"]["ann"] += 100
    state["by"]["new"] += 100
    state["by"]["other"] = 5
    state["seen"].add("c")
    undo.take_back()
    assert state == {"sum": 101, "by": {"ann": 102, "new": 100, "other": 5}, "seen": {"a", "c"}, "log": ["x"]}


def test_in_place():
    state = {"by": {"ann": 2}}
    held = state["by"]
    undo = Undo(state)
    undo.begin()
    held["ann"] = 3
    undo.take_back()
    assert state["by"] is held and held == {"ann": 2}


def test_one_dict_under_two_names():
    shared = {"n": 1}
    state = {"a": shared, "b": shared}
    undo = Undo(state)
    undo.begin()
    shared["n"] = 7
    undo.take_back()
    assert shared == {"n": 1}


def test_objects_of_other_types_are_put_back_whole():
    class Point:
        def __init__(self) -> None:
            self.x = 1

    state = {"p": Point()}
    undo = Undo(state)
    undo.begin()
    state["p"].x = 2
    undo.take_back()
    assert state["p"].x == 1
