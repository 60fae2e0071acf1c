"""Order between the replicas of one node: what is delivered to tran, and what is delivered to objects.

An outcome waits for the requests that it decides on, and a request for outcomes of parts that its sender knew of: both
are named in contexts, by replicas of this node other than the one that they come to.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from framework.com.entry import Entry
from framework.com.host import Host
from framework.com.messages import Mark, Request, WireContext
from framework.com.order import Order
from framework.com.view import ABORT
from framework.ids import TRAN, Invocation, replica

if TYPE_CHECKING:
    from framework.com.core import Com


class Gates:
    def __init__(self, com: "Com", is_lost: Callable[[Invocation, Invocation], bool]) -> None:
        self._com = com
        self._at = replica(TRAN, com.node)
        self._is_lost = is_lost  # is this part of a transaction undone?
        self.gated: list[tuple[Order, Entry]] = []  # these wait for another replica of this node
        self._looking = False

    def beyond(self, host: Host, request: Request) -> WireContext:
        if host.name == TRAN:  # what comes after ABORT is not performed any more
            if request.parts[0].footprint.method == ABORT:
                return ()
            return tuple([c for c in request.context if c[0] in self._com.hosts and c[0] != self._at])
        return tuple([c for c in request.context if c[0] == self._at]) if request.chain else ()

    def gate(self, order: Order, entry: Entry) -> bool:
        assert entry.invocation is not None
        name = entry.tran or entry.invocation.ancestor(len(entry.invocation.path) - 1)
        for at, marks in entry.beyond:
            other = self._com.hosts[at].order
            if not all(other.reached(mark, name) or self._is_over(other, mark) for mark in marks):
                self.gated.append((order, entry))
                return True
        entry.beyond = ()
        return False

    def _is_over(self, order: Order, mark: Mark) -> bool:
        """It was given up: it will not be performed, whenever it comes."""
        entry = order.known(mark)
        if entry is None or entry.tran is None or entry.invocation is None:
            return False
        return self._is_lost(entry.invocation, entry.tran)

    def look(self) -> None:
        """Something has moved on this node."""
        if self._looking:
            return
        self._looking = True
        before = -1
        while self.gated and len(self.gated) != before:
            before, gated = len(self.gated), self.gated
            self.gated = []
            for order, entry in gated:
                order.look(entry)
                if order.out:
                    self._com.hosts[order.replica].flush()
        self._looking = False
