"""The way of one call across nodes: everything that any node wrote down about it and the calls below it."""

from pathlib import Path

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from framework.analytics import reading
from framework.analytics.session import fit


def look_up(spark: SparkSession, path: Path, invocation: str, most: int) -> list[Row]:
    """The first records of the run at ``path`` about this call."""
    run = reading.read(spark, path)
    with fit(spark, run.records):
        return of_call(run.events, invocation).limit(most).collect()


def of_call(events: DataFrame, invocation: str) -> DataFrame:
    """Records about ``invocation`` and what it called, in the order of time (within a node: of its file)."""

    def mine(column: str) -> Column:
        name = F.col(column)
        return (name == invocation) | name.startswith(f"{invocation}.")

    # a group is named by its first part; other parts are found where they arrive
    named = events.where(mine("invocation"))
    groups = named.where("group != ''").select("group").distinct()
    rows = events.join(F.broadcast(groups), "group", "left_semi").unionByName(named.where("group = ''"))
    method = F.coalesce(
        F.col("footprint.method"),
        F.array_join(F.transform("parts", lambda p: F.concat_ws(".", p["object"], p["footprint"]["method"])), ", "),
    )
    return rows.select(
        "at",
        "node",
        "life",
        "i",
        "event",
        "invocation",
        "group",
        "replica",
        F.coalesce(method, F.lit("")).alias("what"),
        "way",
        "stamp",
        F.array_join(F.transform("received", lambda a: F.concat_ws(" ", a["replica"], a["status"])), ", ").alias(
            "received"
        ),
        "committed",
        "sid",
    ).orderBy("at", "node", "i")
