"""``obo soak``: real nodes under random faults, with a vault whose sum must stay.

Every few seconds a node is killed and started again, stopped in order and started again, or stands still for a while.
A node that was hit counts as away until all others that are there have it as a member again, with its state; never are
so many away that those who are left are no majority. The seed chooses faults, nodes and times; what the machine makes
of it differs from run to run.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from framework.bench.back import wait_back
from framework.bench.soak_clients import ACCOUNTS, TOTAL, Client, Runner
from framework.bench.vault import Vault
from framework.errors import BadRequest, OboError
from framework.testing.clusters import Cluster, cluster
from framework.trace.files import read

KINDS = ("kill", "hang", "leave")
GAP = (1.0, 4.0)  # seconds between two faults
DOWN = (0.0, 2.0)  # seconds until a node that has ended is started again
HANG = (0.2, 3.0)  # seconds that a node stands still
BACK = 60.0  # seconds for a node to be a member again
MOST_CALLS = 6000  # in a run: the oracle's work grows with the square
MOST_RATE = 40.0  # calls in a second

Progress = Callable[["Faults"], None]


class Plan(msgspec.Struct, frozen=True):
    """What is to be done."""

    seconds: float = 600.0
    nodes: int = 5
    seed: int = 0
    clients: int = 4
    call: float = 30.0  # the deadline of a call, in seconds: what takes longer is an error

    @property
    def rate(self) -> float:
        return min(MOST_RATE, MOST_CALLS / self.seconds)


class Report(msgspec.Struct):
    """What came of it. It is good if ``problems`` is empty."""

    seed: int
    nodes: int
    seconds: float
    faults: dict[str, int]
    calls: int = 0
    longest_s: float = 0.0  # the longest call: the longest that a client had to wait
    views: int = 0
    crashed: int = 0  # lives that were killed, by their traces
    adopted: int = 0
    digests: dict[str, str] = {}
    verify_s: float = 0.0
    problems: list[str] = []

    @property
    def story(self) -> str:
        return f"{self.views} views, {self.adopted} states handed on"

    @property
    def praise(self) -> str:
        return f"the sum is right, {self.nodes} equal states, traces verified in {self.verify_s:g} s"


class Faults:
    """Load and faults. ``faults``, ``calls`` and ``away`` are for who watches it."""

    kinds: tuple[str, ...] = KINDS

    def __init__(self, plan: Plan, c: Cluster) -> None:
        self.plan = plan
        self.faults = dict.fromkeys(self.kinds, 0)
        self.away: dict[str, str] = {}  # node: what was done to it
        self.clients: Sequence[Runner] = []
        self.problems: list[str] = []
        self.elapsed = 0.0
        self._c = c
        self._random = random.Random(plan.seed)
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()

    @property
    def calls(self) -> int:
        return sum(client.calls for client in self.clients)

    @property
    def errors(self) -> list[str]:
        return [error for client in self.clients for error in list(client.errors)]

    def run(self, progress: Progress) -> None:
        """Load and faults, until the time is over or a node does not come back; then all are there again."""
        with self.load():
            began = time.monotonic()
            next_fault = began + self._random.uniform(*GAP)
            while (now := time.monotonic()) < began + self.plan.seconds and not self.problems:
                self.elapsed = now - began
                progress(self)
                if now >= next_fault:
                    self._strike()
                    next_fault = now + self._random.uniform(*GAP)
                time.sleep(0.1)
            self.elapsed = time.monotonic() - began
            self._wait_for_all(progress)

    @contextmanager
    def load(self) -> Iterator[None]:
        """The clients alone."""
        self._prepare()
        for client in self.clients:
            client.start()
        try:
            yield
        finally:
            self._over.set()
            for client in self.clients:
                client.stop()
        for client in self.clients:
            if not client.join(self.plan.call + 5.0):
                self.problems.append(f"{client.name} has a call that never ended")

    def _prepare(self) -> None:
        """Clients that are ready to start."""
        raise NotImplementedError

    # faults

    def _strike(self) -> None:
        """Chance is drawn here alone, one fault after the other: the seed says what is done."""
        kind = self._random.choice(self.kinds)
        candidates = [n for n in self._c.nodes if n not in self.away]
        node = self._random.choice(candidates)
        lasts = self._random.uniform(*(HANG if kind == "hang" else DOWN))
        if len(self.away) >= (len(self._c.nodes) - 1) // 2:
            return
        self.away[node] = kind
        self.faults[kind] += 1
        thread = threading.Thread(target=self._fault, args=(kind, node, lasts), name=f"{kind} {node}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _fault(self, kind: str, node: str, lasts: float) -> None:
        began = time.monotonic()
        try:
            getattr(self, f"_{kind}")(node, lasts)
            wait_back(self._c, node, self.away.keys(), BACK)
            del self.away[node]
        except (OboError, AssertionError) as error:  # it stays away, and the run ends
            took = f"{time.monotonic() - began:.1f} s after {kind} at {self.elapsed:.1f} s"
            self.problems.append(f"{node}, {took}: {error}")

    def _kill(self, node: str, lasts: float) -> None:
        self._c.crash(node)
        self._over.wait(lasts)
        self._c.restart(node)

    def _leave(self, node: str, lasts: float) -> None:
        self._c.stop(node)
        self._over.wait(lasts)
        self._c.restart(node)

    def _hang(self, node: str, lasts: float) -> None:
        self._c.pause(node)
        self._over.wait(lasts)
        self._c.resume(node)

    def _wait_for_all(self, progress: Progress) -> None:
        for thread in self._threads:
            while thread.is_alive():  # each ends by itself, at the latest after BACK
                progress(self)
                thread.join(0.2)


class Soak(Faults):
    """One run."""

    clients: list[Client]

    def _prepare(self) -> None:
        vault = self._c.connect(timeout=self.plan.call).object(Vault, "vault")
        for account in ACCOUNTS:
            vault.open(account)
        pace = self.plan.clients / self.plan.rate
        for i in range(self.plan.clients):
            name = f"client{i + 1}"
            home = self._c.nodes[i % len(self._c.nodes)]
            orb = self._c.connect(home, timeout=self.plan.call)
            self.clients.append(Client(name, orb, f"{self.plan.seed} {name}", pace))

    def report(self) -> Report:
        """Judge it: what clients were told, what each replica has, what the traces say."""
        said = Report(self.plan.seed, self.plan.nodes, round(self.elapsed, 1), self.faults, self.calls)
        said.problems = [*self.errors, *self.problems]
        said.longest_s = round(max(client.longest for client in self.clients), 3)
        if not self.problems:
            said.problems += self._replicas()
        start = time.monotonic()
        try:
            verdict = self._c.verify(BACK)
        except (OboError, AssertionError) as error:
            said.problems += str(error).splitlines()
        else:
            said.views, said.crashed, said.adopted = verdict.views, verdict.crashed, verdict.adopted
        said.verify_s = round(time.monotonic() - start, 1)
        said.digests = digests(self._c.directory, self._c.nodes)
        if len(set(said.digests.values())) > 1:
            said.problems.append(f"the states of the replicas differ: {said.digests}")
        said.problems += grave(self._c.directory, self._c.nodes)
        return said

    def _replicas(self) -> Iterable[str]:
        orb = self._c.connect(timeout=self.plan.call)
        try:
            replies = orb.crec(orb.mcast(orb.object(Vault, "vault").audit.request()))
        except OboError as error:
            return [f"the last audit: {type(error).__name__}: {error}"]
        values = {reply.replica: reply.value for reply in replies}
        if len(values) < self.plan.nodes:
            return [f"the last audit was answered by {', '.join(sorted(values))} alone"]
        return [p for at, found in sorted(values.items()) for p in self._wrong(at, found)]

    def _wrong(self, at: str, found: dict[str, dict[str, int]]) -> list[str]:
        wrong = []
        total = sum(found["accounts"].values())
        if total != TOTAL:
            wrong.append(f"{at} has {total} on its accounts, not {TOTAL}")
        for client in self.clients:
            has, least = found["tallies"].get(client.name, 0), client.tallied
            if not least <= has <= least + client.unsure:
                wrong.append(f"{at} has counted {has} calls of {client.name}, which were {least}")
        return wrong


def soak(plan: Plan, trace: Path | None, progress: Progress) -> Report:
    """Nodes run inside, and have ended after it, however it ends."""
    if plan.nodes < 3:
        raise BadRequest(f"{plan.nodes} nodes bear the loss of none: 3 or more")
    with cluster({"vault": Vault}, plan.nodes, processes=True, trace=trace, links=False) as c:
        run = Soak(plan, c)
        run.run(progress)
        return run.report()


def digests(directory: Path, nodes: Iterable[str]) -> dict[str, str]:
    """Of the last state that each node has written to the trace of its last life."""
    found = {}
    for node in nodes:
        lives = [read(p) for p in directory.glob(f"{node}.*jsonl")]
        last = max(lives, key=lambda t: t.header.life, default=None)
        states = [r.digest for r in last.records if r.event == "state"] if last is not None else []
        found[node] = states[-1] if states else "(none)"
    return found


def grave(directory: Path, nodes: Iterable[str]) -> list[str]:
    """What nodes have logged as an error. A node that stood still, or whose machine did, hears nobody for a moment."""
    lines = ((n, line) for n in nodes for line in (directory / f"{n}.log").read_text(errors="replace").splitlines())
    bad = ((n, line) for n, line in lines if " ERROR " in line or " CRITICAL " in line)
    return [f"the log of {n}: {line}" for n, line in bad if "hears only" not in line]
