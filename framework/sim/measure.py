"""The measurements of ``obo bench core``. See framework.sim.bench for the harness."""

import gc
import time
import tracemalloc
from collections.abc import Callable
from random import Random
from statistics import median

from framework.footprint import WRITE, Footprint, Relation
from framework.sim.bench import METHODS, NODES, Bench, relation

CLIENTS = 24  # in flight in each round, over all nodes
WARM = 20  # rounds before the clock starts
SHARES = {"obo0": 0.0, "obo20": 0.2, "obo60": 0.6, "obo100": 1.0}
BACKLOG = 10_000

Progress = Callable[[str], None]


def rounds(bench: Bench, names: list[str], count: int, chance: Random, first: int = 1, calls: int = 1) -> float:
    """CPU seconds per request and replica for this many rounds of CLIENTS requests, each of which makes so many."""
    plans = [
        [(NODES[c % 3], f"c{c}", r, chance.choice(names), Footprint(chance.choice(METHODS))) for c in range(CLIENTS)]
        for r in range(first, first + count)
    ]
    before = bench.delivered
    gc.collect()
    start = time.process_time()
    for plan in plans:
        for node, client, call, name, footprint in plan:
            bench.submit(node, client, call, name, footprint)
        bench.pump()
    spent = time.process_time() - start
    assert bench.delivered - before == count * CLIENTS * len(NODES) * calls, "a request was not delivered"
    return spent / (bench.delivered - before)


def _bench(kind: str, chance: Random) -> tuple[Bench, list[str]]:
    if kind == "total":  # one queue for everything, every pair conflicts
        return Bench({"o1": relation(1.0, chance)}), ["o1"]
    names = ["o1", "o2", "o3", "o4"]
    share = SHARES.get(kind, 0.0)
    return Bench({n: relation(share, chance) for n in names}, fifo=kind == "fifo"), names


def ordering(count: int, repeats: int, progress: Progress) -> dict[str, list[float]]:
    """Seconds per request and replica. The kinds take turns, so that a busy machine disturbs all of them alike."""
    kinds = ["fifo", *SHARES, "total"]
    out: dict[str, list[float]] = {k: [] for k in kinds}
    for turn in range(repeats):
        for kind in kinds:
            chance = Random(f"{kind}/{turn}")
            bench, names = _bench(kind, chance)
            rounds(bench, names, WARM, chance)
            out[kind].append(rounds(bench, names, count, chance, WARM + 1))
            progress(f"{kind} {turn + 1}/{repeats}")
    return out


def _keyed() -> Bench:
    """``a`` on one key waits for ``x`` on that key; on other keys it goes on. All waiting ones are compatible."""
    bench = Bench({"o1": Relation([("a", "x"), ("x", "x")])})
    bench.keeps = lambda effect: effect.footprint.method == "x"
    bench.submit(NODES[0], "holder", 1, "o1", Footprint("x", (("busy", WRITE),)), wait=False)
    bench.pump()
    return bench


def _pile(bench: Bench, count: int) -> None:
    for i in range(count):
        bench.submit(NODES[i % 3], f"w{i % 30}", i // 30 + 1, "o1", Footprint("a", (("busy", WRITE),)), wait=False)
        if i % 300 == 299:
            bench.pump()
    bench.pump()


def _beside(bench: Bench, count: int, first: int = 1) -> float:
    """Seconds per request and replica of compatible requests on other keys."""
    before = bench.delivered
    gc.collect()
    start = time.process_time()
    for r in range(first, first + count):
        for c in range(CLIENTS):
            footprint = Footprint("a", ((f"k{(r * CLIENTS + c) % 97}", WRITE),))
            bench.submit(NODES[c % 3], f"c{c}", r, "o1", footprint)
        bench.pump()
    spent = time.process_time() - start
    assert bench.delivered - before == count * CLIENTS * len(NODES), "a compatible request waited"
    return spent / (bench.delivered - before)


def backlog(count: int, repeats: int, progress: Progress) -> dict[str, list[float]]:
    """The same requests beside nothing, and beside BACKLOG compatible ones that wait."""
    out: dict[str, list[float]] = {"empty": [], "backlog": []}
    for turn in range(repeats):
        for kind in out:
            bench = _keyed()
            if kind == "backlog":
                _pile(bench, BACKLOG)
            _beside(bench, WARM)
            out[kind].append(_beside(bench, count, WARM + 1))
            progress(f"{kind} {turn + 1}/{repeats}")
    return out


def bytes_per_waiting(progress: Progress) -> float:
    """Memory of one waiting request at one replica, everything counted that grows with it."""
    bench = _keyed()
    _pile(bench, 600)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        _pile(bench, BACKLOG)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    progress("memory")
    return grown / (BACKLOG * len(NODES))


def measure(count: int, repeats: int, progress: Progress) -> dict[str, dict[str, float]]:
    """Ratios, and the medians they are made of, in microseconds."""
    cost = {k: median(v) for k, v in ordering(count, repeats, progress).items()}
    piled = {k: median(v) for k, v in backlog(max(10, count // 4), repeats, progress).items()}
    ratios = {f"{k}_over_fifo": cost[k] / cost["fifo"] for k in cost if k != "fifo"}
    ratios["backlog_over_empty"] = piled["backlog"] / piled["empty"]
    ratios["bytes_per_waiting"] = bytes_per_waiting(progress)
    raw = {f"{k}_us": v * 1e6 for k, v in (cost | piled).items()}
    return {"ratios": ratios, "raw": raw}


def reports(repeats: int) -> int:
    """How many progress reports ``measure`` makes."""
    return repeats * (2 + len(SHARES) + 2) + 1
