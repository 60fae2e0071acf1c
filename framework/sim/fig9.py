"""P0 §6, Fig. 9, again: how many messages need no order, against how many methods conflict (protocol.md §15).

A point is a conflict ratio C and a share of requests by ucast; it is measured in one run per seed (fig9_workload), and
each run is counted in every way of fig9_count. Runs are independent: worker processes take them one by one, and the
result does not depend on how many workers there are.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from statistics import fmean, stdev
from typing import Any, NamedTuple

import msgspec

from framework.errors import OboError
from framework.sim.fig9_count import COUNTINGS, MAIN, Counter, Counting, Tally
from framework.sim.fig9_relation import relations
from framework.sim.fig9_workload import DEPTH, Workload, traces
from framework.sim.workers import Died, in_workers
from framework.trace.files import Trace
from framework.version import __version__

CURVES = (0.0, 0.5, 1.0)  # shares by ucast, as the paper's figure has them from top to bottom
PAPER = {1.0: 50.0, 0.5: 66.3, 0.0: 73.2}  # P0 §6: not ordered at C = 60 %
PAPER_C = 60

DEFINITION = (
    "On every computer the messages (requests and responses) form one sequence, in the order of delivery. A "
    "traditional protocol orders each of them with the one before it. This one does so only if one of the two "
    "significantly precedes the other, or both are requests that conflict (protocol.md §2.3). Shown: the share of "
    "messages that are not ordered with the one before them."
)


class Task(NamedTuple):
    ucast: float
    conflict: int  # percent
    seed: int


class Result(NamedTuple):
    task: Task
    requests: int
    ucast: float  # share of requests by ucast in this run
    tallies: list[Tally]  # as COUNTINGS


class Point(msgspec.Struct, frozen=True):
    """Percent not ordered, over the runs of one point."""

    conflict: int
    mean: float
    deviation: float  # standard deviation of a run
    interval: float  # half the width of the 95 % interval of the mean
    n: int


class Sweep(msgspec.Struct, frozen=True):
    """What is to be measured."""

    seeds: int = 20
    step: int = 10
    workload: Workload = Workload()

    @property
    def ratios(self) -> list[int]:
        return sorted({*range(0, 100, self.step), 100})

    def tasks(self) -> list[Task]:
        """All points of a seed before the next seed."""
        return [Task(u, c, s) for s in range(self.seeds) for u in CURVES for c in self.ratios]


def measure(task: Task, workload: Workload) -> Result:
    workload = msgspec.structs.replace(workload, conflict=task.conflict / 100, ucast=task.ucast)
    happened = traces(task.seed, workload)
    counter = Counter(relations(happened))
    return Result(task, *_by_ucast(happened), [counter.tally(how) for how in COUNTINGS])


def _by_ucast(happened: Sequence[Trace]) -> tuple[int, float]:
    sent = [(r.transmission, len(r.dests)) for t in happened for r in t.records if r.event == "send"]
    every = sum(n for _, n in sent)
    return every, sum(n for how, n in sent if how == "ucast") / every


def run(sweep: Sweep, jobs: int = 1, tell: Callable[[], None] = lambda: None) -> list[Result]:
    """Every task of the sweep, in order. ``tell`` is called after each."""
    results: dict[Task, Result] = {}
    with closing(_results(sweep, jobs)) as done:
        for result in done:
            results[result.task] = result
            tell()
    return [results[task] for task in sweep.tasks()]


def _results(sweep: Sweep, jobs: int) -> Generator[Result, None, None]:
    if jobs == 1:
        for task in sweep.tasks():
            yield measure(task, sweep.workload)
        return
    with closing(in_workers(partial(measure, workload=sweep.workload), sweep.tasks(), jobs)) as done:
        for task, result in done:
            if isinstance(result, Died):
                raise OboError(f"the worker process of {task} died (exit code {result.code})")
            yield result


def curve(results: Sequence[Result], ucast: float, how: Counting = MAIN) -> list[Point]:
    """The points of one curve. Runs in which there is nothing to count are left out, and n says so."""
    at = COUNTINGS.index(how)
    values: dict[int, list[float]] = {}
    for result in results:
        share = result.tallies[at].not_ordered
        if result.task.ucast == ucast and share is not None:
            values.setdefault(result.task.conflict, []).append(share)
    return [_point(c, values[c]) for c in sorted(values)]


def _point(conflict: int, values: Sequence[float]) -> Point:
    deviation = stdev(values) if len(values) > 1 else 0.0
    interval = 1.96 * deviation / len(values) ** 0.5
    return Point(conflict, round(fmean(values), 3), round(deviation, 3), round(interval, 3), len(values))


def report(sweep: Sweep, results: Sequence[Result]) -> dict[str, Any]:
    """All of it, for a JSON file."""
    workload = msgspec.to_builtins(sweep.workload)
    del workload["conflict"], workload["ucast"]  # these two are the axes
    return {
        "figure": "P0 Fig. 9",
        "version": __version__,
        "settings": {
            "seeds": list(range(sweep.seeds)),
            "step": sweep.step,
            "depth": DEPTH,
            "receipt": "crec",
            **workload,
        },
        "definition": DEFINITION,
        "counting": str(MAIN),
        "unit": "percent of messages not ordered",
        "curves": [_described(results, u) for u in CURVES],
        "paper": [{"conflict": PAPER_C, "ucast": round(100 * u), "not_ordered": v} for u, v in PAPER.items()],
        "countings": {
            str(how): {str(round(100 * u)): {str(p.conflict): p.mean for p in curve(results, u, how)} for u in CURVES}
            for how in COUNTINGS
        },
    }


def _described(results: Sequence[Result], ucast: float) -> dict[str, Any]:
    mine = [r for r in results if r.task.ucast == ucast]
    return {
        "ucast": round(100 * ucast),
        "ucast_measured": round(100 * fmean(r.ucast for r in mine), 3),
        "requests_per_run": round(fmean(r.requests for r in mine), 3),
        "points": msgspec.to_builtins(curve(results, ucast)),
    }
