"""``Com.step(event, now) -> effects``: the one entrance of the com layer (PROTOCOL §3-§6).

The state of a node is here and in what this module owns: links, hosts (one per replica), callers (instances and
client sessions). A step takes one event, changes the state and says what the driver has to do. It neither blocks nor
reads a clock; ``now`` only moves time-outs. A step that raises has changed nothing.
"""

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from framework.com import receipt as receipts
from framework.com.caller import Call, Caller
from framework.com.check import Checker
from framework.com.context import Known
from framework.com.events import (
    AnyEffect,
    AnyEvent,
    Arrived,
    Collect,
    Completed,
    Connected,
    Dropped,
    Leave,
    Received,
    Sent,
    Submit,
    Tick,
    Transmit,
    Wake,
    Writable,
)
from framework.com.events import Response as Answer
from framework.com.host import Host, Instance
from framework.com.link import Link, Timing
from framework.com.marks import Marks
from framework.com.messages import (
    AnyMessage,
    Delivered,
    Dest,
    Frame,
    Part,
    Proposal,
    Request,
    Response,
    decode,
)
from framework.com.messages import Known as KnownMessage
from framework.com.view import Directory
from framework.errors import BadMessage, BadRequest, ResourceExhausted
from framework.ids import TRAN, GroupId, Invocation, Node, Replica, Sid, node_of, object_of, replica


class Limits(msgspec.Struct, frozen=True):
    queued: int = 8192  # messages waiting for one peer before client calls wait
    backlog: int = 8192  # client calls that wait before further ones are refused


class Com:
    def __init__(
        self,
        node: Node,
        directory: Directory,
        timing: Timing | None = None,
        limits: Limits | None = None,
        told: bool = True,
    ) -> None:
        self.node = node
        self.directory = directory
        self.view = directory.view.version
        self.limits = limits or Limits()
        self.told = told
        self.clock = 0
        self.known = Known()
        self.links = {n: Link(n, timing or Timing()) for n in directory.view.members if n != node}
        self.hosts: dict[Replica, Host] = {r: Host(self, p, r) for p, r in directory.on(node)}
        self.waiting: dict[GroupId, list[Host]] = {}  # where requests are that are not settled yet
        self.callers: dict[Sid, Caller] = {}
        self.instances: dict[Sid, Instance] = {}
        self.sessions: dict[str, Caller] = {}
        self._tran = replica(TRAN, node)
        self._tran_cid: Sid | None = None
        self._calls: dict[GroupId, tuple[Caller, Call]] = {}
        self._seq: dict[Replica, int] = {}
        self._marks = Marks(self.links, self.hosts)
        self._deadlines: list[tuple[float, int, GroupId]] = []
        self._deadline_no = 0
        self._backlog: dict[tuple[str, int], Submit] = {}
        self._local: deque[AnyMessage] = deque()
        self._effects: list[AnyEffect] = []
        self._checker = Checker(node, directory)
        self._handlers: dict[type[Any], Callable[[Any, float], None]] = {
            Arrived: self._arrived,
            Writable: self._writable,
            Submit: self._submit,
            Completed: self._completed,
            Collect: self._collect,
            Tick: self._tick,
            Connected: self._connected,
            Leave: self._leave,
        }
        self._takes: dict[type[Any], Callable[[Any], None]] = {
            Request: self._request,
            Proposal: self._proposal,
            KnownMessage: self._know,
            Response: self._response,
            Delivered: self._delivered,
        }

    def step(self, event: AnyEvent, now: float) -> list[AnyEffect]:
        """Take one event; return what is to be done, in order."""
        handler = self._handlers.get(type(event))
        if handler is None:
            raise BadRequest(f"{type(event).__name__} is not an event of the com layer")
        try:
            handler(event, now)
            while self._local:
                message = self._local.popleft()
                self._takes[type(message)](message)
            return self._effects
        finally:
            self._effects = []

    # for hosts

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def clock_at_least(self, number: int) -> None:
        """A node's clock is never behind a stamp it has given or delivered. So a request sent by someone who knows
        of a delivery has a higher origin stamp: its context need not name what it knows to be delivered."""
        if number > self.clock:
            self.clock = number

    def tell(self, effect: AnyEffect) -> None:
        self._effects.append(effect)

    def post(self, node: Node, message: AnyMessage) -> None:
        if node == self.node:
            self._local.append(message)
        elif self.links[node].push(message):
            self._effects.append(Wake(node))

    def settled(self, at: Replica, mark: tuple[Node, int]) -> None:
        self.known.ranges(at, mark[0]).add(mark[1])
        self._marks.add(at, mark)

    def forget(self, instance: Instance) -> None:
        del self.instances[instance.sid]
        self._drop(instance)

    # sending

    def _submit(self, event: Submit, now: float) -> None:
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
            declared = self.directory.find(part.object).replicas
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
        number = self.tick()
        group = GroupId(caller.sid.clock, caller.sid.replica, caller.no)
        caller.no += 1
        caller.context.merge_wire(event.context)
        dests = tuple(Dest(r, self._seq.get(r, 0) + 1) for p in event.parts for r in p.replicas)
        parts = tuple(Part(p.object, p.footprint) for p in event.parts)
        ordered = self._needs_agreement(dests, parts)
        context = caller.knows(self.known)
        client, path = caller.invocation
        invocations = {p.object: Invocation(client, (*path, event.call + j)) for j, p in enumerate(event.parts)}
        chain = () if event.kind == "oneway" else caller.chain
        args = {p.object: p.args for p in event.parts}
        for dest in dests:
            self._seq[dest.replica] = dest.seq
            name = object_of(dest.replica)
            request = Request(
                self.view,
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
            self.post(node_of(dest.replica), request)
        readonly = {p.object: p.footprint.readonly for p in parts}
        for dest in dests:
            caller.sent(dest, (self.node, dest.seq), event.kind, readonly[object_of(dest.replica)])
        if event.kind != "oneway":
            self._expect(caller, event, Call(event.call, group, dests))
        if self.told:
            self.tell(
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
        return any(not self.directory.objects[p.object].relation.free(p.footprint.method) for p in parts)

    def _expect(self, caller: Caller, event: Submit, call: Call) -> None:
        again = caller.calls.get(event.call)
        if again is not None:  # a client repeats a call: the old group is answered to nobody
            self._calls.pop(again.group, None)
        caller.calls[event.call] = call
        self._calls[call.group] = (caller, call)
        call.receipt = event.receipt
        self._arm(call, event.deadline)
        if event.receipt is not None:
            self._now_waits(caller, call)

    # client sessions and back-pressure (PROTOCOL §6)

    def _session(self, client: str) -> Caller:
        session = self.sessions.get(client)
        if session is None:
            sid = Sid(self.tick(), self._tran)
            self._tran_cid = self._tran_cid or sid  # transactions are compatible with each other
            session = Caller(sid, self._tran_cid, client, Invocation(client, ()))
            self.sessions[client] = self.callers[sid] = session
        return session

    def _congested(self, event: Submit) -> bool:
        nodes = {node_of(r) for p in event.parts for r in p.replicas}
        return any(n in self.links and self.links[n].queued >= self.limits.queued for n in nodes)

    def _postpone(self, client: str, event: Submit) -> None:
        if len(self._backlog) >= self.limits.backlog:
            raise ResourceExhausted(
                f"{self.node} already holds {len(self._backlog)} calls for peers that do not keep up; try again later"
            )
        self._backlog[(client, event.call)] = event

    def _relieve(self) -> None:
        while self._backlog:
            key = next(iter(self._backlog))
            if self._congested(self._backlog[key]):
                return
            self._send(self._session(key[0]), self._backlog.pop(key))

    def _leave(self, event: Leave, now: float) -> None:
        session = self.sessions.pop(event.client, None)
        if session is None:
            raise BadRequest(f"no session of client {event.client!r} at {self.node}")
        self._drop(session)

    def _drop(self, caller: Caller) -> None:
        del self.callers[caller.sid]
        for call in caller.calls.values():
            self._calls.pop(call.group, None)

    # receipts

    def _caller(self, who: Sid | str) -> Caller:
        caller = self.callers.get(who) if isinstance(who, Sid) else self.sessions.get(who)
        if caller is None:
            raise BadRequest(f"no instance or session {who} at {self.node}")
        return caller

    def _collect(self, event: Collect, now: float) -> None:
        waiting = self._backlog.get((event.caller, event.call)) if isinstance(event.caller, str) else None
        if waiting is not None:
            receipts.check(event.receipt, {p.object: p.replicas for p in waiting.parts})
            waiting.receipt, waiting.deadline = event.receipt, event.deadline
            return
        caller = self._caller(event.caller)
        call = caller.calls.get(event.call)
        if call is None or call.received or call.receipt is not None:
            raise BadRequest(f"call {event.call} of {event.caller} has no receipt left to wait for")
        dests: dict[Any, list[Replica]] = {}
        for r in call.dests:
            dests.setdefault(object_of(r), []).append(r)
        receipts.check(event.receipt, dests)
        call.receipt = event.receipt
        self._arm(call, event.deadline)
        self._now_waits(caller, call)
        self._try_receive(caller, call)

    def _response(self, m: Response) -> None:
        found = self._calls.get(m.group)
        if found is None:
            return  # nobody waits any more
        caller, call = found
        if m.joins and isinstance(caller, Instance) and self.hosts[caller.sid.replica].hold(m):
            return
        if not call.take(m):
            return
        if m.performed:  # it proves that its request is delivered there (PROTOCOL §4)
            self.known.ranges(m.replica, self.node).add(call.seqs[m.replica])
        if m.joins:
            caller.joins.merge_wire(m.joins)
        if call.receipt is not None:
            self._try_receive(caller, call)
        if call.finished and call.received:
            del self._calls[m.group]
            del caller.calls[call.number]
        if isinstance(caller, Instance):
            self.hosts[caller.sid.replica].try_end(caller)

    def _now_waits(self, caller: Caller, call: Call | None) -> None:
        if isinstance(caller, Instance):
            calls = range(call.number, call.number + call.objects) if call else range(0)
            self.hosts[caller.sid.replica].waits(caller, calls)

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
        context = caller.knows(self.known) if caller.client else ()
        self.tell(Received(caller.sid, caller.client, call.number, call.group, receipt, answers, complete, context))

    def _arm(self, call: Call, deadline: float | None) -> None:
        call.deadline = deadline
        if deadline is not None:
            self._deadline_no += 1
            heapq.heappush(self._deadlines, (deadline, self._deadline_no, call.group))

    def _expire(self, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            group = heapq.heappop(self._deadlines)[2]
            found = self._calls.get(group)
            if found is None:
                continue
            caller, call = found
            if call.receipt is not None and call.deadline is not None and call.deadline <= now:
                self._receive(caller, call, tuple(call.got.values()), False)

    def _completed(self, event: Completed, now: float) -> None:
        instance = self.instances.get(event.sid)
        if instance is None or instance.finished is not None:
            raise BadRequest(f"no instance {event.sid} is being performed at {self.node}")
        if any(c.receipt is not None for c in instance.calls.values()):
            raise BadRequest(f"instance {event.sid} still waits for a receipt; it cannot be complete")
        self.hosts[event.sid.replica].complete(instance, event)

    # links

    def _arrived(self, event: Arrived, now: float) -> None:
        link = self.links.get(event.peer)
        if link is None:
            raise BadMessage(f"frame from {event.peer!r}, which is not a member of view {self.view}")
        frame = decode(event.data, event.peer)
        self._checker.frame(frame, event.peer)
        link.check(frame)
        self._check_messages(link.preview(frame))
        self.clock_at_least(frame.clock)
        for ready in link.receive(frame, now, lambda why: self.tell(Dropped(event.peer, why))):
            for message in ready.messages:
                self._takes[type(message)](message)
                while self._local:
                    local = self._local.popleft()
                    self._takes[type(local)](local)
        if frame.ask:
            for data in link.again(now, frame.ask):
                self.tell(Transmit(event.peer, data))
        if link.hurry or (link.queued and link.open):
            self.tell(Wake(event.peer))

    def _check_messages(self, frames: list[Frame]) -> None:
        arrived = _Arrived(self.hosts)
        for frame in frames:
            self._checker.messages(frame, arrived)

    def _writable(self, event: Writable, now: float) -> None:
        link = self._link(event.peer)
        if link.queued or link.ack_due:
            self._add_marks(link)
        data = link.take(self.node, self.view, self.clock, now)
        if data is not None:
            self.tell(Transmit(event.peer, data))
        if link.queued and link.open:
            self.tell(Wake(event.peer))
        if self._backlog:
            self._relieve()

    def _add_marks(self, link: Link) -> None:
        marks = self._marks.take(link.peer)
        if marks:
            link.push(Delivered(self.view, marks))

    def _link(self, peer: Node) -> Link:
        link = self.links.get(peer)
        if link is None:
            raise BadRequest(f"{peer!r} is not a peer of {self.node}")
        return link

    def _connected(self, event: Connected, now: float) -> None:
        link = self._link(event.peer)
        for data in link.again(now):
            self.tell(Transmit(event.peer, data))
        self.tell(Wake(event.peer))

    def _tick(self, event: Tick, now: float) -> None:
        self._expire(now)
        for link in self.links.values():
            for data in link.resend(now):
                self.tell(Transmit(link.peer, data))
            if link.wants_tick(now):
                self._add_marks(link)
                frame = link.take(self.node, self.view, self.clock, now)
                self.tell(Transmit(link.peer, frame or link.empty(self.node, self.view, self.clock, now)))

    # messages

    def _request(self, m: Request) -> None:
        self.clock_at_least(m.number)
        self.hosts[m.target].arrive(m)

    def _proposal(self, m: Proposal) -> None:
        if m.announce is not None:
            for dest in m.announce.dests:
                host = self.hosts.get(dest.replica)
                if host is not None:
                    host.announce(m.group, m.announce, dest)
        self.clock_at_least(m.number)
        used = False
        for host in tuple(self.waiting.get(m.group, ())):
            if host.replica != m.replica and host.order.propose(m.group, m.replica, m.number):
                host.flush()
                used = True
        if not used:
            self._useless(m)

    def _know(self, m: KnownMessage) -> None:
        used = False
        for host in tuple(self.waiting.get(m.group, ())):
            if host.replica != m.replica and host.order.know(m.group, m.replica):
                host.flush()
                used = True
        if not used:
            self._useless(m)

    def _useless(self, m: Proposal | KnownMessage) -> None:
        if self.told:
            self.tell(Dropped(node_of(m.replica), f"{type(m).__name__} for {m.group}, which is not known here"))

    def _delivered(self, m: Delivered) -> None:
        for at, origin, ranges in m.marks:
            self.known.ranges(at, origin).add_all(ranges)


class _Arrived(dict[tuple[Node, Replica], int]):
    """Last sequence numbers, read from the hosts and raised by the frames under examination."""

    def __init__(self, hosts: dict[Replica, Host]) -> None:
        super().__init__()
        self._hosts = hosts

    def get(self, key: tuple[Node, Replica], default: int = 0) -> int:  # type: ignore[override]
        if key in self:
            return self[key]
        host = self._hosts.get(key[1])
        return host.arrived.get(key[0], default) if host else default
