"""A node: the composition root. One loop owns ``Com``; effects go to net, dispatch, sessions and trace.

Everything here runs on one asyncio loop. ``feed`` is the only way into the com layer: it takes one event and carries
out its effects before it returns, and nothing that an effect starts feeds an event before that: tasks and futures go
on in a later turn of the loop. Threads perform methods; they come back through the loop.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc.aio
import msgspec

from framework.com.core import Com
from framework.com.events import (
    Accepted,
    AnyEffect,
    AnyEvent,
    Arrived,
    Connected,
    Deliver,
    Dropped,
    Received,
    Stop,
    Tick,
    Transmit,
    Wake,
    Writable,
)
from framework.com.link import Timing
from framework.errors import OboError, Unavailable
from framework.ids import Node as NodeName
from framework.ids import Replica, object_of
from framework.net import options
from framework.net.peers import Peers
from framework.net.security import Credentials, listen
from framework.orb import looking
from framework.orb.config import Config
from framework.orb.dispatch import Dispatch
from framework.orb.explain import Explainer
from framework.orb.gateway import Gateway
from framework.orb.guard import Guard
from framework.orb.naming import Naming
from framework.orb.performance import Resident, Stage
from framework.orb.sessions import Sessions
from framework.orb.tracing import Tracing
from framework.orb.workers import Workers
from framework.trace.still_open import open_calls, open_links

log = logging.getLogger(__name__)

TICK = 0.02
FRAME = 3  # messages in a frame, roughly, when there is little to do
#: Streams are reliable while they stand: a frame is sent again when one breaks, and else only after very long silence.
TIMING = Timing(delta=0.05, ask_after=0.5, resend_after=20.0)


class Node:
    def __init__(self, config: Config, name: str, trace: Path | None = None, insecure: bool = False) -> None:
        self.name = NodeName(name)
        self.address = config.address(name)
        exposed = config.exposed(name, insecure)
        if exposed:
            log.warning("INSECURE: %s; whoever reaches this node can read and change everything", exposed)
        self.config = config
        self.guard = Guard(Path(config.security.tokens) if config.security.tokens else None)
        self._tls = config.security.tls(name)
        self.com = Com(self.name, config.directory, TIMING, told=trace is not None)
        self.naming = Naming(config)
        self.tracing = Tracing(self.name, config.directory, trace) if trace is not None else None
        self._workers = Workers(config.serve.workers, f"obo-{name}")
        self.residents = {r: Resident(config.classes[object_of(r)](), self._workers) for r in self.com.hosts}
        self.dispatch = Dispatch(Stage(self.feed, self.naming), self.residents)
        view = config.directory.view.version
        mine = Credentials(self._tls)
        self.peers = Peers(self.name, config.addresses, view, self, config.serve.max_message, mine)
        self.explainer = Explainer(self.com, self.peers, self.dispatch.since)
        self.peers.explain = self.explainer.asked
        self.sessions = Sessions(
            self.name,
            view,
            self.feed,
            self.naming,
            self.look,
            self.com.session,
            lambda: self.dispatch.crowded,
            self.guard,
            config.serve.limits,
        )
        self.gateway = Gateway(self.name, config, self.feed, self.naming, self.com.session, self.guard)
        self.failed: Exception | None = None  # why it stopped by itself
        self.has_failed = asyncio.Event()  # the same, to wait for
        self._step = self.com.step
        self._time: Callable[[], float]  # from start on
        self._stopping: asyncio.Task[None] | None = None
        self._server: Any = None
        self._ticking: asyncio.Task[None] | None = None
        self._carry: dict[type[Any], Callable[[Any], None]] = {
            Wake: lambda e: self.peers.lines[e.peer].wake(),
            Transmit: lambda e: self.peers.lines[e.peer].transmit(e.data),
            Deliver: self.dispatch.deliver,
            Stop: self.dispatch.cancel,
            Received: self._received,
            Accepted: self._accepted,
            Dropped: lambda e: log.debug("from %s: %s", e.peer, e.why),
        }

    # the way into the com layer, and out of it

    def feed(self, event: AnyEvent) -> None:
        try:
            effects = self._step(event, self._time())
        except OboError:
            raise  # nothing has changed
        except Exception as error:
            self._fail(error)
            return
        try:
            for effect in effects:
                if self.tracing is not None:
                    self.tracing.effect(effect)
                kind = type(effect)
                if kind in self._carry:
                    self._carry[kind](effect)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Nobody knows what state the com layer is in: from here on this node says nothing more, as if it had crashed.
        Peers and clients see their streams end; clients go on at another node."""
        if self.failed is not None:
            return
        self.failed = error
        self._step = _deaf
        log.critical("a fault of the framework: the node stops at once", exc_info=error)
        self.sessions.draining = True
        self.gateway.drain()
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop())
        self.has_failed.set()

    def _accepted(self, effect: Accepted) -> None:
        (self.gateway if effect.client in self.gateway else self.sessions).accepted(effect)

    def _received(self, effect: Received) -> None:
        if effect.complete:
            self._answer(effect, "")
        else:
            self.explainer.explain(effect, self._answer)

    def _answer(self, effect: Received, why: str) -> None:
        if effect.client:
            (self.gateway if effect.client in self.gateway else self.sessions).received(effect, why)
        else:
            self.dispatch.received(effect, why)

    def arrived(self, peer: NodeName, data: bytes) -> None:
        self.feed(Arrived(peer, data))

    def connected(self, peer: NodeName) -> None:
        self.feed(Connected(peer))

    def writable(self, peer: NodeName) -> None:
        self.feed(Writable(peer))

    def on_the_way(self, peer: NodeName) -> int:
        return self.com.links[peer].unacked * FRAME

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self.feed(Tick())

    # life

    async def start(self) -> None:
        self._time = asyncio.get_running_loop().time
        self.dispatch.start()
        most = options.server(self.config.serve.max_message)
        self._server = grpc.aio.server(options=most, interceptors=self.guard.interceptors())
        self.peers.serve_on(self._server)
        self.sessions.serve_on(self._server)
        await self.gateway.serve_on(self._server)
        where = self.config.listens(self.name)
        if not listen(self._server, where, self._tls):
            raise Unavailable(f"{self.name} cannot listen on {where}: is the port in use?")
        await self._server.start()
        self.peers.start()
        self._ticking = asyncio.ensure_future(self._tick())

    async def drain(self) -> None:
        """Take no more calls; return when those in flight are answered and nothing is running or waiting here."""
        self.sessions.draining = True
        self.gateway.drain()
        while self.failed is None and self.open():
            await asyncio.sleep(TICK)

    def open(self) -> list[str]:
        """What is not over; frames for a peer that cannot be reached do not count: nobody waits for them here."""
        links = [what for peer, what in open_links(self.com).items() if self.peers.up(peer)]
        return [*open_calls(self.com), *links, *self.explainer.open()]

    async def stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        # frames that were not acknowledged show in the peer's trace, if they are lost
        still = open_calls(self.com) if self.failed is None else []
        self.sessions.close()
        self.gateway.close()
        self.explainer.stop()
        if self._ticking is not None:
            self._ticking.cancel()
        await self.peers.stop()
        await self.dispatch.stop()
        if self._server is not None:
            await self._server.stop(0.2)
        if self.tracing is not None and self.failed is not None:
            self.tracing.abandon()
        elif self.tracing is not None:
            self.tracing.stop([(r, vars(s.object), s.performed) for r, s in self.residents.items()], still)
        self._workers.stop()

    # for people

    def look(self, what: str) -> bytes:
        return msgspec.msgpack.encode(looking.objects(self.config) if what == "objects" else self._status())

    def _status(self) -> dict[str, Any]:
        performed = {r: s.performed for r, s in self.residents.items()}
        told = looking.status(self.com, self.peers.lines, performed)
        return {**told, "clients": self.sessions.counts(), "invokes": self.gateway.in_flight}

    def object(self, replica: str) -> Any:
        """The object behind a replica of this node; for tests and tools."""
        return self.residents[Replica(replica)].object


def _deaf(event: AnyEvent, now: float) -> list[AnyEffect]:
    """In the place of ``Com.step`` of a node that has failed."""
    return []
