"""``obo bench sql`` from start to end: processes, rounds, what the tables hold, and what comes out of it."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import msgspec

from framework import connect
from framework.bench.measure import Judged
from framework.bench.sql import LOST, RATIOS, TARGETS, Bench, Plan, Progress, Row
from framework.bench.sql_processes import running
from framework.bench.sql_side import DATABASE, REPLICAS, TIMEOUT
from framework.testing.sql_work import COUNTED


class Held(msgspec.Struct):
    """What the tables of one replica hold at the end."""

    counted: dict[str, int]
    lost: dict[str, int]  # acknowledged, and not there
    twice: dict[str, int]  # there, and not acknowledged; or a call that failed was performed
    digests: dict[str, str]  # by table


class Result(msgspec.Struct):
    """What ``--json`` writes. A ratio that was not measured is null."""

    ratios: dict[str, float | None]
    spread: dict[str, tuple[float, float] | None]  # least and largest of the rounds
    targets: dict[str, Judged]
    rows: list[Row]
    acknowledged: dict[str, int]  # inserts and updates of all rows
    replicas: dict[str, Held]
    digests_equal: bool
    notes: list[str]
    plan: Plan
    machine: dict[str, str | int | None] = {}


def measure(plan: Plan, progress: Progress) -> Result:
    """Start everything, measure, look at what is left, end everything."""
    with running(plan.payload) as (systems, addresses, notes):
        bench = Bench(plan, systems, progress)
        bench.notes += notes
        bench.run()
        progress("comparing the replicas")
        replicas = held(addresses, bench.acknowledged)
    return result(bench, replicas)


def reports(plan: Plan) -> int:
    """How many progress reports ``measure`` makes, at most."""
    turns, others = (len(rows(("obo", "sqlite", "postgres"))) for rows in (plan.turns, plan.once))
    return turns * (plan.rounds + 1) + 2 * others + 1


def held(addresses: Sequence[str], acknowledged: dict[str, int]) -> dict[str, Held]:
    """Of each replica; one that does not answer has nothing."""
    with connect(addresses, TIMEOUT) as orb:
        db = orb.object(DATABASE)

        def everywhere(request: Any) -> dict[str, Any]:
            return {str(reply.replica): reply.value for reply in orb.crec(orb.mcast(request))}

        counts = {name: everywhere(db.query.request(text)) for name, text in COUNTED.items()}
        digests = everywhere(db.digest.request())
    out: dict[str, Held] = {}
    for replica in REPLICAS:
        found = {name: int(each[replica]["rows"][0][0]) if replica in each else 0 for name, each in counts.items()}
        lost = {name: max(0, acknowledged[name] - n) for name, n in found.items()}
        twice = {name: max(0, n - acknowledged[name]) for name, n in found.items()}
        out[replica] = Held(found, lost, twice, digests.get(replica, {}))
    return out


def result(bench: Bench, replicas: dict[str, Held]) -> Result:
    each = bench.ratios()
    ratios: dict[str, float | None] = {name: median(each[name]) if each.get(name) else None for name in RATIOS}
    ratios[LOST] = sum(sum(held.lost.values()) for held in replicas.values())
    digests = [held.digests for held in replicas.values()]
    return Result(
        {name: ratios[name] for name in TARGETS},
        {name: (min(each[name]), max(each[name])) if each[name] else None for name in RATIOS},
        {
            name: Judged(target.value, "lower" if target.lower else "higher", target.reached(ratios[name]))
            for name, target in TARGETS.items()
            if target is not None
        },
        bench.rows(),
        bench.acknowledged,
        replicas,
        bool(digests[0]) and all(d == digests[0] for d in digests),
        bench.notes,
        bench.plan,
    )
