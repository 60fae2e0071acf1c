"""A replica's queue when destinations depart (protocol.md §5.3, §10.5): who is not waited for, and what is void.

A request whose destination departs is agreed without it, and equally at all survivors: a proposal of the departed one
counts iff it is in the union of the flush. What a departed origin sent and the union does not bring is void: neither it
nor its announcement delays anybody.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from framework.com.entry import Entry
from framework.com.lives import Lives
from framework.ids import GroupId, Node, Replica, node_of

if TYPE_CHECKING:
    from framework.com.order import Order

Union = Mapping[GroupId, Mapping[Replica, int]]


class Absence:
    __slots__ = ("_brought", "_lives")

    def __init__(self, lives: Lives | None) -> None:
        self._lives = lives
        self._brought: dict[GroupId, dict[Replica, int]] = {}  # proposals of the departed

    def base(self, origin: Node, at: Replica) -> int:
        return self._lives.base(origin, at) if self._lives is not None else 0

    def enter(self, entry: Entry, version: int) -> None:
        """A request becomes known here. What was sent in the current view has no departed destination."""
        entry.version = version
        if self._lives is not None and version != self._lives.view.version:
            self._miss(entry, [d for d in entry.dests if self._lives.gone(d, version)])

    def _miss(self, entry: Entry, gone: list[Replica]) -> None:
        said = self._brought.get(entry.group, {})
        for at in gone:
            if entry.proposals is not None:
                entry.proposals.pop(at, None)
            if entry.known is not None:
                entry.known.discard(at)
            entry.heard = max(entry.heard, said.get(at, 0))
        entry.gone = (*entry.gone, *gone)
        entry.wanted -= len(gone)

    def depart(self, order: "Order", left: Collection[Node], union: Union, alive: Collection[GroupId]) -> list[Entry]:
        """The lives of these nodes have ended. Returns what is void of what they sent."""
        for group, said in union.items():
            self._brought.setdefault(group, {}).update(said)
        void = []
        for entry in tuple(order.entries.values()):
            gone = [d for d in entry.dests if node_of(d) in left and d not in entry.gone]
            if gone:
                self._miss(entry, gone)
            if node_of(entry.group.replica) in left and entry.group not in alive and not entry.started:
                void.append(entry)
        return void

    def forget(self, known: Collection[GroupId]) -> None:
        """No request of an earlier view can come any more: only what is known here still matters."""
        self._brought = {g: said for g, said in self._brought.items() if g in known}
