"""The sparse object vector (PROTOCOL §4): per destination replica, the requests that must come first.

Entries are sets, not maxima: of two requests from one node, the later may be deliverable while the earlier waits,
and a maximum would order what nothing relates.
"""

from framework.com.messages import Mark, WireContext
from framework.com.ranges import Ranges
from framework.ids import Node, Replica


class Known:
    """What this node knows to be delivered, per replica and origin. Context entries found here are dropped."""

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at: dict[Replica, dict[Node, Ranges]] = {}

    def ranges(self, at: Replica, origin: Node) -> Ranges:
        by_origin = self._at.get(at)
        if by_origin is None:
            by_origin = self._at[at] = {}
        ranges = by_origin.get(origin)
        if ranges is None:
            ranges = by_origin[origin] = Ranges()
        return ranges

    def missing(self, at: Replica, marks: set[Mark]) -> set[Mark]:
        """Those of the marks that are not known to be delivered at this replica."""
        by_origin = self._at.get(at)
        if by_origin is None:
            return marks
        out: set[Mark] = set()
        for mark in marks:
            ranges = by_origin.get(mark[0])
            if ranges is None or (mark[1] > ranges.low and mark[1] not in ranges.above):
                out.add(mark)
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
        """After sending m to a replica the entry is just {m}: m itself waits for what it replaced."""
        self.entries[at] = {mark}

    def remove(self, at: Replica, mark: Mark) -> None:
        self.entries[at].remove(mark)
        if not self.entries[at]:
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
            self.entries.setdefault(at, set()).update(marks)

    def copy(self) -> "Context":
        return Context({at: set(marks) for at, marks in self.entries.items()})

    def prune(self, known: Known) -> None:
        """Drop what is known to be delivered."""
        if not self.entries:
            return
        for at in tuple(self.entries):
            left = known.missing(at, self.entries[at])
            if left:
                self.entries[at] = left
            else:
                del self.entries[at]

    def wire(self) -> WireContext:
        if not self.entries:
            return ()
        return tuple([(at, tuple(sorted(self.entries[at]))) for at in sorted(self.entries)])
