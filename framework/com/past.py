"""What a replica remembers of requests that have a place: what is delivered, and the highest stamps by slot.

Both are bounded. Delivered requests are ranges per origin; the stamps of the latest are kept one by one, older ones
fold into one number. Highest stamps are kept by slot of the footprint, in two halves: the older one folds into one
number when the newer one is full. Too high a bound costs only a slow path (protocol.md §5.2). All of it happens bit by
bit: replicas deliver the same requests, so what takes long stops all of them at the same time.
"""

from collections import deque
from collections.abc import Callable, Iterable

from framework.com.entry import LOWEST, Entry
from framework.com.messages import Mark
from framework.com.ranges import Ranges
from framework.ids import Node, Stamp

FOLD = 16384  # slots
LATEST = 1024  # stamps of delivered requests: what is kept for long is not in the processor's cache when it goes


class Past:
    """``base`` says up to which number all requests of an origin are over (framework.com.lives)."""

    def __init__(self, base: Callable[[Node], int] = lambda origin: 0) -> None:
        self._base = base
        self.delivered: dict[Node, Ranges] = {}
        self._stamps: dict[Mark, Stamp] = {}
        self._latest: deque[Mark] = deque()  # their keys, in the order in which they came
        self._stamps_floor = LOWEST
        self._top: dict[str, Stamp] = {}
        self._older: dict[str, Stamp] = {}  # slots that have got nothing since
        self._most = self._older_most = LOWEST  # of all in the two
        self._top_floor = LOWEST

    def is_delivered(self, mark: Mark) -> bool:
        ranges = self.delivered.get(mark[0])
        return mark[1] in (self._of(mark[0]) if ranges is None else ranges)

    def _of(self, origin: Node) -> Ranges:
        ranges = self.delivered.get(origin)
        if ranges is None:
            ranges = self.delivered[origin] = Ranges(self._base(origin))
        return ranges

    def close(self, origin: Node, alive: Iterable[int]) -> None:
        """A life of this origin has ended or begun: what it sent is over, but for what is alive."""
        self.delivered.setdefault(origin, Ranges()).close(self._base(origin), alive)

    def instead(self, mark: Mark) -> list[Mark]:
        """What comes first where this mark is void: requests of the same life, sent before it, that are alive."""
        ranges = self._of(mark[0])
        if not ranges.holes or mark in self._stamps:
            return []
        return [(mark[0], n) for n in ranges.below(mark[1])]

    def deliver(self, mark: Mark, stamp: Stamp) -> None:
        self._of(mark[0]).add(mark[1])
        self._stamps[mark] = stamp
        self._latest.append(mark)
        if len(self._latest) > LATEST:
            folded = self._stamps.pop(self._latest.popleft(), LOWEST)
            if folded > self._stamps_floor:
                self._stamps_floor = folded

    def stamp_of(self, mark: Mark) -> Stamp:
        """The stamp of a delivered request, or a higher one."""
        return self._stamps.get(mark, self._stamps_floor)

    def promise(self, entry: Entry, stamp: Stamp) -> None:
        self.promise_at(entry.places, stamp)

    def promise_at(self, places: tuple[str, ...], stamp: Stamp) -> None:
        """Later conflicting requests get a higher stamp than this one."""
        top = self._top
        for slot in places:
            have = top.get(slot)
            if have is None or have < stamp:
                top[slot] = stamp
        if stamp > self._most:
            self._most = stamp
        if 2 * len(top) > FOLD:
            self._top_floor = max(self._top_floor, self._older_most)
            self._older, self._older_most = top, self._most
            self._top, self._most = {}, LOWEST

    def highest_conflicting(self, entry: Entry) -> Stamp:
        """The highest stamp of a conflicting request seen here, or a higher one."""
        top = self._top
        bound = self._top_floor if entry.meets else LOWEST
        for slot in entry.meets:
            stamp = top.get(slot)
            if stamp is not None and stamp > bound:
                bound = stamp
        if self._older:
            for slot in entry.meets:
                stamp = self._older.get(slot)
                if stamp is not None and stamp > bound:
                    bound = stamp
        return bound
