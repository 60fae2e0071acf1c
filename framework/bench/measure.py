"""One benchmark from start to end: processes, rounds, soak, profiles; and what comes out of it."""

from pathlib import Path
from statistics import median

import msgspec

from framework.bench.profile import profile
from framework.bench.rpc import GROWTH, RATIOS, SOAK, TARGETS, Plan, Progress, Row, Rpc, installed, needed, systems
from framework.bench.soak import Soak, soak


class Profile(msgspec.Struct):
    directory: Path
    form: str
    seconds: float


class Judged(msgspec.Struct):
    to_reach: float
    better: str  # lower, higher
    reached: bool | None  # None: not measured


class Result(msgspec.Struct):
    """What ``--json`` writes. A ratio that was not measured is null."""

    ratios: dict[str, float | None]
    spread: dict[str, tuple[float, float] | None]  # least and largest of the rounds
    targets: dict[str, Judged]
    rows: list[Row]
    soak: Soak | None
    notes: list[str]
    plan: Plan
    machine: dict[str, str | int | None] = {}


def measure(plan: Plan, progress: Progress, profiling: Profile | None = None) -> Result:
    """Start everything, measure, end everything."""
    with systems(needed(plan)) as running:
        bench = Rpc(plan, running, progress)
        if not installed("pyro5") and {"lone", "async"} & set(plan.parts):
            bench.notes.append("Pyro5 is not installed, its rows are left out: pip install 'obo[bench]'")
        bench.run()
        soaked = soak(bench, plan.soak, plan.payloads[0], progress) if soaks(plan) else None
        if profiling is not None:
            profile(bench, profiling.directory, profiling.form, profiling.seconds, progress)
    return result(bench, soaked)


def reports(plan: Plan, profiling: Profile | None) -> int:
    """How many progress reports ``measure`` makes."""
    rows = len(plan.rows())
    turns = len(plan.turns()) * plan.rounds * len(plan.payloads)
    return rows + turns + soaks(plan) + (rows if profiling is not None else 0)


def soaks(plan: Plan) -> bool:
    return SOAK in plan.parts and plan.soak > 0


def result(bench: Rpc, soaked: Soak | None) -> Result:
    each = bench.ratios()
    ratios: dict[str, float | None] = {n: median(each[n]) if each[n] else None for n in RATIOS}
    spread = {n: (min(each[n]), max(each[n])) if each[n] else None for n in RATIOS}
    ratios[GROWTH] = soaked.rss_growth if soaked is not None else None
    targets = {
        name: Judged(target.value, "lower" if target.lower else "higher", target.reached(ratios[name]))
        for name, target in TARGETS.items()
        if target is not None
    }
    return Result(ratios, spread, targets, bench.rows(), soaked, bench.notes, bench.plan)
