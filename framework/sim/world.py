"""A seeded world that drives the same com/ as a server does, and attacks it.

One heap of things to happen, one source of chance per purpose, no clock but the heap's: one seed, one run, byte for
byte (A11). The world performs instances (``Performer``), lets clients act, carries frames over wires with faults
(framework.sim.faults), pauses nodes, and records what happens exactly as a server would.
"""

import heapq
from collections import deque
from collections.abc import Callable
from random import Random

import msgspec

from framework.com.core import Com
from framework.com.events import (
    Accepted,
    AnyEffect,
    AnyEvent,
    Arrived,
    Deliver,
    Received,
    Stop,
    Tick,
    Transmit,
    Wake,
    Writable,
)
from framework.com.link import Timing
from framework.com.view import Directory, Placement, View
from framework.ids import Node
from framework.sim.faults import Cut, Delay, Duplication, Fifo, Loss, Slow, Wire
from framework.trace.files import Trace
from framework.trace.record import Record
from framework.trace.recorder import Recorder, header
from framework.trace.still_open import still_open

#: Time here has no unit; a message takes 1 to 10.
TIMING = Timing(delta=25.0, ask_after=8.0, resend_after=60.0)
TICK = 12.0


class Faults(msgspec.Struct, frozen=True):
    """What goes wrong, and how much of it."""

    loss: float = 0.0
    duplication: float = 0.0
    reorder: bool = False  # frames of one wire overtake each other, too
    cuts: int = 0  # a pair of nodes cut from each other for a while
    pauses: int = 0  # a node that stands still for a while
    slow: int = 0  # a node whose frames are late for a while


NO_FAULTS = Faults()


class Performer:
    """What the world asks for when instances are to be performed and receipts complete. See sim.actors."""

    def deliver(self, node: "SimNode", effect: Deliver) -> None:
        raise NotImplementedError

    def received(self, node: "SimNode", effect: Received) -> None:
        raise NotImplementedError

    def stopped(self, node: "SimNode", effect: Stop) -> None:
        """Nobody waits for an instance any more; who does not look runs to the end."""

    def accepted(self, node: "SimNode", effect: Accepted) -> None:
        """A client's call has left; for performers whose clients move between nodes."""

    def busy(self) -> bool:
        raise NotImplementedError

    def states(self, node: Node) -> list[tuple[str, str, int]]:
        """(replica, digest, requests performed) of the replicas on this node."""
        raise NotImplementedError


class SimNode:
    """A node of the world: its com layer, its records, and whether it stands still."""

    def __init__(self, world: "World", node: Node, directory: Directory) -> None:
        self.world = world
        self.name = node
        self.com = Com(node, directory, TIMING)
        self.trace = Trace(header(node, directory), [])
        self.recorder = Recorder(node, directory.view.version, self._record)
        self.paused_until = 0.0
        self._woken: set[Node] = set()
        self._inbox: deque[AnyEvent] = deque()
        self._working = False

    def _record(self, record: Record) -> None:
        self.trace.records.append(record)

    def step(self, event: AnyEvent) -> None:
        """Feed an event, or keep it until the node goes on."""
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
            event = self._inbox.popleft()
            if type(event) is Writable:
                self._woken.discard(event.peer)
            for effect in self.com.step(event, now):
                self._carry_out(effect)
        self._working = False
        if self._inbox:  # a later pause began while it stood still
            self.world.at(self.paused_until, self._work)

    def _carry_out(self, effect: AnyEffect) -> None:
        world = self.world
        if type(effect) is Transmit:
            world.transmit(self.name, effect.peer, effect.data)
            return
        if type(effect) is Wake:
            if effect.peer not in self._woken:
                peer = effect.peer
                self._woken.add(peer)
                world.after(world.batching.uniform(0.0, 1.5), lambda: self.step(Writable(peer)))
            return
        self.recorder.effect(effect, round(world.now, 3))
        if type(effect) is Deliver:
            world.performer.deliver(self, effect)
        elif type(effect) is Received:
            world.performer.received(self, effect)
        elif type(effect) is Stop:
            world.performer.stopped(self, effect)
        elif type(effect) is Accepted:
            world.performer.accepted(self, effect)


class World:
    def __init__(self, seed: str, nodes: list[str], placements: list[Placement], faults: Faults = NO_FAULTS) -> None:
        self.seed = seed
        self.now = 0.0
        self.faults = faults
        self.performer: Performer
        self.batching = Random(f"{seed}/batching")
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        view = View(1, tuple(Node(n) for n in nodes))
        self.directory = Directory(view, placements)
        self.nodes = {Node(n): SimNode(self, Node(n), self.directory) for n in nodes}
        self._wires: dict[tuple[Node, Node], Wire] = {}
        self.horizon = 400.0  # faults happen before this
        self.story: list[tuple[float, float, str]] = []  # faults with a beginning and an end, for people
        self.on_transmit: Callable[[Node, Node, float, list[float]], None] | None = None
        self._make_wires()

    # time

    def at(self, when: float, do: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, do))

    def after(self, delay: float, do: Callable[[], None]) -> None:
        self.at(self.now + delay, do)

    # the network

    def _make_wires(self) -> None:
        """A new source of chance for each wire and fault: adding one does not shift the others."""
        names = list(self.nodes)
        for a in names:
            for b in names:
                if a != b:
                    self._wires[(a, b)] = self._wire(a, b)
        chance = Random(f"{self.seed}/cuts")
        for _ in range(self.faults.cuts if len(names) > 1 else 0):
            a, b = chance.sample(names, 2)
            start, end = self._window(chance, 250.0)
            for pair in ((a, b), (b, a)):
                self._wires[pair] = Cut(self._wires[pair], start, end)
            self.story.append((start, end, f"{a} and {b} are cut from each other"))
        for _ in range(self.faults.slow if len(names) > 1 else 0):
            a = chance.choice(names)
            start, end = self._window(chance, 200.0)
            for b in names:
                if a != b:
                    self._wires[(a, b)] = Slow(self._wires[(a, b)], start, end, 80.0)
            self.story.append((start, end, f"frames from {a} are late"))
        for _ in range(self.faults.pauses):
            self.pause(chance.choice(names), *self._window(chance, 120.0))

    def pause(self, node: Node, start: float, end: float) -> None:
        def stand() -> None:
            self.nodes[node].paused_until = max(self.nodes[node].paused_until, end)

        self.at(start, stand)
        self.story.append((start, end, f"{node} stands still"))

    def cut(self, a: Node, b: Node, start: float, end: float) -> None:
        for pair in ((a, b), (b, a)):
            self._wires[pair] = Cut(self._wires[pair], start, end)
        self.story.append((start, end, f"{a} and {b} are cut from each other"))

    def _window(self, chance: Random, longest: float) -> tuple[float, float]:
        start = chance.uniform(5.0, self.horizon / 2)
        return start, min(start + chance.uniform(10.0, longest), self.horizon)

    def _wire(self, a: Node, b: Node) -> Wire:
        def chance(what: str) -> Random:
            return Random(f"{self.seed}/wire/{a}/{b}/{what}")

        faults = self.faults
        base = chance("base").uniform(1.0, 4.0)
        wire: Wire = Delay(chance("delay"), base, base * chance("spread").uniform(1.0, 4.0))
        if not faults.reorder:
            wire = Fifo(wire)
        if faults.duplication:
            wire = Duplication(wire, chance("duplication"), faults.duplication)
        if faults.loss:
            wire = Loss(wire, chance("loss"), faults.loss)
        return wire

    def transmit(self, source: Node, target: Node, data: bytes) -> None:
        arrivals = self._wires[(source, target)].carry(data, self.now)
        if self.on_transmit is not None:
            self.on_transmit(source, target, self.now, [at for at, _ in arrivals])
        for at, what in arrivals:
            self._arrive(source, target, at, what)

    def _arrive(self, source: Node, target: Node, at: float, data: bytes) -> None:
        self.at(at, lambda: self.nodes[target].step(Arrived(source, data)))

    # running

    def run(self, limit: float = 60000.0) -> bool:
        """Until nothing is left to do. False if that is not reached by ``limit``: then something is stuck."""
        for i, node in enumerate(self.nodes.values()):
            self.at(TICK * (i + 1) / (len(self.nodes) + 1), self._ticker(node))
        while self._heap:
            when, _, do = heapq.heappop(self._heap)
            if when > limit:
                break
            self.now = when
            do()
            if self._done:
                break
        self._stop()
        return self._done

    _done = False

    def _ticker(self, node: SimNode) -> Callable[[], None]:
        def tick() -> None:
            node.step(Tick())
            if not self._drained():
                self.after(TICK, tick)
            else:
                self._done = True

        return tick

    def _drained(self) -> bool:
        if self.performer.busy() or self.now < max((end for _, end, _ in self.story), default=0.0):
            return False
        return not any(still_open(n.com) for n in self.nodes.values())

    def _stop(self) -> None:
        for name, node in self.nodes.items():
            for replica, digest, performed in self.performer.states(name):
                node.recorder.write(
                    round(self.now, 3), event="state", replica=replica, digest=digest, performed=performed
                )
            node.recorder.stop(round(self.now, 3), tuple(still_open(node.com)))

    def traces(self) -> list[Trace]:
        return [n.trace for n in self.nodes.values()]
