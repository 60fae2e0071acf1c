"""The message ratio by settings, and by a sample. (That it counts as the simulator does: test_verdict.)"""

import pytest
from pyspark.sql import functions as F

from framework.analytics import ratio


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


def test_messages_of_all_parts_and_nested_calls_belong_to_the_act_of_their_client(spark):
    """Parts of a pcast have invocations of their own, and names of clients may have dots: a token's is before them."""
    rows = [("boss.c-1/3",), ("boss.c-1/3.2.1",), ("c/12.1",), ("c/12",)]
    found = spark.createDataFrame(rows, "act string").select(ratio.root()).collect()
    assert [r.root for r in found] == ["boss.c-1/3", "boss.c-1/3", "c/12", "c/12"]


def test_every_part_of_a_pcast_has_the_settings_of_its_call(spark):
    rows = [("c/3", "a", 0.2, 0.5), ("c/9", "a+b+c", 0.4, 0.0), ("", "a", 0.9, 0.0)]
    made = spark.createDataFrame(rows, "invocation string, object string, conflict double, ucast double")
    found = {r.root: (r.conflict_ratio, r.ucast) for r in ratio.labels(made).collect()}
    assert found == {"c/3": (0.2, 0.5), "c/9": (0.4, 0.0), "c/10": (0.4, 0.0), "c/11": (0.4, 0.0)}


def test_a_sample_stands_for_all(spark):
    rows = spark.range(40_000).select(
        F.xxhash64("id").alias("key"), (F.col("id") % 2 == 0).alias("follow"), (F.col("id") % 10 < 4).alias("ordered"),
        F.lit(False).alias("conflict"), F.lit("a/1").alias("root"),
    )  # fmt: skip
    every, share = ratio.sampled(rows, 1_000_000)
    assert share == 1.0 and every.count() == 40_000
    some, share = ratio.sampled(rows, 5000)
    assert share == 0.25
    assert some.where("follow").count() == pytest.approx(5000, rel=0.05)
    found = ratio.shares(some, None).first()
    assert found.messages == pytest.approx(40_000, rel=0.03)
    assert found.not_ordered == pytest.approx(60.0, abs=1.0)
