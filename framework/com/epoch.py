"""Compatibility identifiers and the history they divide (PROTOCOL §3, §4).

An epoch is a set of footprints that are all compatible with each other. An instance that conflicts with one of them
opens the next epoch. Only then does what the earlier instances knew become a predecessor of what later ones send:
compatible instances do not inherit each other's history. That is what the cid is for.

The footprints of instances still running when an epoch opens belong to the new one as well. They need no copying: what
conflicts with a running instance cannot start; when that one commits, its footprint is added to the epoch that is then
current, the one its context goes to.
"""

from framework.com.context import Context, Known
from framework.com.messages import WireContext
from framework.ids import Sid

#: An epoch may be closed early at any time: that only orders more. It keeps the set of slots bounded.
BOUND = 4096


class Epoch:
    __slots__ = ("_commits", "_known", "base", "base_wire", "bound", "cid", "context", "slots")

    def __init__(self, known: Known, bound: int = BOUND) -> None:
        self._known = known
        self._commits = 0
        self.bound = bound
        self.cid: Sid | None = None
        self.slots: set[str] = set()  # places of the footprints of this epoch
        self.base = Context()  # what every new instance inherits
        self.base_wire: WireContext = ()  # the same, as it travels
        self.context = Context()  # what instances of this epoch committed

    def enter(self, sid: Sid, places: tuple[str, ...], meets: tuple[str, ...], joins: bool) -> Sid:
        """The cid of an instance that starts now. ``joins``: it conflicts with an instance that is running, its
        ancestor; nothing else can be running that conflicts with it."""
        if self.cid is None or joins or self._clashes(meets) or len(self.slots) > self.bound:
            self._open(sid)
        self.slots.update(places)
        assert self.cid is not None
        return self.cid

    def commit(self, places: tuple[str, ...], *contexts: WireContext) -> None:
        """An instance ends well: its footprint and its context are part of the current epoch."""
        self._carry(places)
        for context in contexts:
            self.context.merge_wire(context)
        self._commits += 1
        if self._commits % 64 == 0:  # an epoch may last long
            self.context.prune(self._known)

    def _clashes(self, meets: tuple[str, ...]) -> bool:
        return not self.slots.isdisjoint(meets)

    def _carry(self, places: tuple[str, ...]) -> None:
        self.slots.update(places)

    def _open(self, sid: Sid) -> None:
        self.cid = sid
        self.slots.clear()
        self.base.merge(self.context)
        self.base.prune(self._known)
        self.base_wire = self.base.wire()
        self.context = Context()
