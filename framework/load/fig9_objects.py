"""The objects of P0 §6 for real nodes: the forest of calls of the simulator (framework/sim/fig9_workload.py), performed
over gRPC.

Every point of the figure has objects of its own, since a conflict ratio is a property of a class: ``s0u50c60-o3`` is
object 3 of the point with 50 % ucast and C = 60 of seed 0. So points do not disturb each other, and a trace tells by
the names which of them a message belongs to. Classes are made when a node asks for them by name: ``N6S0U50C60O3``.

What an instance does depends on the seed and its invocation alone, as in the simulator; so the same seed gives the same
calls here and there. A method is told its invocation by its caller: a client's name is not known before the run. Each
call is a transaction of its own, as in the simulator: else outcomes would be counted, and deadlocks aborted.
"""

import asyncio
import re
from functools import lru_cache
from typing import Any, ClassVar

from framework.declare import Object, conflict_matrix, method
from framework.sim.fig9_workload import Forest, Workload
from framework.sim.program import METHODS, Act, Kindred

UNIT = 0.001  # seconds for one unit of the simulator's time, where a method works
_CLASS = re.compile(r"N(\d+)S(\d+)U(\d+)C(\d+)O(\d+)\Z")


class Cell:
    """A point of the figure in one seed. ``ucast`` and ``conflict`` in percent."""

    def __init__(self, nodes: int, seed: int, ucast: int, conflict: int) -> None:
        self.seed, self.ucast, self.conflict = seed, ucast, conflict
        self.name = f"s{seed}u{ucast}c{conflict}"
        self._class = f"N{nodes}S{seed}U{ucast}C{conflict}O"
        objects = max(9, (3 * nodes + 1) // 2)  # one or two on each node, and three levels of three at least
        self.workload = Workload(conflict / 100, ucast / 100, nodes, objects)
        self.forest = Forest(str(seed), self.workload)

    def object_name(self, name: str) -> str:
        return f"{self.name}-{name}"

    def objects(self) -> dict[str, str]:
        """Name and class of each."""
        kindred = enumerate(self.forest.objects)
        return {self.object_name(o.name): f"{__name__}:{self._class}{i}" for i, o in kindred}

    def on(self) -> dict[str, list[str]]:
        return {self.object_name(o.name): [r.partition("@")[2] for r in o.replicas] for o in self.forest.objects}


@lru_cache(1024)
def cell(nodes: int, seed: int, ucast: int, conflict: int) -> Cell:
    return Cell(nodes, seed, ucast, conflict)


def parts(act: Act, caller: str, number: int) -> list[tuple[str, str, str]]:
    """Object, method and invocation of each request of an act that has this number among those of its caller."""
    return [(p.object, p.footprint.method, f"{caller}{number + j}") for j, p in enumerate(act.parts)]


class Fig9Object(Object):
    """Four methods; each calls objects of the next level, and works for a while."""

    cell: ClassVar[Cell]
    kindred: ClassVar[Kindred]

    def __init__(self) -> None:
        self.performed = dict.fromkeys(METHODS, 0)

    @method
    async def a(self, invocation: str) -> None:
        await self._perform("a", invocation)

    @method
    async def b(self, invocation: str) -> None:
        await self._perform("b", invocation)

    @method
    async def c(self, invocation: str) -> None:
        await self._perform("c", invocation)

    @method
    async def d(self, invocation: str) -> None:
        await self._perform("d", invocation)

    async def _perform(self, name: str, invocation: str) -> None:
        script = self.cell.forest.performed(invocation, self.kindred)
        number = 1
        for act in script.acts:
            await asyncio.sleep(act.pause * UNIT)
            await self._send(act, f"{invocation}.", number)
            number += len(act.parts)
        await asyncio.sleep(script.work * UNIT)
        self.performed[name] += 1
        await asyncio.sleep(script.work * UNIT)

    async def _send(self, act: Act, caller: str, number: int) -> None:
        orb: Any = self.orb  # in a coroutine its calls are awaited
        requests = [
            getattr(orb.object(self.cell.object_name(name)), called).request(invocation)
            for name, called, invocation in parts(act, caller, number)
        ]
        if act.transmission == "ucast":
            await orb.srec(await orb.ucast(requests[0], independent=True))
            return
        for reply in await orb.crec(await orb.pcast(*requests, independent=True)):
            if not reply.ok:
                raise reply.error


@lru_cache(4096)
def _made(name: str, nodes: int, seed: int, ucast: int, conflict: int, number: int) -> type[Fig9Object]:
    point = cell(nodes, seed, ucast, conflict)
    kindred = point.forest.objects[number]
    says = f"{point.name}, level {kindred.level}."
    inside = {"__module__": __name__, "__doc__": says, "cell": point, "kindred": kindred}
    made = type(name, (Fig9Object,), inside)
    rows = {m: tuple(sorted(kindred.relation.rows.get(m, ()))) for m in METHODS}
    declared: type[Fig9Object] = conflict_matrix(**rows)(made)
    return declared


def __getattr__(name: str) -> type[Fig9Object]:
    """The class of an object of a point, by its name."""
    found = _CLASS.match(name)
    if found is None:
        raise AttributeError(name)
    nodes, seed, ucast, conflict, number = map(int, found.groups())
    return _made(name, nodes, seed, ucast, conflict, number)
