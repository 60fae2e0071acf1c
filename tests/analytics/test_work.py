"""What is told when Spark cannot go on."""

import pytest

from framework.analytics.session import fit
from framework.analytics.work import reason, work
from framework.errors import OboError

JAVA = """An error occurred while calling o167.parquet.
: org.apache.spark.SparkException: Job aborted.
	at org.apache.spark.Some.thing(Some.scala:1)
Caused by: org.apache.spark.SparkException: Task failed while writing rows.
	at org.apache.spark.Some.thing(Some.scala:2)
Caused by: java.io.IOException: No space left on device
	at java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (JAVA, "org.apache.spark.SparkException: Job aborted.; java.io.IOException: No space left on device"),
        ("[PATH_NOT_FOUND] Path does not exist: x\nmore", "[PATH_NOT_FOUND] Path does not exist: x"),
        ("", "ValueError"),
    ],
)
def test_the_cause_is_told_in_one_line(error, told):
    assert reason(ValueError(error)) == told


def test_small_runs_are_not_compiled_and_large_ones_are(spark):
    name = "spark.sql.codegen.wholeStage"
    before = spark.conf.get(name)
    spark.conf.set(name, "true")
    try:
        with fit(spark, 1000):
            assert spark.conf.get(name) == "false"
        assert spark.conf.get(name) == "true", "as it was"
        with fit(spark, 10_000_000):
            assert spark.conf.get(name) == "true"
    finally:
        spark.conf.set(name, before)


def test_an_analysis_that_fails_leaves_no_page(spark, tmp_path):
    """Neither an empty one nor that of an earlier run, beside other tables."""
    (tmp_path / "report.html").write_text("of an earlier run")
    with pytest.raises(OboError):
        work(spark, [tmp_path / "nothing"], tmp_path)
    assert not (tmp_path / "report.html").exists()
