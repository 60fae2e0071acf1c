"""Performs what the com layer delivers: ``def`` in threads, ``async def`` on the node's loop."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from framework.com.convoy import args_of, split
from framework.com.events import Completed, Deliver, Received, Safe, Settle, Stop
from framework.com.messages import Request
from framework.declare import Method
from framework.errors import Aborted, BadMessage, Broken, OboError
from framework.footprint import Footprint
from framework.ids import Invocation, Replica, Sid, object_of
from framework.orb.backed.parts import Settling
from framework.orb.backed.resident import BackedResident
from framework.orb.backed.writing import Writing
from framework.orb.durable.entries import Entry
from framework.orb.messages import open_envelope
from framework.orb.outcome import CANCELLED, failure
from framework.orb.own import METHODS
from framework.orb.performance import Instance, Resident
from framework.orb.reading import Reading
from framework.orb.riding import Riding
from framework.orb.sampling import Heard, Own
from framework.orb.stage import Stage
from framework.orb.undoing import Undoing

if TYPE_CHECKING:
    from framework.orb.durable.journaling import Journaling

Quiet = Callable[[bool], None]

log = logging.getLogger(__name__)

CLOSED = 0.5  # seconds for which requests wait at most, so that nothing is performed for a moment
CROWDED = 2048  # instances delivered and not performed: then clients are read no further


class Dispatch:
    def __init__(self, stage: Stage, residents: Mapping[Replica, Resident], heard: Heard) -> None:
        self._stage = stage
        self._heard = heard
        self.watchers: dict[Replica, list[Callable[[], None]]] = {}  # are called when something has ended there
        self.hasty = False  # the node is to end: it does not look at its replicas any more
        stage.over = self._over
        self.residents = residents
        self.journaling: Journaling | None = None  # of durable replicas
        self._running: dict[Sid, Instance] = {}
        self._closed: dict[Replica, Quiet] = {}  # somebody waits until nothing is performed there
        self._late: dict[Replica, list[Deliver]] = {}  # and this waits so long
        self._tasks: set[asyncio.Task[None]] = set()
        self._undoing = Undoing(stage, self.deliver)
        self.undone: set[Sid] = set()  # when the life was over: of transactions that were not
        self.doubtful: dict[Replica, list[Entry]] = {}  # the same, as it is on disk

    def start(self) -> None:
        """On the loop that all is performed on, or comes back to."""
        self._stage.loop = asyncio.get_running_loop()

    def hurry(self) -> None:
        """The node goes: nothing is to go on here that was begun for its own sake."""
        self.hasty = True
        for looks in tuple(self.watchers.values()):
            for look in tuple(looks):
                look()

    def write_down(self, journaling: "Journaling") -> None:
        """What durable replicas do."""
        self.journaling = self._stage.journal = journaling

    @property
    def crowded(self) -> bool:
        return len(self._running) > CROWDED

    def deliver(self, effect: Deliver) -> None:
        """Start an instance; it answers with Completed."""
        at = effect.replica
        if self._closed and at in self._closed and not _comes_back(effect) and not self._has_kin(effect):
            self._late[at].append(effect)
            return
        if self._undoing.delays(effect):
            return
        try:
            if effect.cancelled:
                raise Aborted(CANCELLED)
            method = self._stage.naming.method(object_of(at), effect.footprint.method)
            if effect.request.riders:
                self._start(effect, self._convoy(effect, method))
                return
            envelope = open_envelope(effect.request.args)
        except OboError as error:
            self._stage.loop.call_soon(self._stage.feed, Completed(effect.sid, False, failure(error)))
            return
        resident = self.residents[at]
        performance: Instance
        if method.name in METHODS:
            performance = Own(self._stage, resident, effect, method, envelope, self, self._heard)
        else:
            performance = resident.performance(self._stage, effect, method, envelope)
        self._start(effect, performance)

    def _start(self, effect: Deliver, performance: Instance) -> None:
        self._running[effect.sid] = performance
        task = performance.start()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _convoy(self, effect: Deliver, method: Method) -> Instance:
        resident, args = self.residents[effect.replica], args_of(effect.request)
        if not args:
            raise BadMessage(f"the arguments of {effect.request.group} cannot be read")
        envelopes = [open_envelope(each) for each in args]
        if isinstance(resident, BackedResident):
            return resident.convoy(self._stage, effect, method, envelopes)
        return Riding(self._stage, resident, effect, method, envelopes)

    def _has_kin(self, effect: Deliver) -> bool:
        """Is something held there until the transaction is over that it is part of?"""
        if effect.tran is None:
            return False
        held = self.residents[effect.replica].held.values()
        return any((p.effect.tran or p.effect.request.invocation) == effect.tran for p in held)

    def read(self, at: Replica, footprint: Footprint, args: bytes, told: Callable[[bool, bytes], None]) -> None:
        """Perform a readonly method now, without order: between the steps of instances, not between instances.
        ``told`` hears in a later turn of the loop what came of it."""
        method, envelope = self._stage.naming.method(object_of(at), footprint.method), open_envelope(args)
        Reading(self._stage, self.residents[at], method, envelope, told).start()

    def find(self, at: Replica, invocation: Invocation) -> Instance | None:
        """The instance of a call that is under way at a replica. It is asked for rarely."""
        for performance in self._running.values():
            if performance.effect.replica == at and performance.effect.request.invocation == invocation:
                return performance
        return None

    def settle(self, effect: Settle) -> None:
        """The transaction of an instance is over: it is kept, or taken back before anything else is performed there."""
        resident = self.residents[effect.replica]
        if isinstance(resident, BackedResident):
            for part in resident.settle(effect):
                _changed(part, self._stage.loop.time())
            return
        performance = resident.held.pop(effect.sid, None)
        if performance is None:
            return  # it has changed nothing
        if self.journaling is not None:
            self.journaling.settle(performance, effect.commit)
        if effect.commit:
            performance.settle(True)
            _changed(performance, self._stage.loop.time())
        else:
            self._undoing.begin(performance)

    def cancel(self, effect: Stop) -> None:
        """Nobody waits for an instance any more. It hears of that in a later turn of the loop: what it does then goes
        to the com layer."""
        performance = self._running.get(effect.sid)
        if performance is not None and not performance.cancelled:
            performance.cancelled = True
            self._stage.loop.call_soon(performance.cancel)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("an instance could not be completed: a fault of the framework", exc_info=task.exception())

    def _over(self, performance: Instance | Settling, completed: Completed) -> None:
        if isinstance(performance, Settling):
            performance.resident.note_settled(performance)
            return
        del self._running[completed.sid]
        if isinstance(performance, Writing):
            if performance.contradicts(completed):
                performance.resident.fails(Broken(f"{performance.method.where}: the other replicas have ended it"))
                return
            performance.resident.prepare(performance, completed)
        _count(performance, completed, self._stage.loop.time())
        if isinstance(performance, Writing):
            performance.resident.take_note(performance, completed)
            return
        noted = self._noted(performance, completed)
        if noted is None:
            return
        for look in self.watchers.get(completed.sid.replica, ()):
            look()  # before the next one begins
        self._stage.feed(noted)
        if self._closed:
            self.look(completed.sid.replica)

    def _noted(self, performance: Instance, completed: Completed) -> Completed | None:
        """If its object is durable, it is written down. None: that failed."""
        return self.journaling.note(performance, completed) if self.journaling is not None else completed

    def safe(self, sids: tuple[Sid, ...]) -> None:
        """What these did is on disk."""
        self._stage.feed(Safe(sids))

    # a moment in which nothing is performed at a replica

    def when_quiet(self, at: Replica, act: "Quiet") -> None:
        """``act(True)`` when no instance that changes this replica is under way; new ones wait for that, unless one
        that is running waits for them. ``act(False)`` if it does not come to that soon."""
        self._closed[at], self._late[at] = act, []
        self._stage.loop.call_later(CLOSED, self._give_up, at, act)
        self.look(at)

    def look(self, at: Replica) -> None:
        """Something is over there."""
        if at not in self._closed or self.changing(at) or self.residents[at].waits or self.residents[at].held:
            return
        if not (self.journaling and self.journaling.waits(at)):
            self._open(at, True)

    def _give_up(self, at: Replica, act: "Quiet") -> None:
        if self._closed.get(at) is act:
            self._open(at, False)

    def _open(self, at: Replica, quiet: bool) -> None:
        act, late = self._closed.pop(at), self._late.pop(at)
        if not self.stopped:
            act(quiet)
            for effect in late:
                self.deliver(effect)

    @property
    def stopped(self) -> bool:
        return self._stage.stopped

    def received(self, effect: Received, why: str) -> None:
        performance = self._running.get(effect.caller)
        if performance is not None:  # it may have ended while somebody found out why its call is late
            performance.received(effect, why)

    def since(self, sid: Sid) -> float:
        """Seconds for which an instance has been performed."""
        performance = self._running.get(sid)
        return self._stage.loop.time() - performance.began if performance is not None else 0.0

    def watches(self, at: Replica) -> bool:
        """Does somebody here have to know of all that is performed there, or keeps it from being performed?"""
        return at in self.watchers or at in self._closed or at in self._undoing

    def changing(self, at: Replica) -> bool:
        """Is something still going on that may change the state of this replica?"""
        return at in self._undoing or any(p.changes for p in self._running.values() if p.effect.replica == at)

    def busy(self, at: Replica) -> bool:
        """The same; also if it has ended, and is not counted yet, or is held: others may have undone that already."""
        if at in self._undoing or self.residents[at].held:
            return True
        return any(not p.method.readonly for p in self._running.values() if p.effect.replica == at)

    def last(self) -> list[Completed]:
        """The life is over: what has been performed, and the com layer has not heard of. What ends from now on is
        undone."""
        for resident in self.residents.values():
            resident.close()
            while resident.held:  # nobody knows what becomes of it: it is not in the state that is left
                sid, performance = resident.held.popitem()
                self.undone.add(sid)
                if performance.noted is not None:
                    self.doubtful.setdefault(sid.replica, []).insert(0, performance.noted)
                self._undoing.begin(performance)
        done = []
        for one, completed in self._stage.close():
            if isinstance(one, Settling):
                continue
            del self._running[completed.sid]
            if isinstance(one, Writing):
                continue  # its batch is rolled back
            _count(one, completed, self._stage.loop.time())
            noted = self._noted(one, completed)
            if noted is not None:
                done.append(noted)
        return done

    def abandon(self) -> None:
        """At once: what is still being performed has no end, neither here nor for others. Who waits is woken."""
        self._stage.stopped = True
        for performance in self._running.values():
            performance.cancelled = True
            self._stage.loop.call_soon(performance.cancel)

    async def stop(self) -> None:
        """The same, and wait a moment for coroutines."""
        self._stage.stopped = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)


def _comes_back(effect: Deliver) -> bool:
    """Does an instance at this object wait for it?"""
    return any(a.object == object_of(effect.replica) for a in effect.request.chain)


def _count(performance: Instance, completed: Completed, now: float) -> None:
    resident, ok = performance.resident, completed.ok
    if completed.rides:
        _count_convoy(performance, completed, now)
        return
    resident.performed += ok
    if performance.method.readonly:
        return
    request = performance.effect.request
    resident.saw(request.invocation)
    if ok and not (resident.held and completed.sid in resident.held):
        _in_state(resident, request, now)


def _count_convoy(performance: Instance, completed: Completed, now: float) -> None:
    """Each of its calls as if it had come alone. What has raised is not in the state, and is never sent again."""
    resident, request = performance.resident, performance.effect.request
    good = 0
    for rider, ride in zip(request.riders, completed.rides, strict=True):
        if ride is not None:
            resident.saw(rider.invocation)
            if ride.ok:
                resident.took(rider.invocation)
                good += 1
    resident.performed += good
    resident.convoys += 1
    if good == len(request.riders):
        resident.recent.add(request, now)
        return
    for each, ride in zip(split(request), completed.rides, strict=True):
        if ride is not None and ride.ok:
            resident.recent.add(each, now)


def _changed(performance: Instance, now: float) -> None:
    _in_state(performance.resident, performance.effect.request, now)


def _in_state(resident: Resident, request: Request, now: float) -> None:
    """It is in the state, for good."""
    resident.took(request.invocation)
    resident.recent.add(request, now)
