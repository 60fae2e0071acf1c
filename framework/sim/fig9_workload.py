"""The workload of P0 §6: what each computer, object, method and transaction of the evaluation is.

P0 gives: one or two objects on each computer, four methods each, transactions started on every computer, calls nested
three deep, receipt by crec, the conflict ratio C, the share of requests by ucast. It does not give the rest; every
number chosen here is a field of ``Workload`` and is printed with the results.

One seed gives one forest of calls: which transaction calls which methods of which objects depends neither on C nor on
the transmission. So points of one seed differ by what is measured and by nothing else. An instance with k requests
sends them one after the other (k ucasts, each waits for its response), or by one act with k destinations.

Objects are not replicated, as in P0 §6. mcast then means what P0 §3.1 says: one request to several *objects*. The com
layer calls every act with several objects a pcast, so an mcast is a pcast of equal methods.
"""

from random import Random

import msgspec

from framework.com.events import Outgoing
from framework.com.messages import Request
from framework.com.receipt import CREC, SREC
from framework.errors import BadRequest
from framework.footprint import Footprint, Relation
from framework.ids import Node, ObjectName, replica
from framework.sim.actors import Actors, placements
from framework.sim.ledger import Ledger
from framework.sim.program import METHODS, Act, Kindred, Program, Script, Shape
from framework.sim.runners import ClientRunner
from framework.sim.world import World
from framework.trace.files import Trace

DEPTH = 3  # P0 §6: "every method is invoked at three levels"
PAIRS = tuple((a, b) for n, a in enumerate(METHODS) for b in METHODS[n:])  # ten, a method with itself included


class Workload(msgspec.Struct, frozen=True):
    """All that P0 leaves open, and the two things it varies."""

    conflict: float = 0.6  # C: share of the ten pairs of methods that conflict, exact
    ucast: float = 1.0  # share of the requests by ucast; of the others half are by mcast, half by pcast
    nodes: int = 6
    objects: int = 9  # between nodes and twice as many: one or two on each
    transactions: int = 3  # on each node, one after the other
    least: int = 2  # requests that a transaction or method sends, to different objects
    most: int = 3

    def __post_init__(self) -> None:
        if not (0 <= self.conflict <= 1 and 0 <= self.ucast <= 1):
            raise BadRequest(f"conflict {self.conflict} and ucast {self.ucast} are shares, between 0 and 1")
        if self.nodes < 1 or self.transactions < 1 or not 1 <= self.least <= self.most:
            raise BadRequest("nodes, transactions and least are at least 1, and most at least least")
        if not self.nodes <= self.objects <= 2 * self.nodes:
            raise BadRequest(f"{self.objects} objects on {self.nodes} nodes: each has one or two")
        if self.objects // DEPTH < self.most:
            raise BadRequest(
                f"{self.objects} objects on {DEPTH} levels: too few for {self.most} requests to different ones of a "
                f"level; at least {DEPTH * self.most}"
            )


class Unfinished(RuntimeError):
    """A run without faults did not come to an end: a defect, not a result."""


class Forest(Program):
    """The objects and the calls of one seed."""

    def __init__(self, seed: str, workload: Workload) -> None:
        self.workload = workload
        self._slots = _slots(Random(f"{seed}/slots"), workload)
        self._shares = _shares(Random(f"{seed}/shares"), workload)
        shape = Shape(nodes=workload.nodes, objects=workload.objects, levels=DEPTH, ucast=workload.ucast, repeat=0.0)
        super().__init__(seed, shape)

    def _object(self, chance: Random, i: int) -> Kindred:
        """Pairs come in a random order of the seed and the first ones conflict: a higher C only adds conflicts."""
        name = ObjectName(f"o{i + 1}")
        level = 1 + i * DEPTH // self.workload.objects
        pairs = chance.sample(PAIRS, len(PAIRS))[: self._shares[i]]
        where = (replica(name, Node(self._slots[i])),)
        return Kindred(name, level, where, Relation(pairs), frozenset(), frozenset(), False)

    def client(self, name: str) -> list[Act]:
        return self._acts(f"client/{name}", 1)

    def script(self, request: Request, at: Kindred, footprint: Footprint) -> Script:
        return self.performed(str(request.invocation), at)

    def performed(self, invocation: str, at: Kindred) -> Script:
        """What the instance of this invocation does; also on real nodes (framework/load/fig9_objects.py)."""
        acts = self._acts(f"call/{invocation}", at.level + 1) if at.level < DEPTH else []
        return Script(tuple(acts), self.chance("work", invocation).uniform(0.0, 3.0), True)

    def _acts(self, who: str, level: int) -> list[Act]:
        chance = self.chance(who)
        able = [o for o in self.objects if o.level == level]
        count = chance.randint(self.workload.least, self.workload.most)
        targets = [(o, chance.choice(METHODS)) for o in chance.sample(able, count)]
        pauses = [chance.uniform(0.0, 2.0) for _ in targets]
        how = self.chance("how", who)
        if how.random() < self.workload.ucast:
            return [
                Act("sync", "ucast", (_part(o, m),), SREC, pause) for (o, m), pause in zip(targets, pauses, strict=True)
            ]
        if how.random() < 0.5:
            targets = [(o, targets[0][1]) for o, _ in targets]  # mcast: the same request to all
        return [Act("sync", "pcast", tuple(_part(o, m) for o, m in targets), CREC, pauses[0])]


def _part(o: Kindred, method: str) -> Outgoing:
    return Outgoing(o.name, Footprint(method), b"", o.replicas)


def _slots(chance: Random, workload: Workload) -> list[str]:
    """Where each object is: every node has one, some have two."""
    nodes = [f"n{i + 1}" for i in range(workload.nodes)]
    slots = nodes + chance.sample(nodes, workload.objects - workload.nodes)
    chance.shuffle(slots)
    return slots


def _shares(chance: Random, workload: Workload) -> list[int]:
    """How many of the ten pairs conflict, per object. Where C is between tenths, some objects have one more, so that
    the ratio over all objects is as near as whole pairs allow."""
    total = round(workload.conflict * len(PAIRS) * workload.objects)
    least, more = divmod(total, workload.objects)
    shares = [least + (i < more) for i in range(workload.objects)]
    chance.shuffle(shares)
    return shares


class Transaction(ClientRunner):
    """One transaction: a thread of init-tran (P0 §2). When it is over, the next one of its node starts."""

    def __init__(self, actors: "Transactions", name: str, home: Node, acts: tuple[Act, ...]) -> None:
        super().__init__(actors.world, actors.program, name, home, acts)
        self.follower: Transaction | None = None

    def _finished(self) -> None:
        self.over = True
        if self.follower is not None:
            self.follower.go()


class Transactions(Actors):
    """Performs a forest: on every node one transaction after the other."""

    def __init__(self, world: World, forest: Forest) -> None:
        self.world = world
        self.program = forest
        self.ledgers = {r: Ledger(o.relation) for o in forest.objects for r in o.replicas}
        self.running = {}
        self.performed = {}
        self.clients = {}
        world.performer = self
        for node in world.nodes:
            last: Transaction | None = None
            for i in range(forest.workload.transactions):
                name = f"{node}t{i + 1}"
                one = Transaction(self, name, node, tuple(forest.client(name)))
                self.clients[name] = one
                if last is None:
                    world.after(forest.chance("start", name).uniform(0.0, 10.0), one.go)
                else:
                    last.follower = one
                last = one


def traces(seed: int, workload: Workload) -> list[Trace]:
    """What happens in the world of this seed: the real com layer, no faults."""
    forest = Forest(str(seed), workload)
    world = World(str(seed), forest.nodes, placements(forest))
    Transactions(world, forest)
    if not world.run(1e6):
        raise Unfinished(f"seed {seed} with {workload} did not come to an end by time {world.now:.0f}")
    return world.traces()
