"""Pauses between attempts to get a state, where the one before has failed for a reason that may stay.

Each attempt makes another node read its whole state and send it. So each pause is twice as long as the one before, up
to two minutes, and chance makes it shorter: nodes that failed together do not come back together. If the reason is a
disk without room, the pause ends as soon as there is enough of it.
"""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from framework.ids import Replica

FIRST: Final = 1.0  # seconds
MOST: Final = 120.0
GOOD: Final = 60.0  # seconds that a state was in use, after which a failure is the first one again
LOOK: Final = 0.5  # seconds between two looks at the disk
MARGIN: Final = 1 << 20  # bytes


class Room(NamedTuple):
    """What a state needs on a disk that has not as much."""

    directory: Path
    needed: int

    def is_there(self) -> bool:
        return free(self.directory) >= self.needed


def free(directory: Path) -> int:
    """Bytes; 0 if nobody can tell."""
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return 0


def lacking(directory: Path | None, needed: int) -> Room | None:
    """None: the disk has room for so many bytes. Without a number: for more than there is now."""
    if directory is None:
        return None
    now = free(directory)
    wanted = (needed or now) + MARGIN
    return Room(directory, wanted) if now < wanted else None


class Backoff:
    """Of one replica, for as long as the process lives. ``now``: a clock that only goes forward."""

    def __init__(self, chance: Random, now: Callable[[], float], first: float = FIRST, most: float = MOST) -> None:
        self._chance = chance
        self._now = now
        self._first, self._most = first, most
        self._took = float("inf")  # when the last state was taken
        self._room: Room | None = None
        self.failures = 0  # one after the other
        self.until = 0.0
        self.why = ""

    def failed(self, why: str, room: Room | None = None) -> float:
        """Returns how long the pause is."""
        if self._now() - self._took > GOOD:
            self.failures = 0
        self._took = float("inf")
        longest = min(self._first * 2.0 ** min(self.failures, 30), self._most)
        pause = longest * self._chance.uniform(0.5, 1.0)
        self.failures += 1
        self.why, self._room, self.until = why, room, self._now() + pause
        return pause

    def took(self) -> None:
        """The replica has a state. Where a disk had no room, it shows in a while whether there is enough of it now."""
        if self._room is None:
            self.failures = 0
        self._took = self._now()
        self.why, self._room, self.until = "", None, 0.0

    @property
    def left(self) -> float:
        """Seconds."""
        return max(self.until - self._now(), 0.0)

    async def pause(self) -> None:
        """A part of it: what is wanted may change meanwhile."""
        if self._room is not None and await asyncio.to_thread(self._room.is_there):
            self.until = 0.0
        else:
            await asyncio.sleep(min(self.left, LOOK))

    async def wait(self) -> None:
        while self.left:
            await self.pause()

    def told(self) -> dict[str, Any]:
        """For ``obo status``. ``room``: bytes that the disk must have; 0: it is not for lack of them."""
        room = self._room.needed if self._room is not None else 0
        return {"why": self.why, "seconds": round(self.left, 1), "failures": self.failures, "room": room}

    def __str__(self) -> str:
        early = f", or when {self._room.directory} has {self._room.needed:,} bytes" if self._room is not None else ""
        return f"{self.why}; it tries again in {self.left:.0f} s{early}"


class Backoffs:
    """Of all replicas of a node."""

    def __init__(self, chance: Random, now: Callable[[], float]) -> None:
        self._chance = chance
        self._now = now
        self._each: dict[Replica, Backoff] = {}

    def of(self, at: Replica) -> Backoff:
        if at not in self._each:
            self._each[at] = Backoff(self._chance, self._now)
        return self._each[at]

    def waiting(self) -> dict[Replica, Backoff]:
        return {at: each for at, each in self._each.items() if each.left}
