"""``obo bench tran``: what it costs that several calls are done whole, or not at all.

- ``single_over_plain``: a call that calls nobody, in a group with transactions over one without: CPU time per request
  and replica, in the harness of ``obo bench core``.
- ``two_object_over_two_calls``: a transaction of a client over two objects on three real nodes, over the same two calls
  without; p50 of a lone client.
- ``distributed_over_centralized``: an atomic pcast over two objects, decided by their votes, over the same decided by
  the client; p50 of a lone client.
- ``parts_over_oneway``: a method that makes a call for which nobody waits, as a part of its transaction, over a one-way
  call that leaves with the commit: CPU time per call of a client. Bytes and message delays of both stand beside it.
- ``hot_aborts_share``: clients that all want the same account, in one order of objects: how many of their transactions
  are aborted instead of waiting. Rows for less contention stand beside it.

What is compared takes turns in rounds; a ratio is made within each round, and the median of the rounds counts.
"""

import threading
import time
from collections.abc import Callable
from random import Random
from statistics import median
from typing import Any

import msgspec

from framework.bench.soak_tran import BANKS
from framework.com.events import Deliver, Outgoing, Submit
from framework.errors import Aborted
from framework.footprint import Footprint
from framework.ids import ObjectName, Sid, object_of, replica
from framework.orb.client import Orb
from framework.orb.ways import Control
from framework.sim.bench import NODES as BENCH_NODES
from framework.sim.bench import Bench, relation
from framework.sim.measure import CLIENTS, WARM, rounds
from framework.testing.clusters import Cluster, cluster
from objects.bank import Bank

Progress = Callable[[str], None]

NODES = 3
SHARES = (0.0, 0.5, 1.0)  # of the transfers that want the hot account
TARGETS: dict[str, float | None] = {
    "single_over_plain": 1.03,
    "two_object_over_two_calls": 2.5,
    "distributed_over_centralized": None,  # to be known, not to be reached
    "parts_over_oneway": None,
    "hot_aborts_share": 0.01,
}
_CORE = ["o1", "o2", "o3", "o4"]
_NOTED = "noted"
FANS = ("oneway", "part")  # what the calls are that a method makes and nobody waits for


class Plan(msgspec.Struct, frozen=True):
    rounds: int = 5
    seconds: float = 2.0  # for each row in each round
    clients: int = 8  # that contend
    requests: int = 150  # rounds of 24 requests for single_over_plain


class Fan(msgspec.Struct):
    """A method that makes a call for which nobody waits."""

    seconds: float  # CPU per call of a client
    bytes: float  # on links, for each
    lone_delays: int  # message delays until a lone client has its answer
    line_delays: int  # and until the last one of a line of clients has, whose calls all conflict


class Contended(msgspec.Struct):
    share: float  # of transfers that want one account
    committed: int
    aborted: int
    p50_ms: float
    p99_ms: float


class Result(msgspec.Struct):
    ratios: dict[str, float]
    raw: dict[str, Any]
    machine: dict[str, Any] = {}


def reports(plan: Plan) -> int:
    return 3 * plan.rounds + len(SHARES) + 2


def measure(plan: Plan, tell: Progress) -> Result:
    single = [_single(plan, turn, tell) for turn in range(plan.rounds)]
    fans = [{kind: _fan(plan, kind, turn) for kind in FANS} for turn in range(plan.rounds)]
    tell("one-way calls of methods")
    tell("starting nodes")
    with cluster(dict.fromkeys(BANKS, Bank), NODES, processes=True, links=False, traces=False) as c:
        pairs = [_two_objects(plan, c, turn, tell) for turn in range(plan.rounds)]
        controls = [_controls(plan, c, turn, tell) for turn in range(plan.rounds)]
        contended = [_contended(plan, c, share, tell) for share in SHARES]
    hot = contended[-1]
    ratios = {
        "single_over_plain": median(one / plain for plain, one in single),
        "two_object_over_two_calls": median(whole / plain for plain, whole in pairs),
        "distributed_over_centralized": median(votes / client for client, votes in controls),
        "parts_over_oneway": median(fan["part"].seconds / fan["oneway"].seconds for fan in fans),
        "hot_aborts_share": hot.aborted / max(1, hot.committed + hot.aborted),
    }
    raw = {
        "plain_us": median(plain for plain, _ in single) * 1e6,
        "single_us": median(one for _, one in single) * 1e6,
        "two_calls_ms": median(plain for plain, _ in pairs) * 1e3,
        "two_object_ms": median(whole for _, whole in pairs) * 1e3,
        "centralized_ms": median(client for client, _ in controls) * 1e3,
        "distributed_ms": median(votes for _, votes in controls) * 1e3,
        "fan": {kind: msgspec.to_builtins(fan) for kind, fan in fans[-1].items()},
        "contention": [msgspec.to_builtins(one) for one in contended],
    }
    return Result({name: round(value, 4) for name, value in ratios.items()}, raw)


def _single(plan: Plan, turn: int, tell: Progress) -> tuple[float, float]:
    """CPU seconds per request and replica: without transactions, and with."""
    spent = []
    for with_tran in (False, True):
        chance = Random(f"single/{turn}")
        bench = Bench({name: relation(0.2, chance) for name in _CORE}, transactions=with_tran)
        rounds(bench, _CORE, WARM, chance)
        spent.append(rounds(bench, _CORE, plan.requests, chance, WARM + 1))
    tell(f"single call {turn + 1}/{plan.rounds}")
    return spent[0], spent[1]


def _fan(plan: Plan, kind: str, turn: int) -> Fan:
    """A method that calls all replicas of another object, and does not wait for them."""
    bench, chance = _fan_bench(kind), Random(f"fan/{turn}")
    rounds(bench, _CORE, WARM, chance, calls=2)
    before = bench.bytes
    seconds = rounds(bench, _CORE, plan.requests, chance, WARM + 1, calls=2) * NODES * 2
    sent = (bench.bytes - before) / (plan.requests * CLIENTS)
    return Fan(seconds, sent, _delays(kind, 1), _delays(kind, CLIENTS))


def _fan_bench(kind: str) -> Bench:
    relations = {name: relation(1.0, Random("fan")) for name in (*_CORE, _NOTED)}
    bench = Bench(relations, transactions=True)

    def calls(effect: Deliver) -> list[Submit]:
        name, method = object_of(effect.replica), effect.footprint.method
        return [_call(effect.sid, kind, method)] if name in _CORE else []

    bench.calls = calls
    return bench


def _call(caller: Sid, kind: str, method: str) -> Submit:
    part = Outgoing(ObjectName(_NOTED), Footprint(method), b"argument", tuple(replica(_NOTED, n) for n in BENCH_NODES))
    return Submit(caller, 1, "oneway" if kind == "oneway" else "async", "mcast", (part,))


def _delays(kind: str, clients: int) -> int:
    bench = _fan_bench(kind)
    for c in range(clients):
        bench.submit(BENCH_NODES[c % NODES], f"c{c}", 1, "o1", Footprint("a"))
    bench.pump()
    return bench.answered


def _two_objects(plan: Plan, c: Cluster, turn: int, tell: Progress) -> tuple[float, float]:
    """p50 in seconds: of two calls, one after the other, and of the same in a transaction. They take turns."""
    orb = c.connect("n1")
    banks = [orb.object(Bank, bank) for bank in BANKS]

    def both() -> None:
        for bank in banks:
            bank.deposit("ann", 1)

    def whole() -> None:
        with orb.transaction():
            both()

    times = _in_turns(plan, both, whole)
    tell(f"two objects {turn + 1}/{plan.rounds}")
    return times


def _in_turns(plan: Plan, one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """p50 in seconds of each."""
    took: tuple[list[float], list[float]] = [], []
    until = time.monotonic() + 2 * plan.seconds
    while time.monotonic() < until or not took[1]:
        for act, times in zip((one, other), took, strict=True):
            start = time.perf_counter()
            act()
            times.append(time.perf_counter() - start)
    return median(took[0]), median(took[1])


def _controls(plan: Plan, c: Cluster, turn: int, tell: Progress) -> tuple[float, float]:
    """p50 in seconds: of an atomic pcast that the client decides on, and of one that its objects do."""
    orb = c.connect("n1")

    def atomic(control: Control) -> list[Any]:
        requests = (orb.object(bank).deposit.request("ann", 1) for bank in BANKS)
        return orb.atomic(*requests, control=control)

    times = _in_turns(plan, lambda: atomic("centralized"), lambda: atomic("distributed"))
    tell(f"control {turn + 1}/{plan.rounds}")
    return times


class _Mover(threading.Thread):
    """Moves money from the first bank to the second, always in this order: nobody waits in a circle."""

    def __init__(self, orb: Orb, name: str, share: float, until: float) -> None:
        super().__init__(daemon=True)
        self._orb, self._own, self._share, self._until = orb, name, share, until
        self._random = Random(name)
        self.times: list[float] = []
        self.aborted = 0
        self.fault: Exception | None = None

    def run(self) -> None:
        source, target = (self._orb.object(Bank, bank) for bank in BANKS)
        try:
            while time.monotonic() < self._until:
                account = "hot" if self._random.random() < self._share else self._own
                start = time.perf_counter()
                try:
                    with self._orb.transaction(timeout=30.0):
                        source.withdraw(account, 1)
                        target.deposit(account, 1)
                    self.times.append(time.perf_counter() - start)
                except Aborted:
                    self.aborted += 1
        except Exception as error:
            self.fault = error


def _contended(plan: Plan, c: Cluster, share: float, tell: Progress) -> Contended:
    names = [f"own{i}" for i in range(plan.clients)]
    filler = c.connect("n1").object(Bank, BANKS[0])
    for account in ("hot", *names):
        filler.deposit(account, 1_000_000)
    until = time.monotonic() + plan.seconds * plan.rounds
    movers = [_Mover(c.connect(c.nodes[i % NODES]), name, share, until) for i, name in enumerate(names)]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join(plan.seconds * plan.rounds + 60.0)
        if mover.fault is not None:
            raise mover.fault
    times = sorted(t for mover in movers for t in mover.times)
    tell(f"contention {share:.0%}")
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    return Contended(share, len(times), sum(m.aborted for m in movers), median(times) * 1e3, p99 * 1e3)
