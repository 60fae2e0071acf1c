"""Compatibility identifiers and the history they divide (protocol.md §3.4, §4.5).

An epoch is a set of footprints that are all compatible with each other. An instance that conflicts with one of them
opens the next epoch. Only then does what the earlier instances knew become a predecessor of what later ones send:
compatible instances do not inherit each other's history. That is what the cid is for.

The footprints of instances still running when an epoch opens belong to the new one as well. They need no copying: what
conflicts with a running instance cannot start; when that one commits, its footprint is added to the epoch that is then
current, the one its context goes to.

What is passed on stays small. Let p and q be conflicting requests, both agreed at a replica r, and p's stamp the lower:
then p is delivered before q at r as it was here. So when q's epoch is closed, q at r stands for p at r, as a request
stands for those that its sender knew (protocol.md §4.5). Else a line of n conflicting calls in flight would drag n
marks along with each response. And a request that was delivered after agreement will be at all its destinations (A5):
there it stands for what it waits for itself, requests of other origins, too. So what is left is the last word of each
of those who send one call after the other, however many rows they touch while a replica is behind.
"""

from typing import NamedTuple

from framework.com.context import Context, Known
from framework.com.messages import Mark, WireContext
from framework.ids import Replica, Sid, Stamp

#: An epoch may be closed early at any time: that only orders more. It keeps the set of slots bounded.
BOUND = 4096
OFTEN = 256  # commits: of most of them it is known by then that they are delivered everywhere


class Agreed(NamedTuple):
    """A request that is agreed at other replicas of this object, too: its slots and its stamp there, and its marks."""

    places: tuple[str, ...]
    meets: tuple[str, ...]
    stamp: Stamp
    marks: WireContext
    brought: WireContext = ()  # what it waits for there

    def follows(self, other: "Agreed") -> bool:
        return other.stamp < self.stamp and any(slot in other.places for slot in self.meets)


class Epoch:
    __slots__ = (
        "_agreed",
        "_commits",
        "_context",
        "_due",
        "_known",
        "_new",
        "_of",
        "base",
        "base_wire",
        "bound",
        "cid",
        "slots",
    )

    def __init__(self, known: Known, bound: int = BOUND) -> None:
        self._known = known
        self._commits = 0  # since the last look at what is known by now
        self._due = OFTEN
        self._agreed: list[Agreed] = []  # committed in this epoch
        self._of: dict[tuple[Replica, Mark], Agreed] = {}  # those behind the marks of base
        self.bound = bound
        self.cid: Sid | None = None
        self.slots: set[str] = set()  # places of the footprints of this epoch
        self.base = Context()  # what every new instance inherits
        self.base_wire: WireContext = ()  # the same, as it travels
        self._context = Context()  # what instances of this epoch committed
        self._new: list[WireContext] = []  # the same, and not in it yet

    @property
    def context(self) -> Context:
        """What instances of this epoch committed. Most of it is known to be delivered when somebody asks for it."""
        known, into = self._known, self._context
        for wire in self._new:
            for at, marks in wire:
                if len(marks) > 1 or not known.has(at, marks[0]):
                    into.add_all(at, marks)
        self._new.clear()
        return into

    def enter(self, sid: Sid, places: tuple[str, ...], meets: tuple[str, ...], joins: bool) -> Sid:
        """The cid of an instance that starts now. ``joins``: it conflicts with an instance that is running, its
        ancestor; nothing else can be running that conflicts with it."""
        if self.cid is None or joins or self._clashes(meets) or len(self.slots) > self.bound:
            self._open(sid)
        self.slots.update(places)
        assert self.cid is not None
        return self.cid

    def commit(
        self, places: tuple[str, ...], contexts: tuple[WireContext, ...] = (), agreed: Agreed | None = None
    ) -> None:
        """An instance ends well: its footprint and its context are part of the current epoch."""
        self._carry(places)
        if agreed is not None:
            self._agreed.append(agreed)
        for context in contexts:
            if context:
                self._new.append(context)
        self._commits += 1
        if self._commits >= self._due:  # an epoch may last long
            self._prune()

    def _prune(self) -> None:
        """Much may be left if a replica is far behind: then the next look is when a quarter as much has come. When as
        much had, it took all replicas 5 to 14 ms at the same time, for 2,000 calls."""
        context = self.context
        context.prune(self._known)
        self._agreed = [a for a in self._agreed if _is_left(a, context)] if context else []
        self._commits, self._due = 0, max(OFTEN, len(context) // 4)

    def inherited(self) -> WireContext:
        """What all that has been performed so far knew."""
        both = self.base.copy()
        both.merge(self.context)
        both.prune(self._known)
        return both.wire()

    def inherit(self, context: WireContext) -> None:
        """What was performed in a state that was handed over is history here."""
        self.base.merge_wire(context)
        self.base_wire = self.base.wire()

    def _clashes(self, meets: tuple[str, ...]) -> bool:
        return not self.slots.isdisjoint(meets)

    def _carry(self, places: tuple[str, ...]) -> None:
        self.slots.update(places)

    def _open(self, sid: Sid) -> None:
        self.cid = sid
        self.slots.clear()
        self._replace()
        self.base.merge(self.context)
        for new in self._agreed:
            self.base.without(new.brought)
        self.base.prune(self._known)
        if self._agreed:
            self._remember()
        self.base_wire = self.base.wire()
        self._context = Context()

    def _replace(self) -> None:
        """Drop from base what requests of this epoch stand for."""
        for new in self._agreed:
            for at, _ in new.marks:
                for mark in tuple(self.base.entries.get(at, ())):
                    old = self._of.get((at, mark))
                    if old is not None and new.follows(old):
                        self.base.remove(at, mark)

    def _remember(self) -> None:
        for new in self._agreed:
            for at, marks in new.marks:
                self._of[at, marks[0]] = new
        self._agreed.clear()
        base = self.base.entries
        self._of = {k: v for k, v in self._of.items() if k[0] in base and k[1] in base[k[0]]}


def _is_left(agreed: Agreed, context: Context) -> bool:
    for at, marks in agreed.marks:
        left = context.entries.get(at)
        if left is not None and marks[0] in left:
            return True
    return False
