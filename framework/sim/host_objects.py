"""Real objects in the seeded world: their methods are performed when the com layer delivers, with faults all around.

    hosts = host(7, {"bank": Bank}, faults=Faults(loss=0.2))

    def ann(me: Client) -> Script:
        yield me.call("bank", "deposit", "ann", 5)      # waits for the answer
        read = me.call("bank", "balance", "ann")
        yield read
        assert read.result() == 5
        yield 10.0                                       # lets time pass

    hosts.client("ann", "n1", ann)
    hosts.world.cut(Node("n1"), Node("n3"), 5.0, 60.0)
    assert not hosts.run().violations
    assert hosts["bank@n1"].accounts == hosts["bank@n2"].accounts

A method runs at once and whole; then its instance stays open for a while, so that others come while it is running.
Methods that call other objects (``self.orb``) cannot be performed here.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from inspect import iscoroutine
from random import Random
from typing import Any, NoReturn
from uuid import UUID

from framework.com.events import Completed, Deliver, Received
from framework.com.view import Placement
from framework.declare import Method, Object, declaration, performing
from framework.errors import BadRequest, NoSuchObject
from framework.ids import Node, ObjectName, Replica, node_of, object_of
from framework.sim.client import Call, Client, Script
from framework.sim.node import SimNode
from framework.sim.oracle import judge
from framework.sim.performer import Performer
from framework.sim.verdict import Verdict, Violation
from framework.sim.world import NO_FAULTS, Faults, World
from framework.trace.digest import digest

NODES = ("n1", "n2", "n3")


def host(
    seed: int | str,
    objects: Mapping[str, Callable[[], Object]],
    nodes: Sequence[str] = NODES,
    on: Mapping[str, Sequence[str]] | None = None,
    faults: Faults = NO_FAULTS,
) -> "Hosts":
    """A world with these objects, not yet run. ``objects``: what makes each of them, mostly its class; ``on``: the
    nodes of those that are not on all of them."""
    where = on or {}
    placements = [
        Placement(name, declaration(type(make())).relation, where.get(name, nodes)) for name, make in objects.items()
    ]
    return Hosts(World(str(seed), list(nodes), placements, faults), objects)


class Hosts(Performer):
    """Performs real objects. ``hosts["bank@n1"]`` is the object on n1."""

    def __init__(self, world: World, objects: Mapping[str, Callable[[], Object]]) -> None:
        if world.faults.members:
            raise BadRequest(f"objects hosted by the simulator cannot live with changes of the group: {world.faults}")
        self.world = world
        self.clients: dict[str, Client] = {}
        self.on_received: Callable[[Client, Call], None] | None = None
        self.told: dict[str, str] = {}  # what came of a call, by replica and invocation: for people
        self._replicas: dict[Replica, Object] = {
            r: objects[p.name]() for p in world.directory.objects.values() for r in p.replicas
        }
        self._performed: dict[Replica, int] = dict.fromkeys(self._replicas, 0)
        self._running = 0
        world.performer = self

    def __getitem__(self, replica: str) -> Any:
        return self._replicas[Replica(replica)]

    @property
    def replicas(self) -> list[Replica]:
        return list(self._replicas)

    def client(self, name: str, home: str, script: Callable[[Client], Script], start: float = 0.0) -> Client:
        """A client that begins its script after ``start``."""
        if name in self.clients:
            raise BadRequest(f"there is a client {name} already")
        client = self.clients[name] = Client(self, name, home, script)
        self.world.after(start, client.go)
        return client

    def run(self, limit: float = 20000.0) -> Verdict:
        """Until nothing is left to do; then the oracle's verdict."""
        drained = self.world.run(limit)
        verdict = judge(self.world.traces())
        if not drained and not any(v.rule == "A8" for v in verdict.violations):
            verdict.violations.append(Violation("A8", f"the run did not come to an end by time {self.world.now:.0f}"))
        return verdict

    def placed(self, name: str) -> Placement:
        found = self.world.directory.objects.get(ObjectName(name))
        if found is None:
            raise NoSuchObject(f"no object {name!r}; there are: {', '.join(self.world.directory.objects)}")
        return found

    def method(self, name: str, method: str) -> Method:
        return declaration(type(self._replicas[self.placed(name).replicas[0]])).method(method)

    def digest(self, replica: str) -> str:
        return digest(vars(self._replicas[Replica(replica)]))

    # what the world asks for

    def deliver(self, node: SimNode, effect: Deliver) -> None:
        self._running += 1
        ok, body = (False, b"Aborted: cancelled") if effect.cancelled else self._perform(effect)
        called = f"{effect.replica}/{effect.request.invocation}"
        work = Random(f"{self.world.seed}/effort/{called}").uniform(0.5, 4.0)
        output = ok and self.method(object_of(effect.replica), effect.footprint.method).returns_value
        if not ok:
            self.told[called] = body.decode()

        def complete() -> None:
            self._running -= 1
            node.step(Completed(effect.sid, ok, body, output))

        self.world.after(work, complete)

    def _perform(self, effect: Deliver) -> tuple[bool, bytes]:
        """Whole, or without a trace: what a method that raises has changed is put back (A4)."""
        target = self._replicas[effect.replica]
        before = deepcopy(vars(target))
        try:
            method = declaration(type(target)).method(effect.footprint.method)
            values = method.unpack(effect.request.args)
            with performing(_Surroundings(f"{self.world.seed}/{effect.request.invocation}", method.where)):
                result = getattr(target, method.name)(*values)
                if iscoroutine(result):
                    result = _finish(result)
            body = method.pack_result(result)
        except Exception as error:
            vars(target).clear()
            vars(target).update(before)
            return False, f"{type(error).__name__}: {error}".encode()
        self._performed[effect.replica] += 1
        return True, body

    def received(self, node: SimNode, effect: Received) -> None:
        self.clients[effect.client].received(effect)

    def busy(self) -> bool:
        return self._running > 0 or not all(c.over for c in self.clients.values())

    def states(self, node: Node) -> list[tuple[str, str, int]]:
        return [(r, self.digest(r), self._performed[r]) for r in self._replicas if node_of(r) == node]


class _Surroundings:
    """What a method sees beside its object; from the invocation alone, so the same on every replica."""

    def __init__(self, seed: str, where: str) -> None:
        self._chance = Random(seed)
        self._where = where

    @property
    def orb(self) -> NoReturn:
        raise BadRequest(f"{self._where}: objects hosted by the simulator cannot call other objects")

    def now(self) -> float:
        return 1_700_000_000.0 + self._chance.randrange(1000)

    def random(self) -> float:
        return self._chance.random()

    def uuid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)


def _finish(coroutine: Any) -> Any:
    """An async method here has nothing to wait for, but may give way."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as done:
        return done.value
