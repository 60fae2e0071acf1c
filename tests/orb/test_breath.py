"""Who works through a state gives way to others: a little always, much where somebody else needs the core."""

import asyncio

import pytest

from framework.orb.moving import breath
from framework.orb.moving.breath import LATE, MOST, PAUSE, REST, STEP, WARY, Breath, slowly


class Clock:
    """Each pause is longer than asked for by ``late``."""

    def __init__(self, late=0.0):
        self.now = 100.0
        self.late = late
        self.slept = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds + self.late


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(breath, "time", made)

    async def sleep(seconds):
        made.sleep(seconds)

    monkeypatch.setattr(breath.asyncio, "sleep", sleep)
    return made


def work(clock, on_loop, seconds):
    """One step that takes so long."""
    taken = Breath()
    clock.now += seconds
    if on_loop:
        asyncio.run(taken.take_on_loop(STEP))
    else:
        taken.take(STEP)


@pytest.mark.parametrize("on_loop", [False, True])
def test_where_nobody_is_disturbed_pauses_are_short(clock, on_loop):
    clock.late = LATE / 2
    work(clock, on_loop, 0.002)
    assert clock.slept == [PAUSE]


@pytest.mark.parametrize("on_loop", [False, True])
def test_who_wakes_up_late_rests_for_longer_than_it_worked(clock, on_loop):
    clock.late = 2 * LATE
    work(clock, on_loop, 0.002)
    assert clock.slept == [PAUSE, pytest.approx(REST * 0.002)]
    clock.slept.clear()
    work(clock, on_loop, 10.0)
    assert clock.slept == [PAUSE, MOST]


def test_it_does_so_for_some_steps_more(clock):
    taken = Breath()
    clock.late = 2 * LATE
    taken.take(STEP)
    clock.late = 0.0
    clock.slept.clear()
    for _ in range(WARY + 1):
        taken.take(STEP)
    assert clock.slept[1:-2:2] == [pytest.approx(0.0)] * (WARY - 1) and clock.slept[-2:] == [PAUSE, PAUSE]


def test_there_is_a_pause_after_so_many_bytes_whatever_the_chunks(clock):
    for size, chunks in ((STEP // 4, 40), (STEP, 10), (5 * STEP, 10)):
        clock.slept.clear()
        assert sum(len(c) for c in slowly(bytes(size) for _ in range(chunks))) == size * chunks
        assert clock.slept == [PAUSE] * 10
