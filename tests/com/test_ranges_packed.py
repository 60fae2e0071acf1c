"""Numbers with gaps that never close (framework.com.ranges): a client that calls several objects. What they know of its
calls grows with them for as long as it is there, and must be small."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.com import ranges as module
from framework.com.ranges import Ranges

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 120)),
        st.tuples(st.just("remove"), st.integers(1, 120)),
        st.tuples(st.just("many"), st.tuples(st.integers(1, 120), st.integers(0, 30))),
        st.tuples(st.just("close"), st.integers(1, 60)),
    ),
    max_size=80,
)


@given(STEPS)
def test_few_in_a_set_and_bits_for_the_others_is_the_same_as_a_set(steps: list[tuple[str, object]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW", 8)
        patch.setattr(module, "BITS", 3)
        _compare(steps)


def _compare(steps: list[tuple[str, object]]) -> None:
    ranges, plain = Ranges(), set[int]()
    for what, n in steps:
        if what == "many":
            assert isinstance(n, tuple)
            ranges.add_all([(n[0], n[0] + n[1])])
            plain.update(range(n[0], n[0] + n[1] + 1))
            continue
        assert isinstance(n, int)
        if what == "add":
            ranges.add(n)
            plain.add(n)
        elif what == "remove":
            ranges.remove(n)
            plain.discard(n)
        else:
            ranges.close(n, ())
            plain.update(m for m in range(1, n + 1) if m not in (ranges.holes or ()))
        assert {m for m in range(1, 200) if m in ranges} == plain
        assert {m for first, last in ranges.wire() for m in range(first, last + 1)} == plain
        assert all(
            m > ranges.low for key in ranges.packed or () for m, _ in module._runs((ranges.packed or {})[key], key << 3)
        )
    copy = Ranges()
    copy.add_all(ranges.wire())
    assert copy.wire() == ranges.wire()
    assert all(b[0] > a[1] + 1 for a, b in zip(ranges.wire(), ranges.wire()[1:], strict=False))


@pytest.mark.parametrize("step", [1, 2])
def test_what_a_client_has_called_beside_others_costs_less_than_a_byte_a_call(step: int) -> None:
    ranges, calls = Ranges(), 1_000_000
    for n in range(2, 2 + calls * step, step):
        ranges.add(n)
    packed = ranges.packed or {}
    size = (
        sum(map(sys.getsizeof, packed.values()))
        + sys.getsizeof(packed)
        + sys.getsizeof(ranges.above)
        + 32 * len(ranges.above)
    )
    assert size < calls
    assert 2 + step * (calls - 1) in ranges and 1 not in ranges
    if step == 1:
        assert ranges.wire() == ((2, calls + 1),)
        ranges.add(1)
        assert (ranges.low, ranges.above, ranges.packed) == (calls + 1, set(), None)
