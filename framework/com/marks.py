"""Delivered marks on their way to the peers (protocol.md §4.3): one log for all links, each has its place in it.

Marks only let others drop context entries, so they never cause a frame of their own before delta has passed. A link
that has fallen behind the log gets the whole state instead of the difference.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from framework.com.messages import Mark
from framework.com.ranges import as_ranges
from framework.ids import Node, Replica

if TYPE_CHECKING:
    from framework.com.host import Host

WireMarks = tuple[tuple[Replica, Node, tuple[tuple[int, int], ...]], ...]
BOUND = 65536


class Marks:
    def __init__(self, peers: Iterable[Node], hosts: Mapping[Replica, "Host"]) -> None:
        self._hosts = hosts
        self._log: list[tuple[Replica, Mark]] = []
        self._start = 0  # position of the first entry of the log
        self._taken: dict[Node, int] = dict.fromkeys(peers, 0)
        self._last: tuple[int, int, WireMarks] = (0, 0, ())

    def add(self, at: Replica, mark: Mark) -> None:
        if self._taken:
            self._log.append((at, mark))
            if len(self._log) > BOUND:
                self._trim(self._start + len(self._log) // 2)

    def forget(self, peer: Node) -> None:
        self._taken.pop(peer, None)

    def begin(self, peer: Node) -> None:
        """A new life of a peer: it gets the whole state first."""
        self._taken[peer] = -1

    def take(self, peer: Node) -> WireMarks:
        """What this peer has not been told yet."""
        first, end = self._taken[peer], self._start + len(self._log)
        if first == end:
            return ()
        self._taken[peer] = end
        if first < self._start:
            return self._everything()
        if self._last[:2] != (first, end):  # links move together: they share the work
            self._last = (first, end, self._between(first))
        if min(self._taken.values()) == end:
            self._trim(end)
        return self._last[2]

    def _between(self, first: int) -> WireMarks:
        grouped: dict[tuple[Replica, Node], list[int]] = {}
        for at, (origin, seq) in self._log[first - self._start :]:
            grouped.setdefault((at, origin), []).append(seq)
        return tuple((at, origin, as_ranges(seqs)) for (at, origin), seqs in sorted(grouped.items()))

    def _everything(self) -> WireMarks:
        out = []
        for at, host in sorted(self._hosts.items()):
            for origin, ranges in sorted(host.order.past.delivered.items()):
                out.append((at, origin, ranges.wire()))
        return tuple(out)

    def _trim(self, start: int) -> None:
        del self._log[: start - self._start]
        self._start = start
