"""Many seeds in worker processes: results come in the order of the seeds, few are under way at a time.

Not a pool of the standard library: those do not say which seed a worker had when it died, and cannot be ended at once.
Here each worker has a pipe of its own, so a seed that takes its process down is reported like any other, and ends
nothing but itself.
"""

import signal
import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path

import msgspec

from framework.sim.run import Options, run
from framework.sim.verdict import Violation
from framework.trace.files import file_name, write

CRASH = "crash"  # stands for the rule where a run did not come to a verdict
_AHEAD = 8  # seeds per worker that may be done before their turn


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
            for trace in done.traces:
                name = file_name(trace.header.node, trace.header.life)
                write(Path(job.trace) / str(job.seed) / name, trace)
    except Exception as error:
        return crashed(job, told(error))
    verdict = done.verdict
    numbers = {f: getattr(verdict, f) for f in Outcome.__struct_fields__ if f != "seed"}
    return Outcome(job.seed, **numbers)


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
    pool = _Pool(workers)
    try:
        yield from pool.run(jobs)
    finally:
        pool.end()


class _Worker:
    def __init__(self) -> None:
        context = get_context("spawn")  # a fork would copy the locks of the thread that draws the progress
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _no_interrupt():
            self.process.start()
        theirs.close()
        self.job: Job | None = None
        self.turn = 0

    def end(self) -> None:
        self.process.terminate()
        self.process.join(5.0)
        self.pipe.close()


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Ctrl-C reaches the whole process group, but the parent decides. What is started here never sees one, not even
    while it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(pipe: Connection) -> None:
    try:
        while True:
            job = msgspec.msgpack.decode(pipe.recv_bytes(), type=Job)
            pipe.send_bytes(msgspec.msgpack.encode(perform(job)))
    except (EOFError, BrokenPipeError):
        pass  # the parent is gone


class _Pool:
    def __init__(self, workers: int) -> None:
        self.workers = [_Worker() for _ in range(workers)]

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        source = enumerate(jobs)
        done: dict[int, Outcome] = {}
        turn = 0  # whose outcome is next
        more = True
        while True:
            for worker in self.workers:
                if more and worker.job is None:
                    more = self._give(worker, source, turn, done)
            busy = {w.pipe: w for w in self.workers if w.job is not None}
            for pipe in wait(list(busy)) if busy else ():
                worker = busy[pipe]  # type: ignore[index]
                done[worker.turn] = self._take(worker)
            while turn in done:
                yield done.pop(turn)
                turn += 1
            if not more and not any(w.job for w in self.workers):
                return

    def _give(self, worker: _Worker, source: Iterator[tuple[int, Job]], turn: int, done: dict[int, Outcome]) -> bool:
        """The next job for an idle worker. False if there are no more."""
        if len(done) >= _AHEAD * len(self.workers):
            return True  # first the one whose turn it is
        worker.turn, worker.job = next(source, (turn, None))
        if worker.job is None:
            return False
        try:
            worker.pipe.send_bytes(msgspec.msgpack.encode(worker.job))
        except (BrokenPipeError, ConnectionResetError):
            pass  # it died idle; _take finds that out
        return True

    def _take(self, worker: _Worker) -> Outcome:
        job = worker.job
        assert job is not None
        try:
            outcome = msgspec.msgpack.decode(worker.pipe.recv_bytes(), type=Outcome)
        except (EOFError, ConnectionResetError):
            worker.process.join(5.0)
            outcome = crashed(job, f"the worker process died (exit code {worker.process.exitcode})")
            self.workers[self.workers.index(worker)] = _Worker()
            worker.end()
        worker.job = None
        return outcome

    def end(self) -> None:
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.end()
