"""The sparse object vector (protocol.md §4): per destination replica, the requests that must come first.

Entries are sets, not maxima: of two requests from one node, the later may be deliverable while the earlier waits,
and a maximum would order what nothing relates.
"""

from collections.abc import Callable, Iterable, Mapping

from framework.com.messages import Mark, WireContext
from framework.com.ranges import Ranges
from framework.ids import Node, Replica, node_of


class Known:
    """What this node knows to be delivered, per replica and origin. Context entries found here are dropped.

    ``base`` says up to which number all is over, from this origin to this replica (framework.com.lives)."""

    __slots__ = ("_at", "_base")

    def __init__(self, base: Callable[[Node, Replica], int] = lambda origin, at: 0) -> None:
        self._at: dict[Replica, dict[Node, Ranges]] = {}
        self._base = base

    def ranges(self, at: Replica, origin: Node) -> Ranges:
        by_origin = self._at.get(at)
        if by_origin is None:
            by_origin = self._at[at] = {}
        ranges = by_origin.get(origin)
        if ranges is None:
            ranges = by_origin[origin] = Ranges(self._base(origin, at))
        return ranges

    def __contains__(self, what: tuple[Replica, Mark]) -> bool:
        at, (origin, seq) = what
        return seq in self.ranges(at, origin)

    def has(self, at: Replica, mark: Mark) -> bool:
        """Is nothing ``missing`` of this one?"""
        ranges = self.ranges(at, mark[0])
        return not ranges.holes and mark[1] in ranges

    def lacks(self, at: Replica, mark: Mark) -> bool:
        return mark[1] not in self.ranges(at, mark[0])

    def close(self, nodes: Iterable[Node], alive: Mapping[tuple[Replica, Node], Iterable[int]]) -> None:
        """Lives of these nodes have ended or begun: what went from and to them is over, but for what is alive."""
        for at, by_origin in self._at.items():
            for origin, ranges in by_origin.items():
                if node_of(at) in nodes or origin in nodes:
                    ranges.close(self._base(origin, at), () if node_of(at) in nodes else alive.get((at, origin), ()))
                    if node_of(at) in nodes:
                        ranges.holes = None
        for at, origin in alive:
            if node_of(at) not in nodes:
                ranges = self._at.setdefault(at, {}).setdefault(origin, Ranges())
                ranges.close(self._base(origin, at), alive[at, origin])

    def missing(self, at: Replica, marks: set[Mark]) -> set[Mark]:
        """Those of the marks that are not known to be delivered at this replica."""
        out: set[Mark] = set()
        for mark in marks:
            ranges = self.ranges(at, mark[0])
            if mark[1] not in ranges:
                out.add(mark)
            elif ranges.holes:
                out.update([(mark[0], n) for n in ranges.below(mark[1])])
        return out


class Context:
    __slots__ = ("entries",)

    def __init__(self, entries: dict[Replica, set[Mark]] | None = None) -> None:
        self.entries: dict[Replica, set[Mark]] = entries if entries is not None else {}

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __len__(self) -> int:
        return sum(map(len, self.entries.values()))

    def add(self, at: Replica, mark: Mark) -> None:
        self.entries.setdefault(at, set()).add(mark)

    def replace(self, at: Replica, mark: Mark) -> None:
        """After sending m to a replica, m stands for the requests of its own origin: it waits for them itself. Not for
        those of others: if its origin crashes m may be void, and nobody else knows what it stood for."""
        before = self.entries.get(at)
        self.entries[at] = {mark, *[m for m in before if m[0] != mark[0]]} if before else {mark}

    def remove(self, at: Replica, mark: Mark) -> None:
        self.entries[at].remove(mark)
        if not self.entries[at]:
            del self.entries[at]

    def without(self, wire: WireContext) -> None:
        """Something else that is in it stands for these."""
        for at, marks in wire:
            mine = self.entries.get(at)
            if mine is not None:
                mine.difference_update(marks)
                if not mine:
                    del self.entries[at]

    def drop(self, at: Replica) -> None:
        self.entries.pop(at, None)

    def merge(self, other: "Context") -> None:
        for at, marks in other.entries.items():
            mine = self.entries.get(at)
            if mine is None:
                self.entries[at] = set(marks)
            else:
                mine |= marks

    def merge_wire(self, wire: WireContext) -> None:
        for at, marks in wire:
            self.add_all(at, marks)

    def add_all(self, at: Replica, marks: tuple[Mark, ...]) -> None:
        mine = self.entries.get(at)
        if mine is None:
            self.entries[at] = set(marks)
        else:
            mine.update(marks)

    def copy(self) -> "Context":
        return Context({at: set(marks) for at, marks in self.entries.items()})

    def prune(self, known: Known) -> None:
        """Drop what is known to be delivered."""
        if not self.entries:
            return
        for at, marks in tuple(self.entries.items()):
            if len(marks) == 1:  # most of the time
                (mark,) = marks
                if known.lacks(at, mark):
                    continue
            left = known.missing(at, marks)
            if left:
                self.entries[at] = left
            else:
                del self.entries[at]

    def wire(self) -> WireContext:
        if not self.entries:
            return ()
        return tuple([(at, _in_order(self.entries[at])) for at in sorted(self.entries)])


def _in_order(marks: set[Mark]) -> tuple[Mark, ...]:
    return tuple(sorted(marks)) if len(marks) > 1 else tuple(marks)
