"""On the spot: a call of a client to one replica at its home node, performed before anything else happens there.

The same steps as by way of ``Submit``, ``Deliver``, ``Completed`` and ``Received``, with the same result (a test sees
to it), where none of them has to wait: the request is made, delivered, answered and received within one step. So
nothing is kept of it in between, and that costs a third. First ``caller`` says whether it may be; then the driver
performs the method; then ``did`` takes note of it. Nothing may come in between; and a driver that could not perform it
feeds ``Submit`` instead: nothing has changed.
"""

from typing import TYPE_CHECKING, NamedTuple

from framework.com.caller import ClientSession
from framework.com.check import MANY, is_plain
from framework.com.events import Accepted, AnyEffect, Deliver, Received, Response
from framework.com.host import Host
from framework.com.messages import Dest, Kind, Mark, Part, Request
from framework.com.receipt import SREC
from framework.com.telling import Agreed, Ended, Landed, Sent
from framework.footprint import Footprint
from framework.ids import GroupId, Invocation, Replica, Sid, Stamp, object_of

if TYPE_CHECKING:
    from framework.com.core import Com


class Spotted(NamedTuple):
    """A call that was performed on the spot: its request is made when somebody asks for it."""

    view: int
    sid: Sid
    cid: Sid
    group: GroupId
    invocation: Invocation
    kind: Kind
    at: Replica
    seq: int
    footprint: Footprint
    number: int
    done: int

    def request(self, args: bytes) -> Request:
        at = self.at
        dests = (Dest(at, self.seq),)
        parts = (Part(object_of(at), self.footprint),)
        return Request(
            self.view,
            self.group,
            self.invocation,
            self.kind,
            at,
            dests,
            parts,
            self.number,
            False,
            (),
            (),
            1,
            self.done,
            args,
        )


class Spot:
    def __init__(self, com: "Com") -> None:
        self._com = com
        self._calls = com.calls
        self._node = com.node

    def caller(
        self, client: str, invocation: Invocation, done: int, host: Host, footprint: Footprint
    ) -> ClientSession | None:
        """Who calls, if this call may be performed now: nothing is wrong with it, it waits for nobody, and follows
        nothing that is under way. Else it goes the usual way, where somebody is told what is wrong."""
        com, order, calls, number = self._com, host.order, self._calls, invocation.path[0]
        caller = calls.sessions.get(client)
        if caller is None or com.out or order.closed or order.late.behind or host.replica in com.lives.pending:
            return None
        if not 0 <= done <= number < MANY or (caller.calls and number in caller.calls):
            return None
        if footprint.keys is not None and not is_plain(footprint, order.relation):
            return None
        if (calls.backlog.count and client in calls.backlog.lines) or caller.knows(com.known):
            return None
        if (order.copies and invocation in order.copies) or invocation in host.replies:
            return None
        ahead = order.ahead
        for slot in order.relation.slots(footprint)[1]:
            if ahead.busy(slot):
                return None
        return caller

    def did(
        self,
        caller: ClientSession,
        host: Host,
        invocation: Invocation,
        kind: Kind,
        done: int,
        footprint: Footprint,
        ok: bool,
        body: bytes,
        output: bool,
    ) -> Spotted:
        """It has been performed."""
        com, order, at, node = self._com, host.order, host.replica, self._node
        places, meets = order.relation.slots(footprint)
        number = com.tick()
        group = GroupId(caller.sid[0], caller.sid[1], caller.no)
        caller.no += 1
        caller.acted = True
        seq = self._calls.number(at)
        mark: Mark = (node, seq)
        host.arrived[node] = seq
        stamp = Stamp(number, group)
        order.past.promise_at(places, stamp)
        order.past.deliver(mark, stamp)
        order.begun += 1
        sid = Sid(com.tick(), at)
        cid = host.epoch.enter(sid, places, meets, False)
        base = host.epoch.base_wire
        com.settled(at, mark)
        host.replies.at_once(invocation, kind != "oneway", done, ok, body, output, base)
        if ok and places:
            host.epoch.commit(places)
        if kind == "oneway":
            caller.went_on(group, "sent")
        else:
            caller.went_on(group, "received")
            if base:
                caller.context.merge_wire(base)
        self._calls.forget_below(caller, done)
        return Spotted(com.view, sid, cid, group, invocation, kind, at, seq, footprint, number, done)

    def told(
        self, caller: ClientSession, host: Host, spotted: Spotted, request: Request, ok: bool, body: bytes
    ) -> list[AnyEffect]:
        """What happened, for the trace."""
        at, group, invocation, call = host.replica, request.group, request.invocation, request.invocation.path[0]
        receipt = None if request.kind == "oneway" else SREC
        stamp = Stamp(request.number, group)
        footprint = request.parts[0].footprint
        out: list[AnyEffect] = [
            Sent(
                caller.sid,
                caller.cid,
                call,
                group,
                invocation,
                request.kind,
                "ucast",
                request.dests,
                request.parts,
                request.number,
                False,
                0,
                caller.client,
                receipt,
                (),
            ),
            Accepted(caller.client, call),
            Landed(at, group, invocation),
            Agreed(at, group, stamp, "none"),
            Deliver(spotted.sid, spotted.cid, at, request, footprint, stamp, "none"),
            Ended(spotted.sid, at, invocation, ok),
        ]
        if receipt is not None:
            response = Response(at, "ok" if ok else "error", body)
            out.append(Received(caller.sid, caller.client, call, group, receipt, (response,), True))
        return out
