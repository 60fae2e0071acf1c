"""The harness of ``obo bench core``: that it measures what it says. No test here looks at a clock."""

from collections import Counter
from math import isfinite
from random import Random
from typing import Any

import pytest

from framework.com.ahead import Ahead
from framework.com.events import Deliver
from framework.com.order import Order
from framework.footprint import WRITE, Footprint
from framework.sim import measure
from framework.sim.bench import METHODS, NODES, PAIRS, Bench, relation

KINDS = ["fifo", *measure.SHARES, "total"]


class Watched(Bench):
    """Remembers what was delivered where."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.seen: Counter[tuple[str, str]] = Counter()
        self.keeps = self._see

    def _see(self, effect: Deliver) -> bool:
        self.seen[(effect.replica, str(effect.request.invocation))] += 1
        return False


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "Bench", Watched)


@pytest.mark.parametrize("kind", KINDS)
def test_every_request_once_at_each_replica(kind: str) -> None:
    chance = Random("1")
    bench, names = measure._bench(kind, chance)
    assert isinstance(bench, Watched)
    sent = set()
    for call in range(1, 11):
        for c in range(9):
            name, method = chance.choice(names), chance.choice(METHODS)
            bench.submit(NODES[c % 3], f"c{c}", call, name, Footprint(method))
            sent |= {(f"{name}@{node}", f"c{c}/{call}") for node in NODES}
        bench.pump()
    assert bench.seen == Counter(sent)
    assert bench.delivered == len(sent) == 270
    for com in bench.coms.values():
        assert not com.instances
        assert not com.waiting
        assert not any(host.order.entries for host in com.hosts.values())
        assert not any(link.queued for link in com.links.values())


def test_the_modes_are_what_they_are_called() -> None:
    """FIFO exchanges no proposals; total order is one queue where every pair conflicts."""
    fifo, names = measure._bench("fifo", Random("1"))
    fifo.submit(NODES[0], "c", 1, names[0], Footprint("a"))
    assert [m.ordered for m in fifo.coms[NODES[0]].links[NODES[1]]._out] == [False]  # type: ignore[union-attr]
    total, names = measure._bench("total", Random("1"))
    assert names == ["o1"]
    rows = total.coms[NODES[0]].directory.find("o1").relation.rows
    assert all(set(rows[m]) == set(METHODS) for m in METHODS)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6, 1.0])
def test_a_relation_has_its_share_of_the_pairs(share: float) -> None:
    rows = relation(share, Random("x")).rows
    declared = {tuple(sorted((a, b))) for a, row in rows.items() for b in row}
    assert len(declared) == round(share * len(PAIRS))


@pytest.mark.full
def test_measure_gives_every_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "BACKLOG", 60)
    monkeypatch.setattr(measure, "WARM", 1)
    monkeypatch.setattr(measure, "Bench", Bench)
    said: list[str] = []
    out = measure.measure(2, 1, said.append)
    ratios = {f"{k}_over_fifo" for k in (*measure.SHARES, "total")} | {"backlog_over_empty", "bytes_per_waiting"}
    assert set(out["ratios"]) == ratios
    assert set(out["raw"]) == {f"{k}_us" for k in (*KINDS, "empty", "backlog")}
    for name, value in (out["ratios"] | out["raw"]).items():
        assert isfinite(value) and value > 0, name
    assert len(said) == measure.reports(1)


def test_what_is_kept_waits_until_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "Bench", Bench)
    bench = measure._keyed()
    assert bench.delivered == 3
    measure._pile(bench, 30)
    assert bench.delivered == 3, "they wait for the one that is kept"
    bench.release()
    assert bench.delivered == 3 + 30 * 3


class Looks:
    """Counts how often requests are looked at, and how many each look goes through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count: Counter[str] = Counter()
        self._count(monkeypatch, Order, "_advance")
        self._count(monkeypatch, Ahead, "blocker")
        self._count(monkeypatch, Ahead, "_next_before")
        self._count(monkeypatch, Ahead, "_busy")
        self._count(monkeypatch, Ahead, "_before")
        self._count(monkeypatch, Ahead, "_waits")

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        real = getattr(owner, name)

        def counted(*args: Any) -> Any:
            self.count[name] += 1
            return real(*args)

        monkeypatch.setattr(owner, name, counted)

    def of(self, bench: Bench, first: int) -> Counter[str]:
        """What 24 compatible requests cost."""
        before = self.count.copy()
        measure._beside(bench, 1, first)
        return self.count - before


def test_a_backlog_of_compatible_requests_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """protocol.md §5.4: compatible requests never wait for each other, and nothing scans over what waits."""
    monkeypatch.setattr(measure, "Bench", Bench)
    looks = Looks(monkeypatch)
    empty, full = measure._keyed(), measure._keyed()
    measure._pile(full, 500)
    waiting = full.coms[NODES[0]].hosts
    assert sum(len(host.order.entries) for host in waiting.values()) >= 500
    for round_ in range(1, 4):
        beside_nothing, beside_many = looks.of(empty, round_), looks.of(full, round_)
        assert beside_nothing == beside_many
        assert beside_nothing["_advance"] > 0


def test_a_line_of_conflicting_requests_costs_each_a_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of n costs in proportion to n, not to n²."""
    looks = Looks(monkeypatch)
    cost = {}
    for count in (50, 200):
        bench = Bench({"o1": relation(1.0, Random("1"))})
        bench.keeps = lambda effect: effect.request.invocation.client == "holder"
        bench.submit(NODES[0], "holder", 1, "o1", Footprint("a"), wait=False)
        bench.pump()
        before = looks.count["_advance"]
        for i in range(count):
            bench.submit(NODES[i % 3], "c", i + 1, "o1", Footprint("a", ((str(i % 3), WRITE),)), wait=False)
        bench.pump()
        bench.release()
        assert bench.delivered == 3 * (count + 1)
        cost[count] = (looks.count["_advance"] - before) / count
    assert cost[200] < 1.5 * cost[50]
