"""What was agreed while a replica was closed starts bit by bit when it is opened.

A replica that has waited for its state for long has much to do at once, and everybody waits for its proposals
meanwhile. What comes later is not delayed by that, unless it conflicts with what waits, or follows it.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from framework.com.entry import Entry
from framework.ids import GroupId

#: So many start before others have their turn.
AT_ONCE: Final = 32


class Late:
    __slots__ = ("_behind", "_room", "_shut")

    def __init__(self) -> None:
        self._shut: deque[Entry] = deque()  # what would have started
        self._behind: set[GroupId] = set()  # what was agreed while it was closed
        self._room = 0  # so many of these may start

    def keeps(self, entry: Entry, closed: bool) -> bool:
        """It may start, but not now."""
        late = entry.group in self._behind
        if closed or (late and not self._room):
            self._shut.append(entry)
            return True
        self._room -= late
        return False

    def open(self, entries: Iterable[Entry]) -> list[Entry]:
        """The replica is not closed any more: what to look at."""
        self._behind = {e.group for e in entries if e.safe and not e.started}
        return self.some()

    def some(self) -> list[Entry]:
        """What to look at now. Not all that is kept: most of it would only be kept again, and be looked at n times."""
        self._room = AT_ONCE
        return [self._shut.popleft() for _ in range(min(AT_ONCE, len(self._shut)))]

    @property
    def behind(self) -> bool:
        return bool(self._behind)

    def is_behind(self) -> bool:
        """Is something kept that the next look may start?"""
        if not self._shut:
            self._behind.clear()
        return bool(self._behind)
