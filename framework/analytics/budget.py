"""Where the time of a call went, and what it waited for.

A call ends with its most significant response. The time from when it was due to its end is split along the replica that
gave that response; the parts add up to the latency:

client (due to sent), to the node, network (to the replica), held (for predecessors), agreement (fast or slow), waiting
(for conflicting instances), performing (nested calls included), receipt (back, and for the responses before it), from
the node.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from framework.analytics.near import name
from framework.analytics.search import SIDE
from framework.analytics.tables import Tables

PARTS = (
    "client", "to_node", "network", "held", "agreement_fast", "agreement_slow", "waiting", "performing", "receipt_wait",
    "from_node",
)  # fmt: skip
WHOLE = "latency"  # what the parts of a call add up to
_TINY = -1e-6  # what clocks that show microseconds may be wrong


def parts(tables: Tables, answers: DataFrame, clients: DataFrame | None) -> DataFrame:
    """One row for each answered call: object, method, its latency, and PARTS in seconds; what is not known is null. A
    part that comes out negative is null, too, and counted in ``negative``: two clocks disagree there."""
    last = answers.where("client != '' and nth = n - 1 and status = 'ok'").select(
        "group", "replica", F.col("at").alias("got_at")
    )
    moves = tables.moves.where("sent_i is not null and start_i is not null").withColumnRenamed(
        "sent_replica", "replica"
    )
    rows = last.join(moves, ["group", "replica"])
    proposed = F.coalesce("propose_at", "agree_at", "start_at")
    agreed = F.coalesce("agree_at", "start_at")
    made = {
        "network": F.col("arrive_at") - F.col("sent_at"),
        "held": proposed - F.col("arrive_at"),
        "agreement_fast": F.when(F.col("way") == "slow", F.lit(0.0)).otherwise(agreed - proposed),
        "agreement_slow": F.when(F.col("way") == "slow", agreed - proposed).otherwise(F.lit(0.0)),
        "waiting": F.col("start_at") - agreed,
        "performing": F.col("told_at") - F.col("start_at"),
        "receipt_wait": F.col("got_at") - F.col("told_at"),
    }
    whole = F.lit(None).cast("double")
    if clients is not None:
        whole = F.col("done") - F.col("intended")
        seen = clients.where("phase != 'warmup'").select("invocation", "intended", "sent", "done")
        rows = rows.join(seen, rows.act == seen.invocation).drop(seen.invocation)
        made |= {
            "client": F.col("sent") - F.col("intended"),
            "to_node": F.col("sent_at") - F.col("sent"),
            "from_node": F.col("done") - F.col("got_at"),
        }
    rows = rows.withColumns(made)
    named = [F.col(p) if p in made else F.lit(None).cast("double").alias(p) for p in PARTS]
    rows = rows.select("act", "object", "method", "way", whole.alias(WHOLE), *named)
    negative = sum((F.when(F.col(p) < _TINY, 1).otherwise(0) for p in PARTS), F.lit(0))
    rows = rows.withColumn("negative", negative)
    return rows.withColumns({p: F.when(F.col(p) >= _TINY, F.greatest(F.col(p), F.lit(0.0))) for p in PARTS})


def per_method(rows: DataFrame) -> DataFrame:
    """The mean of each part, and its 99th percentile, by object and method. ``latency`` is that of these calls: others
    may have been answered by a node whose trace ended too early."""
    means = [F.avg(p).alias(p) for p in (WHOLE, *PARTS)]
    tails = [F.percentile_approx(p, 0.99, 1000).alias(f"{p}_p99") for p in PARTS]
    counted = [
        F.count("*").alias("calls"),
        F.sum("negative").alias("negative"),
        F.count(F.when(F.col("way") == "slow", 1)).alias("slow"),
    ]
    return rows.groupBy("object", "method").agg(*counted, *means, *tails).orderBy(F.desc("calls"))


def heat(lanes: DataFrame, met: DataFrame) -> DataFrame:
    """Who waited for whom: a request that was agreed on and could not start because an instance that conflicts with it
    was running or before it. Its wait is put down to the one that ended last (``met``: crowd.crowded)."""
    last = F.max(F.struct("ended", "lane", "flags")).alias("b")
    one = met.where("ended >= 0 and wait > 0").groupBy("sid").agg(last, F.first("wait").alias("wait"))
    found = one.groupBy(F.col("b.lane").alias("met"), (F.floor(F.col("b.flags") / SIDE) % 2).alias("side")).agg(
        F.count("*").alias("times"), F.sum("wait").alias("waited"), F.max("wait").alias("longest")
    )
    names = lanes.select("place", "object", "slot", "lane", "side", "alike").distinct()
    names = names.withColumn("met", name("place", "slot", "lane"))
    found = names.join(F.broadcast(found), ["met", "side"])
    both = F.split("lane", " ")  # of the two methods of a lane, it is the one that its side says
    rows = found.select(
        "object", F.get(both, F.col("side")).alias("method"),
        F.get(both, F.when(F.col("alike"), F.col("side")).otherwise(1 - F.col("side"))).alias("waits_for"),
        F.regexp_replace("slot", "^k", "").alias("key"), "times", "waited", "longest",
    )  # fmt: skip
    return rows.groupBy("object", "method", "waits_for", "key").agg(
        F.sum("times").alias("times"), F.sum("waited").alias("waited"), F.max("longest").alias("longest")
    ).orderBy(F.desc("waited"))  # fmt: skip


def hot_methods(waits: DataFrame) -> DataFrame:
    """``heat`` without the keys: the map of pairs of methods."""
    return waits.groupBy("object", "method", "waits_for").agg(
        F.sum("times").alias("times"), F.sum("waited").alias("waited"), F.countDistinct("key").alias("keys")
    ).orderBy(F.desc("waited"))  # fmt: skip
