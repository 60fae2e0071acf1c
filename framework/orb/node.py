"""A node: the composition root. One loop owns all; effects of the com layer go to net, dispatch, sessions and trace.

A node is an outsider that asks to be let into the group, then a member: a life (framework.orb.life). When it is not a
member any more, because others did without it, the life is over, and it asks again. It keeps the states of its
replicas, for the case that nobody else has any (held.py). The streams to other nodes and the doors for clients are
there all the time.
"""

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from random import Random
from typing import Any

import grpc.aio
import msgspec

from framework.com.events import (
    AnyEvent,
    Arrived,
    Cancel,
    Collect,
    Connected,
    Evict,
    Heard,
    Session,
    Submit,
    Tick,
    Transmit,
    Veto,
    Writable,
)
from framework.com.link import Timing
from framework.com.messages import Frame
from framework.com.outsider import Admitted, Outsider
from framework.com.view import View
from framework.com.words import Decision, decode
from framework.errors import BadMessage, BadRequest, OboError, Unavailable
from framework.ids import Invocation, ObjectName, Replica
from framework.ids import Node as NodeName
from framework.net import forks, options
from framework.net.peers import Peers
from framework.net.security import Credentials, listen
from framework.orb import going, looking
from framework.orb.backed.stores import Stores
from framework.orb.comparing import Comparing
from framework.orb.config import Config
from framework.orb.durable.disk import Disk, open_disk
from framework.orb.gateway import Gateway
from framework.orb.guard import Guard
from framework.orb.held import Held
from framework.orb.keeping import keep
from framework.orb.life import TICK, Life
from framework.orb.messages import Stay
from framework.orb.moving import Backoffs
from framework.orb.naming import Naming
from framework.orb.sessions import Sessions
from framework.orb.traces import Traces
from framework.orb.workers import Workers

log = logging.getLogger(__name__)

#: Streams are reliable while they stand: a frame is sent again when one breaks, and else only after very long silence.
TIMING = Timing(delta=0.05, ask_after=0.5, resend_after=20.0, suspect_after=0.75)
EARLY = 512  # frames kept for an outsider that is about to be a member


class Node:
    def __init__(
        self, config: Config, name: str, trace: Path | None = None, insecure: bool = False, joins: bool = False
    ) -> None:
        """``joins``: it becomes a member of a group that exists, and never forms one."""
        forks.uses_grpc()
        self.name = NodeName(name)
        self._joins = joins
        self.address = config.address(name)
        if exposed := config.exposed(name, insecure):
            log.warning("INSECURE: %s; whoever reaches this node can read and change everything", exposed)
        self.config = config
        self.timing = msgspec.structs.replace(TIMING, suspect_after=config.group.suspect_after)
        self.guard = Guard(Path(config.security.tokens) if config.security.tokens else None)
        self.disk = open_disk(config, self.name)
        self._tls = config.security.tls(name)
        self._trace = trace
        self.stores = Stores(config, self.name)
        self.naming = Naming(config)
        self.naming.judge = lambda *call: self.member.judge(*call) if self.member is not None else None
        self.workers = Workers(config.serve.workers, f"obo-{name}")
        self.peers = Peers(self.name, config.addresses, self, config.serve.max_message, Credentials(self._tls))
        self.peers.explain = self._explain
        self.peers.give = lambda peer, wish: self.life.handing.give(peer, wish)
        self.sessions = Sessions(self, self.guard, config.serve.limits)
        self.gateway = Gateway(self, self.guard)
        self.failed: Exception | None = None  # why it stopped by itself
        self.has_failed = asyncio.Event()  # the same, to wait for
        self.joined = asyncio.Event()  # set while it is a member
        self.between_lives: Callable[[], None] = lambda: None  # nobody waits for this node now
        self.asked_to_leave = asyncio.Event()  # by a person, through another process
        self.member: Life | None = None
        self.outsider: Outsider | None = None
        self.held: dict[Replica, Held] = {}  # states of earlier lives
        self.leaving = False
        self._version = self.disk.note.version if self.disk is not None else 0  # of the last view it was in
        self._incarnation = 0
        self._early: deque[Arrived] = deque(maxlen=EARLY)
        self._keeping: asyncio.Task[None] | None = None
        self._remembering: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._server: Any = None
        self._ticking: asyncio.Task[None] | None = None
        self.comparing = Comparing(self)
        self.backoffs = Backoffs(Random(), time.monotonic)  # of replicas that did not get their states

    @property
    def life(self) -> Life:
        """Unavailable while it is not a member."""
        if self.member is None:
            raise Unavailable(self.refusal())
        return self.member

    # what comes in

    def feed(self, event: AnyEvent) -> None:
        if self.member is not None:
            if type(event) is Cancel and isinstance(event.caller, str):
                self.member.cancelled(event.caller, event.call)
            self.member.feed(event)
        elif self.outsider is not None:
            self._outside(self.outsider, event)

    def _outside(self, outsider: Outsider, event: AnyEvent) -> None:
        if isinstance(event, Submit | Collect):
            raise Unavailable(self.refusal())
        if isinstance(event, Arrived) and isinstance(decode(event.data, event.peer), Frame):
            self._early.append(event)  # others may know sooner than this node that it is a member
        for effect in outsider.step(event, asyncio.get_running_loop().time()):
            if isinstance(effect, Transmit):
                self.peers.lines[effect.peer].transmit(effect.data)
            elif isinstance(effect, Admitted) and self.disk is not None:
                self._remembering = asyncio.ensure_future(self._remember(self.disk, effect))
            elif isinstance(effect, Admitted):
                self._admitted(effect.view, effect.decision)

    def arrived(self, peer: NodeName, data: bytes) -> None:
        self.feed(Arrived(peer, data))
        self.go()

    def heard(self, peer: NodeName) -> None:
        self.feed(Heard(peer))

    def go(self) -> None:
        """All that came together has been fed."""
        if self.member is not None:
            self.member.convoys.look()
            self.member.stage.go()

    def connected(self, peer: NodeName) -> None:
        self.feed(Connected(peer))

    def writable(self, peer: NodeName) -> None:
        self.feed(Writable(peer))

    def on_the_way(self, peer: NodeName) -> int:
        link = self.member.com.links.get(peer) if self.member is not None else None
        return link.on_the_way if link is not None else 0

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK if self.member is None else self.member.tick)
            self.feed(Tick())
            if self.member is not None:
                self.member.watch()
            self.gateway.tell_health()

    def _explain(self, question: bytes) -> bytes:
        if self.member is None:
            raise BadMessage(self.refusal())
        return self.member.explainer.asked(question)

    # in the group, and out of it

    def _ask(self) -> None:
        """It wants to be a member. All it remembers is the number of the last view it was in, and what it holds."""
        self._incarnation = max(self._incarnation + 1, time.time_ns() // 1000)
        holds = [held.holding for held in self.held.values()]
        past = self._version, holds, self._joins
        formation = secrets.token_bytes(16)
        self.outsider = Outsider(self.name, self._incarnation, self.config.directory, self.timing, *past, formation)
        self._early.clear()

    async def _remember(self, disk: Disk, admitted: Admitted) -> None:
        """It says nothing in a view before that is on disk: after a crash of all the next one has a higher number."""
        try:
            await disk.remember(admitted.view.version, [])
        except OboError as error:
            self.fail(error)
        if self._stopping is None:
            self._admitted(admitted.view, admitted.decision)

    def _admitted(self, view: View, decision: Decision | None) -> None:
        try:
            life = Life(self, view, self._trace)
        except Exception as error:  # an object that cannot be made, or no room for a trace
            self.fail(error)
            return
        life.com.member.last = decision or life.com.member.last
        self.outsider, self.member, self._joins = None, life, False
        log.info("%s is a member of view %d: %s", self.name, view.version, ", ".join(view.members))
        life.begin()
        self.joined.set()
        self.serving_changed()
        early, self._early = self._early, deque(maxlen=EARLY)
        for event in early:
            asyncio.get_running_loop().call_soon(self._catch_up, life, event)

    def _catch_up(self, life: Life, event: Arrived) -> None:
        if self.member is life:
            try:
                life.feed(event)
            except BadMessage as error:
                log.debug("from %s, while it was no member: %s", event.peer, error)

    def out(self, why: str) -> None:
        """A life is over: clients go elsewhere, and this node asks to be let in again."""
        was = self.life
        log.warning("%s is not a member of the group any more: %s", self.name, why)
        self._version = was.com.view
        was.abandon()
        self.member = None
        self.joined.clear()
        if not self.leaving:
            self._keeping = asyncio.ensure_future(self._keep(was))
        self.sessions.drop(self.refusal())
        self.gateway.drop(self.refusal())
        self.serving_changed()

    async def _keep(self, was: Life | None) -> None:
        """First what it has of its last life: it says so when it asks."""
        assert was is not None
        for replica, held in (await keep(was, was.remains)).items():
            if replica in self.held:
                self.held[replica].spool.close()
            self.held[replica] = held
        if not await self.stores.recall(self.held, self.disk, self.fail):
            return
        if lost := [r for r in was.journaled() if r not in self.held]:
            self.fail(Unavailable(f"start the node again: it has the state of {', '.join(lost)} on disk alone"))
        if self._stopping is None:
            was = None  # it is garbage now
            self.between_lives()
            self._ask()

    @property
    def stopping(self) -> bool:
        return self._stopping is not None

    def refusal(self) -> str:
        """Why it takes no calls of clients now; empty if it does."""
        if self.member is not None:
            return self.member.refusal()
        if self.outsider is None and self._keeping is not None and not self._keeping.done():
            return f"{self.name} is not a member of the group any more"
        if self.outsider is None:
            return f"{self.name} is stopping"
        return f"{self.name} is not a member of the group yet: {self.missing()}"

    def unwell(self) -> str:
        """Why it is not *well*; empty if it is. All that say how a node is ask here (docs/group.md)."""
        parts = f"{self.name} is stopping" if self.gateway.parting else ""
        return parts or self.refusal() or (self.member.unwell() if self.member is not None else "")

    def missing(self) -> str:
        """What keeps it from being a member."""
        silent = self.outsider.missing() if self.outsider is not None else []
        if self._joins:
            up = [n for n in silent if self.peers.up(n)]
            return f"no group has let it in yet; reached: {', '.join(up) or 'nobody'}"
        lost = [n for n in silent if not self.peers.up(n)]
        if lost:
            return f"{', '.join(lost)} {'has' if len(lost) == 1 else 'have'} not been heard"
        return f"it has asked {', '.join(silent) or 'all others'} to be let in"

    def serving_changed(self) -> None:
        self.gateway.tell_health()
        if why := self.refusal():
            self.sessions.send_away(why)

    # for sessions and gateway

    def asker(self, client: str) -> Sessions | Gateway:
        """Whose client this is."""
        return self.gateway if client in self.gateway.names else self.sessions

    def session(self, client: str) -> Session | None:
        return self.member.com.session(client) if self.member is not None else None

    def pick(self, replicas: Sequence[Replica]) -> Replica:
        return self.life.pick(replicas)

    @property
    def stay(self) -> Stay:
        view = self.member.com.lives.view if self.member is not None else None
        return Stay(self.name, view.formation, view.life(self.name) or 0) if view is not None else Stay(self.name)

    def lost(self, formation: bytes, names: Collection[ObjectName]) -> list[ObjectName]:
        return self.life.lost(formation, names)

    @property
    def version(self) -> int:
        return self.member.com.view if self.member is not None else self._version

    @property
    def crowded(self) -> bool:
        return self.member is not None and self.member.crowded

    def change(self, what: str, node: str) -> None:
        """What a person wants of the group; BadRequest with the reason if that cannot be."""
        if what == "abort":
            self.life.feed(Veto(Invocation.parse(node), "somebody asked for it"))
            log.warning("transaction %s is aborted: somebody asked for it", node)
        elif what == "evict":
            if node == self.name:
                raise BadRequest(f"{node} cannot evict itself: obo leave {node}")
            self.life.feed(Evict(NodeName(node)))
            log.warning("%s is being evicted: somebody asked for it", node)
        elif node != self.name:
            raise BadRequest(f"this is {self.name}: ask {node} itself to leave")
        else:
            going.check_may_go(self.life)
            log.warning("%s leaves the group: somebody asked for it", node)
            self.asked_to_leave.set()

    # the process

    def fail(self, error: Exception) -> None:
        """Nobody knows what state the com layer is in: from here on this node says nothing more, as if it had crashed.
        Peers and clients see their streams end; clients go on at another node."""
        if self.failed is not None:
            return
        self.failed = error
        if self.member is not None:
            self.member.deafen()
        log.critical("a fault of the framework: the node stops at once", exc_info=error)
        self.sessions.draining = True
        self.gateway.drain()
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop())
        self.has_failed.set()

    async def start(self) -> None:
        """Returns when it can be reached; ``joined`` is set when it is a member."""
        most = options.server(self.config.serve.max_message)
        self._server = grpc.aio.server(options=most, interceptors=self.guard.interceptors())
        self.peers.serve_on(self._server)
        self.sessions.serve_on(self._server)
        await self.gateway.serve_on(self._server)
        Traces(self.name, self._trace, self.guard).serve_on(self._server)
        where = self.config.listens(self.name)
        if not listen(self._server, where, self._tls):
            raise Unavailable(f"{self.name} cannot listen on {where}: is the port in use?")
        if self.disk is not None:
            self.held = await asyncio.to_thread(self.disk.load, self.config.classes)
            self.disk.kept_by(self.stores.keep)
        await self._server.start()
        self.peers.start()
        self._ticking = asyncio.ensure_future(self._tick())
        self.comparing.start(self.config.group.compare_every)
        if self.stores.objects:
            self._keeping = asyncio.ensure_future(self._open_stores())
        else:
            self._ask()
            self.feed(Tick())  # a group of one need not wait

    async def _open_stores(self) -> None:
        if await self.stores.recall(self.held, self.disk, self.fail):
            self._ask()

    async def drain(self) -> None:
        await going.drain(self)

    async def leave(self) -> bool:
        return await going.leave(self)

    def open(self) -> list[str]:
        return self.member.open() if self.member is not None else []

    async def stop(self) -> None:
        self._stopping = self._stopping or asyncio.ensure_future(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        self.sessions.close()
        self.gateway.close()
        if self._ticking is not None:
            self._ticking.cancel()
        self.comparing.stop()
        if self._keeping is not None:
            self._keeping.cancel()
        await self.peers.stop()
        if self.member is not None:
            await self.member.stop(self.failed is not None)
        if self._server is not None:
            await self._server.stop(0.2)
        self.workers.stop()
        await asyncio.to_thread(self.stores.close)
        if self.disk is not None:
            await asyncio.to_thread(self.disk.close)

    # for people

    def look(self, what: str) -> bytes:
        return msgspec.msgpack.encode(looking.objects(self.config) if what == "objects" else self._status())

    def _status(self) -> dict[str, Any]:
        told = looking.told(self)
        return {**told, "clients": self.sessions.counts(), "invokes": self.gateway.in_flight}

    def object(self, replica: str) -> Any:
        """The object behind a replica of this node; for tests and tools."""
        return self.life.residents[Replica(replica)].object
