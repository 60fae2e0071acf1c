"""What a replica has, of requests that wait and of those that it has delivered: other destinations may still need them
(framework.com.flush). And how much that is."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from framework.com.context import Known
from framework.com.entry import Entry
from framework.com.messages import Request
from framework.ids import node_of

MARK: Final = 160  # bytes, in a request and in what its replica knows of it


def weight(request: Request) -> int:
    """Of what can be large in it: its arguments, and what it follows. A session with many calls under way hears of many
    others meanwhile."""
    context = request.context
    marks = sum([len(marks) for _, marks in context]) if context else 0
    return len(request.args) + MARK * (marks + len(request.riders))


class Kept:
    """Requests that are settled here, and perhaps not at other destinations."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self.size = 0  # bytes of these, and of those that wait

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def arrive(self, request: Request) -> None:
        self.size += weight(request)

    def settled(self, entry: Entry) -> None:
        if entry.wanted > 1:
            self._entries.append(entry)
        else:
            self.drop(entry)

    def drop(self, entry: Entry) -> None:
        """Nobody needs it any more."""
        if entry.request is not None:
            self.size -= weight(entry.request)

    def prune(self, known: Known) -> None:
        """Forget what all destinations have delivered."""
        while self._entries and _stable(self._entries[0], known):
            self.drop(self._entries.popleft())


def _stable(entry: Entry, known: Known) -> bool:
    request, gone = entry.request, entry.gone
    assert request is not None
    origin = node_of(entry.group[1])
    for at, seq in request.dests:  # noqa: SIM110  # compiled it makes no generator
        if seq not in known.ranges(at, origin) and at not in gone:
            return False
    return True
