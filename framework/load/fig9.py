"""``obo load fig9``: the evaluation of P0 §6 on real nodes, over gRPC. docs/fig9.md says what is measured.

The forest of calls is that of the simulator. Points run one after the other, each on objects of its own, so that each
has the nodes to itself as in the simulator; on every node one transaction comes after the other. ``run.toml`` lists the
points with the names of their objects: the share of messages that are not ordered is computed from the traces.
"""

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.analytics.columns import ClientRecord
from framework.errors import BadRequest, OboError
from framework.load.draw import Call
from framework.load.fig9_objects import UNIT, Cell, cell, parts
from framework.load.orders import Ready
from framework.load.plan import Plan
from framework.load.registry import FIG9
from framework.load.sender import Moment, Sender, home_for
from framework.load.target import Own
from framework.sim.fig9 import CURVES
from framework.sim.program import Act

if TYPE_CHECKING:
    from framework.load.worker import Worker

NODES = 6
START = 10.0  # units: the first transactions begin within this time
_ONLY = {"step", "seeds"}
_ALSO = {"workload", "seed", "timeout"}


def check_given(plan: Plan, names: Iterable[str]) -> None:
    """BadRequest at settings that mean nothing for this workload."""
    given = set(names)
    odd = sorted(given - _ONLY - _ALSO) if plan.workload == FIG9 else sorted(given & _ONLY)
    if odd and plan.workload == FIG9:
        raise BadRequest(f"fig9 has its own load: {', '.join(odd)} would change nothing; it takes step, seeds, timeout")
    if odd:
        raise BadRequest(f"{', '.join(odd)}: for fig9 alone, not for {plan.workload}")


def cells(plan: Plan, nodes: int) -> list[Cell]:
    """All points of a seed before the next seed."""
    ratios = sorted({*range(0, 100, plan.step), 100})
    seeds = range(plan.seed, plan.seed + plan.seeds)
    return [cell(nodes, s, round(100 * u), c) for s in seeds for u in CURVES for c in ratios]


def own_nodes(plan: Plan, nodes: int | None, logs: Path) -> Own:
    count = nodes or NODES
    points = cells(plan, count)
    objects = {name: cls for one in points for name, cls in one.objects().items()}
    on = {name: places for one in points for name, places in one.on().items()}
    return Own(count, objects, on, {}, logs)


async def drive(worker: "Worker") -> dict[str, Any]:
    """Every point; gives what ``run.toml`` says about them."""
    from framework.load.worker import say

    order, plan = worker.order, worker.plan
    points = cells(plan, len(order.addresses))
    say(Ready([]))
    if await worker.started() is None:
        return {}
    done: list[dict[str, Any]] = []
    for number, point in enumerate(points, 1):
        if worker.stopped.is_set():
            break
        worker.says = f"{number}/{len(points)}: C {point.conflict}, ucast {point.ucast}"
        done.append(await _point(worker, point))
    return {"fig9": {"unit": UNIT, "planned": len(points), "points": done}}


async def _point(worker: "Worker", point: Cell) -> dict[str, Any]:
    start = time.time()
    names = await asyncio.gather(*(_node(worker, point, i) for i in range(len(worker.order.addresses))))
    return {
        "seed": point.seed,
        "conflict": point.conflict / 100,
        "ucast": point.ucast / 100,
        "objects": point.object_name(""),  # what their names begin with
        "started": start,
        "finished": time.time(),
        "clients": [name for some in names for name in some],
    }


async def _node(worker: "Worker", point: Cell, node: int) -> list[str]:
    """The transactions of one node, one after the other: each is a client of its own."""
    clients: list[str] = []
    chance = point.forest.chance("start", f"n{node + 1}t1")
    await asyncio.sleep(chance.uniform(0.0, START) * UNIT)
    for i in range(point.workload.transactions):
        if worker.stopped.is_set():
            break
        home = home_for(worker.order.addresses, node, worker.plan.timeout, worker.credentials)
        sender = Sender(home, worker.order.found, worker.order.process, FIG9, worker.plan.timeout)
        clients.append(sender.client)
        try:
            await home.reached()
            await _transaction(worker, point, sender, f"n{node + 1}t{i + 1}")
        finally:
            await sender.close()
    return clients


async def _transaction(worker: "Worker", point: Cell, sender: Sender, name: str) -> None:
    number = 1
    for act in point.forest.client(name):
        await asyncio.sleep(act.pause * UNIT)
        await _act(worker, point, sender, act, f"{name}/", number)
        number += len(act.parts)


async def _act(worker: "Worker", point: Cell, sender: Sender, act: Act, caller: str, number: int) -> None:
    calls = [Call(point.object_name(o), m, (invocation,)) for o, m, invocation in parts(act, caller, number)]
    first = calls[0]
    call = Call(first.object, first.method, first.args, also=tuple(calls[1:]), way=act.transmission)
    over = asyncio.Event()
    moment = Moment(time.time(), "run", point.conflict / 100, point.ucast / 100)
    came: list[ClientRecord] = []
    sender.send(call, "sync", moment, came.append, over.set)
    await over.wait()
    worker.tally.take(came[0])
    if came[0].status != "ok":
        raise OboError(f"{point.name}: {call.object}.{call.method}: {came[0].status}: {came[0].detail}")
