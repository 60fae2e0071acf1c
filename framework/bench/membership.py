"""``obo bench membership``: what clients notice when nodes leave, crash, hang and come back, under a steady load.

Every node is a process. The load is a share of what the nodes were measured to take, by clients with homes on different
nodes; the node that is hit is the home of one of them. Pauses are set against the median latency of the same run. A
machine that does something else now and then makes a pause as well: of each event the median of the rounds counts.
"""

import time
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from statistics import median

import msgspec

from framework.bench.back import wait_back
from framework.bench.steady import WIDTH, Steady, capacity, middle, pause, pauses, recovered
from framework.bench.vault import BLOCK, Vault
from framework.errors import BadRequest
from framework.orb.client import Orb
from framework.orb.config import Group
from framework.testing.clusters import Cluster, cluster

EVENTS = ("leave", "join", "crash", "return", "hang", "leave again", "rejoin")
RATIOS: dict[str, float] = {
    "leave_pause_over_median": 10.0,
    "join_pause_over_median": 10.0,
    "crash_pause_over_suspicion": 1.1,
    "client_errors": 0.0,
    "lost": 0.0,
    "recovered_after_s": 2.0,
}
OF_LEAVE = ("leave", "leave again")
OF_JOIN = ("join", "return", "rejoin")
IN_FLIGHT = 64  # while that is measured
CALL = 30.0  # the deadline of a call
BACK = 120.0  # seconds for a node to be a member again
AFTER = 1.0 + 2 * WIDTH  # seconds to look at, at least, when an event is over
PER_CALL = 16  # blocks of ballast

Progress = Callable[[str], None]


class Plan(msgspec.Struct, frozen=True):
    nodes: tuple[int, ...] = (3, 5)
    clients: int = 4
    state_mb: int = 100  # for the last event
    seconds: float = 3.0  # steady load before each event, and after it
    rounds: int = 3  # each with nodes of its own; the median of each event counts
    share: float = 1 / 8  # of what the nodes take when many calls are in flight; one by one each costs some times more


class Event(msgspec.Struct):
    """Pauses are the longest times without an acknowledged call, while one waited, in milliseconds."""

    nodes: int
    event: str
    victim: str
    took_s: float  # until the node had left, or was back with its state
    median_ms: float  # latency before
    steady_pause_ms: float  # of the worst client, before
    pause_ms: float  # of the worst client, from the beginning of the event to some time after its end
    pause_all_ms: float  # no client got an answer
    pause_ms_of_clients: list[float]
    pause_at_s: float  # when that of the worst client began, since the beginning of the event
    errors: int
    recovered_after_s: float | None
    client_late_ms: float = 0.0  # the latest departure of a call in that time, after it was due: part of the pauses


class Run(msgspec.Struct):
    """One round with so many nodes."""

    nodes: int
    calls: int
    capacity: float  # calls in a second
    rate: float
    median_ms: float  # of all times before events
    lost: int  # acknowledged, but not at some replica
    twice: int  # performed more often than called
    events: list[Event]
    errors: list[str]
    busy: float | None = None  # of all cores, in times before events; None where the system does not tell


class Judged(msgspec.Struct):
    to_reach: float
    reached: bool | None


class Result(msgspec.Struct):
    """What ``--json`` writes. Ratios are those of the worst event, each by the median of its rounds."""

    ratios: dict[str, float | None]
    targets: dict[str, Judged]
    runs: list[Run]
    plan: Plan
    suspect_after_s: float
    machine: dict[str, str | int | None] = {}


def measure(plan: Plan, progress: Progress) -> Result:
    check(plan)
    runs = [_run(plan, nodes, number, progress) for nodes in plan.nodes for number in range(1, plan.rounds + 1)]
    suspicion = Group().suspect_after
    found = ratios(runs, suspicion)
    targets = {name: Judged(most, None if (v := found[name]) is None else v <= most) for name, most in RATIOS.items()}
    return Result(found, targets, runs, plan, suspicion)


def check(plan: Plan) -> None:
    for nodes in plan.nodes:
        if not 3 <= nodes <= 15:
            raise BadRequest(f"--nodes {nodes}: from 3 to 15; two bear the loss of none")


def reports(plan: Plan) -> int:
    """How many progress reports ``measure`` makes."""
    return len(plan.nodes) * plan.rounds * (len(EVENTS) + 2)


def ratios(runs: list[Run], suspicion: float) -> dict[str, float | None]:
    after = [e.recovered_after_s for r in runs for e in r.events]
    known = [s for s in after if s is not None]
    return {
        "leave_pause_over_median": _worst(runs, OF_LEAVE, lambda r: r.median_ms),
        "join_pause_over_median": _worst(runs, OF_JOIN, lambda r: r.median_ms),
        "crash_pause_over_suspicion": _worst(runs, ("crash",), lambda r: 1e3 * suspicion),
        "client_errors": sum(len(r.errors) for r in runs),
        "lost": sum(r.lost for r in runs),
        "recovered_after_s": max(known) if len(known) == len(after) else None,
    }


def _worst(runs: list[Run], events: Sequence[str], over: Callable[[Run], float]) -> float:
    return max(median(found) for name in events for found in _pauses(runs, name, over))


def _pauses(runs: list[Run], event: str, over: Callable[[Run], float]) -> list[list[float]]:
    """Of all rounds, for each number of nodes."""
    found: dict[int, list[float]] = {}
    for run in runs:
        found.setdefault(run.nodes, []).extend(e.pause_ms / over(run) for e in run.events if e.event == event)
    return [pauses for pauses in found.values() if pauses]


def _run(plan: Plan, nodes: int, number: int, progress: Progress) -> Run:
    which = f"{nodes} nodes, round {number} of {plan.rounds}"
    progress(f"{which}: starting")
    with cluster({"vault": Vault}, nodes, processes=True, links=False, traces=False) as c:
        orbs = [c.connect(c.nodes[i % nodes], timeout=CALL) for i in range(plan.clients)]
        vaults = [orb.object(Vault, "vault") for orb in orbs]
        submits = [_adding(vault, f"client{i}") for i, vault in enumerate(vaults)]
        progress(f"{which}: how much they can take")
        window = [_adding(vault, "capacity") for vault in vaults]
        capacity(window, IN_FLIGHT, plan.seconds / 3)  # warm
        most = capacity(window, IN_FLIGHT, plan.seconds)
        if not most:
            raise BadRequest("a call failed before anything was done to the nodes; see obo bench rpc")
        with Steady(submits, most * plan.share) as load:
            time.sleep(min(1.0, plan.seconds))
            stage = _Stage(plan, c, orbs, load, lambda what: progress(f"{which}: {what}"))
            events = [stage.event(name) for name in EVENTS]
        lost, twice = _missing(c, load, plan.clients)
        steady = median(stage.before)
        errors = [f"{which}: {text}" for _, text in load.errors]
        rate = round(most * plan.share)
        return Run(
            nodes, len(load.acks), round(most), rate, ms(steady), lost, twice, events, errors, stage.meter.busy()
        )


def _adding(vault: Vault, name: str) -> Callable[[], object]:
    return lambda: vault.add.submit(name)


class Meter:
    """How busy all cores are, in the times that are looked at."""

    def __init__(self) -> None:
        self._busy = self._all = 0

    def look(self, before: "tuple[int, int] | None") -> None:
        now = ticks()
        if before is not None and now is not None:
            self._busy += now[0] - before[0]
            self._all += now[1] - before[1]

    def busy(self) -> float | None:
        return round(self._busy / self._all, 2) if self._all else None


def ticks() -> tuple[int, int] | None:
    """(busy, all) of all cores since the machine started."""
    try:
        counts = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return None
    return sum(counts) - counts[3] - counts[4], sum(counts)


class _Stage:
    """Where one event comes after the other."""

    def __init__(self, plan: Plan, c: Cluster, orbs: list[Orb], load: Steady, progress: Progress) -> None:
        self.before: list[float] = []  # latencies in steady times
        self.meter = Meter()
        self._plan = plan
        self._c = c
        self._orbs = orbs
        self._load = load
        self._progress = progress
        self._victim = ""
        self._turn = 0

    def event(self, name: str) -> Event:
        load, seconds = self._load, self._plan.seconds
        self._progress(name)
        if name == "leave again" and self._plan.state_mb:
            self._grow()
        if name not in OF_JOIN:
            self._choose()
        quiet, began = time.monotonic(), ticks()
        time.sleep(seconds)
        self.meter.look(began)
        errors, start = len(load.errors), time.monotonic()
        self._hit(name)
        took = time.monotonic() - start
        time.sleep(max(seconds, AFTER))
        end = time.monotonic()
        earlier = load.between(quiet, start)
        rate = len([a for a in earlier if a.at >= quiet]) / (start - quiet)
        self.before += [a.took for a in earlier]
        acks, still = load.between(start), load.waiting()
        each = pauses(acks, self._plan.clients, start, end, still)
        quietly = pauses(load.between(quiet), self._plan.clients, quiet, start, still)
        return Event(
            nodes=len(self._c.nodes),
            event=name,
            victim=self._victim,
            took_s=round(took, 2),
            median_ms=ms(middle(earlier)),
            steady_pause_ms=ms(max(quietly).seconds),
            pause_ms=ms(max(each).seconds),
            pause_all_ms=ms(pause(acks, start, end, min(still.values(), default=inf)).seconds),
            pause_ms_of_clients=[ms(gap.seconds) for gap in each],
            pause_at_s=round(max(each).began - start, 3),
            errors=len(load.errors) - errors,
            recovered_after_s=_rounded(recovered([a.at for a in acks], start, end, rate)),
            client_late_ms=ms(load.latest(start, end)),
        )

    def _choose(self) -> None:
        """The next one is the home of a client, each client in turn."""
        self._victim = self._orbs[self._turn % len(self._orbs)].home or self._c.nodes[0]
        self._turn += 1

    def _hit(self, name: str) -> None:
        """Returns when the node is gone, or back."""
        victim = self._victim
        if name in OF_LEAVE:
            self._c.stop(victim)
        elif name == "crash":
            self._c.crash(victim)
        elif name == "hang":
            self._c.pause(victim)
            time.sleep(2 * Group().suspect_after)
            self._c.resume(victim)
            wait_back(self._c, victim, (), BACK)
        else:
            self._c.restart(victim)
            wait_back(self._c, victim, (), BACK)

    def _grow(self) -> None:
        """To the size that the last event is about."""
        vault = self._orbs[0].object(Vault, "vault")
        for _ in range(self._plan.state_mb * (1 << 20) // (BLOCK * PER_CALL)):
            vault.load(PER_CALL)


def _missing(c: Cluster, load: Steady, clients: int) -> tuple[int, int]:
    """Over all replicas: (acknowledged but not counted, counted but never called). One that is away has nothing."""
    orb = c.connect(timeout=CALL)
    replies = orb.crec(orb.mcast(orb.object(Vault, "vault").audit.request()))
    acknowledged = [0] * clients
    for ack in load.acks:
        acknowledged[ack.client] += 1
    lost, twice = (len(c.nodes) - len(replies)) * len(load.acks), 0
    for reply in replies:
        counted = [reply.value["tallies"].get(f"client{i}", 0) for i in range(clients)]
        lost += sum(max(0, a - n) for a, n in zip(acknowledged, counted, strict=True))
        twice += max(0, sum(counted) - load.sent)
    return lost, twice


def ms(seconds: float) -> float:
    return round(1e3 * seconds, 2)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
