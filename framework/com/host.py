"""One replica: its queue, its epochs, its replies, and the instances that perform requests here."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from framework.com import convoy
from framework.com import order as orders
from framework.com.answers import Answers
from framework.com.caller import Instance, may_stop, recall
from framework.com.context import Known
from framework.com.convoy import calls_of
from framework.com.entry import Entry, way
from framework.com.epoch import Agreed, Epoch
from framework.com.events import Completed, Deliver, Stop
from framework.com.lives import Lives
from framework.com.messages import Announce, Dest, Mark, Proposal, Request, Response, WireContext
from framework.com.messages import Known as KnownMessage
from framework.com.order import Order, Union
from framework.com.replies import Replies, Reply
from framework.com.telling import Agreed as AgreedEffect
from framework.com.telling import Ended, Landed, Proposed
from framework.com.view import Placement
from framework.com.words import Decision
from framework.errors import BadMessage
from framework.ids import GroupId, Node, Replica, Sid, Stamp, node_of, object_of

if TYPE_CHECKING:
    from framework.com.core import Com


class Host:
    def __init__(self, com: "Com", placement: Placement, replica: Replica) -> None:
        self.com = com
        self.name, self.durable = placement.name, placement.durable
        self.replica = replica
        self.order = Order(replica, placement.relation, com.told, com.lives)
        self.epoch = Epoch(com.known)
        self.replies = Replies()
        self.answers = Answers(com, replica, self.order, self.replies)
        self.arrived = Arrived(com.lives, replica)
        self.kept = Kept()
        self._proposing = Proposing(com, replica)
        self._held: list[Response] = []  # for instances here, see hold
        self._cancelled: set[GroupId] = set()  # requests that wait here, to be aborted instead of performed
        if com.trans.on:
            self.order.roots = com.directory.roots if placement.name in com.directory.roots else ()
            self.order.gate = com.trans.gates.gate
            self.order.aborted = com.trans.is_aborted

    # requests come

    def arrive(self, request: Request) -> None:
        replica, seq = self.replica, 0
        for dest in request.dests:
            if dest[0] == replica:
                seq = dest[1]
        origin = node_of(request.group.replica)
        if seq > self.arrived[origin]:  # else it comes from a life that has ended
            self.arrived[origin] = seq
        if self.com.told:
            for group, invocation in convoy.calls_of(request):
                self.com.tell(Landed(self.replica, group, invocation))
        self.kept.arrive(request)
        preds: tuple[Mark, ...] = ()
        for at, marks in request.context:
            if at == self.replica:
                preds = marks
        performed = self._performed(request)
        if request.ordered:
            self._waits_here(request.group)
        beyond = self.com.trans.gates.beyond(self, request) if request.context else ()
        self.order.arrive(request, (origin, seq), preds, performed, beyond)
        if self.order.out:
            self.flush()

    def announce(self, group: GroupId, announce: Announce, dest: Dest) -> None:
        """A request for this replica exists, unless it is or was here already."""
        if dest.seq > self.arrived[node_of(group.replica)]:
            part = next(p for p in announce.parts if p.object == self.name)
            self._waits_here(group)
            first = Stamp(announce.number, group)
            self.order.announce(group, first, part.footprint, announce.dests, announce.view)

    def check_announced(self, request: Request) -> None:
        """A request must be what its announcement said, and be new."""
        entry = self.order.entries.get(request.group)
        if entry is None:
            return
        dests = tuple(d.replica for d in request.dests)
        part = next(p for p in request.parts if p.object == self.name)
        said = (entry.first.number, entry.dests, entry.footprint)
        if entry.request is not None or said != (request.number, dests, part.footprint):
            raise BadMessage(f"request {request.group} to {self.replica} is not what was announced, or came before")

    def _waits_here(self, group: GroupId) -> None:
        here = self.com.waiting.setdefault(group, [])
        if self not in here:
            here.append(self)

    def _settled(self, entry: Entry) -> None:
        if entry.ordered:
            self._waits_no_more(entry)
        self.kept.settled(entry)
        assert entry.mark is not None
        self.com.settled(self.replica, entry.mark)

    def _waits_no_more(self, entry: Entry) -> None:
        here = self.com.waiting[entry.group]
        here.remove(self)
        if not here:
            del self.com.waiting[entry.group]

    def _performed(self, request: Request) -> bool:
        if not request.riders:
            return request.invocation in self.replies
        return all(rider.invocation in self.replies for rider in request.riders)

    def flush(self) -> None:
        """Carry out what the queue says."""
        out = self.order.out
        while out:
            self.order.out = []
            for what, entry in out:
                if what is orders.START:
                    self._start(entry)
                elif what is orders.SETTLED:
                    self._settled(entry)
                elif what is orders.PROPOSE:
                    self._proposing.tell(entry)
                elif what is orders.VOID:
                    self._cancelled.discard(entry.group)
                    self.answers.duplicate(entry)
                elif what is orders.KNOWN:
                    self._proposing.spread(entry, KnownMessage(self.com.view, entry.group, self.replica))
                elif self.com.told:
                    assert entry.stamp is not None and entry.request is not None
                    for group, _ in convoy.calls_of(entry.request):
                        stamp = Stamp(entry.stamp.number, group)
                        self.com.tell(AgreedEffect(self.replica, group, stamp, way(entry)))
            out = self.order.out
        if self._held:
            held, self._held = self._held, []
            for response in held:
                self.com.post(self.com.node, response)
        gates = self.com.trans.gates
        if gates.gated or gates.late:
            gates.look()

    # the view changes (framework.com.flush)

    def depart(
        self, decision: Decision, proposals: Union, brought: Collection[GroupId], alive: Mapping[Node, set[int]]
    ) -> None:
        """These nodes have departed; of what they sent to this replica only some is alive."""
        order = self.order
        for node in {*decision.left, *decision.joined}:
            order.past.close(node, alive.get(node, ()))
            self.arrived.pop(node, None)
        order.bequeath(void := order.absence.depart(order, decision.left, proposals, brought))
        for entry in void:
            order.forget(entry)
            self.kept.drop(entry)
            self._waits_no_more(entry)
        order.stand_in()
        self._proposing.forget()

    def bring(self, request: Request) -> None:
        """A request of a departed origin, unless it is or was here."""
        origin = node_of(request.group.replica)
        seq = next(d.seq for d in request.dests if d.replica == self.replica)
        entry = self.order.entries.get(request.group)
        if (entry is None or entry.request is None) and not self.order.past.is_delivered((origin, seq)):
            self.com.clock_at_least(request.number)
            self.arrive(request)

    def go_on(self) -> None:
        """Look at everything again."""
        self.order.again()
        self.flush()

    def adopted(self) -> None:
        """The state is here, and with it what has been performed in it."""
        self.order.take_over(self._performed)
        self.order.open()
        self.flush()

    def catch_up(self) -> None:
        """Some of what has waited for the state."""
        if not self.order.closed and self.order.late.is_behind():
            self.order.catch_up()
            self.flush()

    # instances start and end

    def _start(self, entry: Entry) -> Instance:
        request = entry.request
        assert request is not None and entry.stamp is not None
        self.com.clock_at_least(entry.stamp.number)
        sid = Sid(self.com.tick(), self.replica)
        cid = self.epoch.enter(sid, entry.places, entry.meets, self.order.ahead.joins(entry))
        reply = Reply(1) if request.riders else self.replies.start(request)  # of a convoy each call has its own
        instance = Instance(sid, cid, entry, reply, self.epoch.base_wire, self._siblings(entry, request))
        self.com.instances[sid] = instance
        self.com.calls.callers[sid] = instance
        skips: tuple[int, ...] = ()
        if request.riders:
            instance.rides, skips = convoy.board(self, request, entry.serial)
            self.com.clock += len(request.riders)  # each has a start identifier of its own
            if self.com.told and not entry.serial:
                for effect in convoy.delivered(instance):
                    self.com.tell(effect)
        cancelled = bool(self._cancelled) and entry.group in self._cancelled
        if cancelled:
            self._cancelled.remove(entry.group)
        elif entry.tran is not None:
            cancelled = self.com.trans.is_lost(request.invocation, entry.tran)
        self.com.tell(
            Deliver(
                sid,
                cid,
                self.replica,
                request,
                entry.footprint,
                entry.stamp,
                way(entry),
                cancelled,
                entry.tran,
                skips,
            )
        )
        return instance

    def _siblings(self, entry: Entry, request: Request) -> WireContext:
        dests, mine = request.dests, self.replica
        passed = bool(entry.preds)  # it is not settled: a context has to name it here, too (protocol.md §4.3)
        if len(dests) == 1 and not passed:
            return ()
        origin = node_of(request.group.replica)
        return tuple([(at, ((origin, seq),)) for at, seq in dests if at != mine or passed])

    def complete(self, instance: Instance, event: Completed) -> None:
        instance.finished = event
        self.waits(instance, range(1 << 62))
        self.try_end(instance)

    def waits(self, instance: Instance, calls: range) -> None:
        """The instance waits for these calls (all, once it is performed), or goes on (none)."""
        if instance.calls:
            self.order.wait(instance.entry, calls)
            if calls:
                self.flush()

    def try_end(self, instance: Instance) -> None:
        """It ends when each object it called has answered (P1 §2.4: non-blocked instantiation)."""
        if instance.finished is None or instance.sid not in self.com.instances:
            return
        if instance.entry.tran is not None or instance.dependents:
            self.com.trans.try_end(self, instance, instance.finished)
            return
        if not instance.calls or not any(c.silent for c in instance.calls.values()):
            self._end(instance, instance.finished)

    def hold(self, response: Response) -> bool:
        """A response waits until the calls that came back to this very replica on its account are over here, too.

        Else the instance would go on before them at one replica and after them at another."""
        for at, marks in response.joins:
            if at == self.replica and not all(self.order.has_joined(m) for m in marks):
                self._held.append(response)
                return True
        return False

    def _end(self, instance: Instance, event: Completed) -> None:
        self.perform(instance, event, event.ok)
        if instance.rides:
            self.order.rode(instance.entry)
        self.leave(instance, event.ok)
        self.answers.over(instance, event)
        self.freed(instance.entry)

    def perform(self, instance: Instance, event: Completed, committed: bool) -> None:
        """Put together what is to be told of an instance that has been performed. If it is committed already, its
        one-way calls leave first: its caller goes on after them."""
        if committed and instance.outbox:
            self.com.calls.dispatch(instance)
        entry, reply = instance.entry, instance.reply
        request = entry.request
        assert request is not None
        del self.com.instances[instance.sid]
        self.com.calls.drop(instance)
        if instance.acted:
            reply.context = reply.full = instance.leaves(self.com.known)
            reply.joins = instance.joins.wire()
            reply.torn = instance.torn
            if entry.tran is not None and entry.tran in instance.did:
                did = instance.did[entry.tran]
                did.prune(self.com.known)
                reply.did = did.wire()
        else:  # its caller knows what the request brought: it sent that, or the request replaced it
            reply.context = instance.base
            reply.full = instance.base + request.context + instance.siblings
            if instance.rides:
                convoy.performed(instance, reply.full)

    def leave(self, instance: Instance, committed: bool) -> None:
        """It has ended, for those that come after it."""
        if committed:
            assert instance.entry.request is not None
            if instance.outbox:
                self.com.calls.dispatch(instance)
            self._commit(instance, instance.entry.request)
        if instance.rides:
            if self.com.told and instance.finished is not None:
                for effect in convoy.told(instance, instance.finished):
                    self.com.tell(effect)
        elif self.com.told:
            self.com.tell(Ended(instance.sid, self.replica, instance.invocation, committed))

    def freed(self, entry: Entry) -> None:
        """Its slots are free."""
        self.order.end(entry)
        if self.order.closed:
            self.com.handover.look(self)
        self.flush()
        assert entry.request is not None
        if self.com.view > 1 and entry.request.chain:
            self.com.calls.look_again([i for i in self.com.instances.values() if i.sid.replica == self.replica])

    def safe(self, sid: Sid) -> None:
        """What this instance did cannot get lost any more. It may be waiting for its calls, and end later."""
        instance = self.com.instances.get(sid)
        if instance is not None and instance.finished is not None:
            instance.finished = msgspec.structs.replace(instance.finished, safe=True)
            self.try_end(instance)
        elif self.answers.safe(sid) and self.order.closed:
            self.com.handover.look(self)

    def _commit(self, instance: Instance, request: Request) -> None:
        """What later conflicting instances inherit. Nothing from one that conflicts with nobody, nor from one that
        only reads and called nobody: that leaves no trace beyond itself (P1 §4)."""
        places = instance.entry.places
        if not places:
            return
        alone = not (instance.acted or request.context or instance.siblings)  # it knows of nothing that others need
        if alone or (instance.entry.footprint.readonly and not instance.acted):
            self.epoch.commit(places)
            return
        agreed = None
        if request.ordered and request.copies == 1:
            assert instance.entry.stamp is not None
            marks = tuple([s for s in instance.siblings if s[0] != self.replica])
            if len(request.parts) > 1:  # a pcast does other things elsewhere
                marks = tuple([s for s in marks if object_of(s[0]) == self.name])
            where = [at for at, _ in marks]
            brought = tuple([c for c in request.context if c[0] in where])
            agreed = Agreed(places, instance.entry.meets, instance.entry.stamp, marks, brought)
        contexts = (instance.leaves(self.com.known),) if instance.acted else instance.brought(request)
        self.epoch.commit(places, contexts, agreed)

    def cancel(self, group: GroupId) -> None:
        """Nobody waits for this request any more. It keeps its place, but is not performed when its turn comes; if it
        is running it is stopped, with what it has called. One of many is carried through (docs/com.md)."""
        entry = self.order.entries.get(group)
        if entry is not None and not entry.started:
            if entry.request is not None and not entry.void and may_stop(entry.request):
                self._cancelled.add(group)
            return
        for instance in self.com.instances.values():  # cancelling is rare: not worth an index of its own
            if instance.entry.group == group and instance.sid.replica == self.replica:
                self._stop(instance)
                return

    def _stop(self, instance: Instance) -> None:
        assert instance.entry.request is not None
        if not may_stop(instance.entry.request):
            return
        if instance.finished is None:
            self.com.tell(Stop(instance.sid))
        for call in instance.calls.values():
            recall(self.com, call)


class Arrived(dict[Node, int]):
    """Last sequence number from each origin."""

    def __init__(self, lives: Lives, replica: Replica) -> None:
        super().__init__()
        self._lives = lives
        self._replica = replica

    def __missing__(self, origin: Node) -> int:
        return self._lives.base(origin, self._replica)


MARK: Final = 160  # bytes, in a request and in what its replica knows of it


def weight(request: Request) -> int:
    """Of what can be large in it: its arguments, and what it follows. A session with many calls under way hears of many
    others meanwhile."""
    context = request.context
    marks = sum([len(marks) for _, marks in context]) if context else 0
    return len(request.args) + MARK * (marks + len(request.riders))


class Kept:
    """Requests that are settled here, and perhaps not at other destinations, which may still need them
    (framework.com.flush). And how much that is, with what waits."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self.size = 0  # bytes of these, and of those that wait

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def arrive(self, request: Request) -> None:
        self.size += weight(request)

    def settled(self, entry: Entry) -> None:
        if entry.wanted > 1:
            self._entries.append(entry)
        else:
            self.drop(entry)

    def drop(self, entry: Entry) -> None:
        """Nobody needs it any more."""
        if entry.request is not None:
            self.size -= weight(entry.request)

    def prune(self, known: Known) -> None:
        """Forget what all destinations have delivered."""
        while self._entries and _stable(self._entries[0], known):
            self.drop(self._entries.popleft())


def _stable(entry: Entry, known: Known) -> bool:
    request, gone = entry.request, entry.gone
    assert request is not None
    origin = node_of(entry.group[1])
    for at, seq in request.dests:  # noqa: SIM110  # compiled it makes no generator
        if seq not in known.ranges(at, origin) and at not in gone:
            return False
    return True


class Proposing:
    """What a replica says of the place of a request: its proposal, to every destination (protocol.md §5.2).

    It also announces the request to those that may not have it yet: neither to its origin, nor to who has proposed for
    it, nor from the origin itself, for links are FIFO."""

    def __init__(self, com: "Com", replica: Replica) -> None:
        self._com = com
        self._replica = replica
        self._peers_of: dict[tuple[Replica, ...], list[Node]] = {}

    def forget(self) -> None:
        """The view changes."""
        self._peers_of.clear()

    def tell(self, entry: Entry) -> None:
        """To every destination; with an announcement for those that may not have the request yet."""
        com, request = self._com, entry.request
        assert entry.proposal is not None and request is not None
        number = entry.proposal.number
        com.clock_at_least(number)
        if com.told:
            for group, _ in calls_of(request):
                com.tell(Proposed(self._replica, group, Stamp(number, group)))
        plain = Proposal(com.view, entry.group, self._replica, number)
        full: Proposal | None = None
        origin = node_of(entry.group.replica)
        have = [node_of(r) for r in entry.proposals or ()]
        for node in self._peers(entry):
            # links are FIFO: who gets the request from here has it before this; so has who sent it or proposed for it
            if node != com.node and (origin in (node, com.node) or node in have):
                com.post(node, plain)
                continue
            if full is None:
                full = Proposal(com.view, entry.group, self._replica, number, _announce(request))
            com.post(node, full)

    def spread(self, entry: Entry, message: KnownMessage) -> None:
        for node in self._peers(entry):
            self._com.post(node, message)

    def _peers(self, entry: Entry) -> list[Node]:
        """Nodes of the other destinations; this one, too, when it has several of them (pcast)."""
        if entry.gone:
            return sorted({node_of(d) for d in entry.dests if d != self._replica and d not in entry.gone})
        peers = self._peers_of.get(entry.dests)
        if peers is None:
            if len(self._peers_of) > 1024:
                self._peers_of.clear()
            peers = self._peers_of[entry.dests] = sorted({node_of(d) for d in entry.dests if d != self._replica})
        return peers


def _announce(request: Request) -> Announce:
    return Announce(request.number, request.dests, request.parts, request.view)
