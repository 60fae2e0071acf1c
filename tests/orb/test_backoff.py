"""Pauses before a state is fetched again."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from framework.orb.moving import backoff
from framework.orb.moving.backoff import GOOD, MOST, Backoff, Room, lacking


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_each_pause_is_twice_as_long_and_made_shorter_by_chance(clock):
    one, other = (Backoff(Random(seed), clock) for seed in (1, 2))
    pauses = [one.failed("no") for _ in range(12)]
    for number, pause in enumerate(pauses):
        longest = min(2.0**number, MOST)
        assert longest / 2 <= pause <= longest
    assert one.left == pytest.approx(pauses[-1]) and one.failures == 12
    assert pauses != [other.failed("no") for _ in range(12)]
    again = Backoff(Random(1), clock)
    assert pauses == [again.failed("no") for _ in range(12)]


def test_a_state_that_was_in_use_begins_anew(clock):
    full = Room(Path("/"), 1 << 62)
    one = Backoff(Random(1), clock)
    for _ in range(6):
        one.failed("no room", full)
    one.took()
    assert one.left == 0.0
    assert one.failed("no room", full) > 30  # it did not last
    one.took()
    clock.now += GOOD + 1
    assert one.failed("no room", full) <= 1


def test_it_ends_early_when_there_is_room(monkeypatch, tmp_path, clock):
    monkeypatch.setattr(backoff, "LOOK", 0.001)
    free = [10]
    monkeypatch.setattr(backoff, "free", lambda where: free[0])
    room = lacking(tmp_path, 5_000_000)
    assert room is not None and room.needed > 5_000_000
    one = Backoff(Random(1), clock)  # its time stands still: only room can end it
    for _ in range(20):
        one.failed("no room", room)
    assert "no room; it tries again in" in str(one) and f"or when {tmp_path} has" in str(one)
    assert one.told()["room"] == room.needed

    async def main():
        waiting = asyncio.ensure_future(one.wait())
        for _ in range(20):
            await asyncio.sleep(0.002)
        assert not waiting.done()
        free[0] = room.needed
        async with asyncio.timeout(60):
            await waiting

    asyncio.run(main())
    assert one.left == 0.0
    assert lacking(tmp_path, 1000) is None and lacking(None, 1 << 62) is None
