"""The sending side of a node: sessions of clients, calls of instances, receipts, deadlines, back-pressure."""

import heapq
from typing import TYPE_CHECKING

from framework.com import receipt as receipts
from framework.com.caller import Call, Caller
from framework.com.events import Collect, Leave, Received, Sent, Submit
from framework.com.events import Response as Answer
from framework.com.host import Instance
from framework.com.messages import Dest, Part, Request, Response
from framework.errors import BadRequest, ResourceExhausted
from framework.ids import TRAN, GroupId, Invocation, ObjectName, Replica, Sid, node_of, object_of, replica

if TYPE_CHECKING:
    from framework.com.core import Com


class Calls:
    def __init__(self, com: "Com") -> None:
        self.com = com
        self.callers: dict[Sid, Caller] = {}
        self.sessions: dict[str, Caller] = {}
        self._tran = replica(TRAN, com.node)
        self._tran_cid: Sid | None = None
        self._waiting: dict[GroupId, tuple[Caller, Call]] = {}  # calls whose responses are wanted
        self._seq: dict[Replica, int] = {}  # requests sent to each replica
        self._deadlines: list[tuple[float, int, GroupId]] = []
        self._deadline_no = 0
        self._backlog: dict[tuple[str, int], Submit] = {}

    def submit(self, event: Submit, now: float) -> None:
        caller = self._caller(event.caller) if isinstance(event.caller, Sid) else None
        self._check_submit(event, caller)
        if caller is None:
            assert isinstance(event.caller, str)
            if self._backlog or self._congested(event):
                self._postpone(event.caller, event)
                return
            caller = self._session(event.caller)
        self._send(caller, event)

    def _check_submit(self, event: Submit, caller: Caller | None) -> None:
        if event.call < 0 or (caller is not None and event.call in caller.calls):
            raise BadRequest(f"call number {event.call} is negative or used already")
        if isinstance(caller, Instance) and caller.finished is not None:
            raise BadRequest(f"instance {caller.sid} has been completed; it cannot send any more")
        names = [p.object for p in event.parts]
        if not names or len(set(names)) != len(names):
            raise BadRequest(f"a transmission names each object once; this one names {names or 'none'}")
        if (event.transmission == "pcast") != (len(names) > 1) and event.transmission != "pcast":
            raise BadRequest(f"{event.transmission} sends one request; pcast sends different ones: {names}")
        for part in event.parts:
            declared = self.com.directory.find(part.object).replicas
            wrong = [r for r in part.replicas if r not in declared]
            if wrong or not part.replicas or len(set(part.replicas)) != len(part.replicas):
                raise BadRequest(f"{part.object} has the replicas {declared}; destinations {part.replicas} are wrong")
        if event.transmission == "ucast" and len(event.parts[0].replicas) > 1:
            raise BadRequest(f"ucast goes to one replica, not to {event.parts[0].replicas}")
        if event.receipt is not None:
            if event.kind == "oneway":
                raise BadRequest("a one-way request has no response to wait for")
            receipts.check(event.receipt, {p.object: p.replicas for p in event.parts})
        if caller is not None and event.kind != "oneway":
            caller.check_chain(event.parts)

    def _send(self, caller: Caller, event: Submit) -> None:
        number = self.com.tick()
        group = GroupId(caller.sid.clock, caller.sid.replica, caller.no)
        caller.no += 1
        caller.context.merge_wire(event.context)
        dests = tuple(Dest(r, self._seq.get(r, 0) + 1) for p in event.parts for r in p.replicas)
        parts = tuple(Part(p.object, p.footprint) for p in event.parts)
        ordered = self._needs_agreement(dests, parts)
        context = caller.knows(self.com.known)
        client, path = caller.invocation
        invocations = {p.object: Invocation(client, (*path, event.call + j)) for j, p in enumerate(event.parts)}
        chain = () if event.kind == "oneway" else caller.chain
        args = {p.object: p.args for p in event.parts}
        for dest in dests:
            self._seq[dest.replica] = dest.seq
            name = object_of(dest.replica)
            request = Request(
                self.com.view,
                group,
                invocations[name],
                event.kind,
                dest.replica,
                dests,
                parts,
                number,
                ordered,
                caller.cid,
                context,
                chain,
                caller.copies,
                event.done,
                args[name],
            )
            self.com.post(node_of(dest.replica), request)
        readonly = {p.object: p.footprint.readonly for p in parts}
        for dest in dests:
            caller.sent(dest, (self.com.node, dest.seq), event.kind, readonly[object_of(dest.replica)])
        if event.kind != "oneway":
            self._expect(caller, event, Call(event.call, group, dests))
        if self.com.told:
            self.com.tell(
                Sent(
                    caller.sid,
                    caller.cid,
                    event.call,
                    group,
                    invocations[event.parts[0].object],
                    event.kind,
                    event.transmission,
                    dests,
                    parts,
                    number,
                    ordered,
                    sum(len(marks) for _, marks in context),
                    caller.client,
                    event.receipt,
                    event.session,
                )
            )

    def _needs_agreement(self, dests: tuple[Dest, ...], parts: tuple[Part, ...]) -> bool:
        """Not with one destination, nor if its methods conflict with nothing (PROTOCOL §5)."""
        if len(dests) == 1:
            return False
        return any(not self.com.directory.objects[p.object].relation.free(p.footprint.method) for p in parts)

    def _expect(self, caller: Caller, event: Submit, call: Call) -> None:
        again = caller.calls.get(event.call)
        if again is not None:  # a client repeats a call: the old group is answered to nobody
            self._waiting.pop(again.group, None)
        caller.calls[event.call] = call
        self._waiting[call.group] = (caller, call)
        call.receipt = event.receipt
        self._arm(call, event.deadline)
        if event.receipt is not None:
            self._now_waits(caller, call)

    # client sessions and back-pressure (PROTOCOL §6)

    def _session(self, client: str) -> Caller:
        session = self.sessions.get(client)
        if session is None:
            sid = Sid(self.com.tick(), self._tran)
            self._tran_cid = self._tran_cid or sid  # transactions are compatible with each other
            session = Caller(sid, self._tran_cid, client, Invocation(client, ()))
            self.sessions[client] = self.callers[sid] = session
        return session

    def _congested(self, event: Submit) -> bool:
        nodes = {node_of(r) for p in event.parts for r in p.replicas}
        return any(n in self.com.links and self.com.links[n].queued >= self.com.limits.queued for n in nodes)

    def _postpone(self, client: str, event: Submit) -> None:
        if len(self._backlog) >= self.com.limits.backlog:
            raise ResourceExhausted(
                f"{self.com.node} already holds {len(self._backlog)} calls for peers that do not keep up; "
                "try again later"
            )
        self._backlog[(client, event.call)] = event

    def relieve(self) -> None:
        """A peer has taken something: calls that waited may go."""
        while self._backlog:
            key = next(iter(self._backlog))
            if self._congested(self._backlog[key]):
                return
            self._send(self._session(key[0]), self._backlog.pop(key))

    def leave(self, event: Leave, now: float) -> None:
        session = self.sessions.pop(event.client, None)
        if session is None:
            raise BadRequest(f"no session of client {event.client!r} at {self.com.node}")
        self.drop(session)

    def drop(self, caller: Caller) -> None:
        del self.callers[caller.sid]
        for call in caller.calls.values():
            self._waiting.pop(call.group, None)

    # receipts

    def _caller(self, who: Sid | str) -> Caller:
        caller = self.callers.get(who) if isinstance(who, Sid) else self.sessions.get(who)
        if caller is None:
            raise BadRequest(f"no instance or session {who} at {self.com.node}")
        return caller

    def collect(self, event: Collect, now: float) -> None:
        waiting = self._backlog.get((event.caller, event.call)) if isinstance(event.caller, str) else None
        if waiting is not None:
            receipts.check(event.receipt, {p.object: p.replicas for p in waiting.parts})
            waiting.receipt, waiting.deadline = event.receipt, event.deadline
            return
        caller = self._caller(event.caller)
        call = caller.calls.get(event.call)
        if call is None or call.received or call.receipt is not None:
            raise BadRequest(f"call {event.call} of {event.caller} has no receipt left to wait for")
        dests: dict[ObjectName, list[Replica]] = {}
        for r in call.dests:
            dests.setdefault(object_of(r), []).append(r)
        receipts.check(event.receipt, dests)
        call.receipt = event.receipt
        self._arm(call, event.deadline)
        self._now_waits(caller, call)
        self._try_receive(caller, call)

    def respond(self, m: Response) -> None:
        found = self._waiting.get(m.group)
        if found is None:
            return  # nobody waits any more
        caller, call = found
        if m.joins and isinstance(caller, Instance) and self.com.hosts[caller.sid.replica].hold(m):
            return
        if not call.take(m):
            return
        if m.settled:
            self.com.known.ranges(m.replica, self.com.node).add(call.seqs[m.replica])
        if m.joins:
            caller.joins.merge_wire(m.joins)
        if call.receipt is not None:
            self._try_receive(caller, call)
        if call.finished and call.received:
            del self._waiting[m.group]
            del caller.calls[call.number]
        if isinstance(caller, Instance):
            self.com.hosts[caller.sid.replica].try_end(caller)

    def _now_waits(self, caller: Caller, call: Call | None) -> None:
        if isinstance(caller, Instance):
            calls = range(call.number, call.number + call.objects) if call else range(0)
            self.com.hosts[caller.sid.replica].waits(caller, calls)

    def _try_receive(self, caller: Caller, call: Call) -> None:
        got = call.significant()
        if got is not None:
            self._receive(caller, call, got, True)

    def _receive(self, caller: Caller, call: Call, got: tuple[Response, ...], complete: bool) -> None:
        assert call.receipt is not None
        receipt, call.receipt = call.receipt, None
        call.received = True
        self._now_waits(caller, None)
        caller.received(got)
        answers = tuple(Answer(m.replica, m.status, m.body) for m in got)
        context = caller.knows(self.com.known) if caller.client else ()
        self.com.tell(Received(caller.sid, caller.client, call.number, call.group, receipt, answers, complete, context))

    def _arm(self, call: Call, deadline: float | None) -> None:
        call.deadline = deadline
        if deadline is not None:
            self._deadline_no += 1
            heapq.heappush(self._deadlines, (deadline, self._deadline_no, call.group))

    def expire(self, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            group = heapq.heappop(self._deadlines)[2]
            found = self._waiting.get(group)
            if found is None:
                continue
            caller, call = found
            if call.receipt is not None and call.deadline is not None and call.deadline <= now:
                self._receive(caller, call, tuple(call.got.values()), False)
