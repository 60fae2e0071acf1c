"""Worker processes: many tasks, a function for each, the results in the order of the tasks, few under way at a time.

Not a pool of the standard library: those do not say which task a worker had when it died, cannot be ended at once, and
their workers, and the threads that serve them, are in the way of Ctrl-C. Here each worker has a pipe of its own, so a
task that takes its process down is reported like any other, and ends nothing but itself.
"""

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from multiprocessing.connection import Connection, Pipe, wait
from subprocess import DEVNULL
from typing import Any, Generic, NamedTuple, TypeVar

from framework import compiled, interrupt

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 8  # tasks per worker that may be done before their turn
_PATIENCE = 5.0


class Died(NamedTuple):
    """What became of a task that took its worker down."""

    code: int


def in_workers(
    function: Callable[[T], R], tasks: Iterable[T], workers: int
) -> Generator[tuple[T, R | Died], None, None]:
    """Each task and what ``function``, of a module, made of it; where it raises, the worker dies. Close the generator
    (or let it run out) to end the workers."""
    pool = _Pool(function, workers)
    try:
        pool.begin()
        yield from pool.run(tasks)
    finally:
        pool.end()


class _Worker(Generic[T]):
    def __init__(self, function: Callable[[T], Any]) -> None:
        self.pipe, theirs = Pipe()
        words = [sys.executable, "-m", "framework.sim.workers", str(theirs.fileno())]
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)  # it finds what this process finds
        with theirs:
            environment = {**os.environ, "PYTHONPATH": path}
            self.process = interrupt.start(words, env=environment, pass_fds=[theirs.fileno()], stdin=DEVNULL)
        self.busy = False
        self.turn = 0
        self.task: Any = None
        self.say(compiled.used())
        self.say(function)

    def say(self, what: object) -> None:
        try:
            self.pipe.send(what)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has died; who listens to it finds that out

    def end(self) -> int:
        """How it ended."""
        self.process.kill()
        self.pipe.close()
        return self.process.wait()


class _Pool(Generic[T, R]):
    def __init__(self, function: Callable[[T], R], workers: int) -> None:
        self.function = function
        self.wanted = workers
        self.workers: list[_Worker[T]] = []

    def begin(self) -> None:
        while len(self.workers) < self.wanted:
            with interrupt.undisturbed():
                self.workers.append(_Worker(self.function))

    def run(self, tasks: Iterable[T]) -> Iterator[tuple[T, R | Died]]:
        source = enumerate(tasks)
        done: dict[int, tuple[T, R | Died]] = {}
        turn = 0  # whose result is next
        more = True
        while True:
            for worker in self.workers:
                if more and not worker.busy and len(done) < _AHEAD * len(self.workers):  # else first whose turn it is
                    more = self._give(worker, source)
            busy = {w.pipe: w for w in self.workers if w.busy}
            for pipe in wait(list(busy)) if busy else ():
                worker = busy[pipe]  # type: ignore[index]
                done[worker.turn] = (worker.task, self._take(worker))
            while turn in done:
                yield done.pop(turn)
                turn += 1
            if not more and not any(w.busy for w in self.workers):
                return

    def _give(self, worker: _Worker[T], source: Iterator[tuple[int, T]]) -> bool:
        """The next task for an idle worker. False if there are no more."""
        for worker.turn, worker.task in source:
            worker.busy = True
            worker.say(worker.task)
            return True
        return False

    def _take(self, worker: _Worker[T]) -> R | Died:
        worker.busy = False
        try:
            result: R = worker.pipe.recv()
            return result
        except (EOFError, ConnectionResetError):
            with interrupt.undisturbed():
                worker.process.wait(_PATIENCE)  # it is not this that ends it
                died = Died(worker.end())
                self.workers[self.workers.index(worker)] = _Worker(self.function)
            return died

    def end(self) -> None:
        with interrupt.undisturbed():
            for worker in self.workers:
                worker.process.kill()
            for worker in self.workers:
                worker.end()


# a worker


def main(number: int) -> None:
    pipe = Connection(number)
    try:
        if pipe.recv():  # before anything of the com layer is imported
            compiled.use()
        function = pipe.recv()
        while True:
            pipe.send(function(pipe.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the parent is gone


if __name__ == "__main__":
    main(int(sys.argv[1]))
