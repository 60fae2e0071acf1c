"""Whether so much waits that a driver should take no more calls of clients (protocol.md §8.5: nothing grows without
bound).

A replica that has no state yet, or catches up, may have more before it than others: these go on, and keep for it what
they do. When that is too much they hold their clients back, for a while: perhaps its state is about to be there. Then
they do without it. It comes back by itself and begins anew, with nothing before it.
"""

from typing import TYPE_CHECKING, Final

from framework.com.host import Host
from framework.errors import BadRequest
from framework.ids import Node, node_of, object_of

if TYPE_CHECKING:
    from framework.com.core import Com

PATIENCE: Final = 100  # times delta for which clients wait for a replica that has no state


class Crowd:
    def __init__(self, com: "Com") -> None:
        self._com = com
        self._found = False  # at the last tick
        self._since: dict[Node, float] = {}  # nodes without a state that clients have to wait for

    @property
    def is_there(self) -> bool:
        com = self._com
        return self._found or (len(com.waiting) > com.limits.waiting and self._look())

    def tick(self, now: float) -> None:
        self._found = self._look()
        late = self._behind() if self._found else []
        self._since = {node: self._since.get(node, now) for node in late}
        for node, since in self._since.items():
            if now - since > PATIENCE * self._com.timing.delta:
                self._without(node)

    def _look(self) -> bool:
        limits = self._com.limits
        for host in self._com.hosts.values():
            order = host.order
            most = limits.behind if order.closed or order.late.behind else limits.waiting
            if len(order.entries) > most or self._keeps_much(host):
                return True
        return False

    def _keeps_much(self, host: Host) -> bool:
        limits = self._com.limits
        return len(host.kept) > limits.behind or host.kept.size > limits.bytes

    def _behind(self) -> list[Node]:
        names = [host.name for host in self._com.hosts.values() if self._keeps_much(host)]
        return sorted({node_of(r) for r in self._com.lives.pending if object_of(r) in names} - {self._com.node})

    def _without(self, node: Node) -> None:
        try:
            self._com.member.evict(node)
        except BadRequest:
            pass  # too few would be left
