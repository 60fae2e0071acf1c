"""What ordering costs: one harness with FIFO delivery, with OBO at several conflict ratios, with total order.

Three nodes in one process, joined by a perfect network: every frame is encoded, carried and decoded, and nothing waits
for time. Clients submit in rounds; within a round all that waits for a peer is packed into one frame, as a server does.
The figure is CPU time per request and replica that delivers it. Only ratios within one run of a process mean anything.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from random import Random

from framework.com.caller import Instance
from framework.com.core import Com
from framework.com.entry import Entry
from framework.com.events import (
    AnyEvent,
    Arrived,
    Completed,
    Deliver,
    Outgoing,
    Received,
    Submit,
    Transmit,
    Wake,
    Writable,
)
from framework.com.host import Host
from framework.com.limits import Limits
from framework.com.link import Timing
from framework.com.messages import Dest, Part, Request, Response
from framework.com.receipt import majority
from framework.com.view import Directory, Placement, View, tran
from framework.footprint import Footprint, Relation
from framework.ids import TRAN, Node, ObjectName, Sid, Stamp, node_of, object_of, replica

METHODS = ("a", "b", "c", "d")
PAIRS = tuple(combinations_with_replacement(METHODS, 2))
NODES = (Node("n1"), Node("n2"), Node("n3"))
_TIMING = Timing(window=1 << 20)
_LIMITS = Limits(queued=1 << 30)


class FifoHost(Host):
    """Requests are performed as they come, once each: links, replies and receipts, but no order."""

    def arrive(self, request: Request) -> None:
        origin = node_of(request.group.replica)
        self.arrived[origin] = next(d.seq for d in request.dests if d.replica == self.replica)
        if request.invocation in self.replies:
            return
        footprint = request.parts[0].footprint
        entry = Entry(request.group, Stamp(request.number, request.group), footprint, request.dests)
        entry.request = request
        sid = Sid(self.com.tick(), self.replica)
        instance = Instance(sid, sid, entry, self.replies.start(request), (), ())
        self.com.instances[sid] = self.com.calls.callers[sid] = instance
        self.com.tell(Deliver(sid, sid, self.replica, request, footprint, entry.first, "none"))

    def complete(self, instance: Instance, event: Completed) -> None:
        del self.com.instances[instance.sid]
        self.com.calls.drop(instance)
        request, reply = instance.entry.request, instance.reply
        assert request is not None
        reply.status, reply.body = "ok", event.body
        response = Response(self.com.view, request.group, self.replica, "ok", event.body, False, True, (), ())
        self.com.post(node_of(request.group.replica), response)
        self.replies.answered(request.invocation)


class FifoDirectory(Directory):
    def needs_agreement(self, dests: Sequence[Dest], parts: Sequence[Part]) -> bool:
        return False


class FifoCom(Com):
    host_type = FifoHost


class Bench:
    """Three nodes, and the perfect network between them."""

    def __init__(self, relations: dict[str, Relation], fifo: bool = False, transactions: bool = False) -> None:
        placements = [Placement(name, r, NODES) for name, r in relations.items()]
        placements += [tran(NODES)] if transactions else []
        directory = (FifoDirectory if fifo else Directory)(View(1, NODES), placements)
        make = FifoCom if fifo else Com
        self.coms = {n: make(n, directory, _TIMING, _LIMITS, told=False) for n in NODES}
        self.delivered = 0
        self.keeps: Callable[[Deliver], bool] | None = None  # instances that stay running until released
        self.calls: Callable[[Deliver], list[Submit]] | None = None  # of an instance, before it ends
        self.delays = 0  # how often all that waited for links has crossed them
        self.answered = 0  # after how many of them a client had the last answer
        self.bytes = 0  # that crossed links
        self._kept: list[tuple[Node, Sid]] = []
        self._woken: dict[tuple[Node, Node], None] = {}

    def submit(self, node: Node, client: str, call: int, name: str, footprint: Footprint, wait: bool = True) -> None:
        part = Outgoing(ObjectName(name), footprint, b"argument", tuple(replica(name, n) for n in NODES))
        receipt = majority(len(NODES)) if wait else None
        self._feed(node, Submit(client, call, "sync" if wait else "oneway", "mcast", (part,), receipt, done=call))

    def _feed(self, node: Node, first: AnyEvent) -> list[tuple[Node, bytes]]:
        com, todo, out = self.coms[node], deque([first]), []
        while todo:
            for effect in com.step(todo.popleft(), 0.0):
                if isinstance(effect, Deliver):
                    if object_of(effect.replica) == TRAN:
                        continue  # the com layer performs it
                    self.delivered += 1
                    if self.calls is not None:
                        todo += self.calls(effect)
                    if self.keeps is not None and self.keeps(effect):
                        self._kept.append((node, effect.sid))
                    else:
                        todo.append(Completed(effect.sid, True, b"result"))
                elif isinstance(effect, Received):
                    self.answered = self.delays
                elif isinstance(effect, Wake):
                    self._woken[(node, effect.peer)] = None
                elif isinstance(effect, Transmit):
                    out.append((effect.peer, effect.data))
        return out

    def pump(self) -> None:
        """Until no link has anything to say."""
        while self._woken:
            self.delays += 1
            woken, self._woken = self._woken, {}
            frames = [(node, f) for node, peer in woken for f in self._feed(node, Writable(peer))]
            for node, (peer, data) in frames:
                self.bytes += len(data)
                self._feed(peer, Arrived(node, data))

    def release(self) -> None:
        """Complete the instances that were kept."""
        kept, self._kept = self._kept, []
        for node, sid in kept:
            for _ in self._feed(node, Completed(sid, True, b"result")):
                raise AssertionError("a completion transmits nothing by itself")
        self.pump()


def relation(share: float, chance: Random) -> Relation:
    """Conflicts among this share of the ten pairs of four methods."""
    return Relation(chance.sample(PAIRS, round(share * len(PAIRS))))
