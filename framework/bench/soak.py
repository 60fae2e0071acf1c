"""Half load for a while: does memory stay flat?

The load is half of what three replicas without conflicts were measured to take. Memory of each node is looked at again
and again; growth is what it has at the end over what it had at one fifth of the time, when everything is warm.
"""

import threading
import time

import msgspec

from framework.bench.processes import System
from framework.bench.rpc import Progress, Rpc

SAMPLES = 100
FIRST = 0.2  # share of the time after which a node counts as warm
ROW = "mcast0"


class Soak(msgspec.Struct):
    seconds: float
    rate: float  # calls in a second that were asked for
    calls: int
    samples: dict[str, list[tuple[float, float]]]  # process -> (seconds, MiB)
    growth: dict[str, float]  # process -> end over one fifth
    rss_growth: float | None  # of the node that grew most


def soak(bench: Rpc, seconds: float, payload: int, progress: Progress) -> Soak:
    system = bench.systems["obo"]
    rate = bench.rate("obo", ROW, payload) or bench.once("obo", ROW, payload, bench.plan.seconds).rate
    progress(f"soak: {rate / 2:.0f} calls/s for {seconds:g} s")
    with _Sampling(system, seconds) as sampling:
        done = bench.once("obo", ROW, payload, seconds, rate / 2)
    growth = {name: _growth(s, seconds) for name, s in sampling.samples.items() if s}
    nodes = [growth[s.name] for s in system.servers if s.name in growth]
    worst = max(nodes) if nodes and not done.measured.error else None
    return Soak(seconds, rate / 2, done.measured.calls, sampling.samples, growth, worst)


def _growth(samples: list[tuple[float, float]], seconds: float) -> float:
    warm = next((mib for t, mib in samples if t >= seconds * FIRST), samples[0][1])
    return samples[-1][1] / warm


class _Sampling:
    """Looks at the memory of all processes of a system while the ``with`` lasts."""

    def __init__(self, system: System, seconds: float) -> None:
        self.samples: dict[str, list[tuple[float, float]]] = {p.name: [] for p in system.processes}
        self._system = system
        self._every = seconds / SAMPLES
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "_Sampling":
        self._start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(self._every):
            for process in self._system.processes:
                rss = process.rss()
                if rss is not None:
                    self.samples[process.name].append((round(time.monotonic() - self._start, 3), round(rss, 2)))
