"""A seeded world that drives the same com/ as a server does, and attacks it.

One heap of things to happen, one source of chance per purpose, no clock but the heap's: one seed, one run, byte for
byte (A11). The world performs instances (``Performer``), lets clients act, carries frames over wires with faults
(framework.sim.faults), pauses nodes, and records what happens exactly as a server would.
"""

import heapq
from collections.abc import Callable
from functools import partial
from random import Random

import msgspec

from framework.com.events import Arrived, Tick
from framework.com.link import Timing
from framework.com.view import Directory, Placement, View
from framework.ids import Node
from framework.sim.faults import Cut, Delay, Duplication, Fifo, Loss, Slow, Wire
from framework.sim.left import Left
from framework.sim.node import SimNode
from framework.sim.performer import Performer
from framework.sim.transfer import Transfers
from framework.sim.upheaval import Upheaval
from framework.trace.files import Trace
from framework.trace.still_open import still_open

#: Time here has no unit; a message takes 1 to 10. Without faults of the group nobody is ever suspected.
TIMING = Timing(delta=25.0, ask_after=8.0, resend_after=60.0, suspect_after=1e9, hold_most=3000.0)
WATCHFUL = msgspec.structs.replace(TIMING, suspect_after=120.0)
TICK = 12.0


class Faults(msgspec.Struct, frozen=True):
    """What goes wrong, and how much of it."""

    loss: float = 0.0
    duplication: float = 0.0
    reorder: bool = False  # frames of one wire overtake each other, too
    cuts: int = 0  # a pair of nodes cut from each other for a while
    pauses: int = 0  # a node that stands still for a while
    slow: int = 0  # a node whose frames are late for a while
    crashes: int = 0  # a node loses all it has; mostly it comes back as a new life
    late: int = 0  # nodes that are not there from the beginning
    leaves: int = 0  # a node leaves the group in order, and comes back
    evicts: int = 0  # a member is put out of the group by another one
    partitions: int = 0  # the nodes fall into two sides for a while
    freezes: int = 0  # a node stands still for so long that it may be taken for dead
    lags: int = 0  # a node whose frames are so late that it may be taken for dead
    havoc: bool = False  # crashes come together, also of a majority
    blackouts: int = 0  # all nodes crash at the same moment
    uneven: bool = False  # links differ by far in their delay
    horizon: float = 0.0  # faults happen before this; 0: the usual time
    wipes: int = 0  # the same, and all disks are lost: a group begins that knows nothing of the one before

    @property
    def members(self) -> bool:
        """Does the group change?"""
        quiet = (self.late, self.leaves, self.evicts, self.partitions, self.freezes, self.lags)
        return any((self.crashes, self.blackouts, self.wipes, *quiet))

    @property
    def punctual(self) -> bool:
        """Is every message in time, and every node that is alive at work, so that a delay has no other cause?"""
        links = (self.loss, self.duplication, self.reorder, self.cuts, self.pauses, self.slow, self.uneven)
        dark = self.blackouts, self.wipes
        return not any((*links, self.partitions, self.freezes, self.lags, self.havoc, *dark))


NO_FAULTS = Faults()


class World:
    def __init__(
        self,
        seed: str,
        nodes: list[str],
        placements: list[Placement],
        faults: Faults = NO_FAULTS,
        left: Left | None = None,
    ) -> None:
        """``left``: what is left of ``nodes`` and ``faults``; of the placements, only those that are left are given."""
        self.seed = seed
        self.now = 0.0
        self.left = left = left or Left()
        self.faults = faults = _left_of(faults, left)
        self.performer: Performer
        self.batching = Random(f"{seed}/batching")
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.drawn = [Node(n) for n in nodes]  # also those that are not left
        every = tuple([n for n in self.drawn if left.has(f"node {n}")])
        formation = Random(f"{seed}/formation").randbytes(16)
        late = sum(left.has(f"fault late {i}") for i in range(faults.late))
        view = View(1, every[: max(1, len(every) - late)], formation=formation)
        self.directory = Directory(view, placements, every)
        self.timing = WATCHFUL if faults.members else TIMING
        self.nodes = {n: SimNode(self, n) for n in every}
        for name in view.members:
            self.nodes[name].live(self.directory)
        self._wires: dict[tuple[Node, Node], Wire] = {}
        self._cuts: list[tuple[Node, Node, float, float]] = []
        self.horizon = faults.horizon or (1200.0 if faults.members else 400.0)  # faults happen before this
        self.earlier: list[list[Trace]] = []  # of groups that have lost all, each judged by itself
        self.story: list[tuple[float, float, str]] = []  # faults with a beginning and an end, for people
        self.on_transmit: Callable[[Node, Node, float, list[float]], None] | None = None
        self._make_wires()
        self.transfers = Transfers(self)
        self.upheaval = Upheaval(self)

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
        drawn = self.drawn
        for i in range(self.faults.cuts if len(drawn) > 1 else 0):
            a, b = chance.sample(drawn, 2)
            start, end = self._window(chance, 250.0)
            if self.happens(f"cut {i}", a, b):
                self.cut(a, b, start, end)
        for i in range(self.faults.slow if len(drawn) > 1 else 0):
            a = chance.choice(drawn)
            start, end = self._window(chance, 200.0)
            if not self.happens(f"slow {i}", a):
                continue
            for b in names:
                if a != b:
                    self.wrap(a, b, partial(Slow, start=start, end=end, extra=80.0))
            self.story.append((start, end, f"frames from {a} are late"))
        for i in range(self.faults.pauses):
            a = chance.choice(drawn)
            start, end = self._window(chance, 120.0)
            if self.happens(f"pause {i}", a):
                self.pause(a, start, end)

    def happens(self, fault: str, *nodes: Node) -> bool:
        """Is this fault left, and all that it happens to?"""
        return all(n in self.nodes for n in nodes) and self.left.has(f"fault {fault}", " ".join(nodes))

    def pause(self, node: Node, start: float, end: float) -> None:
        def stand() -> None:
            self.nodes[node].paused_until = max(self.nodes[node].paused_until, end)

        self.at(start, stand)
        self.story.append((start, end, f"{node} stands still"))

    def cut(self, a: Node, b: Node, start: float, end: float) -> None:
        self.sever(a, b, start, end)
        self.story.append((start, end, f"{a} and {b} are cut from each other"))

    def sever(self, a: Node, b: Node, start: float, end: float) -> None:
        for pair in ((a, b), (b, a)):
            self.wrap(*pair, lambda wire: Cut(wire, start, end))
        self._cuts.append((a, b, start, end))

    def wrap(self, a: Node, b: Node, how: Callable[[Wire], Wire]) -> None:
        """Another fault on the wire from a to b."""
        self._wires[(a, b)] = how(self._wires[(a, b)])

    def reaches(self, a: Node, b: Node) -> bool:
        """Is nothing cut between the two now?"""
        return not any({a, b} == {c, d} and start <= self.now < end for c, d, start, end in self._cuts)

    def _window(self, chance: Random, longest: float) -> tuple[float, float]:
        start = chance.uniform(5.0, self.horizon / 2)
        return start, min(start + chance.uniform(10.0, longest), self.horizon)

    def _wire(self, a: Node, b: Node) -> Wire:
        def chance(what: str) -> Random:
            return Random(f"{self.seed}/wire/{a}/{b}/{what}")

        faults = self.faults
        base = chance("base").choice([0.5, 1.0, 3.0, 9.0, 25.0]) if faults.uneven else chance("base").uniform(1.0, 4.0)
        wire: Wire = Delay(chance("delay"), base, base * chance("spread").uniform(1.0, 4.0))
        if not faults.reorder:
            wire = Fifo(wire)
        if faults.duplication:
            wire = Duplication(wire, chance("duplication"), faults.duplication)
        if faults.loss:
            # who loses too much is taken for dead: where that counts, it ends like every other fault
            wire = Loss(wire, chance("loss"), faults.loss, self.horizon if faults.members else float("inf"))
        return wire

    def transmit(self, source: Node, target: Node, data: bytes) -> None:
        arrivals = self._wires[(source, target)].carry(data, self.now)
        if self.on_transmit is not None:
            self.on_transmit(source, target, self.now, [at for at, _ in arrivals])
        for at, what in arrivals:
            self._arrive(source, target, at, what)

    def _arrive(self, source: Node, target: Node, at: float, data: bytes) -> None:
        node = self.nodes[target]
        starts = node.starts

        def arrive() -> None:
            if node.starts == starts:  # else it is lost with the process that it was sent to
                node.step(Arrived(source, data))

        self.at(at, arrive)

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
        if self.faults.members and (self.now < self.horizon or not self.upheaval.settled()):
            return False
        return not any(still_open(n.com) for n in self.nodes.values() if n.com is not None)

    def _stop(self) -> None:
        for name, node in self.nodes.items():
            if node.com is None:
                continue
            for replica, digest, performed in self.performer.states(name):
                if replica not in node.com.unready:
                    node.recorder.write(
                        round(self.now, 3), event="state", replica=replica, digest=digest, performed=performed
                    )
            node.recorder.stop(round(self.now, 3), tuple(still_open(node.com)))

    def lose_all(self) -> None:
        """Every node loses all that it has, on disk, too. Clients go on."""
        for node in self.nodes.values():
            node.lose_all()
        self.earlier.append(self.traces())
        for node in self.nodes.values():
            node.traces = []

    def traces(self) -> list[Trace]:
        """One for each life of each node, of the group that there is now."""
        return [trace for node in self.nodes.values() for trace in node.traces]


def _left_of(faults: Faults, left: Left) -> Faults:
    """Without what wires do to every frame, and without havoc, if that is not left."""
    nothing = {"loss": 0.0, "duplication": 0.0, "reorder": False, "havoc": False}
    gone = [name for name in nothing if getattr(faults, name) and not left.has(f"fault {name}")]
    return msgspec.structs.replace(faults, **{name: nothing[name] for name in gone})
