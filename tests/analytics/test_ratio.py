"""The message ratio is that of obo fig9, on traces that both can count."""

import msgspec
import pytest

from framework.analytics import groups, ratio, reading, tables, verdict
from framework.sim.fig9_count import MAIN, Counter
from framework.sim.fig9_relation import relations
from framework.sim.fig9_workload import Workload, traces

from .universe import write

POINTS = [(0.0, 0.0), (0.6, 0.0), (0.6, 1.0)]


@pytest.fixture(scope="module")
def counted(spark, tmp_path_factory):
    """By point: (ordered, base) as the simulator counts, and as Spark does."""
    base = tmp_path_factory.mktemp("fig9")
    usual = Workload(transactions=1)
    runs = {f"p{n}x": traces(n, msgspec.structs.replace(usual, conflict=c, ucast=u)) for n, (c, u) in enumerate(POINTS)}
    expected = {name: Counter(relations(happened)).tally(MAIN) for name, happened in runs.items()}
    write(base / "run", runs)
    run = reading.read(spark, base / "run")
    who = groups.find(run)
    made, staged = verdict.stage(spark, tables.make(spark, run, who, base), base)
    done = verdict.followed(spark, made, staged, 0.0, base)
    assert done.open == 0
    found = {}
    for row in done.pairs.select("node", "ordered").collect():
        name = next(n for n in runs if row.node.startswith(n))
        ordered, total = found.get(name, (0, 0))
        found[name] = (ordered + row.ordered, total + 1)
    return expected, found


def test_the_counting_is_that_of_the_simulator(counted):
    expected, found = counted
    for name, tally in expected.items():
        assert found[name] == (tally.ordered, tally.base), name


def test_shares_by_setting(spark):
    rows = spark.createDataFrame(
        [("a/1", True, True, True, 1.0), ("a/2", False, False, True, 1.0), ("b/1", True, False, True, 1.0)],
        "root string, ordered boolean, conflict boolean, a_request boolean, weight double",
    )
    labels = spark.createDataFrame(
        [("a/1", 0.2, 0.5), ("a/2", 0.2, 0.5), ("b/1", 0.4, 0.5)], "root string, conflict_ratio double, ucast double"
    )
    found = [(r.conflict_ratio, r.messages, r.needed, r.not_ordered) for r in ratio.shares(rows, labels).collect()]
    assert found == [(0.2, 2, 1, 50.0), (0.4, 1, 1, 0.0)]
