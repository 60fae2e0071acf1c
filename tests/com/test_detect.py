"""Who has been silent for too long (framework.com.detect)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.detect import Detector
from framework.ids import Node
from tests.tiers import examples

N1, N2 = Node("n1"), Node("n2")
FLOOR = 30.0
quick = settings(derandomize=True, deadline=None, max_examples=examples(25, 100))


def listening(*peers: Node) -> Detector:
    detector = Detector(FLOOR)
    for peer in peers or (N1,):
        detector.watch(peer, 0.0)
    return detector


def look(detector: Detector, start: float, end: float, step: float = 2.0) -> dict[Node, float]:
    """Look often. When was each peer suspected first?"""
    found: dict[Node, float] = {}
    now = start
    while now <= end:
        for peer in detector.look(now):
            found.setdefault(peer, now)
        now += step
    return found


def test_silence_below_the_floor_is_nothing() -> None:
    assert look(listening(), 0.0, FLOOR) == {}


def test_who_is_silent_for_longer_is_suspected() -> None:
    assert look(listening(), 0.0, 2 * FLOOR) == {N1: FLOOR + 2.0}


def test_each_peer_for_itself() -> None:
    detector = listening(N1, N2)
    look(detector, 0.0, 20.0)
    detector.heard(N2, 20.0)
    assert look(detector, 22.0, 40.0) == {N1: 32.0}


def test_who_is_heard_again_is_suspected_no_more() -> None:
    detector = listening()
    assert look(detector, 0.0, 40.0)
    detector.heard(N1, 41.0)
    assert detector.look(42.0) == set()


def test_who_is_irregular_gets_more_patience() -> None:
    """The floor holds for one who is regular, however often it speaks; the other is known to be late at times."""
    regular, irregular = listening(), listening()
    for n in range(1, 60):
        regular.heard(N1, n * 2.0)
    at = 0.0
    for n in range(1, 60):
        at += 25.0 if n % 5 == 0 else 1.0
        irregular.heard(N1, at)
    assert regular.patience(N1) == FLOOR
    assert irregular.patience(N1) > 1.5 * FLOOR


def test_patience_comes_down_again() -> None:
    detector, at = listening(), 0.0
    for gap in [25.0, 1.0] * 20:
        at += gap
        detector.heard(N1, at)
    assert detector.patience(N1) > FLOOR
    for _ in range(100):
        at += 1.0
        detector.heard(N1, at)
    assert detector.patience(N1) == FLOOR


@quick
@given(st.lists(st.floats(0.1, 20.0), max_size=40))
def test_patience_is_never_below_the_floor(gaps: list[float]) -> None:
    detector, at = listening(), 0.0
    for gap in gaps:
        at += gap
        detector.heard(N1, at)
    assert detector.patience(N1) >= FLOOR
    assert detector.silence(N1, at) == pytest.approx(0.0)


@quick
@given(st.floats(FLOOR, 100 * FLOOR))
def test_own_stall_is_forgiven(stall: float) -> None:
    """Who stood still has heard nobody: that is not their fault."""
    detector = listening(N1, N2)
    look(detector, 0.0, 10.0)
    assert detector.look(10.0 + stall) == set()
    assert detector.look(10.0 + stall + 2.0) == set()


def test_a_stall_does_not_make_the_dead_immortal() -> None:
    """Only the time of the stall is forgiven, not the silence before it."""
    detector = listening()
    look(detector, 0.0, 20.0)
    detector.look(520.0)
    assert detector.silence(N1, 520.0) == pytest.approx(20.0)
    assert look(detector, 522.0, 560.0) == {N1: 532.0}


def test_a_short_break_between_two_looks_is_no_stall() -> None:
    detector = listening()
    assert look(detector, 0.0, 40.0, step=FLOOR / 3) == {N1: 40.0}


def test_what_comes_out_of_order_does_not_count_backwards() -> None:
    detector = listening()
    detector.heard(N1, 10.0)
    before = detector.patience(N1)
    detector.heard(N1, 5.0)
    assert (detector.silence(N1, 12.0), detector.patience(N1)) == (2.0, before)


def test_strangers_are_not_watched() -> None:
    detector = listening(N1)
    detector.heard(N2, 5.0)
    assert look(detector, 0.0, 100.0).keys() == {N1}
    detector.forget(N1)
    detector.forget(N2)
    assert detector.look(200.0) == set()


def test_one_who_comes_back_begins_anew() -> None:
    detector = listening()
    look(detector, 0.0, 40.0)
    detector.watch(N1, 40.0)
    assert look(detector, 42.0, 70.0) == {}
