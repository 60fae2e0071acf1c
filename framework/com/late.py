"""What was agreed while a replica was closed starts bit by bit when it is opened.

A replica that has waited for its state for long has much to do at once, and everybody waits for its proposals
meanwhile. What comes later is not delayed by that, unless it conflicts with what waits, or follows it: then it starts
bit by bit as well. Sessions follow themselves, so else all that came meanwhile would start with the last of what had
waited. If much has waited, larger bits are taken after a while: what comes meanwhile waits, too. And that it comes
to an end even if as much comes as starts: the more has started, the more may start at once.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from framework.com.entry import Entry
from framework.ids import GroupId

AT_ONCE: Final = 8  # so many start before others have their turn
WHILE: Final = 128  # steps after which twice as many do
MOST: Final = 8  # times as many, by that alone


class Late:
    __slots__ = ("_behind", "_more", "_room", "_shut", "_size", "_started", "_steps")

    def __init__(self) -> None:
        self._shut: deque[Entry] = deque()  # what would have started
        self._behind: set[GroupId] = set()  # what was agreed while it was closed, and what waits for that
        self._room = 0  # so many of these may start
        self._size = 0  # so many were agreed while it was closed
        self._started = 0  # so many have started since
        self._steps = 0
        self._more = 1  # times as many as usual may start at once

    def keeps(self, entry: Entry, closed: bool) -> bool:
        """It may start, but not now."""
        late = entry.group in self._behind
        if closed or (late and not self._room):
            self._shut.append(entry)
            return True
        if late:
            self._room -= 1
            self._started += 1
            self._behind.remove(entry.group)
        return False

    def waits(self, entry: Entry) -> None:
        """For another one. When that is over much else may start, too, if the replica catches up."""
        if self._behind:
            self._behind.add(entry.group)

    def open(self, entries: Iterable[Entry]) -> list[Entry]:
        """The replica is not closed any more: what to look at."""
        self._behind = {e.group for e in entries if e.safe and not e.started}
        self._size, self._started, self._steps, self._more = len(self._behind), 0, 0, 1
        return self.some()

    def some(self) -> list[Entry]:
        """What to look at now. Not all that is kept: most of it would only be kept again, and be looked at n times."""
        self._steps += 1
        if self._steps % WHILE == 0 and self._more < MOST:
            self._more *= 2
        while self._started > 2 * self._more * self._size:
            self._more *= 2
        self._room = AT_ONCE * self._more
        return [self._shut.popleft() for _ in range(min(self._room, len(self._shut)))]

    @property
    def behind(self) -> bool:
        return bool(self._behind)

    def is_behind(self) -> bool:
        """Is something kept that the next look may start?"""
        if not self._shut:
            self._behind.clear()
        return bool(self._shut)
