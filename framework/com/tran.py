"""Transactions: what instances do to several objects, all of it or none (P0 §5, P1 §2.4-2.5).

A transaction is named by the invocation of its root: a client's call, a client's transaction, or an independent call.
Everything that was called from there and waited for is part of it, and has that name as the beginning of its own.

    performed     a dependent callee has ended: its response says how, and that is its vote. It is *held*: its slots
                  stay taken, what it did can be taken back
    decided       the outcome is a request to ``tran``, which has a replica on every node. All outcomes of one
                  transaction are copies of one call (its number is 0), so the first one delivered is the outcome, at
                  every node and whoever crashes (A5); who sends another one is told the first
    over          each node applies the outcome to what it holds; nobody needs a list of participants

The root decides when it has ended. Anybody else may decide to abort: who waits for too long, who sees that all replicas
of the root have departed, who finds a deadlock. So nobody waits for a coordinator that has crashed.

A callee that fails, and whose caller goes on, is undone alone: its instance sends ABORT in its own name, for what it
called itself. What was undone stays in its slots until the end, so that all replicas let the same requests be passed.

What is delivered to tran and what is delivered to objects on the same node has an order, too: see ``Gates``.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from framework.com.caller import Call, Caller, Instance
from framework.com.deadlock import Deadlock, Stuck
from framework.com.entry import Entry
from framework.com.events import Begin, Completed, Decide, Out, Outgoing, Received, Settle, Stop, Submit
from framework.com.events import Response as Answer
from framework.com.host import Host
from framework.com.lasting import Lasting
from framework.com.messages import Mark, Request, WireContext
from framework.com.order import Order
from framework.com.outcome import DECIDES, Outcome, Outcomes, vote_of, whole
from framework.com.present import present
from framework.com.receipt import DREC
from framework.com.telling import Prepared
from framework.com.view import ABORT, COMMIT, VOTE
from framework.errors import BadRequest, Unavailable
from framework.footprint import WRITE, Footprint
from framework.ids import TRAN, Invocation, ObjectName, Replica, Sid, replica

if TYPE_CHECKING:
    from framework.com.core import Com

SELF = "tran"  # in the place of a client: a node that decides for others


class Kept(NamedTuple):
    """An instance that is held."""

    host: Host
    instance: Instance


class Trans:
    """The transactions that a node takes part in."""

    def __init__(self, com: "Com") -> None:
        self.com = com
        self.at = replica(TRAN, com.node)
        self.on = TRAN in com.directory.objects
        self.lasts = self.on and com.directory.find(TRAN).durable
        self.outcomes = Outcomes()
        self.held: dict[Invocation, list[Kept]] = {}  # by transaction, in the order in which they were performed
        self.roots: dict[Invocation, Kept] = {}  # that have ended here, and wait for their outcome
        self.open: dict[Invocation, float] = {}  # of clients whose home this is, and until when
        self.ends: dict[Invocation, Decide] = {}  # of clients: to be decided when all that was called has answered
        self.deciding = Deciding(com)
        self.votes = Votes(com.directory.roots)
        self._asked: set[Invocation] = set()  # this node has asked for these to be aborted
        self._since: dict[Invocation, float] = {}  # for how long something is held
        self.deadlock = Deadlock(com, self)
        self.lasting = Lasting(com, self)
        self._stuck = Stuck(com, self)
        self.gates = Gates(com, self.is_lost, self._release_at)

    # what is known of outcomes

    def is_lost(self, invocation: Invocation, name: Invocation) -> bool:
        """Is this part of a transaction to be undone, or the whole of it?"""
        outcomes = self.outcomes
        if not outcomes:
            return False
        for length in range(len(name.path), len(invocation.path) + 1):
            found = outcomes.get(invocation.ancestor(length))
            if found is not None and not found.commit:
                return True
        return False

    def is_aborted(self, name: Invocation) -> bool:
        found = self.outcomes.get(name)
        return found is not None and not found.commit

    def held_at(self, at: Replica) -> list[Invocation]:
        kept = [k for many in (*self.held.values(), list(self.roots.values())) for k in many]
        return [k.instance.invocation for k in kept if k.host.replica == at]

    def has_here(self, name: Invocation) -> bool:
        """Does something on this node still need to know the outcome?"""
        if name in self.held or name in self.roots or name in self.ends:
            return True
        return any(name in (i.invocation, i.entry.tran) for i in self.com.instances.values())

    def name_of(self, caller: Caller) -> Invocation | None:
        """The transaction of an instance, if there is one."""
        if not isinstance(caller, Instance) or not self.com.hosts[caller.sid.replica].order.roots:
            return None
        return caller.entry.tran or caller.invocation

    # instances end

    def try_end(self, host: Host, instance: Instance, event: Completed) -> None:
        name = instance.entry.tran
        if name is None and not host.order.roots:
            if not self._waits(instance):
                host._end(instance, event)
            return
        outcome = self.outcomes.get(name or instance.invocation)
        if name is not None and (host.replica, name) in self.gates.late:
            outcome = None  # not yet, for this replica
        if outcome is None and self._waits(instance):
            return
        if name is None:
            self._end_root(host, instance, event, outcome)
        else:
            self._end_part(host, instance, event, name, outcome)

    def _waits(self, instance: Instance) -> bool:
        """Return whether something that the instance called has not answered yet."""
        return any(c.is_open(self.com.lives.pending) for c in instance.calls.values())

    def _end_root(self, host: Host, instance: Instance, event: Completed, outcome: Outcome | None) -> None:
        name = instance.invocation
        if outcome is None:
            if name not in self.roots and (event.safe or not event.ok):
                self.roots[name] = Kept(host, instance)
                self._merge(instance, name)
                self.deciding.send(instance, name, COMMIT if event.ok else ABORT, "")
            return
        self.roots.pop(name, None)
        if outcome.commit and not event.ok:
            self.com.out = True  # it has to get the state of the others
            self.com.tell(Out(f"{name} failed at {host.replica}, but other replicas have committed it"))
            return
        commit, error = event.ok and outcome.commit, "error"
        host.perform(instance, event, commit)
        if event.ok:
            self.com.tell(Settle(instance.sid, host.replica, commit))
        if not commit and (event.ok or outcome.why):
            why = outcome.why or "another replica of its root has failed"
            event, error = Completed(instance.sid, False, why.encode(), True), "Aborted"
        host.leave(instance, commit)
        host.answers.over(instance, self.lasting.held_back(instance.sid, name, event), error)
        host.freed(instance.entry)

    def _end_part(
        self, host: Host, instance: Instance, event: Completed, name: Invocation, outcome: Outcome | None
    ) -> None:
        request = instance.entry.request
        assert request is not None
        votes = request.chain[0].votes if len(request.chain) == 1 else 0
        if event.ok and self.is_lost(instance.invocation, name):
            self.com.tell(Settle(instance.sid, host.replica, False))
            event = Completed(instance.sid, False, b"its transaction was aborted", True)
        if outcome is None and instance.dependents:
            self._merge(instance, name)
            if not event.ok and not votes:
                instance.torn = True
                self.deciding.send(instance, instance.invocation, ABORT, "")
        host.perform(instance, event, event.ok and outcome is not None and outcome.commit)
        instance.finished = event
        if outcome is None:
            self.held.setdefault(name, []).append(Kept(host, instance))
            if self.com.told:
                self.com.tell(Prepared(instance.sid, host.replica, instance.invocation, event.ok))
            host.answers.over(instance, event)
            if votes:  # it decides on the whole
                self.lasting.vote(instance, event, name, votes)
            host.order.hold(instance.entry)
            host.flush()
            return
        if event.ok:
            self.com.tell(Settle(instance.sid, host.replica, outcome.commit))
        host.leave(instance, event.ok and outcome.commit)
        host.answers.over(instance, event)
        host.freed(instance.entry)

    def _merge(self, caller: Caller, name: Invocation) -> None:
        """What follows comes after all that its calls did, also those that it did not receive: of each object one."""
        for call in caller.calls.values():
            for response in call.got.values() if call.tran == name else ():
                caller.context.merge_wire(response.context)

    # somebody decides

    def abort(self, name: Invocation, why: str) -> None:
        """In the name of anybody. Once: it is sent by a member that stays, or others do."""
        if not self.on or name in self.outcomes or name in self._asked:
            return
        self._asked.add(name)
        sid = Sid(self.com.tick(), self.at)
        self.deciding.send(Caller(sid, self.com.calls.tran_cid(sid), SELF, name), name, ABORT, why)

    def veto(self, name: Invocation, why: str) -> None:
        """For people. If it is over, or has never been here, there is nothing to abort."""
        self.check_on()
        if name in self.outcomes:
            raise BadRequest(f"{name} is over: it was {'committed' if self.outcomes[name].commit else 'aborted'}")
        if name not in known(self):
            raise BadRequest(f"{self.com.node} knows of no transaction {name}")
        self.abort(name, why)

    def held_for(self, name: Invocation, now: float) -> float:
        return now - self._since.get(name, now)

    def sent(self, caller: Caller, call: Call, name: Invocation, votes: bool) -> None:
        """A call of a transaction has left. If nobody knows what becomes of it, the whole is aborted (calls.py)."""
        caller.dependents, call.tran = True, name
        if votes:
            self.votes.here.add(name)
        others = [c for c in caller.calls.values() if c.tran == name and not c.received]
        call.overlaps = call.objects > 1 or bool(others)
        for other in others:
            other.overlaps = True
            if other.torn:
                self.torn(caller, other)

    def given_up(self, caller: Caller, call: Call, name: Invocation, why: str) -> None:
        """Nobody waits for this call any more, and it may or may not be performed. If nobody else makes it, it is
        undone and its caller goes on. Else other replicas of the caller may have got its answer: all is undone."""
        if not isinstance(caller, Instance) or caller.copies > 1 or call.overlaps:
            self.abort(name, why)
            return
        caller.torn, (client, path) = True, caller.invocation
        for number in range(call.number, call.number + call.objects):
            self.deciding.send(caller, Invocation(client, (*path, number)), ABORT, why)

    def torn(self, caller: Caller, call: Call) -> None:
        """A part of this call was undone. If others are under way, these may have seen it, and not at all replicas."""
        if call.overlaps and call.tran is not None:
            self.abort(call.tran, f"a part of its call {call.number} was undone while others were under way")

    def begin(self, event: Begin, now: float) -> None:
        name = Invocation(event.client, (event.tran,))
        self.check_on()
        if event.tran < 1 or name in self.open or name in self.outcomes:
            raise BadRequest(f"{name} is no new transaction")
        self.open[name] = event.deadline

    def decide(self, event: Decide, now: float) -> None:
        """For a client. It commits when each replica that it called has answered, as an instance does. Only where
        it began is that known."""
        self.check_on()
        name = Invocation(event.client, (event.tran,))
        if event.commit and name not in self.open and name not in self.outcomes:
            event = msgspec.structs.replace(event, commit=False, why=event.why or "the node where it began was lost")
        sender = self.com.calls.transaction(name)
        told = name in self.votes.here and name in self.outcomes and not self.lasts
        if event.commit and sender is not None and told:
            answer = Answer(self.at, "ok", self.outcomes[name].told)
            self.com.tell(Received(sender.sid, event.client, event.call, None, DREC, (answer,), True))
            return
        if event.commit and sender is not None and name not in self.outcomes:
            if self._is_open(sender, name):
                self.ends[name] = event
                return
            self._merge(sender, name)
        parts = (self.deciding.part(name, COMMIT if event.commit else ABORT, event.why),)
        rest = self.lasting.receipt(), event.deadline, event.sessions, event.done
        submit = Submit(event.client, event.call, "sync", "mcast", parts, *rest, tran=event.tran)
        self.com.calls.submit(submit, now)

    def check_on(self) -> None:
        if not self.on:
            raise BadRequest("this group has no transactions: there is no tran in its directory")

    def _is_open(self, sender: Caller | None, name: Invocation) -> bool:
        """Has it to wait for answers, or for votes?"""
        calls = sender.calls.values() if sender is not None else ()
        return name in self.votes.here or any(c.is_open(self.com.lives.pending) for c in calls if c.tran == name)

    def heard(self, sender: Caller | None, name: Invocation) -> None:
        """A call of a client's transaction has been answered, or its outcome is known."""
        event = self.ends.get(name)
        if event is not None and (name in self.outcomes or not self._is_open(sender, name)):
            del self.ends[name]
            self.decide(event, 0.0)

    def leave(self, client: str) -> None:
        self.ends = {name: event for name, event in self.ends.items() if name.client != client}
        for name in [n for n in self.open if n.client == client]:
            self._end_open(name, "its client has left")

    def _end_open(self, name: Invocation, why: str) -> None:
        del self.open[name]
        self.abort(name, why)

    def tick(self, now: float) -> None:
        if self.on:
            self.deadlock.tick(now)
            self._stuck.tick(now)
        self.deciding.tick()
        self.lasting.tick()
        for name in [n for n, until in self.open.items() if until <= now]:
            self._end_open(name, "its time was up")
        for name, many in tuple(self.held.items()):
            since = self._since.setdefault(name, now)
            request = many[0].instance.entry.request
            assert request is not None
            root = request.chain[0]
            if all(self.com.lives.gone(r, request.view) for r in root.replicas):
                self.abort(name, f"{', '.join(root.replicas)} departed before it was decided")
            elif now - since > self.com.timing.hold_most:
                self.abort(name, f"it was not decided for {now - since:g} s")

    # an outcome is delivered

    def vote(self, part: Invocation, wanted: bytes, request: Request | None) -> None:
        """A vote is delivered; perhaps the last one."""
        name, all_of_them = whole(part), self.votes.cast(part, int(wanted), request)
        if all_of_them is not None and name not in self.outcomes:
            self.apply(name, Outcome(True), all_of_them)

    def apply(self, name: Invocation, outcome: Outcome, by: Sequence[Request] = ()) -> None:
        """To all that this node has of it, where it is not late (see ``Gates``). ``by``: what has decided it."""
        self.outcomes[name] = outcome
        for request in by if outcome.commit else ():
            self.gates.delay(name, request)
        self._asked.discard(name)
        self.open.pop(name, None)
        if name in self.held:
            self._since.pop(name, None)
            many, late = self.held.pop(name), self.gates.late
            if late and (left := [k for k in many if (k.host.replica, name) in late]):
                self.held[name] = left
                many = [k for k in many if k not in left]
            self._release(many, outcome)
        elif not outcome.commit:
            for length in range(1, len(name.path)):
                self._undo(self.held.get(name.ancestor(length), []), name)
        if not outcome.commit:
            self._stop(name, bool(outcome.why))
            self._drop(name)
        root = self.roots.get(name)
        if root is not None:
            root.host.try_end(root.instance)
        if name in self.ends:
            self.heard(self.com.calls.transaction(name), name)

    def _release_at(self, at: Replica, name: Invocation) -> None:
        """All that was decided on has been delivered there."""
        many = self.held.pop(name, [])
        if left := [k for k in many if k.host.replica != at]:
            self.held[name] = left
        self._release([k for k in many if k.host.replica == at], Outcome(True))
        for instance in [i for i in self.com.instances.values() if i.entry.tran == name and i.sid.replica == at]:
            self.com.hosts[at].try_end(instance)

    def _release(self, many: list[Kept], outcome: Outcome) -> None:
        ends = []
        for host, instance in reversed(many):
            assert instance.finished is not None
            ok = instance.finished.ok
            if ok:
                self.com.tell(Settle(instance.sid, host.replica, outcome.commit))
            ends.append((host, instance, ok and outcome.commit))
        for host, instance, committed in reversed(ends):
            host.leave(instance, committed)
            host.freed(instance.entry)

    def _undo(self, many: list[Kept], part: Invocation) -> None:
        """A part has failed. Its slots stay taken until the end of the whole."""
        length = len(part.path)
        for host, instance in reversed(many):
            event = instance.finished
            assert event is not None
            if event.ok and instance.invocation.ancestor(length) == part:
                self.com.tell(Settle(instance.sid, host.replica, False))
                instance.finished = msgspec.structs.replace(event, ok=False)

    def _stop(self, part: Invocation, others: bool) -> None:
        """What runs for it is told, if others aborted it. Else replicas of its root come to the same end themselves."""
        length = len(part.path)
        for instance in tuple(self.com.instances.values()):
            if instance.invocation.ancestor(length) != part:
                continue
            name = self.name_of(instance)
            if name is None or len(name.path) > length:
                continue  # independent of it
            if instance.finished is None and others:
                self.com.tell(Stop(instance.sid))
            elif instance.finished is not None and name == part:
                self.com.hosts[instance.sid.replica].try_end(instance)

    def _drop(self, name: Invocation) -> None:
        for host in self.com.hosts.values():
            lost = [e for e in host.order.entries.values() if e.tran == name] if host.order.roots else []
            for entry in lost:
                if not entry.started:  # one may make the next one start
                    host.order.drop(entry)
            if lost:
                host.flush()


Release = Callable[[Replica, Invocation], None]


class Gates:
    """Order between the replicas of one node: what is delivered to tran, and what is delivered to objects.

    A request waits for the outcomes that its sender knew of: its context names requests to tran of this node. And a
    commit is *late* for a replica where a part that it names has not started: there held work stays held until it has.
    Only there: that replica may be waiting for a state, from a node where something is held for the same transaction,
    and that node for another state from here (protocol.md §7.4).
    """

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


class Deciding:
    """How an outcome, or a vote, is sent to all replicas of ``tran``."""

    def __init__(self, com: "Com") -> None:
        self._com = com
        self._late: list[tuple[Caller, Invocation, str, str]] = []  # to be sent as soon as there is a tran

    def send(self, caller: Caller, name: Invocation, word: str, what: str) -> None:
        """In the name of a transaction, or of a part of one, to which ``caller`` need not belong."""
        submit = Submit(caller.client or caller.sid, DECIDES, "oneway", "mcast", (self.part(name, word, what),))
        try:
            submit = present(self._com, submit)
        except Unavailable:  # a group has been formed, and no tran has its state yet
            self._late.append((caller, name, word, what))
            return
        own = caller.invocation
        caller.invocation = name if word != VOTE else Invocation(name.client, (*name.path, DECIDES))
        self._com.calls.send(caller, submit)
        caller.invocation = own  # what it sends next comes after this

    def part(self, name: Invocation, word: str, what: str) -> Outgoing:
        """Votes of parts meet with outcomes of the whole."""
        key = name.ancestor(len(name.path) - 1) if word == VOTE else name
        footprint = Footprint(word, ((str(key), WRITE),))
        return Outgoing(TRAN, footprint, what.encode(), self._com.directory.find(TRAN).replicas)

    def tick(self) -> None:
        late, self._late = self._late, []
        for one in late:
            self.send(*one)


class Votes:
    """Distributed control: the parts of a transaction decide, without their root (P1 §2.4).

    Such a transaction is one pcast of a client, which says how many parts there are. A part that has ended well tells
    all replicas of tran so: its *vote*. When all votes are delivered the transaction is committed. A vote conflicts
    with commit and abort of the same transaction, so these have one order at all replicas of tran: everywhere the last
    vote comes before the first abort, or nowhere. Anybody may abort, as ever; a part that fails does.

    The root hears of the outcome as everybody else. That is one message delay less than if it waited for the responses
    and then decided; but each replica of each part sends to all nodes, not the root alone.
    """

    def __init__(self, voters: Collection[ObjectName]) -> None:
        self._voters = voters
        self.here: set[Invocation] = set()  # transactions of clients whose home this is that are decided by votes
        self._cast: dict[Invocation, dict[Invocation, Request | None]] = {}  # by transaction and part

    def check(self, event: Submit, name: Invocation | None, has_calls: bool) -> None:
        """Refuse a further call of a transaction whose parts decide: nobody would ask it. ``name``: a client's."""
        if event.votes and (not event.tran or event.kind == "oneway"):
            raise BadRequest("distributed control is for a call that is the whole of a client's transaction")
        silent = [p.object for p in event.parts if p.object not in self._voters] if event.votes else ()
        if silent:
            raise BadRequest(f"{silent[0]} takes no part in transactions, so it has no vote: leave control= out")
        if not event.tran or name is None:
            return
        if name in self.here or (event.votes and has_calls):
            raise BadRequest(f"{name} is decided by its parts: it cannot have another call")

    def cast(self, part: Invocation, wanted: int, request: Request | None) -> list[Request] | None:
        """A vote is delivered. If it is the last one: all of them, as far as they came here."""
        votes = self._cast.setdefault(part.ancestor(len(part.path) - 1), {})
        votes.setdefault(part, request)
        return [r for r in votes.values() if r is not None] if len(votes) == wanted else None

    def forget(self, name: Invocation) -> list[Invocation]:
        """Nobody remembers this transaction any more. The calls that were its votes."""
        self.here.discard(name)
        return [vote_of(p) for p in self._cast.pop(name, ())]


def known(trans: "Trans") -> dict[Invocation, str]:
    """Return the transactions that are not over and have something here, and how far each is: a client's is open until
    it says commit; a root runs, or has ended and is being decided; others have parts here."""
    instances = trans.com.instances.values()
    parts = [i.entry.tran for i in instances]
    found = dict.fromkeys([*trans.held, *[n for n in parts if n is not None]], "has parts here")
    found |= {i.invocation: "runs" for i in instances if i.dependents and i.entry.tran is None}
    found |= dict.fromkeys(trans.open, "open")
    found |= dict.fromkeys([*trans.roots, *trans.ends], "is being decided")
    return {name: how for name, how in found.items() if name not in trans.outcomes}
