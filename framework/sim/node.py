"""A node of the seeded world: a process that starts, is a member of the group for a while, and may crash.

Each stay in the group is a life of its own (protocol.md §10.7): with a com layer that begins empty and a trace of its
own. Between two lives the node is an outsider that asks to be let in, or its process does not run at all.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from framework.com.convoy import performs, split
from framework.com.core import Com
from framework.com.event import Decided, Doubt, Resolved
from framework.com.events import (
    Accepted,
    AnyEffect,
    AnyEvent,
    Arrived,
    Collect,
    Completed,
    Decide,
    Deliver,
    Depart,
    Evict,
    Give,
    Installed,
    Isolated,
    Out,
    Received,
    Safe,
    Settle,
    Snapshot,
    Stop,
    Submit,
    Take,
    Tick,
    Transmit,
    Wake,
    Writable,
)
from framework.com.handed import Told
from framework.com.messages import Request
from framework.com.outsider import Admitted, Outsider
from framework.com.telling import Ended
from framework.com.view import Directory, Holding, View
from framework.com.words import Decision
from framework.errors import BadRequest, Unavailable
from framework.ids import Node, Replica, Sid, object_of
from framework.sim.disk import Disk, Noted, Promise, with_told, within, without
from framework.sim.gathering import Gathering
from framework.sim.performer import State
from framework.trace.files import Trace
from framework.trace.recorder import Recorder, header

if TYPE_CHECKING:
    from framework.sim.world import World


class Stay(NamedTuple):
    """A life of a node, as a client tells it from all others."""

    node: Node
    formation: bytes
    life: int


class Held(msgspec.Struct):
    """What a node still has of a replica, from an earlier life: in memory, or on disk if the object is durable."""

    holding: Holding
    state: State
    part: bytes
    ticket: str
    done: list[Request]  # what was performed in that life, in this order
    doubt: list[Promise] = []  # for transactions of which nobody here knows what became of them: not in the state
    kept: tuple[str, ...] = ()  # such that were committed: they are in the state now


class SimNode:
    """Its com layer, its records, and whether it stands still."""

    def __init__(self, world: "World", name: Node) -> None:
        self.world = world
        self.name = name
        self.com: Com | None = None  # while it is a member
        self.outsider: Outsider | None = None  # while it wants to be one
        self.starts = 0  # of its process: what was sent to an earlier one is lost
        self.incarnation = 1
        self.life = 0  # its present or last one
        self.view = world.directory.view  # the one it is in, or was in last
        self.isolated = False  # it hears too few to decide anything
        self.leaving = False  # it is about to leave the group in order
        self.held: dict[Replica, Held] = {}
        self.disk = Disk(self)
        self.gathering = Gathering(self)
        self._begun: dict[Sid, Request] = {}
        self._convoy: dict[Sid, Sid] = {}  # the convoy of each call of one that is performed
        self._riding: dict[Sid, Sid] = {}  # the same, of the last calls
        self._done: list[tuple[Replica, Request]] = []  # in this life
        self.traces: list[Trace] = []  # one for each life
        self.recorder: Recorder
        self.paused_until = 0.0
        self._woken: set[Node] = set()
        self._inbox: deque[AnyEvent] = deque()
        self._working = False

    @property
    def trace(self) -> Trace:
        return self.traces[-1]

    @property
    def stay(self) -> Stay:
        """Its present life, or its last one."""
        return Stay(self.name, self.view.formation, self.life)

    @property
    def up(self) -> bool:
        """Is it a member, or wants to be one?"""
        return self.com is not None or self.outsider is not None

    @property
    def serves(self) -> bool:
        """Does it take calls of clients?"""
        return self.com is not None and not self.isolated and not self.leaving

    # its lives

    def live(self, directory: Directory, decision: Decision | None = None) -> None:
        """It is a member from now on."""
        self.outsider = None
        self.com = Com(self.name, directory, self.world.timing, holds=[h.holding for h in self.held.values()])
        self.com.member.last = decision or self.com.member.last
        self.view = directory.view
        self._begun, self._done, self._riding, self._convoy = {}, [], {}, {}
        self.life = _life(self.view, self.name)
        self.isolated = self.leaving = False
        self._woken.clear()
        trace = Trace(header(self.name, directory), [])
        self.traces.append(trace)
        self.recorder = Recorder(self.name, self.view.version, trace.records.append, self.life)
        if self.life > 1:  # of a group that was formed anew: there is no state to wait for, but what somebody holds
            for replica in self.com.hosts:
                if replica not in self.com.unready:
                    self.recorder.adopt(round(self.world.now, 3), replica, "")
        for replica in self.com.hosts:
            self.disk.begin(replica, self.recorder.ticket(replica))

    def ask(self) -> None:
        """It wants to be a member. All it remembers is the number of the last view it was in."""
        self.incarnation += 1
        held = [h.holding for h in self.held.values()]
        formation = Random(f"{self.world.seed}/formation/{self.name}/{self.incarnation}").randbytes(16)
        self.outsider = Outsider(
            self.name,
            self.incarnation,
            self.world.directory,
            self.world.timing,
            self.view.version,
            held,
            formation=formation,
        )

    def _keep(self, crashed: bool) -> None:
        """A life is over; it keeps the states of its replicas. If its process has crashed, those on disk."""
        assert self.com is not None
        for replica in self.com.hosts:
            if replica in self.com.unready or (crashed and not self.disk.keeps(replica)):
                continue  # what it holds from before, if anything, is still the best it has
            running = [i for i in self.com.instances.values() if i.sid.replica == replica]
            undone = [str(invocation) for i in running for invocation in performs(i)]
            undone += [str(invocation) for invocation in self.com.trans.held_at(replica)]
            done = [request for at, request in self._done if at == replica]
            part, ticket = self.com.handover.keep(replica), self.recorder.ticket(replica)
            doubt = self.disk.promised(replica)
            if crashed:
                ticket, lost, doubt = self.disk.found(replica)
                lost += [str(promise.invocation) for promise in doubt]
                undone += lost
                part = without(part, lost, self.disk.told[replica])
                done = [request for request in done if not within(request.invocation, lost)]
            state, performed = self.world.performer.hold(replica, undone)
            self.held[replica] = Held(Holding(replica, self.view.version, performed), state, part, ticket, done, doubt)

    def crash(self) -> None:
        """Nothing is left of it but what is on disk, and what is on its way to it is lost."""
        self.outsider = None
        self._inbox.clear()
        self.gathering.clear()
        self.paused_until = 0.0
        if self.com is not None:
            self._keep(crashed=True)
        self.starts += 1
        self.disk.crash()
        self.held = {r: h for r, h in self.held.items() if self.disk.keeps(r)}
        self._die()

    def lose_all(self) -> None:
        """It crashes, and its disk is lost, too: it does not even know that there was a group."""
        self.crash()
        self.held = {}
        self.view = View(0, ())

    def _die(self) -> None:
        was, self.com = self.com, None
        self.gathering.clear()
        self.isolated = self.leaving = False
        if was is not None:
            self.world.performer.gone(self)

    def _out(self, effect: Out) -> None:
        """It is alive, but not a member any more: it comes back as another life."""
        self._keep(crashed=False)
        self.disk.finish()
        self.recorder.effect(effect, round(self.world.now, 3))
        self._die()
        self.world.upheaval.excluded(self)

    # events and effects

    def step(self, event: AnyEvent) -> None:
        """Feed an event, or keep it until the node goes on. Lost if it is not running."""
        if self.up and not self.gathering.takes(event):
            self.feed(event)

    def feed(self, event: AnyEvent) -> None:
        if not self.up:
            return
        self._inbox.append(event)
        if self.world.now < self.paused_until:
            self.world.at(self.paused_until, self._work)
        else:
            self._work()

    def _work(self) -> None:
        """Events in the order they came, also those that came while it stood still."""
        now = self.world.now
        if self._working:
            return  # what comes up while effects are carried out waits until they are
        self._working = True
        while self._inbox and now >= self.paused_until:
            self._take(self._inbox.popleft())
        self._working = False
        if self._inbox:  # a later pause began while it stood still
            self.world.at(self.paused_until, self._work)

    def _take(self, event: AnyEvent) -> None:
        if self.com is not None:
            self._as_member(self.com, event)
        elif self.outsider is not None and isinstance(event, Arrived | Tick):
            for effect in self.outsider.step(event, self.world.now):
                if type(effect) is Admitted:
                    self.live(self.world.directory.at(effect.view), effect.decision)
                    self.world.transfers.begin(self)
                    self.world.transfers.sow(self)
                elif type(effect) is Transmit:
                    self.world.transmit(self.name, effect.peer, effect.data)

    def _as_member(self, com: Com, event: AnyEvent) -> None:
        if type(event) is Writable:
            self._woken.discard(event.peer)
            if event.peer not in com.links:  # it has left meanwhile
                return
        if type(event) is Completed:
            self._prepare(com, event)
        if type(event) is Take and not self.world.transfers.adopt(self, com, event):
            return
        try:
            effects = com.step(event, self.world.now)
        except (Unavailable, BadRequest) as error:
            # a call that was refused while this node stood still may be collected afterwards
            if type(event) is Collect or (isinstance(event, Submit | Decide) and type(error) is Unavailable):
                self.world.performer.refused(self, event)
            elif not isinstance(event, Evict | Depart | Give):  # these may come at a bad moment
                raise
            return
        out: Out | None = None
        for effect in effects:
            if type(effect) is Out:
                out = effect  # what is said besides comes first
            else:
                self._carry_out(effect)
        if out is not None:
            self._out(out)

    def _wake(self, peer: Node, stay: Stay) -> Callable[[], None]:
        def writable() -> None:
            if self.stay == stay:
                self.step(Writable(peer))

        return writable

    def _carry_out(self, effect: AnyEffect) -> None:
        world = self.world
        if type(effect) is Transmit:
            world.transmit(self.name, effect.peer, effect.data)
            return
        if type(effect) is Wake:
            if effect.peer not in self._woken:
                self._woken.add(effect.peer)
                world.after(world.batching.uniform(0.0, 1.5), self._wake(effect.peer, self.stay))
            return
        self.recorder.effect(effect, round(world.now, 3))
        if type(effect) is Deliver:
            self._begun[effect.sid] = effect.request
            if effect.request.riders:
                self._board(effect)
            world.performer.deliver(self, effect)
        elif type(effect) is Settle:
            world.performer.settle(self, effect)
        elif type(effect) is Ended:
            self._ended(effect)
        elif type(effect) is Received:
            world.performer.received(self, effect)
        elif type(effect) is Stop:
            world.performer.stopped(self, effect)
        elif type(effect) is Accepted:
            world.performer.accepted(self, effect)
        elif type(effect) is Snapshot:
            world.transfers.send(self, effect)
        elif type(effect) is Decided:
            world.upheaval.decided()
        elif type(effect) is Resolved:
            self._resolved(effect)
        elif type(effect) is Installed:
            self.view = effect.view
            world.transfers.sow(self)
        elif type(effect) is Isolated:
            self.isolated = effect.yes
            if effect.yes:
                world.performer.lost(self)

    def _ended(self, effect: Ended) -> None:
        request = self._begun.pop(effect.sid)
        if effect.committed:
            self._done.append((effect.replica, request))
        assert self.com is not None
        sid = self._riding.pop(effect.sid, effect.sid)
        noted = Noted(effect.replica, sid, str(effect.invocation), self.recorder.ticket(effect.replica))
        unsafe = self.com.hosts[effect.replica].answers.unsafe
        self.disk.note(noted, effect.sid in unsafe or self._convoy.get(effect.sid) in unsafe)

    def _board(self, effect: Deliver) -> None:
        """What it does gets to the disk with the last of its calls."""
        del self._begun[effect.sid]
        which = [i for i in range(len(effect.request.riders)) if i not in effect.skips]
        for i in which:
            sid = Sid(effect.sid.clock + 1 + i, effect.replica)
            self._begun[sid] = split(effect.request)[i]
            self._convoy[sid] = effect.sid
            if i == which[-1]:
                self._riding[sid] = effect.sid

    def _prepare(self, com: Com, event: Completed) -> None:
        """What a durable replica did for a transaction is written down when it has been performed."""
        instance = com.instances.get(event.sid)
        if instance is None or event.safe:
            return
        name = instance.entry.tran or (instance.invocation if instance.dependents else None)
        request, replica = instance.entry.request, event.sid.replica
        if name is None or request is None:
            return
        if instance.entry.footprint.readonly or not event.ok:
            self.disk.when_written(replica, lambda: self.step(Safe((event.sid,))))
            return
        context = instance.leaves(com.known) if instance.acted else instance.base + request.context + instance.siblings
        others = tuple([c for c in context if object_of(c[0]) != object_of(replica)])
        joins = instance.joins.wire()
        told = Told(instance.invocation, "ok", event.body, event.output, others, others, joins, request.copies)
        promise = Promise(instance.invocation, name, instance.entry.footprint, request, told)
        self.disk.promise(Noted(replica, event.sid, str(instance.invocation), "", promise))

    def ask_for(self, held: Held, decide: bool) -> None:
        """What became of the transactions in doubt? They will be ``_resolved``."""
        parts = tuple([(promise.invocation, promise.tran) for promise in held.doubt])
        self.step(Doubt(held.holding.replica, parts, decide))

    def _resolved(self, effect: Resolved) -> None:
        held = self.held.get(effect.replica)
        if held is not None:
            kept = [p for p in held.doubt if p.invocation in effect.keep]
            more = [(str(p.invocation), p.footprint) for p in kept]
            held.state = self.world.performer.again(effect.replica, held.state, more)
            held.part = with_told(held.part, [p.told for p in kept])
            held.kept = tuple([str(p.invocation) for p in kept])
            held.done, held.doubt = [*held.done, *[p.request for p in kept]], []
        self.world.transfers.resolved(self, effect)


def _life(view: View, node: Node) -> int:
    life = view.life(node)
    if life is None:
        raise BadRequest(f"{node} was admitted to view {view.version}, but is not among its members {view.members}")
    return life
