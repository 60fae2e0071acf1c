"""How fast: calls, their latency and errors, over time and by what they are.

A call is what a client asked for. With client records its latency counts from when it was due (``intended``), so a
cluster that stalls cannot hide it; from traces alone it counts from the sending at the home node to the end of the
receipt there. One-way calls have no latency.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from framework.analytics.reading import Run
from framework.analytics.tables import Tables

PERCENTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
_NAMES = ("p50", "p90", "p95", "p99", "p999")
GROUPINGS = ("object", "method", "kind", "transmission", "receipt", "node")


def calls(run: Run, tables: Tables) -> DataFrame:
    """invocation, client, object, method, kind, transmission, receipt, node, due, sent, done, status, detail,
    latency."""
    if run.clients is not None:
        taken: DataFrame = run.clients.where("phase != 'warmup'")
        latency = F.when(F.col("kind") != "oneway", F.col("done") - F.col("due"))
        return taken.withColumnRenamed("intended", "due").withColumn("latency", latency)
    receipts = (
        tables.receipts.where("client != ''")
        .groupBy("group")
        .agg(
            F.max("at").alias("done"),
            F.min_by(F.col("complete"), "at").alias("complete"),
            F.max_by(F.expr("get(filter(received, a -> a.status != 'ok'), 0).status"), "at").alias("error"),
        )
    )
    first = F.col("parts")[0]
    sent = tables.sends.where("client != ''").join(receipts, "group", "left")
    status = (
        F.when(F.col("receipt") == "", F.lit("ok"))
        .when(F.col("done").isNull(), F.lit("unanswered"))
        .when(~F.col("complete"), F.lit("DeadlineExceeded"))
        .otherwise(F.coalesce("error", F.lit("ok")))
    )
    done = F.coalesce("done", "at")
    return sent.select(
        "invocation", "client", first["object"].alias("object"), first["footprint"]["method"].alias("method"), "kind",
        "transmission", "receipt", "node", F.col("at").alias("due"), F.col("at").alias("sent"), done.alias("done"),
        status.alias("status"), F.lit("").alias("detail"),
        F.when(F.col("receipt") != "", F.col("done") - F.col("at")).alias("latency"),
    )  # fmt: skip


def _summary(seconds: Column | None = None) -> list[Column]:
    good = F.when(F.col("status") == "ok", F.col("latency"))
    found = [
        F.count("*").alias("calls"),
        F.count(F.when(F.col("status") != "ok", 1)).alias("errors"),
        F.avg(good).alias("mean"),
        F.percentile_approx(good, list(PERCENTILES), 2000).alias("p"),
        F.max(good).alias("max"),
        F.min("due").alias("first"),
        F.max("done").alias("last"),
    ]
    return found


def _spread(rows: DataFrame) -> DataFrame:
    return rows.withColumns({name: F.col("p")[n] for n, name in enumerate(_NAMES)}).drop("p")


def by(called: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Calls, errors, rate and percentiles of latency of good calls, for each value of ``columns``."""
    rows = _spread(called.groupBy(*columns).agg(*_summary()))
    span = F.greatest(F.col("last") - F.col("first"), F.lit(1e-9))
    return rows.withColumn("rate", F.col("calls") / span)


def _each(called: DataFrame) -> DataFrame:
    """Every call once for each of GROUPINGS: ``what``, ``value``. So one pass is enough for all of them."""
    pairs = F.explode(
        F.array(*[F.struct(F.lit(g).alias("what"), F.coalesce(F.col(g), F.lit("")).alias("value")) for g in GROUPINGS])
    )
    return called.select("*", pairs.alias("pair")).select("*", "pair.what", "pair.value")


def breakdown(called: DataFrame) -> DataFrame:
    """``by`` for each of GROUPINGS, in one table: what, value."""
    return by(_each(called), ["what", "value"])


def over_time(called: DataFrame, start: float, width: float, columns: Sequence[str] = ()) -> DataFrame:
    """Throughput and percentiles for each stretch of ``width``; ``t`` is its beginning, from ``start``. A call counts
    where it ended."""
    slot = F.floor((F.col("done") - start) / width)
    rows = called.withColumn("slot", slot).groupBy("slot", *columns).agg(*_summary())
    rows = _spread(rows).withColumn("t", F.col("slot") * width).withColumn("rate", F.col("calls") / width)
    return rows.drop("slot", "first", "last").orderBy("t")


def over_time_by(called: DataFrame, start: float, width: float) -> DataFrame:
    """``over_time`` for each of GROUPINGS, in one table: what, value."""
    return over_time(_each(called), start, width, ["what", "value"]).orderBy("what", "value", "t")


def distribution(called: DataFrame, columns: Sequence[str] = ()) -> DataFrame:
    """How many calls took how long: ``bucket`` n is from 10^(n/10) to 10^((n+1)/10)."""
    good = called.where("status = 'ok' and latency > 0")
    bucket = F.floor(F.log10("latency") * 10).cast("int").alias("bucket")
    return good.groupBy(*columns, bucket).agg(F.count("*").alias("calls")).orderBy(*columns, "bucket")


def errors(called: DataFrame) -> DataFrame:
    """By kind of error: how many, where, since when, and one that says more."""
    bad = called.where("status != 'ok'")
    return bad.groupBy("status", "object", "method").agg(
        F.count("*").alias("calls"), F.min("done").alias("first"), F.max("done").alias("last"),
        F.min_by("detail", "done").alias("example"), F.min_by("invocation", "done").alias("invocation"),
    ).orderBy(F.desc("calls"))  # fmt: skip
