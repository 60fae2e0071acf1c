"""The sending side of a node: sessions of clients, calls of instances, receipts, deadlines, back-pressure."""

import heapq
from collections import deque
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

import msgspec

from framework.com import receipt as receipts
from framework.com.caller import Call, Caller, ClientSession, Instance, recall, sent
from framework.com.check import MANY, clock_limit, is_plain
from framework.com.context import Context
from framework.com.events import Accepted, Again, Cancel, Collect, Leave, Outgoing, Received, Session, Submit
from framework.com.events import Response as Answer
from framework.com.messages import Ancestor, Dest, Kind, Part, Request, Response, Transmission, WireContext
from framework.com.outcome import DECIDES
from framework.com.present import present, without_joiners
from framework.com.telling import Forgotten
from framework.com.together import Convoys
from framework.errors import BadRequest, ResourceExhausted, Unavailable
from framework.footprint import Relation
from framework.ids import (
    TRAN,
    GroupId,
    Invocation,
    Node,
    ObjectName,
    Replica,
    Sid,
    check_name,
    node_of,
    object_of,
    replica,
)

if TYPE_CHECKING:
    from framework.com.core import Com


#: A message group that has left, or a client's call that waits for a peer.
What = GroupId | tuple[str, int]


class Calls:
    def __init__(self, com: "Com") -> None:
        self.com = com
        self.callers: dict[Sid, Caller] = {}
        self.sessions: dict[str, ClientSession] = {}
        self.tran = replica(TRAN, com.node)
        self._tran_cid: Sid | None = None
        self._trans = com.trans
        self._roots = com.directory.roots
        self._waiting: dict[GroupId, tuple[Caller, Call]] = {}  # calls whose responses are wanted
        self._seq: dict[Replica, int] = {}  # requests sent to each replica
        self._parts = _Parts()
        self._deadlines = Deadlines()
        self.backlog = Backlog(com)  # client calls that wait for a peer
        self._asked = Asked(com, self.sessions, self._last)
        self.convoys = Convoys(self)

    def check(self, event: Submit) -> None:
        """Raise what is wrong with a call of a client."""
        self._asked.check(event, None)

    def submit(self, event: Submit, now: float) -> None:
        caller = self._caller(event.caller) if isinstance(event.caller, Sid) else None
        if event.sessions:
            event = self._of_this_group(event)
        self._asked.check(event, caller)
        asked = event  # a call that waits goes to those that are there when it leaves
        if self.com.view > 1 or len(self.com.lives.view.members) < len(self.com.directory.nodes):
            event = present(self.com, event, caller.version if caller and caller.copies > 1 else None, caller)
        if caller is None:
            assert isinstance(event.caller, str)
            if event.caller in self.backlog.lines or self.backlog.congested(event):
                self._postpone(event.caller, asked)
                return
            caller = self._sender_of(event)
        elif isinstance(caller, Instance) and self._waits_for_commit(caller, event):
            caller.next = max(caller.next, event.call + len(event.parts))
            caller.outbox.append(asked)
            caller.acted = True
            return
        self.send(caller, event)

    def _waits_for_commit(self, caller: Instance, event: Submit) -> bool:
        """Return whether a one-way call leaves with the commit of its caller's transaction (protocol.md §7.5)."""
        if event.kind != "oneway" or event.independent:
            return False
        return bool(self.com.hosts[caller.sid.replica].order.roots)

    def dispatch(self, caller: Instance) -> None:
        """Send the one-way calls of an instance whose transaction is committed."""
        outbox, caller.outbox = caller.outbox, []
        for event in outbox:
            try:
                self.send(caller, present(self.com, event))
            except Unavailable:
                continue  # all replicas of the callee have departed: a one-way call is lost with them

    def _of_this_group(self, event: Submit) -> Submit:
        """Without the sessions of other formations: the requests that they name are over, and their numbers are given
        to others now, or to none."""
        formation = self.com.lives.view.formation
        own = tuple([s for s in event.sessions if s.formation == formation])
        if len(own) == len(event.sessions):
            return event
        self.com.tell(Forgotten(str(event.caller), event.call))
        return msgspec.structs.replace(event, sessions=own)

    def _last(self, at: Replica) -> int:
        """The number of the last request to this replica."""
        return self._seq.get(at) or self.com.lives.base(self.com.node, at)

    def number(self, at: Replica) -> int:
        """Of a new request to this replica."""
        seq = self._seq[at] = self._last(at) + 1
        return seq

    def _line(self, caller: Caller, event: Submit) -> tuple[tuple[int, ...], tuple[Ancestor, ...]]:
        """The path of who makes this call, and those that wait for it."""
        path = caller.invocation.path or ((event.tran,) if event.tran else ())
        if event.kind == "oneway" or event.independent or event.parts[0].object == TRAN:
            return path, ()
        return path, (self._root(event),) if event.tran else caller.chain

    def _root(self, event: Submit) -> Ancestor:
        return Ancestor(TRAN, 1, (self.tran,), len(event.parts) if event.votes else 0)

    def send(self, caller: Caller, event: Submit) -> None:
        """To each destination; what was checked before."""
        com, kind, asked, last = self.com, event.kind, event.parts, self._last
        for session in event.sessions:
            caller.context.merge_wire(session.context)
            com.clock_at_least(session.clock)
        number, sid = com.tick(), caller.sid
        group = GroupId(sid[0], sid[1], caller.no)
        caller.no += 1
        caller.next = max(caller.next, event.call + len(asked)) if not caller.client else 0
        parts = self._parts.of(asked)
        dests = tuple([Dest(r, last(r) + 1) for p in asked for r in p[3]])
        ordered = len(dests) > 1 and com.directory.needs_agreement(dests, parts)
        context = caller.knows(com.known)
        path, chain = self._line(caller, event)
        first, client = (DECIDES if parts[0].object == TRAN else event.call), caller.invocation.client
        invocations = [Invocation(client, (*path, first + j)) for j in range(len(parts))]
        name = invocations[0].ancestor(chain[0].length) if chain and chain[0].object in self._roots else None
        did = self._did(caller) if parts[0].object == TRAN else ()
        copies, done, i = caller.copies, min(event.done, event.tran) if event.tran else event.done, 0
        for (_, footprint, args, replicas), invocation in zip(asked, invocations, strict=True):
            readonly = footprint.readonly
            for at in replicas:
                dest = dests[i]
                i += 1
                self._seq[at] = seq = dest[1]
                request = Request(
                    com.view,
                    group,
                    invocation,
                    kind,
                    at,
                    dests,
                    parts,
                    number,
                    ordered,
                    context,
                    chain,
                    copies,
                    done,
                    args,
                    did=did,
                )
                com.post(node_of(at), request)
                caller.sent(dest, (com.node, seq), kind, readonly)
                if name is not None:
                    caller.did.setdefault(name, Context()).add(at, (com.node, seq))
        if kind != "oneway" or com.told:
            call = Call(event.call, group, dests, event.absent)
            if kind != "oneway":
                call.brought = caller.brings(asked, context) if ordered and context else ()
                self._await(caller, event, call, name)
            if com.told:
                com.tell(sent(caller, event, call, parts, invocations[0], (number, ordered), context, name))
        if isinstance(caller, ClientSession):
            caller.went_on(group, "sent")
            com.tell(Accepted(caller.client, event.call))
            self.forget_below(caller, event.done)

    def _did(self, caller: Caller) -> WireContext:
        """What an outcome, or a vote, comes after at each replica."""
        both = Context()
        for did in caller.did.values():
            did.prune(self.com.known)
            both.merge(did)
        return both.wire()

    def _await(self, caller: Caller, event: Submit, call: Call, name: Invocation | None) -> None:
        if not caller.client:
            call.nested = True
            without_joiners(self.com.lives, caller, call)
        if name is not None:
            self._trans.sent(caller, call, name, event.votes)
        self._expect(caller, event, call)

    def session(self, client: str) -> Session | None:
        """What a client keeps of its session here; None before its first call has left."""
        session = self.sessions.get(client)
        return session.kept(self.com.known, self.com.clock, self.com.lives.view) if session is not None else None

    def forget_below(self, sender: ClientSession, done: int) -> None:
        """The client does not want the answers of these calls, also those that it never collected."""
        session = sender.session
        self._forget_below(session, done)
        for tran in tuple(session.transactions.values()):
            self._forget_below(tran, done)
            self._drop_if_empty(tran)

    def _forget_below(self, sender: ClientSession, done: int) -> None:
        calls = sender.calls
        if not done or not calls or next(iter(calls)) >= done:  # they stand in the order of their numbers
            return
        for number in [n for n, c in calls.items() if n < done and c.receipt is None and not (c.tran and c.is_open())]:
            self._waiting.pop(calls.pop(number).group, None)

    def _expect(self, caller: Caller, event: Submit, call: Call) -> None:
        self.enter(caller, call)
        self.expect(caller, call)
        receipt = call.receipt = event.receipt
        self._arm(call, event.deadline)
        if receipt is not None:
            self._now_waits(caller, call)

    def enter(self, caller: Caller, call: Call) -> None:
        """A call of this caller is under way."""
        number, calls = call.number, caller.calls
        again = calls.get(number)
        if again is not None:  # a client repeats a call: the old group is answered to nobody
            self._waiting.pop(again.group, None)
            again.received = True  # also if it is in a convoy
        elif calls and next(reversed(calls)) > number:
            calls = caller.calls = dict(sorted([*calls.items(), (number, call)]))
        calls[number] = call

    def expect(self, caller: Caller, call: Call) -> None:
        """Its responses are wanted."""
        self._waiting[call.group] = (caller, call)

    # client sessions and back-pressure (protocol.md §8.1 and §8.5)

    def session_of(self, client: str) -> ClientSession:
        session = self.sessions.get(client)
        if session is None:
            session = self.sessions[client] = self._sender(client)
        return session

    def _sender(self, client: str, session: ClientSession | None = None) -> ClientSession:
        sid = Sid(self.com.tick(), self.tran)
        sender = ClientSession(sid, self.tran_cid(sid), client, session)
        self.callers[sid] = sender
        return sender

    def _sender_of(self, event: Submit) -> ClientSession:
        """Return the session of a client; for a part of its transaction, the sender that this transaction is.

        A transaction begins with the context of the session, and the session takes over its context when it ends. What
        the client does outside of it meanwhile has no order with it (protocol.md §7.2)."""
        session = self.session_of(str(event.caller))
        if not event.tran:
            return session
        tran = session.transactions.get(event.tran)
        if tran is None:
            tran = session.transactions[event.tran] = self._sender(session.client, session)
            tran.follow(session, self.com.known)
        return tran

    def transaction(self, name: Invocation) -> ClientSession | None:
        """Return the sender of an open transaction of a client, if that has called anything here."""
        session = self.sessions.get(name.client)
        return session.transactions.get(name.path[0]) if session is not None else None

    def _go_on(self, tran: ClientSession) -> None:
        """Let the session of a client follow a transaction that is over, or what that received afterwards."""
        tran.over = True
        tran.session.follow(tran, self.com.known)
        self._drop_if_empty(tran)

    def _drop_if_empty(self, tran: ClientSession) -> None:
        """Forget a transaction that is over when the client can collect no answer of it any more."""
        if tran.over and not tran.calls and tran.sid in self.callers:
            del self.callers[tran.sid]
            transactions = tran.session.transactions
            tran.session.transactions = {n: sender for n, sender in transactions.items() if sender is not tran}

    def tran_cid(self, sid: Sid) -> Sid:
        """Transactions are compatible with each other."""
        self._tran_cid = self._tran_cid or sid
        return self._tran_cid

    def _postpone(self, client: str, event: Submit) -> None:
        self.backlog.add(client, event)
        self.push_deadline(event.deadline, (client, event.call))

    def relieve(self) -> None:
        """A peer has taken something: calls that waited may go, each client's in their order."""
        for client, event in self.backlog.relieved():
            try:
                self.send(self._sender_of(event), present(self.com, event))
            except Unavailable:  # it has lost its destinations meanwhile
                self.refuse(client, event)

    def refuse(self, client: str, event: Submit) -> None:
        """It has not left, and never will."""
        if event.receipt is not None:
            self.com.tell(Received(self.session_of(client).sid, client, event.call, None, event.receipt, (), False))

    def leave(self, event: Leave, now: float) -> None:
        session = self.sessions.pop(event.client, None)
        waiting = self.backlog.drop(event.client)
        if session is None and not waiting:
            raise BadRequest(f"no session of client {event.client!r} at {self.com.node}")
        if session is not None:
            for sender in (session, *session.transactions.values()):
                self.drop(sender)
        self._trans.leave(event.client)

    def drop(self, caller: Caller) -> None:
        del self.callers[caller.sid]
        for call in caller.calls.values():
            self._waiting.pop(call.group, None)
            call.received = True

    # receipts

    def _caller(self, who: Sid | str, call: int = 0) -> Caller:
        """Return an instance, or the sender of a client that has made this call."""
        caller = self._find(who, call)
        if caller is None:
            raise BadRequest(f"no instance or session {who} at {self.com.node}")
        return caller

    def find(self, client: str, number: int) -> Call | None:
        """Return a call of a client that is not over for it."""
        caller = self._find(client, number)
        return caller.calls.get(number) if caller is not None else None

    def _find(self, who: Sid | str, call: int) -> Caller | None:
        if isinstance(who, Sid):
            return self.callers.get(who)
        session = self.sessions.get(who)
        senders = session.transactions.values() if session is not None else ()
        return next((sender for sender in senders if call in sender.calls), session)

    def collect(self, event: Collect, now: float) -> None:
        receipts.check_wait(event.receipt, event.deadline)
        waiting = self.backlog.find(event.caller, event.call)
        if waiting is not None:
            if waiting.kind == "oneway" or waiting.receipt is not None:
                raise BadRequest(f"call {event.call} of {event.caller} has no receipt left to wait for")
            receipts.check(event.receipt, {p.object: p.replicas for p in waiting.parts})
            waiting.receipt, waiting.deadline = event.receipt, event.deadline
            self.push_deadline(event.deadline, (str(event.caller), event.call))
            return
        caller = self._caller(event.caller, event.call)
        call = caller.calls.get(event.call)
        if call is None or call.received or call.receipt is not None:
            raise BadRequest(f"call {event.call} of {event.caller} has no receipt left to wait for")
        dests: dict[ObjectName, list[Replica]] = {}
        for r in (*call.seqs, *call.absent):
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
        at, joins = m.replica, m.joins
        if joins and isinstance(caller, Instance) and self.com.hosts[caller.sid.replica].hold(m):
            return
        if not call.take(m):
            return
        if m.did and call.tran is not None:
            caller.did.setdefault(call.tran, Context()).merge_wire(m.did)
        if m.settled:
            self.com.known.ranges(at, self.com.node).add(call.seqs[at])
            if call.brought:
                caller.agreed(call)
        if joins:
            caller.joined(joins)
        if m.torn:
            call.torn = caller.torn = True
            self._trans.torn(caller, call)
        self._look(caller, call)

    def _look(self, caller: Caller, call: Call) -> None:
        """A response has come, or will never come."""
        if call.receipt is not None:
            self._try_receive(caller, call)
        if call.finished and call.received and self._waiting.pop(call.group, None) is not None and not call.riders:
            del caller.calls[call.number]
        if call.tran is not None and caller.client:
            self._trans.heard(caller, call.tran)
        if isinstance(caller, Instance):
            self.com.hosts[caller.sid.replica].try_end(caller)

    def renumber(self, left: Collection[Node]) -> None:
        """The numbers of requests to nodes that have departed are over."""
        self._seq = {at: seq for at, seq in self._seq.items() if node_of(at) not in left}

    def depart(self, left: Collection[Node]) -> None:
        """Nodes have departed: nobody waits for their responses."""
        for caller, call in tuple(self._waiting.values()):
            if call.lose(left):
                self._look(caller, call)

    def _now_waits(self, caller: Caller, call: Call | None) -> None:
        if isinstance(caller, Instance):
            self.com.hosts[caller.sid.replica].waits(caller, call.numbers if call else range(0))

    def _try_receive(self, caller: Caller, call: Call) -> None:
        got = call.significant()
        if got is not None:
            self._receive(caller, call, got, True)
        elif call.hopeless and not self._comes_back(caller, call):
            self._receive(caller, call, tuple(call.got.values()), False)

    def _comes_back(self, caller: Caller, call: Call) -> bool:
        """Is a call that came back from this one still to be performed here? Other replicas of the caller performed it
        while they waited."""
        if not isinstance(caller, Instance):
            return False
        return self.com.hosts[caller.sid.replica].order.comes_back(caller.entry, call.numbers)

    def look_again(self, instances: Collection[Instance]) -> None:
        """Something has been performed or is void: calls without hope may be given up now."""
        for instance in tuple(instances):
            for call in tuple(instance.calls.values()):
                if call.receipt is not None and call.hopeless:
                    self._look(instance, call)

    def _receive(self, caller: Caller, call: Call, got: tuple[Response, ...], complete: bool) -> None:
        if call.riders:
            self.convoys.receive(call, got, complete)
            return
        assert call.receipt is not None
        receipt, call.receipt = call.receipt, None
        call.received = True
        self._now_waits(caller, None)
        caller.received(got)
        if not complete and call.tran is not None:
            why = f"its call {call.number} was not answered in time, or by too few"
            self._trans.given_up(caller, call, call.tran, why)
        answers = tuple([Answer(m.replica, m.status, m.body) for m in got])
        if isinstance(caller, ClientSession):
            caller.went_on(call.group, "received")
        self.com.tell(Received(caller.sid, caller.client, call.number, call.group, receipt, answers, complete))
        if isinstance(caller, ClientSession) and (caller.over or self.tran in call.seqs):
            self._go_on(caller)

    def _arm(self, call: Call, deadline: float | None) -> None:
        call.deadline = deadline
        self.push_deadline(deadline, call.group)

    def push_deadline(self, deadline: float | None, what: What) -> None:
        if deadline is not None:
            self._deadlines.add(deadline, what)

    def expire(self, now: float) -> None:
        while (what := self._deadlines.pop(now, self._waiting)) is not None:
            if not isinstance(what, GroupId):
                self._give_up(*what, now)
            elif what in self._waiting:
                caller, call = self._waiting[what]
                if call.deadline is not None and call.deadline <= now:
                    self._expired(caller, call, now)
        self.relieve()  # who waited behind a call that was given up

    def _expired(self, caller: Caller, call: Call, now: float) -> None:
        """The end of an instance does not wait for what it has given up, by its deadline or before."""
        if call.riders:
            self.convoys.expired(call, now)
            return
        if call.receipt is not None or call.received:
            call.silent.clear()
            call.unprepared.clear()
        if call.receipt is not None:
            self._receive(caller, call, tuple(call.got.values()), False)
        elif isinstance(caller, Instance):
            self.com.hosts[caller.sid.replica].try_end(caller)

    def _give_up(self, client: str, call: int, now: float) -> None:
        """A client call that waits for a peer past its deadline."""
        event = self.backlog.find(client, call)
        if event is None or event.receipt is None or event.deadline is None or event.deadline > now:
            return
        self.backlog.remove(client, event)
        self.refuse(client, event)

    def cancel(self, event: Cancel, now: float) -> None:
        who = event.caller
        if (waiting := self.backlog.find(who, event.call)) is not None:
            self.backlog.remove(str(who), waiting)
            self.relieve()
        caller = self._find(who, event.call)
        call = caller.calls.get(event.call) if caller is not None else None
        if caller is None or call is None:
            return  # it has not left, or its answer crossed with this
        if not call.rides:  # else its neighbours are wanted
            recall(self.com, call)
        if call.tran is not None and not call.received:
            self._trans.given_up(caller, call, call.tran, f"its call {call.number} was cancelled")
        if call.receipt is not None:
            call.receipt = None
            self._now_waits(caller, None)
        call.received = True
        if caller.client or call.finished:  # an instance ends when it is answered, or its deadline has passed
            self._waiting.pop(call.group, None)
            del caller.calls[call.number]


_KINDS, _TRANSMISSIONS = get_args(Kind), get_args(Transmission)


class Asked:
    """What a call must satisfy before anything of it is sent: BadRequest says what is wrong with it."""

    def __init__(self, com: "Com", sessions: Mapping[str, Caller], last_of: Callable[[Replica], int]) -> None:
        self._com = com
        self._sessions = sessions
        self._last_of = last_of  # the number of the last request to a replica
        self._good: set[tuple[object, ...]] = set()
        self._relations: dict[ObjectName, Relation] = {}

    def check(self, event: Submit, caller: Caller | None) -> None:
        parts = event.parts
        shape = (event.transmission, event.receipt, event.kind, *[(p.object, p.replicas) for p in parts])
        if isinstance(event.caller, str):
            if event.caller not in self._sessions:
                check_name(event.caller, "client name")
        elif not isinstance(event.caller, Sid):
            raise BadRequest(f"caller {event.caller!r} is neither a client's name nor an instance")
        if shape not in self._good:  # the same few come again and again: what was good once is good
            self._check_kinds(event)
            self._check_shape(event)
            if len(self._good) < 4096:
                self._good.add(shape)
        deadline = event.deadline
        if deadline is not None and deadline != deadline:
            raise BadRequest("the deadline is not a number")
        self._check_numbers(event, caller)
        if isinstance(caller, Instance) and caller.finished is not None:
            raise BadRequest(f"instance {caller.sid} has been completed; it cannot send any more")
        self._check_footprints(parts)
        if caller is not None and event.kind != "oneway":
            caller.check_chain(parts)
        if (event.tran or event.votes) and parts[0].object != TRAN:
            self._check_votes(event)

    def _check_votes(self, event: Submit) -> None:
        name = Invocation(event.caller, (event.tran,)) if isinstance(event.caller, str) else None
        sender = self._com.calls.transaction(name) if name is not None else None
        self._com.trans.votes.check(event, name, sender is not None and bool(sender.calls))

    def _check_footprints(self, parts: Sequence[Outgoing]) -> None:
        for part in parts:
            footprint = part.footprint
            relation = self._relations.get(part.object)
            if relation is None:
                relation = self._relations[part.object] = self._com.directory.find(part.object).relation
            if not is_plain(footprint, relation):
                raise BadRequest(
                    f"{footprint!r} of a call of {part.object} is no footprint, names a key twice, or has a mode "
                    "that its class does not use"
                )

    def _check_shape(self, event: Submit) -> None:
        """Destinations and receipt."""
        parts = event.parts
        names = [p.object for p in parts]
        if not names or len(set(names)) != len(names):
            raise BadRequest(f"a transmission names each object once; this one names {names or 'none'}")
        if len(names) > 1 and event.transmission != "pcast":
            raise BadRequest(f"{event.transmission} sends one request; pcast sends different ones: {names}")
        for part in parts:
            declared = self._com.directory.find(part.object).replicas
            wrong = [r for r in part.replicas if r not in declared]
            if wrong or not part.replicas or len(set(part.replicas)) != len(part.replicas):
                raise BadRequest(f"{part.object} has the replicas {declared}; destinations {part.replicas} are wrong")
        if event.transmission == "ucast" and len(parts[0].replicas) > 1:
            raise BadRequest(f"ucast goes to one replica, not to {parts[0].replicas}")
        if event.receipt is not None:
            if event.kind == "oneway":
                raise BadRequest("a one-way request has no response to wait for")
            receipts.check(event.receipt, {p.object: p.replicas for p in parts})

    def _check_kinds(self, event: Submit) -> None:
        if event.kind not in _KINDS or event.transmission not in _TRANSMISSIONS:
            raise BadRequest(f"no kind {event.kind!r} or transmission {event.transmission!r}")
        receipts.check_wait(event.receipt, None)

    def _check_numbers(self, event: Submit, caller: Caller | None) -> None:
        """What travels must be within the limits that peers check: else one bad call would stop a whole link."""
        least, call, done = caller.next if caller is not None else 0, event.call, event.done
        if not least <= call < MANY:
            raise BadRequest(f"call number {call}; the next free one is {least}")
        if not 0 <= done <= (call if caller is None else 0):
            raise BadRequest(f"done {done} of call {call}: a client has no answers to calls after this one")
        for session in event.sessions if caller is None else ():
            if session.view > self._com.view:
                raise Unavailable(
                    f"the session has been in view {session.view}, {self._com.node} is still in view {self._com.view}"
                )
            why = self._com.checker.bad_context(session.context) or self._not_sent(session)
            if why or not 0 <= session.clock < clock_limit(self._com.clock):
                raise BadRequest(f"session {session.after!r}: {why or f'clock {session.clock} is out of range'}")

    def _not_sent(self, session: Session) -> str:
        for at, marks in session.context:
            if any(origin == self._com.node and seq > self._last_of(at) for origin, seq in marks):
                return f"it names a request to {at} that {self._com.node} has not sent"
        return ""


class Backlog:
    """Back-pressure (protocol.md §8.5): calls of clients that wait until a peer takes what is queued for it."""

    def __init__(self, com: "Com") -> None:
        self._com = com
        self.lines: dict[str, deque[Submit]] = {}  # by client, in their order
        self.count = 0

    def congested(self, event: Submit) -> bool:
        links, most = self._com.links, self._com.limits.queued
        for part in event.parts:
            for at in part.replicas:
                link = links.get(node_of(at))
                if link is not None and link.queued >= most:
                    return True
        return False

    def add(self, client: str, event: Submit) -> None:
        if self.count >= self._com.limits.backlog:
            raise ResourceExhausted(
                f"{self._com.node} already holds {self.count} calls for peers that do not keep up; try again later"
            )
        self.lines.setdefault(client, deque()).append(event)
        self.count += 1

    def relieved(self) -> Iterator[tuple[str, Submit]]:
        """Those that may go now, each client's in their order."""
        for client in list(self.lines):
            line = self.lines[client]
            while line and not self.congested(line[0]):
                self.count -= 1
                yield client, line.popleft()
            if not line:
                del self.lines[client]

    def find(self, who: Sid | str, call: int) -> Submit | None:
        return next((s for s in self.lines.get(who, ()) if s.call == call), None) if isinstance(who, str) else None

    def remove(self, client: str, event: Submit) -> None:
        self.lines[client].remove(event)
        self.count -= 1
        if not self.lines[client]:
            del self.lines[client]

    def drop(self, client: str) -> deque[Submit]:
        """A client has left."""
        line = self.lines.pop(client, deque())
        self.count -= len(line)
        return line


class Deadlines:
    """When calls are over whether they are answered or not.

    Calls mostly have the same time-out, so their deadlines come in order, and most calls are answered long before. So
    they stand in a line, and those in front leave it when they are answered; only what comes out of order goes into a
    heap.
    """

    def __init__(self) -> None:
        self._line: deque[tuple[float, int, What]] = deque()
        self._heap: list[tuple[float, int, What]] = []
        self._no = 0

    def __len__(self) -> int:
        return len(self._line) + len(self._heap)

    def add(self, deadline: float, what: What) -> None:
        self._no += 1
        place = (deadline, self._no, what)
        if not self._line or self._line[-1][0] <= deadline:
            self._line.append(place)
        else:
            heapq.heappush(self._heap, place)

    def pop(self, now: float, waiting: Container[GroupId]) -> What | None:
        """The next one that has passed, in their order. ``waiting``: message groups that are not over."""
        line, heap = self._line, self._heap
        while line and isinstance(line[0][2], GroupId) and line[0][2] not in waiting:
            line.popleft()
        if line and line[0][0] <= now and not (heap and heap[0] < line[0]):
            return line.popleft()[2]
        return heapq.heappop(heap)[2] if heap and heap[0][0] <= now else None


AGAIN = "again"  # in the place of a client


class Repeats:
    """What was performed in an earlier life, and is not in the state that a replica has got, is sent once more."""

    def __init__(self, com: "Com") -> None:
        self._com = com
        self._caller: Caller | None = None

    def send(self, event: Again, now: float) -> None:
        """Nobody waits for it: who does repeats it himself. One after the other, as they were performed."""
        com, old = self._com, event.request
        name = object_of(old.target)
        part = next(p for p in old.parts if p.object == name)
        client, path = old.invocation
        if self._caller is None:
            sid = Sid(com.tick(), com.calls.tran)
            self._caller = Caller(sid, com.calls.tran_cid(sid), AGAIN, old.invocation)
        self._caller.invocation = Invocation(client, path[:-1])
        out = Outgoing(name, part.footprint, old.args, com.directory.find(name).replicas)
        submit = Submit(AGAIN, path[-1], "oneway", "mcast", (out,))
        com.calls.send(self._caller, present(com, submit))


class _Parts:
    """Parts of message groups. That of a transmission to one object is mostly the same as the last time."""

    def __init__(self) -> None:
        self._last: dict[ObjectName, tuple[Part, ...]] = {}

    def of(self, asked: tuple[Outgoing, ...]) -> tuple[Part, ...]:
        if len(asked) > 1:
            return tuple([Part(p[0], p[1]) for p in asked])
        name, footprint = asked[0][0], asked[0][1]
        last = self._last.get(name)
        if last is None or last[0][1] is not footprint:
            last = self._last[name] = (Part(name, footprint),)
        return last
