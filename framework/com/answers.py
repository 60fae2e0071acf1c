"""Who is told of what has been performed at a replica, and when.

An instance that is over may be *unsafe*: what it did can still get lost, with a disk that has not got it yet. For order
and epochs it is over, and what conflicts with it begins; but it is not answered, neither are copies of it, until its
driver says that it is safe. What else may leave this node meanwhile: marks and contexts name requests, and these exist
whatever becomes of what was done here; a life that loses it is over, and its marks with it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from framework.com import convoy
from framework.com.caller import Instance
from framework.com.entry import Entry
from framework.com.events import Completed
from framework.com.messages import Request, Response, WireContext
from framework.com.order import Order
from framework.com.replies import Replies, Reply
from framework.ids import GroupId, Invocation, Replica, Sid, node_of

if TYPE_CHECKING:
    from framework.com.core import Com


class Unsafe(NamedTuple):
    """An instance that is over, and of which nobody may be told yet."""

    entry: Entry
    reply: Reply
    rides: Sequence[Reply | None]  # of a convoy


class Answers:
    def __init__(self, com: "Com", replica: Replica, order: Order, replies: Replies) -> None:
        self._com = com
        self._replica = replica
        self._order = order
        self._replies = replies
        self.unsafe: dict[Sid, Unsafe] = {}  # in the order in which they ended
        self._late: dict[GroupId, Unsafe] = {}  # convoys with a call that is under way as another copy

    def over(self, instance: Instance, event: Completed, error: str = "error") -> None:
        """An instance has ended; its reply has its context. ``error``: what its end is called, if it is not ok."""
        reply = instance.reply
        reply.body, reply.output = event.body, event.output
        reply.outcome = "ok" if event.ok else error
        if instance.rides:
            convoy.over(instance, event)
            reply.outcome = "ok"
        if event.safe:
            self._tell(instance.entry, reply, instance.rides)
        else:
            self.unsafe[instance.sid] = Unsafe(instance.entry, reply, instance.rides)

    def safe(self, sid: Sid) -> bool:
        """False: there is none of which nobody may be told."""
        unsafe = self.unsafe.pop(sid, None)
        if unsafe is not None:
            self._tell(*unsafe)
        return unsafe is not None

    def waiting(self) -> list[Invocation]:
        """Those that are over, and of which nobody may be told yet."""
        return [u.entry.invocation for u in self.unsafe.values() if u.entry.invocation is not None]

    def duplicate(self, entry: Entry) -> None:
        """Another copy of a call that is performed here once."""
        request = entry.request
        assert request is not None
        if request.riders:
            self._duplicates(entry, request)
            return
        reply = self._replies.get(request.invocation)
        if self._com.told:
            convoy.say_copy(self._com, self._replica, reply, entry.group, request.invocation)
        if reply is None:
            gone = Reply(1)
            gone.status = "OutcomeUnknown"
            gone.body = b"performed before, but the reply is no longer kept"
            self._answer(request, gone, (), False)
        elif reply.status is None:
            reply.waiting.append(request)
        else:
            self._answer(request, reply, reply.full, False)

    def _duplicates(self, entry: Entry, request: Request) -> None:
        """A convoy of which all calls were performed here before: in the state which this replica was given, most of
        the time."""
        if self._com.told:
            for group, invocation in convoy.calls_of(request):
                convoy.say_copy(self._com, self._replica, self._replies.get(invocation), group, invocation)
        gone = Reply(1)
        gone.status = "ok"
        self._tell_convoy(entry, gone, [None] * len(request.riders))

    def _tell(self, entry: Entry, reply: Reply, rides: Sequence[Reply | None]) -> None:
        request = entry.request
        assert request is not None
        reply.status = reply.outcome
        if rides:
            for rider, ride in zip(request.riders, rides, strict=True):
                if ride is not None:
                    ride.status = ride.outcome
                    self._tell_copies(rider.invocation, ride)
            self._tell_convoy(entry, reply, rides)
        else:
            self._answer(request, reply, reply.context, self._order.is_settled(entry))
            self._tell_copies(request.invocation, reply)

    def _tell_copies(self, invocation: Invocation, reply: Reply) -> None:
        """Those that came meanwhile."""
        for copy in self._replies.finish(invocation, reply):
            if copy.riders:
                self._tell_convoy(*self._late.pop(copy.group))
                self._replies.answered(invocation)
            else:
                self._answer(copy, reply, reply.full, False)

    def _tell_convoy(self, entry: Entry, reply: Reply, rides: Sequence[Reply | None]) -> None:
        """All its calls at once: it waits for those that are under way here as other copies, as a copy would."""
        request = entry.request
        assert request is not None
        other = convoy.under_way(self._replies, request, rides)
        if other is not None:
            other.waiting.append(request)
            self._late[request.group] = Unsafe(entry, reply, rides)
            return
        reply.body = convoy.results(self._replies, request, rides)
        self._answer(request, reply, reply.context, self._order.is_settled(entry))

    def _answer(self, request: Request, reply: Reply, context: WireContext, settled: bool) -> None:
        if request.kind != "oneway":
            assert reply.status is not None
            response = Response(
                self._com.view,
                request.group,
                self._replica,
                reply.status,
                reply.body,
                reply.output,
                settled,
                context,
                reply.joins,
                reply.torn,
                reply.did,
            )
            self._com.post(node_of(request.group.replica), response)
        self._replies.answered(request.invocation)
