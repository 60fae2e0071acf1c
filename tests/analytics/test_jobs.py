"""Each job on data small enough to know the answer: worked out by hand, or by a few lines of plain Python."""

import random
import statistics

import msgspec
import pytest

from framework.analytics import (
    alone,
    budget,
    clocks,
    compare,
    crowd,
    groups,
    latency,
    reading,
    slots,
    tables,
    verdict,
    way,
)
from framework.analytics.little import little
from framework.footprint import Footprint, Relation

from .small import three_calls
from .universe import write

PART = pytest.approx


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    return prepare(spark, tmp_path_factory.mktemp("small"), three_calls())


def prepare(spark, base, traces):
    write(base / "run", {"": traces})
    run = reading.read(spark, base / "run")
    who = groups.find(run)
    found, staged = verdict.stage(spark, tables.make(spark, run, who, base), base)
    return run, who, found, staged


def calls(spark, rows):
    return spark.createDataFrame(
        [
            ("o", m, "sync", "mcast", "crec", "n1", f"c/{n}", due, due, done, status, "", done - due)
            for n, (m, due, done, status) in enumerate(rows)
        ],
        "object string, method string, kind string, transmission string, receipt string, node string, "
        "invocation string, due double, sent double, done double, status string, detail string, latency double",
    )


def test_latency_by_method_is_that_of_plain_python(spark):
    chance = random.Random(3)
    rows = [(chance.choice("ab"), t := chance.uniform(0, 10), t + chance.expovariate(5), "ok") for _ in range(400)]
    rows += [("a", 1.0, 9.0, "Unavailable")] * 3
    found = {r.method: r for r in latency.by(calls(spark, rows), ["method"]).collect()}
    for method in "ab":
        good = sorted(done - due for m, due, done, status in rows if m == method and status == "ok")
        r = found[method]
        assert r.calls == sum(m == method for m, *_ in rows)
        assert r.p50 in (good[len(good) // 2 - 1], good[len(good) // 2])
        assert r.p99 == PART(good[int(0.99 * len(good))], rel=0.2)
        assert r["mean"] == PART(statistics.fmean(good))
        assert r["max"] == PART(max(good))
    assert (found["a"].errors, found["b"].errors) == (3, 0)


def test_over_time_counts_a_call_where_it_ended(spark):
    rows = [("a", 0.0, 0.4, "ok"), ("a", 0.5, 1.5, "ok"), ("a", 0.9, 1.9, "Aborted"), ("a", 3.0, 3.5, "ok")]
    found = [(r.t, r.calls, r.errors, r.rate) for r in latency.over_time(calls(spark, rows), 0.0, 1.0).collect()]
    assert found == [(0.0, 1, 0, 1.0), (1.0, 2, 1, 2.0), (3.0, 1, 0, 1.0)]


def test_over_time_by_each_of_what_calls_are(spark):
    rows = [("a", 0.0, 0.4, "ok"), ("b", 0.5, 1.5, "ok"), ("a", 0.9, 1.9, "Aborted")]
    found = latency.over_time_by(calls(spark, rows), 0.0, 1.0).collect()
    assert {r.what for r in found} == set(latency.GROUPINGS)
    methods = [(r.value, r.t, r.calls, r.errors, r.p50) for r in found if r.what == "method"]
    assert methods == [("a", 0.0, 1, 0, 0.4), ("a", 1.0, 1, 1, None), ("b", 1.0, 1, 0, 1.0)]
    assert [(r.value, r.t, r.calls) for r in found if r.what == "node"] == [("n1", 0.0, 1), ("n1", 1.0, 2)]


def test_errors_by_kind(spark):
    rows = [("a", 0, 1, "Aborted"), ("a", 0, 2, "Aborted"), ("b", 0, 1, "Unavailable"), ("b", 0, 1, "ok")]
    found = [
        (r.status, r.method, r.calls, r.invocation)
        for r in latency.errors(calls(spark, [(m, float(a), float(b), s) for m, a, b, s in rows])).collect()
    ]
    assert sorted(found) == [("Aborted", "a", 2, "c/0"), ("Unavailable", "b", 1, "c/2")]


def test_calls_of_traces_alone(made):
    run, _, found, _ = made
    rows = {
        r.invocation: (r.method, r.status, round(r.latency, 6), r.node) for r in latency.calls(run, found).collect()
    }
    assert rows == {
        "ann/1": ("deposit", "ok", 4.5, "n1"),
        "bob/1": ("deposit", "ok", 5.5, "n1"),
        "cem/1": ("deposit", "ok", 0.5, "n2"),
    }


def test_time_budget_worked_out_by_hand(made):
    """Along bank@n2, which answered last."""
    _, _, found, staged = made
    rows = {r.act: r for r in budget.parts(found, staged.answers, None).collect()}
    ann = {p: rows["ann/1"][p] for p in budget.PARTS}
    assert ann == {
        "client": None,
        "to_node": None,
        "network": PART(1.0),
        "held": PART(0.5),
        "agreement_fast": PART(0.5),
        "agreement_slow": 0.0,
        "waiting": PART(0.0),
        "performing": PART(1.5),
        "receipt_wait": PART(1.0),
        "from_node": None,
    }
    bob = {p: rows["bob/1"][p] for p in budget.PARTS}
    assert bob["agreement_slow"] == PART(0.6) and bob["agreement_fast"] == 0.0
    assert bob["waiting"] == PART(0.7)
    assert sum(v for v in bob.values() if v is not None) == PART(5.5), "the parts add up to the latency"
    assert all(r.negative == 0 for r in rows.values())


def test_who_waited_for_whom(made):
    """bob's deposit on ann's account waits for hers at both replicas; the one on bob's account for nobody."""
    _, _, _, staged = made
    rows = [
        (r.object, r.method, r.waits_for, r.key, r.times, round(r.waited, 6))
        for r in budget.heat(staged.lanes, staged.met).collect()
    ]
    assert rows == [("bank", "deposit", "deposit", "ann", 2, PART(0.5 + 0.7))]


@pytest.mark.parametrize(("holes", "expected"), [(False, [("A4", "n1")]), (True, [])])
def test_an_end_that_is_not_there_counts_unless_records_are_missing(made, holes, expected):
    """bob's deposit starts at n1 after ann's. If hers never ended there, that is A4; with a hole nobody can say."""
    from pyspark.sql import functions as F

    _, _, found, staged = made
    hers = found.performed.where("place = 'bank@n1' and invocation = 'ann/1'").first()
    lanes = staged.lanes.withColumn("end_i", F.when(F.col("sid") != hers.sid, F.col("end_i")))
    places = found.places.withColumn("holes", F.lit(holes))
    found = msgspec.structs.replace(found, places=places)
    rows = alone.overlaps(found, lanes, crowd.crowded(found, lanes)).collect()
    assert [(r.rule, r.node) for r in rows] == expected


def test_a_clock_that_is_ahead_is_found_and_corrected(spark, tmp_path):
    from framework.analytics.analyze import _corrected

    run, _, found, staged = prepare(spark, tmp_path, three_calls(skew=100.0))
    raw = budget.parts(found, staged.answers, None).where("act = 'ann/1'").first()
    assert raw.negative == 1 and raw.receipt_wait is None, "a negative duration is not shown, but counted"
    least = {(r.a, r.b): r.least for r in clocks.delays(found, staged.answers, None).collect()}
    offsets = clocks.estimate(least)
    ahead = {one.node: one for one in offsets}["n2"]
    assert ahead.steady and abs(ahead.offset - 100.0) <= ahead.error <= 1.0
    found, staged, run = _corrected(found, staged, run, offsets)
    right = budget.parts(found, staged.answers, None).where("act = 'ann/1'").first()
    assert right.negative == 0
    assert right.network + right.receipt_wait == PART(2.0), "only their sum does not depend on the offset"


def test_the_way_of_a_call_across_nodes(made):
    run, *_ = made
    rows = [(r.node, r.event) for r in way.of_call(run.events, "cem/1").collect()]
    assert rows == [("n2", e) for e in ("send", "arrive", "propose", "agree", "deliver", "end", "receive")]
    both = {r.node for r in way.of_call(run.events, "ann/1").collect()}
    assert both == {"n1", "n2"}


def test_stretches_of_a_run(spark):
    rows = [("a", n * 0.1, n * 0.1 + 0.1, "ok") for n in range(100)]
    found = compare.stretches(calls(spark, rows), 10).where("object = ''").collect()
    assert len(found) == 10
    assert sum(r.rate for r in found) == PART(100, rel=0.02), "10 stretches of a second, 10 calls in each"
    assert all(r.p50 == PART(0.1) for r in found)


MODES = ["r", "w", "ir", "iw"]


@pytest.mark.parametrize("seed", [1, 2])
def test_lanes_see_exactly_the_conflicting_calls_before(spark, seed):
    """Against the definition: Relation.conflict on every pair."""
    chance = random.Random(seed)
    pairs = [("a", "a"), ("a", "b"), ("b", "c")]
    relation = Relation(pairs)
    rows = []
    for n in range(120):
        keys = (
            None
            if chance.random() < 0.15
            else tuple((k, chance.choice(MODES)) for k in chance.sample("xyz", chance.randint(0, 2)))
        )
        rows.append((n + 1, chance.choice("abcd"), keys, chance.randint(1, 1000)))
    conflicts = [("o", *p) for p in {*pairs, *((b, a) for a, b in pairs)}]
    lanes = slots.relation(spark, conflicts, {("o", method) for _, method, keys, _ in rows if keys is None})
    frame = spark.createDataFrame(
        [(n, "o", m, None if k is None else [{"key": a, "mode": b} for a, b in k], v) for n, m, k, v in rows],
        "n int, object string, method string, keys array<struct<key:string,mode:string>>, value int",
    )
    from pyspark.sql import functions as F

    laned = slots.lanes(frame.withColumn("n", F.col("n").cast("bigint")), lanes)
    seen = laned.withColumn("before", slots.earlier(laned, ["object"], "n", F.col("value")))
    got = {r.n: r.most for r in seen.groupBy("n").agg(F.max("before").alias("most")).collect()}
    for n, method, keys, _ in rows:
        mine = Footprint(method, keys)
        expected = max((v for m, o, k, v in rows if m < n and relation.conflict(mine, Footprint(o, k))), default=None)
        assert got.get(n) == expected, f"call {n}: {mine}"


@pytest.mark.parametrize("rows", [[], [("a", 1, True), ("b", None, False)]])
def test_a_little_table_is_part_of_the_plan(spark, rows):
    made = little(spark, rows, "name string, n bigint, yes boolean")
    assert [tuple(r) for r in made.collect()] == rows
    assert made.dtypes == [("name", "string"), ("n", "bigint"), ("yes", "boolean")]
    plan = made._jdf.queryExecution().optimizedPlan().toString()
    assert plan.startswith("LocalRelation"), "else each join would run a job for it"
