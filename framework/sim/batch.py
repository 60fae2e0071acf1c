"""Many seeds, in worker processes (workers.py): what became of each, in their order."""

import traceback
from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path

import msgspec

from framework.sim.run import Options, run
from framework.sim.verdict import Violation
from framework.sim.workers import Died, in_workers
from framework.trace.files import Trace, file_name, write

CRASH = "crash"  # stands for the rule where a run did not come to a verdict


class Job(msgspec.Struct, frozen=True):
    seed: int
    options: Options
    trace: str = ""  # directory for the trace files; empty: none


class Outcome(msgspec.Struct):
    """What became of a seed: the numbers of its verdict."""

    seed: int
    requests: int = 0
    delivered: int = 0
    fast: int = 0
    slow: int = 0
    ordered: int = 0
    duplicates: int = 0
    violations: list[Violation] = []


def perform(job: Job) -> Outcome:
    """Run a seed. An exception in it is an outcome, too: the last lines of its story, in one text."""
    try:
        done = run(job.seed, job.options)
        if job.trace:
            here = Path(job.trace) / str(job.seed)
            for n, traces in enumerate(done.world.earlier, 1):
                _write(here / f"group-{n}", traces)
            _write(here, done.traces)
    except Exception as error:
        return crashed(job, told(error))
    verdict = done.verdict
    numbers = {f: getattr(verdict, f) for f in Outcome.__struct_fields__ if f != "seed"}
    return Outcome(job.seed, **numbers)


def _write(directory: Path, traces: Iterable[Trace]) -> None:
    for trace in traces:
        write(directory / file_name(trace.header.node, trace.header.life), trace)


def crashed(job: Job, text: str) -> Outcome:
    return Outcome(job.seed, violations=[Violation(CRASH, text)])


def told(error: BaseException) -> str:
    """``KeyError: 'o1' (order.py:210 in _place, from host.py:60 in arrive)``: one line that finds the place."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = [f"{Path(f.filename).name}:{f.lineno} in {f.name}" for f in reversed(frames)]
    text = " ".join(str(error).splitlines())
    return f"{type(error).__name__}: {text} ({', from '.join(places)})"


def outcomes(jobs: Iterable[Job], workers: int) -> Generator[Outcome, None, None]:
    """In the order of the jobs. Close the generator (or let it run out) to end the workers."""
    if workers <= 1:
        yield from map(perform, jobs)
        return
    with closing(in_workers(perform, jobs, workers)) as done:
        for job, outcome in done:
            if isinstance(outcome, Died):
                outcome = crashed(job, f"the worker process died (exit code {outcome.code})")
            yield outcome
