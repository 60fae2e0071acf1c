"""When calls are over whether they are answered or not.

Calls mostly have the same time-out, so their deadlines come in order, and most calls are answered long before. So they
stand in a line, and those in front leave it when they are answered; only what comes out of order goes into a heap.
"""

import heapq
from collections import deque
from collections.abc import Container

from framework.ids import GroupId

#: A message group that has left, or a client's call that waits for a peer.
What = GroupId | tuple[str, int]


class Deadlines:
    def __init__(self) -> None:
        self._line: deque[tuple[float, int, What]] = deque()
        self._heap: list[tuple[float, int, What]] = []
        self._no = 0

    def __len__(self) -> int:
        return len(self._line) + len(self._heap)

    def add(self, deadline: float, what: What) -> None:
        self._no += 1
        place = (deadline, self._no, what)
        if not self._line or self._line[-1][0] <= deadline:
            self._line.append(place)
        else:
            heapq.heappush(self._heap, place)

    def pop(self, now: float, waiting: Container[GroupId]) -> What | None:
        """The next one that has passed, in their order. ``waiting``: message groups that are not over."""
        line, heap = self._line, self._heap
        while line and isinstance(line[0][2], GroupId) and line[0][2] not in waiting:
            line.popleft()
        if line and line[0][0] <= now and not (heap and heap[0] < line[0]):
            return line.popleft()[2]
        return heapq.heappop(heap)[2] if heap and heap[0][0] <= now else None
