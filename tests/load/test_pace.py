"""When calls are due and sent, what they are, and what their latency counts from."""

import asyncio
import time
from collections import Counter
from itertools import islice, pairwise
from random import Random

import pytest

from framework.analytics.columns import ClientRecord
from framework.errors import BadRequest
from framework.load.draw import Call, Draw, Skew
from framework.load.found import Found, Thing
from framework.load.latency import Latencies
from framework.load.pace import NOT_SENT, Clock, Drawing, Running, due, schedule
from framework.load.plan import Plan
from framework.load.registry import make
from framework.load.workloads import Workload

BANK = Thing(
    "bank",
    "objects.bank:Bank",
    ("bank@n1", "bank@n2", "bank@n3"),
    {"deposit": (False, False), "withdraw": (False, False), "balance": (True, True)},
)
NODES = {"n1": "127.0.0.1:1", "n2": "127.0.0.1:2", "n3": "127.0.0.1:3"}
FOUND = Found({"bank": BANK}, NODES)


# times


@pytest.mark.parametrize("processes", [1, 3])
def test_processes_make_up_the_rate_together(processes):
    plan = Plan(workload="bank", rate=300, duration=2, warmup=1, clients=8, processes=processes)
    every = sorted(at for p in range(processes) for at in schedule(plan, p))
    assert len(every) == 900
    gaps = [b - a for a, b in pairwise(every)]
    assert max(gaps) == pytest.approx(1 / 300)


def test_during_the_ramp_the_rate_grows_evenly():
    plan = Plan(workload="bank", rate=100, ramp=4, warmup=0, duration=1)
    times = list(schedule(plan, 0))
    seconds = Counter(int(at) for at in times)
    assert [seconds[s] for s in range(5)] == [pytest.approx(n, abs=1) for n in (13, 37, 62, 88, 100)]
    assert due(plan, 200) == pytest.approx(4.0)  # half of what the full rate would have made
    assert all(a < b for a, b in pairwise(times))


def test_poisson_arrivals_have_the_rate_and_vary():
    plan = Plan(workload="bank", rate=1000, duration=20, warmup=0, arrivals="poisson")
    times = list(schedule(plan, 0))
    assert len(times) == pytest.approx(20_000, rel=0.05)
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((g - mean) ** 2 for g in gaps) / len(gaps)) ** 0.5
    assert deviation == pytest.approx(mean, rel=0.05)  # as of an exponential distribution
    assert times == list(schedule(plan, 0))


def test_conflict_ratios_come_one_after_the_other():
    plan = Plan(workload="bank", conflict=(0.0, 0.5, 1.0), duration=30, warmup=2, ramp=1)
    assert [plan.conflict_at(t) for t in (0, 3, 12.9, 13.1, 22.9, 23.1, 33, 40)] == [0, 0, 0, 0.5, 0.5, 1, 1, 1]


# calls


def drawn(plan: Plan, count: int, found: Found = FOUND) -> list[Call]:
    drawing = Drawing(plan, make(plan.workload, found), ["c0"])
    return [drawing.next("c0", plan.conflict[0])[0] for _ in range(count)]


def test_the_same_seed_draws_the_same_calls():
    plan = Plan(workload="bank", conflict=(0.3,), skew=1.0)
    assert drawn(plan, 200) == drawn(plan, 200)
    assert drawn(plan, 200) != drawn(Plan(workload="bank", conflict=(0.3,), skew=1.0, seed=2), 200)


def test_the_share_that_conflicts_and_the_share_that_reads():
    calls = Counter(c.method for c in drawn(Plan(workload="bank", conflict=(0.25,), reads=0.5), 4000))
    assert calls["withdraw"] / 4000 == pytest.approx(0.25, abs=0.03)
    assert calls["balance"] / 4000 == pytest.approx(0.75 * 0.5, abs=0.03)


def test_zipf():
    skew, chance = Skew(100, 1.0), Random(1)
    seen = Counter(skew.draw(chance) for _ in range(50_000))
    assert seen[0] / seen[1] == pytest.approx(2, rel=0.1)
    assert seen[0] / seen[9] == pytest.approx(10, rel=0.15)
    assert set(seen) <= set(range(100))
    even = Counter(Skew(10, 0.0).draw(chance) for _ in range(20_000))
    assert min(even.values()) > 1700


def test_shares_of_transmissions():
    alone = Thing("bank-n1", BANK.cls, ("bank-n1@n1",), BANK.methods)
    second = Thing("bank2", BANK.cls, ("bank2@n1", "bank2@n2"), BANK.methods)
    found = Found({"bank": BANK, "bank2": second, "bank-n1": alone}, NODES)
    calls = drawn(Plan(workload="bank", ucast=0.5, pcast=0.2), 4000, found)
    ways = Counter(c.way for c in calls)
    assert {w: round(n / 4000, 1) for w, n in ways.items()} == {"ucast": 0.5, "mcast": 0.3, "pcast": 0.2}
    assert {c.object for c in calls if c.way == "ucast"} == {"bank-n1"}, "replicas would differ"
    assert all({c.object, c.also[0].object} == {"bank", "bank2"} for c in calls if c.way == "pcast")
    with pytest.raises(BadRequest, match="ucast is for objects with one replica"):
        make("bank", FOUND).check((1.0, 0.0, 0.0))
    with pytest.raises(BadRequest, match="pcast needs two objects"):
        make("bank", FOUND).check((0.0, 0.0, 1.0))


def test_how_a_call_goes_is_known_before_it_is_sent():
    assert FOUND.transmission("", [("bank", "deposit")]) == "mcast"
    assert FOUND.transmission("", [("bank", "balance")]) == "ucast"
    assert FOUND.receipt("mcast", [("bank", "deposit")]) == "quorum(2)"
    assert FOUND.receipt("ucast", [("bank", "balance")]) == "srec"


# latency


class Nowhere:
    """A home that is there."""

    node, full, ready = "n1", False, True


class Slow:
    """Takes the place of a Sender: answers at once, but for a pause in which nothing is answered."""

    home = Nowhere()

    def __init__(self, name: str, clock: Clock, begin: float, end: float) -> None:
        self.client, self.clock, self.begin, self.end = name, clock, begin, end

    def send(self, call, kind, moment, sink, after) -> None:
        now = self.clock.now()
        wait = max(0.0, self.end - now) if now >= self.begin else 0.0
        sent = time.time()
        asyncio.get_running_loop().call_later(wait, self._over, call, kind, moment, sink, after, sent)

    def _over(self, call, kind, moment, sink, after, sent) -> None:
        record = ClientRecord(
            client=self.client,
            process=0,
            number=1,
            invocation=f"{self.client}/1",
            object=call.object,
            method=call.method,
            kind=kind,
            intended=moment.intended,
            sent=sent,
            done=time.time(),
            phase=moment.phase,
        )
        sink(record)
        after()


class Same(Workload):
    def draw(self, draw: Draw) -> Call:
        return Call("bank", "deposit")


def records(plan: Plan, begin: float, end: float) -> list[ClientRecord]:
    """Those of a run in which nothing is answered between these two times."""
    found: list[ClientRecord] = []

    async def run() -> None:
        clock = Clock(time.time())
        names = [f"c{i}" for i in range(plan.clients)]
        senders = [Slow(name, clock, begin, end) for name in names]
        drawing = Drawing(plan, Same("same", FOUND), names)
        await Running(plan, 0, clock, senders, names, drawing, found.append).run()

    asyncio.run(run())
    return found


def test_a_pause_is_not_hidden_by_calls_that_were_not_made():
    """Coordinated omission: with room for 4 calls a pause of 0.5 s stops the sending; yet all 100 calls that were due
    in it are there with the time they would have waited."""
    plan = Plan(workload="x", rate=200, duration=1.5, warmup=0, clients=4, in_flight=4)
    found = records(plan, 0.5, 1.0)
    assert len(found) == 300
    times = sorted(r.intended for r in found)
    assert max(b - a for a, b in pairwise(times)) < 0.006, "they keep the times they had"
    late = sum(r.done - r.intended > 0.25 for r in found)
    assert late >= 40, "half of the 100 that were due in the pause"
    assert max(r.done - r.intended for r in found) > 0.45
    assert sum(r.done - r.sent > 0.25 for r in found) < late / 2, "what a count from sending would have shown"


def test_a_closed_loop_waits_for_the_answer():
    plan = Plan(workload="x", duration=1.5, warmup=0, clients=2)
    found = records(plan, 0.7, 1.0)  # later than a busy machine needs to start both
    slow = [r for r in found if r.done - r.intended > 0.1]
    assert len(slow) >= 2, "one of each client"
    assert len(slow) < 10, "and not all that an open loop would have sent"


def test_what_was_due_and_could_not_be_sent_is_a_record():
    plan = Plan(workload="x", rate=100, duration=0.5, warmup=0, clients=2, in_flight=2)
    found = records(plan, 0.2, 1.0)
    assert len(found) == 50
    assert sum(r.status == NOT_SENT for r in found) >= 24


def test_clients_join_during_the_ramp():
    plan = Plan(workload="x", duration=0.4, warmup=0.1, ramp=0.4, clients=4)
    found = records(plan, 0.0, 0.0)
    start = min(r.intended for r in found)
    for i in range(4):
        first = min(r.intended for r in found if r.client == f"c{i}") - start
        assert first >= 0.1 * i - 0.01
    warm = [r for r in found if r.intended - start < plan.before - 0.01]
    assert {r.phase for r in warm} == {"warmup"}
    assert {r.phase for r in found if r.intended - start > plan.before + 0.01} <= {"run"}


def test_latencies_can_be_added():
    one, other = Latencies(), Latencies()
    for n in range(1, 1001):
        (one if n % 2 else other).add(n / 1000)
    one.merge(other.counts)
    assert one.total == 1000
    for share in (0.5, 0.9, 0.99):
        assert one.quantile(share) == pytest.approx(share, rel=0.05)
    assert Latencies().quantile(0.5) == 0.0


def test_a_function_of_the_user():
    plan = Plan(workload="tests.load.mine:calls")
    assert [c.method for c in islice(drawn(plan, 2), 2)] == ["deposit", "deposit"]
    with pytest.raises(BadRequest, match=r"gave 7: return a framework\.load\.Call"):
        drawn(Plan(workload="tests.load.mine:wrong"), 1)
