"""One run from start to end: the cluster, client processes, progress, traces, ``run.toml``.

Client processes are looked at all the time: one that is killed is noticed, told, and what it left is kept. Ctrl-C ends
the run in order: no more calls, those under way are waited for, traces are collected. A second one ends it at once.
"""

import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow.parquet as pq

from framework.errors import OboError, Unavailable
from framework.interrupt import undisturbed
from framework.load import registry
from framework.load.found import Found
from framework.load.latency import Latencies
from framework.load.orders import Done, Order, Progress, Ready, encode, said
from framework.load.plan import Plan
from framework.load.rundir import RunDirectory
from framework.load.spool import salvage
from framework.load.target import NodeTraces, Target, ask, reach
from framework.testing.children import Child

READY = 60.0  # seconds for client processes to be connected
HEAD_START = 0.3  # seconds between "go" and the start
LOOK = 0.1
WINDOW = 2.0  # seconds over which the live figures are taken
SLACK = 15.0  # seconds beyond the deadline of a call that processes have to end


class State:
    """What the run has come to; for whoever shows it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.doing = "starting"
        self.started = 0.0  # unix time of the first call
        self.calls = self.ok = self.run_calls = 0
        self.errors: Counter[str] = Counter()
        self.latency = Latencies()  # of what counts
        self.in_flight: dict[int, int] = {}
        self.behind: dict[int, float] = {}
        self.recent: deque[tuple[float, int, dict[int, int]]] = deque()
        self.problems: list[str] = []  # told to the user as they come up

    def take(self, process: int, progress: Progress) -> None:
        self.calls += progress.calls
        self.ok += progress.ok
        self.run_calls += progress.run_calls
        self.errors.update(progress.errors)
        self.latency.merge(progress.run_latency)
        self.in_flight[process], self.behind[process] = progress.in_flight, progress.behind
        self.doing = progress.says or "running"
        self.recent.append((time.monotonic(), progress.calls, progress.latency))

    def live(self) -> tuple[float, Latencies]:
        """Calls in a second, and latencies, of the last moments."""
        now = time.monotonic()
        while self.recent and self.recent[0][0] < now - WINDOW:
            self.recent.popleft()
        latencies = Latencies()
        for _, _, counts in self.recent:
            latencies.merge(counts)
        return sum(calls for _, calls, _ in self.recent) / WINDOW, latencies

    @property
    def elapsed(self) -> float:
        return max(0.0, time.time() - self.started) if self.started else 0.0


Tell = Callable[[State], None]


class Load:
    """``run()`` gives how it ended, as ``run.toml`` has it."""

    def __init__(self, plan: Plan, directory: RunDirectory, target: Target, tell: Tell) -> None:
        self.plan = plan
        self.directory = directory
        self.target = target
        self.state = State(plan)
        self.nodes: dict[str, NodeTraces] = {}
        self._tell = tell
        self._interrupts = 0
        self._gentle = False  # the first Ctrl-C is only noted
        self._children: list[Child] = []
        self._done: dict[int, Done] = {}
        self._killed: list[int] = []
        self._failed = ""

    def run(self) -> str:
        ended = "failed: a fault of obo load"
        self.directory.said["own_nodes"] = self.target.own
        self._say("starting nodes" if self.target.own else "looking for the cluster")
        try:
            with self._signals(), self.target:
                ended = self._run()
        except KeyboardInterrupt:
            ended = "interrupted"
        except OboError as error:
            ended = f"failed: {error}"
            raise
        except OSError as error:
            ended = f"failed: {error.filename or self.directory.path}: {error.strerror}"
            raise Unavailable(ended) from None
        finally:
            self._finish(ended)
        return ended

    def _run(self) -> str:
        self._say("looking at the cluster")
        found = ask(self.target, self.plan.timeout)
        self.state.problems += self.target.notes()
        self._prepare(found)
        with ExitStack() as stack:
            self._start(stack, found)
            self._wait_ready()
            self._gentle = True
            self._go()
            self._watch()
            self._gentle = False
        until = self.state.started + self.plan.total
        self.directory.said["calls_until"] = time.time() if self.plan.scripted else min(time.time(), until)
        ended = self._ended()
        self._collect(found)
        return ended

    def _prepare(self, found: Found) -> None:
        if self.plan.workload == registry.FIG9:
            return
        self._say("preparing")
        workload = registry.make(self.plan.workload, found)
        workload.check(self.plan.ways)
        with reach(self.target, 60.0) as orb:
            workload.prepare(orb, self.plan.payload)

    # client processes

    def _start(self, stack: ExitStack, found: Found) -> None:
        self._say("starting clients")
        run = uuid4().hex[:8]
        for process in range(self.plan.processes):
            with undisturbed():
                child = Child(f"client-{process}", ["framework.load.worker"], self.directory.logs)
                self._children.append(stack.enter_context(child))
            access: dict[str, Any] = {
                name: str(value) if isinstance(value, Path) else value for name, value in self.target.access.items()
            }
            out = str(self.directory.path)
            order = Order(self.plan, process, self.target.addresses, found, out, run, access, self.target.prefix)
            child.say(encode(order).decode())

    def _wait_ready(self) -> None:
        until = time.monotonic() + READY
        waiting = set(range(len(self._children)))
        while waiting:
            for process in sorted(waiting):
                for what in self._heard(process):
                    if isinstance(what, Ready):
                        waiting.discard(process)
                self._look_after(process)
                if process in self._done or process in self._killed:
                    raise Unavailable(self._failed)
            if time.monotonic() > until:
                raise Unavailable(f"the clients were not connected within {READY:g} s: {self._children[0].tail()}")
            self._tell(self.state)
            time.sleep(0.02)

    def _go(self) -> None:
        self.state.started = time.time() + HEAD_START
        self.directory.said["started"] = self.state.started
        for child in self._children:
            child.say(f"go {self.state.started!r}")
        self._say("running")

    def _watch(self) -> None:
        """Until all have ended, or are gone. Who was told to stop and does not is ended."""
        stopping = 0.0
        while len(self._done) + len(self._killed) < len(self._children):
            for process in range(len(self._children)):
                for what in self._heard(process):
                    if isinstance(what, Progress):
                        self.state.take(process, what)
                self._look_after(process)
            if (self._interrupts or self._failed_badly()) and not stopping:
                stopping = time.monotonic() + self.plan.timeout + SLACK
                for child in self._children:
                    child.say("stop")
            if stopping and time.monotonic() > stopping:
                self._fail(f"client processes did not stop within {self.plan.timeout + SLACK:g} s")
                return
            self._tell(self.state)
            time.sleep(LOOK)

    def _heard(self, process: int) -> Iterator[Ready | Progress]:
        for line in self._children[process].heard():
            what = said.decode(line)
            if isinstance(what, Done):
                self._done[process] = what
                if what.failed:
                    self._fail(f"client process {process}: {what.failed}")
            else:
                yield what

    def _look_after(self, process: int) -> None:
        """Has it ended without a word?"""
        child = self._children[process]
        if not child.over or process in self._done or process in self._killed:
            return
        child.wait(1.0)
        self._killed.append(process)
        code = child.code or 0
        how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}: {child.tail()}"
        at = f" after {self.state.elapsed:.1f} s" if self.state.started else ""
        self._fail(f"client process {process} {how}{at}; the others went on")

    def _fail(self, why: str) -> None:
        self._failed = self._failed or why
        self.state.problems.append(why)

    def _failed_badly(self) -> bool:
        """It is of no use to go on: a process says itself that it could not."""
        return any(done.failed for done in self._done.values())

    def _ended(self) -> str:
        if self._failed:
            return f"failed: {self._failed}"
        return "interrupted" if self._interrupts else "complete"

    # the end

    def _collect(self, found: Found) -> None:
        self._say("collecting traces")
        self.nodes = self.target.collect(self.directory.traces, found, self._say)
        for name, node in self.nodes.items():
            if node.gone:
                self.state.problems.append(f"{name}: {node.gone}")
            if node.drops:
                self.state.problems.append(f"{name}: {node.drops} records of its traces are missing or unreadable")
        self._tell(self.state)

    def _finish(self, ended: str) -> None:
        """``run.toml``, whatever happened before."""
        self._tidy()
        if left := [p.name for p in sorted(self.directory.logs.glob("*.jsonl"))]:
            self.state.problems.append(f"traces are not in Parquet: {', '.join(left)} in {self.directory.logs}")
        records = _rows(self.directory.clients)
        reported = self.state.calls
        self.directory.said |= {
            "ended": ended,
            "finished": time.time(),
            "traced": self.target.traced,
            "nodes": {name: _node(node) for name, node in self.nodes.items()},
            "clients": {
                "records": records,
                "ok": self.state.ok,
                "errors": dict(self.state.errors),
                "lost": max(0, reported - records),
                "killed": self._killed,
                "disk_waits": sum(done.waits for done in self._done.values()),
            },
            "problems": self.state.problems,
        }
        for done in self._done.values():
            self.directory.said |= done.extra
        try:
            self.directory.write()
        except OSError as error:
            raise Unavailable(f"{self.directory.path}: run.toml cannot be written: {error.strerror}") from None

    def _tidy(self) -> None:
        """What processes left that were killed, or had no room: as much of it as can be kept."""
        for left in sorted(self.directory.clients.glob("open-*.arrows")):
            try:
                salvage(left)
            except OSError as error:
                self.state.problems.append(f"{left}: what it holds is not in Parquet: {error.strerror}")
        for half in self.directory.path.rglob("*.writing"):
            half.unlink()

    def _say(self, what: str) -> None:
        self.state.doing = what
        self._tell(self.state)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def note(number: int, _frame: object) -> None:
            self._interrupts += 1
            if not self._gentle or self._interrupts > 1:
                raise KeyboardInterrupt

        before = {n: signal.signal(n, note) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _rows(clients: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in clients.glob("part-*.parquet"))


def _node(node: NodeTraces) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(node)
    return {"address": node.address, **found, "records": node.records, "drops": node.drops}
