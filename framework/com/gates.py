"""Order between the replicas of one node: what is delivered to tran, and what is delivered to objects.

A request waits for the outcomes that its sender knew of: its context names requests to tran of this node. And a commit
is *late* for a replica where a part that it names has not started: there held work stays held until it has. Only there:
that replica may be waiting for a state, from a node where something is held for the same transaction, and that node for
another state from here (protocol.md §7.4).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from framework.com.entry import Entry
from framework.com.host import Host
from framework.com.messages import Mark, Request, WireContext
from framework.com.order import Order
from framework.ids import TRAN, Invocation, Replica, replica

if TYPE_CHECKING:
    from framework.com.core import Com


Release = Callable[[Replica, Invocation], None]


class Gates:
    def __init__(self, com: "Com", is_lost: Callable[[Invocation, Invocation], bool], release: Release) -> None:
        self._com = com
        self._at = replica(TRAN, com.node)
        self._is_lost = is_lost  # is this part of a transaction undone?
        self._release = release  # a commit is late no more
        self.gated: list[tuple[Order, Entry]] = []  # these wait for another replica of this node
        self.late: dict[tuple[Replica, Invocation], tuple[Mark, ...]] = {}  # and committed transactions for these
        self._looking = False

    def beyond(self, host: Host, request: Request) -> WireContext:
        if host.name == TRAN or not request.chain:
            return ()
        return tuple([c for c in request.context if c[0] == self._at])

    def gate(self, order: Order, entry: Entry) -> bool:
        if all(self._is_heard(at, mark) for at, marks in entry.beyond for mark in marks):
            entry.beyond = ()
            return False
        self.gated.append((order, entry))
        return True

    def _is_heard(self, at: Replica, mark: Mark) -> bool:
        return self._com.hosts[at].order.past.is_delivered(mark)

    def delay(self, name: Invocation, request: Request) -> None:
        """This transaction is committed. Keep its work where a part that the outcome names has not been performed."""
        for at, marks in request.did:
            if at in self._com.hosts and not self._has_all(at, marks):
                self.late[at, name] = tuple(dict.fromkeys((*self.late.get((at, name), ()), *marks)))

    def _has_all(self, at: Replica, marks: tuple[Mark, ...]) -> bool:
        order = self._com.hosts[at].order
        return all(order.has_performed(mark) or self._is_over(order, mark) for mark in marks)

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
        while (waiting := len(self.gated) + len(self.late)) and waiting != before:
            before, gated = waiting, self.gated
            self.gated = []
            for order, entry in gated:
                order.look(entry)
                if order.out:
                    self._com.hosts[order.replica].flush()
            for (at, name), marks in tuple(self.late.items()):
                if self._has_all(at, marks):
                    del self.late[at, name]
                    self._release(at, name)
        self._looking = False
