"""The measurements of ``obo bench rpc``: nodes beside plain grpcio and Pyro5, as real processes on loopback.

The machine may be busy with other things. So what is compared takes turns in rounds, a ratio is made within each round,
and the median of the rounds counts; the least and the largest say how noisy it was.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from framework.bench.load import Measured, Order
from framework.bench.processes import System, start_baseline, start_nodes

Progress = Callable[[str], None]

#: What can be asked for, and the rows that each takes: (system, row). A part brings its own baseline, right beside it.
PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "lone": (("grpc", "lone"), ("obo", "lone"), ("pyro5", "lone")),
    "async": (("grpc", "async"), ("obo", "async"), ("pyro5", "async")),
    "oneway": (("grpc", "async"), ("obo", "oneway")),
    "mcast0": (("obo", "mcast0_lone"), ("grpc", "async"), ("obo", "mcast0")),
    "mcast100": (("obo", "mcast100_lone"), ("obo", "mcast0"), ("obo", "mcast100")),
}
SOAK = "soak"
RATIO_PAYLOAD = 64
NEEDS = {"pyro5": ("Pyro5", "msgpack")}


class Target(msgspec.Struct, frozen=True):
    value: float
    lower: bool  # lower is better

    def reached(self, measured: float | None) -> bool | None:
        if measured is None:
            return None
        return measured <= self.value if self.lower else measured >= self.value


#: Ratio -> (part, subject, baseline). A lone call is judged by its p50, the others by calls in a second.
RATIOS: dict[str, tuple[str, tuple[str, str], tuple[str, str]]] = {
    "lone_over_grpc_unary": ("lone", ("obo", "lone"), ("grpc", "lone")),
    "async_over_grpc_futures": ("async", ("obo", "async"), ("grpc", "async")),
    "oneway_over_grpc_futures": ("oneway", ("obo", "oneway"), ("grpc", "async")),
    "mcast0_over_grpc_futures": ("mcast0", ("obo", "mcast0"), ("grpc", "async")),
    "mcast100_over_mcast0": ("mcast100", ("obo", "mcast100"), ("obo", "mcast0")),
    "async_over_pyro5": ("async", ("obo", "async"), ("pyro5", "async")),
}
BY_P50 = "lone_over_grpc_unary"
GROWTH = "rss_growth"

TARGETS: dict[str, Target | None] = {
    "lone_over_grpc_unary": Target(0.8, lower=True),
    "async_over_grpc_futures": Target(8.0, lower=False),
    "oneway_over_grpc_futures": Target(15.0, lower=False),
    "mcast0_over_grpc_futures": Target(2.0, lower=False),
    "mcast100_over_mcast0": Target(0.5, lower=False),
    "async_over_pyro5": None,
    GROWTH: Target(1.1, lower=True),  # "flat", with room for what an allocator keeps
}


class Row(msgspec.Struct):
    """One row, the median of its rounds."""

    system: str
    row: str
    payload: int
    calls: int  # of all rounds
    calls_per_s: float
    p50_us: float
    p99_us: float
    cpu_us_per_call: dict[str, float | None]  # by process
    rss_mib: dict[str, float | None]


class _Once(msgspec.Struct):
    """One row in one round."""

    measured: Measured
    cpu: dict[str, float | None]  # seconds
    rss: dict[str, float | None]

    @property
    def rate(self) -> float:
        return self.measured.calls / self.measured.seconds if self.measured.seconds else 0.0


class Plan(msgspec.Struct):
    parts: Sequence[str] = (*PARTS, SOAK)
    payloads: Sequence[int] = (64, 1024)
    rounds: int = 5
    seconds: float = 1.0  # for each row in each round
    soak: float = 30.0

    def turns(self) -> list[tuple[str, str, str]]:
        """(part, system, row) of one round; baselines that are not installed are left out."""
        return [(p, s, r) for p in PARTS if p in self.parts for s, r in PARTS[p] if installed(s)]

    def rows(self) -> list[tuple[str, str]]:
        """Each (system, row) once."""
        return list(dict.fromkeys((system, row) for _, system, row in self.turns()))


def installed(system: str) -> bool:
    return all(find_spec(name) is not None for name in NEEDS.get(system, ()))


class Rpc:
    """A benchmark in the making. ``systems`` are running processes."""

    def __init__(self, plan: Plan, systems: dict[str, System], progress: Progress) -> None:
        self.plan = plan
        self.systems = systems
        self.notes: list[str] = []
        self._progress = progress
        self._seen: dict[tuple[str, str, int], dict[str, list[_Once]]] = {}  # (system, row, payload) -> part -> rounds

    def run(self) -> None:
        plan = self.plan
        for system, row in plan.rows():
            self._progress(f"warm up: {system} {row}")
            self.once(system, row, plan.payloads[0], plan.seconds / 4)
        for turn in range(1, plan.rounds + 1):
            for payload in plan.payloads:
                for part, system, row in plan.turns():
                    self._progress(f"round {turn}/{plan.rounds}: {system} {row}, {payload} B")
                    seen = self._seen.setdefault((system, row, payload), {}).setdefault(part, [])
                    seen.append(self.once(system, row, payload, plan.seconds))

    def once(self, system: str, row: str, payload: int, seconds: float, rate: float = 0.0) -> _Once:
        chosen = self.systems[system]
        before = {p.name: p.cpu() for p in chosen.processes}
        measured = chosen.client.ask(Order(row, payload, seconds, rate))
        cpu = {p.name: _less(p.cpu(), before[p.name]) for p in chosen.processes}
        if measured.error:
            self.notes.append(f"{system} {row}, {payload} B: {measured.error}")
        return _Once(measured, cpu, {p.name: p.rss() for p in chosen.processes})

    def rate(self, system: str, row: str, payload: int) -> float | None:
        """Calls in a second, the median of the rounds."""
        good = self._good(system, row, payload)
        return median(o.rate for o in good) if good else None

    def rows(self) -> list[Row]:
        found = (self._row(*key) for key in self._seen)
        return [row for row in found if row is not None]

    def ratios(self) -> dict[str, list[float]]:
        """Of each round that has both; empty where there is none."""
        payload = RATIO_PAYLOAD if RATIO_PAYLOAD in self.plan.payloads else self.plan.payloads[0]
        out: dict[str, list[float]] = {}
        for name, (part, subject, baseline) in RATIOS.items():
            one, other = (self._seen.get((*pair, payload), {}).get(part, []) for pair in (subject, baseline))
            pairs = zip(one, other, strict=False)  # one of them may not have been measured
            whole = [(a, b) for a, b in pairs if not a.measured.error and not b.measured.error]
            if name == BY_P50:
                out[name] = [a.measured.p50 / b.measured.p50 for a, b in whole]
            else:
                out[name] = [a.rate / b.rate for a, b in whole]
        return out

    def _good(self, system: str, row: str, payload: int) -> list[_Once]:
        parts = self._seen.get((system, row, payload), {}).values()
        return [o for seen in parts for o in seen if not o.measured.error]

    def _row(self, system: str, row: str, payload: int) -> Row | None:
        good = self._good(system, row, payload)
        if not good:
            return None
        names = good[0].cpu
        cost = {n: [o.cpu[n] for o in good] for n in names}
        calls = sum(o.measured.calls for o in good)
        return Row(
            system,
            row,
            payload,
            calls,
            median(o.rate for o in good),
            median(o.measured.p50 for o in good) * 1e6,
            median(o.measured.p99 for o in good) * 1e6,
            {n: sum(c for c in cost[n] if c is not None) / calls * 1e6 if None not in cost[n] else None for n in names},
            good[-1].rss,
        )


@contextmanager
def systems(names: Sequence[str]) -> Iterator[dict[str, System]]:
    """Their processes run inside the ``with``, and end with it, however it ends."""
    with TemporaryDirectory(prefix="obo-bench-") as directory, ExitStack() as stack:
        where = Path(directory)
        yield {n: start_nodes(stack, where) if n == "obo" else start_baseline(stack, n, where) for n in names}


def needed(plan: Plan) -> list[str]:
    return list(dict.fromkeys(["obo", *(system for system, _ in plan.rows())]))


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before
