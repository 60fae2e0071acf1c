"""One stay of a node in the group (protocol.md §10.7): its com layer, its objects, and what they do.

``feed`` is the only way into the com layer: it takes one event and carries out its effects before it returns, and
nothing that an effect starts feeds an event before that: tasks and futures go on in a later turn of the loop. A life
that is over takes nothing any more, and what its instances still do goes nowhere.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.com.core import Com
from framework.com.event import Decided, Resolved
from framework.com.events import (
    Accepted,
    AnyEffect,
    AnyEvent,
    Collect,
    Deliver,
    Installed,
    Isolated,
    Out,
    Received,
    Settle,
    Snapshot,
    Stop,
    Submit,
    Transmit,
    Wake,
)
from framework.com.telling import Dropped, Forgotten
from framework.com.view import View
from framework.declare import Method, Object
from framework.errors import Broken, OboError, Unavailable
from framework.footprint import Footprint
from framework.ids import TRAN, Invocation, ObjectName, Replica, node_of, object_of, replica
from framework.orb import keeping
from framework.orb.backed.resident import BackedResident
from framework.orb.backed.verdicts import EVERY
from framework.orb.convoys import Convoys
from framework.orb.dispatch import Dispatch
from framework.orb.durable.journaling import Journaling
from framework.orb.durable.outcomes import Tran
from framework.orb.explain import Explainer
from framework.orb.handing import Handing
from framework.orb.keeping import Remains
from framework.orb.moving.backoff import lacking
from framework.orb.performance import Resident
from framework.orb.spots import Spots
from framework.orb.stage import Stage
from framework.orb.tracing import Tracing
from framework.trace.still_open import open_calls, open_links

if TYPE_CHECKING:
    from framework.orb.node import Node

log = logging.getLogger(__name__)

TICK = 0.02  # seconds
LITTLE = 64 << 20  # bytes: a disk with less room may be why a store does not work
SHORT_TICK = 0.006  # while what has waited for a state starts bit by bit (framework.com.order)


class Life:
    def __init__(self, node: "Node", view: View, trace: Path | None) -> None:
        directory = node.config.directory.at(view)
        self.node = node
        holds = [held.holding for held in node.held.values()]
        self.com = Com(node.name, directory, node.timing, node.config.serve.com, told=trace is not None, holds=holds)
        self.tracing = Tracing(node.name, directory, trace) if trace is not None else None
        classes, durable = node.config.classes, node.disk.journals if node.disk is not None else ()
        stage = self.stage = Stage(self.feed, node.naming, self.there)
        known = {**classes, TRAN: Tran}
        self.residents = {r: self._resident(r, known[object_of(r)], r in durable) for r in self.com.hosts}
        for at, resident in self.residents.items():
            resident.takes_part = object_of(at) in directory.roots
        self._tran = replica(TRAN, node.name)
        self.dispatch = Dispatch(stage, self.residents, node.comparing.differs)
        self.dispatch.start()
        for backed in self.backed():
            ask = partial(node.comparing.ask_all, object_of(backed.replica))
            backed.begin(stage, self.com, self.tracing, self.dispatch, self.broken, ask)
            node.stores.committers[backed.replica] = backed.committer
        self.journaling: Journaling | None = None
        if node.disk is not None:
            self.journaling = Journaling(node.disk, self.com, self.tracing, self.dispatch, node.fail)
            self.dispatch.write_down(self.journaling)
            for backed in self.backed():
                backed.may_settle = self.journaling.after_outcomes
        self.spots = Spots(self)
        self.convoys = Convoys(self)
        self.explainer = Explainer(self.com, node.peers, self.dispatch.since)
        self.handing = Handing(
            self.com,
            self.residents,
            node.peers,
            self.feed,
            self.tracing,
            node.held,
            self.journaling,
            node.comparing.has_state,
            node.stores.keep,
            node.backoffs,
        )
        self._backed = self.backed()
        self._watches = 0.0  # when it is looked next
        self.isolated = False
        self.remains: dict[Replica, Remains] = {}  # when it is over: what the node keeps
        self.now = asyncio.get_running_loop().time
        self._step = self.com.step
        lines = node.peers.lines
        self._carry: dict[type[Any], Callable[[Any], None]] = {
            Wake: lambda e: lines[e.peer].wake(),
            Transmit: lambda e: lines[e.peer].transmit(e.data),
            Deliver: self._deliver,
            Settle: self.dispatch.settle,
            Decided: self._decided,
            Resolved: self.handing.doubting.resolved,
            Stop: self.dispatch.cancel,
            Received: self._received,
            Accepted: lambda e: node.asker(e.client).accepted(e),
            Dropped: lambda e: log.debug("from %s: %s", e.peer, e.why),
            Forgotten: lambda e: log.info("call %d of %s: its session is of a group that is over", e.call, e.client),
            Snapshot: self.handing.snapshot,
            Installed: self._installed,
            Isolated: self._isolated,
        }

    def _resident(self, at: Replica, cls: type[Object], durable: bool) -> Resident:
        workers, store = self.node.workers, self.node.stores.objects.get(at)
        if store is None:
            return Resident(cls(), workers, durable)
        return BackedResident(at, store, workers, self.com.directory.find(object_of(at)).relation)

    def backed(self) -> list[BackedResident]:
        return [r for r in self.residents.values() if isinstance(r, BackedResident)]

    @property
    def tick(self) -> float:
        """Seconds until the com layer is to look at the time again."""
        return SHORT_TICK if any(h.order.late.behind for h in self.com.hosts.values()) else TICK

    @property
    def since(self) -> int:
        return self.com.lives.mine

    def begin(self) -> None:
        view = self.com.lives.view
        if view.formed and self.since > 1:
            for at in self.residents:
                if at not in self.com.unready:  # nobody holds a state of it
                    log.warning("%s begins with the initial state: nobody had another one", at)
                    if self.tracing is not None:
                        self.tracing.adopt(at, "")
        for at, resident in self.residents.items():
            if at in self.com.unready:
                continue
            if isinstance(resident, BackedResident):
                resident.note_head(b"", "", lambda r=at: self.has(r))  # type: ignore[misc]
            elif self.journaling is not None and at in self.journaling:
                self.journaling.took(at, resident, b"", "")
        self.handing.begin()

    def judge(
        self, name: ObjectName, method: Method, values: tuple[object, ...]
    ) -> tuple[Footprint, int | None] | None:
        """See ``Naming.judge``."""
        resident = self.residents.get(replica(name, self.node.name))
        if not isinstance(resident, BackedResident) or resident.replica in self.com.unready:
            return None
        try:
            return resident.footprint(method, values)
        except Broken as error:
            resident.breaks(error)  # it leaves in a later turn of the loop
            raise Unavailable(f"the store of {resident.replica} does not work") from None

    def watch(self) -> None:
        """From time to time: is something performed for too long?"""
        now = self.now()
        if now >= self._watches:
            self._watches = now + EVERY
            for backed in self._backed:
                backed.verdicts.look()

    def cancelled(self, client: str, number: int) -> None:
        """A client does not wait for this call any more, or its deadline has passed."""
        call = self.com.calls.find(client, number)
        if call is not None and self._backed:
            path = call.tran.path if call.tran is not None else ()
            for each in call.numbers:
                for backed in self._backed:
                    backed.verdicts.cancelled(Invocation(client, (*path, each)))

    def has(self, at: Replica) -> None:
        """It has a state, and that is on disk."""
        if self.journaling is not None:
            self.journaling.has(at)

    # the way into the com layer, and out of it

    def feed(self, event: AnyEvent) -> None:
        try:
            effects = self._step(event, self.now())
        except OboError:
            raise  # nothing has changed
        except Exception as error:
            self.node.fail(error)
            return
        out: Out | None = None
        try:
            for effect in effects:
                kind = type(effect)
                if kind is Out:
                    out = effect  # type: ignore[assignment]  # what is said besides comes first
                    continue
                if self.tracing is not None:
                    self.tracing.effect(effect)
                carry = self._carry.get(kind)
                if carry is not None:
                    carry(effect)
            if out is not None:
                self.remains = keeping.close(self)
                if self.tracing is not None:
                    self.tracing.effect(out)
        except Exception as error:
            self.node.fail(error)
            return
        if out is not None:
            self.node.out(out.why)

    def broken(self, at: Replica, error: Exception) -> None:
        """The store of a replica does not work: what it was to perform others will. This node gets out of their way,
        and comes back when the store works."""
        if self.node.member is not self:
            return
        if not isinstance(error, Broken):
            self.node.fail(error)
            return
        if self.node.stopping:
            return  # clients are sent away, and nobody comes back
        log.error("%s cannot go on: %s", at, error)
        room = lacking(self.node.stores.keep.directory(at), LITTLE)
        if room is not None:  # it would get its state, and could not go on with it again
            self.node.backoffs.of(at).failed(str(error), room)
        out = Out(f"the store of {at} does not work: {error}")
        self.remains = keeping.close(self)
        if self.tracing is not None:
            self.tracing.effect(out)
        self.node.out(out.why)

    def _decided(self, effect: Decided) -> None:
        assert self.journaling is not None
        self.journaling.decided(effect)

    def _deliver(self, effect: Deliver) -> None:
        if effect.replica != self._tran:
            self.dispatch.deliver(effect)
            return
        tran = self.residents[self._tran]  # the com layer performs it by itself
        tran.changes += 1
        tran.recent.add(effect.request, self.now())

    def _received(self, effect: Received) -> None:
        if effect.complete or (effect.client and self.node.asker(effect.client).early(effect)):
            self._answer(effect, "")
        else:
            self.explainer.explain(effect, self._answer)

    def _answer(self, effect: Received, why: str) -> None:
        if effect.client:
            self.node.asker(effect.client).received(effect, why)
            self.convoys.answered()
        else:
            self.dispatch.received(effect, why)

    # the group

    def _installed(self, effect: Installed) -> None:
        view = effect.view
        told = [f"{', '.join(who)} {what}" for who, what in ((effect.left, "left"), (effect.joined, "joined")) if who]
        log.info("view %d: %s; %s", view.version, ", ".join(view.members), "; ".join(told) or "nobody came or went")
        if self.journaling is not None:
            self.journaling.remember()
        self.handing.changed(effect.left)

    def _isolated(self, effect: Isolated) -> None:
        self.isolated = effect.yes
        if effect.yes:
            log.error("%s", self.refusal())
        else:
            log.warning("%s hears enough members again, and serves", self.node.name)
        self.node.serving_changed()

    def refusal(self) -> str:
        """Why it takes no calls of clients now; empty if it does."""
        if not self.isolated:
            return ""
        view, silent = self.com.lives.view, sorted(self.com.member.suspects)
        heard = len(view.members) - len(silent)
        return (
            f"{self.node.name} hears only {heard} of {len(view.members)} members of view {view.version}, "
            f"{view.majority} are needed; silent: {', '.join(silent)}"
        )

    def lost(self, formation: bytes, names: Collection[ObjectName]) -> list[ObjectName]:
        """Those of these objects that may have lost what they did in this formation of the group."""
        if formation == self.com.lives.view.formation:
            return []
        return [name for name in names if self.com.handover.is_new(name)]

    def unwell(self) -> str:
        """Why this member is not well, though it takes calls; empty if it is. To be well it must be sure that it is a
        member of the current view, each of its replicas must have its state, and the other members must know that:
        then all that the group does includes it, and it stays so until the next view."""
        com = self.com
        if not com.member.sureness.whole:
            return f"{self.node.name} is not sure yet that it is still a member: the group may have left it out"
        if refused := self.handing.auditing.refused:
            return "; ".join(refused.values())
        if com.unready:
            pauses = [f"; {at}: {each}" for at, each in self.node.backoffs.waiting().items() if at in com.unready]
            return f"{self.node.name} waits for the states of {', '.join(sorted(com.unready))}{''.join(pauses)}"
        return "" if com.handover.told else f"not all members know yet that {self.node.name} has its states"

    @property
    def crowded(self) -> bool:
        """So much waits that clients are held back."""
        return self.dispatch.crowded or self.com.crowded

    def there(self, replicas: Sequence[Replica], version: int | None = None) -> Sequence[Replica]:
        """Those that can be asked: in the view, and with a state. For a request of an instance: that were in its view,
        too. All, if there are none: the com layer says what is wrong with them."""
        lives = self.com.lives
        at = lives.view.version if version is None else version
        return [r for r in replicas if not lives.gone(r, at) and r not in lives.pending] or replicas

    def pick(self, replicas: Sequence[Replica]) -> Replica:
        """Reads are performed at home where that is possible."""
        there = self.there(replicas)
        return next((r for r in there if node_of(r) == self.node.name), there[0])

    def local(self, name: str) -> Replica:
        """The replica of an object here, for a read that may be stale; Unavailable if there is none with a state."""
        found = next((r for r in self.residents if object_of(r) == name), None)
        if found is None:
            raise Unavailable(f"{self.node.name} has no replica of {name}")
        if found in self.com.unready:
            raise Unavailable(f"{found} has no state yet")
        return found

    # the end

    def journaled(self) -> list[Replica]:
        """Replicas with a journal that had a state."""
        mine = self.journaling or ()
        return [r for r in self.residents if r in mine and r not in self.com.unready]

    def open(self) -> list[str]:
        """What is not over; frames for a peer that cannot be reached do not count: nobody waits for them here."""
        links = [what for peer, what in open_links(self.com).items() if self.node.peers.up(peer)]
        return [*open_calls(self.com), *links, *self.explainer.open()]

    def waiting(self) -> bool:
        """Does a client of this node wait for an answer?"""
        callers = [c for c in self.com.calls.callers.values() if c.client]
        return bool(self.convoys.clients) or any(call.receipt is not None for c in callers for call in c.calls.values())

    def deafen(self) -> None:
        """Nothing goes into the com layer any more."""
        self._step = _over
        self.spots.closed = True

    def abandon(self) -> None:
        """It is over at once: nothing goes in or out any more."""
        self.deafen()
        self.explainer.stop()
        self.handing.close()
        self.dispatch.abandon()
        for backed in self.backed():
            backed.close()
        if self.tracing is not None:
            self.tracing.close()

    async def stop(self, failed: bool) -> None:
        """As far as it has got; the trace says what was open."""
        # frames that were not acknowledged show in the peer's trace, if they are lost
        still = open_calls(self.com) if not failed else []
        self.explainer.stop()
        self.handing.close()
        await self.dispatch.stop()
        self.deafen()
        for backed in self.backed():
            backed.close()
            await asyncio.to_thread(backed.committer.join, 5.0)
        if self.tracing is not None and failed:
            self.tracing.close()
        elif self.tracing is not None:
            ready = [(r, s, _state(s)) for r, s in self.residents.items() if r not in self.com.unready]
            self.tracing.stop([(r, state, s.performed) for r, s, state in ready if state is not None], still)


def _state(resident: Resident) -> dict[str, Any] | None:
    """What two replicas must agree in; None if it cannot be read."""
    if not isinstance(resident, BackedResident):
        return vars(resident.object)
    try:
        return {"fingerprint": resident.store.fingerprint()}
    except Broken as error:
        log.error("%s: its last state is not in the trace: %s", resident.replica, error)
        return None


def _over(event: AnyEvent, now: float) -> list[AnyEffect]:
    """In the place of ``Com.step`` of a life that is over: who wants an answer is told, anything else goes nowhere."""
    if isinstance(event, Submit | Collect):
        raise Unavailable("the node is not a member of the group any more, or has stopped")
    return []
