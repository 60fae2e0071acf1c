"""A7: same requests, same state; a request commits at all replicas or at none; who joins gets the state at the cut."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from framework.analytics.judged import VIOLATION, histories, none, own, violation
from framework.analytics.tables import Tables, few


def before_a_state(tables: Tables) -> DataFrame:
    """Performed at a life that had no state yet."""
    if not tables.later:
        return none(tables, *VIOLATION)
    late = F.broadcast(tables.places.where("life > 1 and not torn").select("place", "ready_i"))
    rows = own(tables).join(late, "place").where("ready_i is null or start_i < ready_i")
    text = F.concat(F.col("place"), F.lit(" performed "), "invocation", F.lit(" before it had a state"))
    return rows.select(*violation("A7", text))


def digests(tables: Tables) -> DataFrame:
    """Places of the final view that performed the same changes, with different states. A set of invocations is
    compared by its size and two sums of hashes of its members."""
    if tables.states.isEmpty():
        return none(tables, *VIOLATION)
    done = histories(tables)
    changed = F.col("end_i").isNotNull() & F.col("committed") & ~F.col("readonly")
    parts = done.groupBy("place").agg(
        F.count(F.when(changed, 1)).alias("n"),
        F.sum(F.when(changed, F.xxhash64("invocation").cast("decimal(38,0)"))).alias("h1"),
        F.sum(F.when(changed, F.hash("invocation").cast("bigint"))).alias("h2"),
        F.max((F.col("end_i").isNull() & ~F.col("adopted")).cast("int")).alias("running"),
    )
    last = tables.states.groupBy("place").agg(F.max_by("digest", "i").alias("digest"))
    facts = F.broadcast(tables.places.where("final and not torn and not fallen_back").select("place", "object", "node"))
    rows = facts.join(last, "place").join(parts, "place", "left").where("coalesce(running, 0) = 0")
    rows = rows.fillna({"n": 0, "h1": 0, "h2": 0})
    found = rows.groupBy("object", "n", "h1", "h2").agg(
        F.countDistinct("digest").alias("states"), F.min("node").alias("node"), F.min("place").alias("place"),
        F.sort_array(F.collect_list(F.concat_ws(" ", "place", "digest"))).alias("all"),
    )  # fmt: skip
    text = F.concat(
        F.lit("performed the same "), "n", F.lit(" changes, but their states differ: "), F.array_join("all", ", ")
    )
    return found.where("states > 1").withColumn("invocation", F.lit("")).select(*violation("A7", text))


def halves(tables: Tables) -> DataFrame:
    """Committed at one replica of the final view and aborted at another."""
    if not tables.seen.undone:
        return none(tables, *VIOLATION)
    final = F.broadcast(tables.places.where("final and not fallen_back").select("place"))
    done = histories(tables).where("end_i is not null and not readonly").join(final, "place", "left_semi")
    aborted = few(done.where("not committed").select("invocation", "object").distinct())
    ends = (
        done.join(aborted, ["invocation", "object"], "left_semi")
        .groupBy("invocation", "object")
        .agg(
            F.max(F.when(F.col("committed"), F.col("place"))).alias("yes"),
            F.max(F.when(~F.col("committed"), F.col("place"))).alias("place"),
            F.max(F.when(~F.col("committed"), F.col("node"))).alias("node"),
        )
    )
    text = F.concat(F.col("invocation"), F.lit(" committed at "), "yes", F.lit(" and aborted at "), "place")
    return ends.where("yes is not null and place is not null").select(*violation("A7", text))


def cut(tables: Tables) -> DataFrame:
    """protocol.md §11.1: a change that was sent to all replicas in an earlier view, and performed by all its surviving
    destinations, is in the state of every survivor that joined later. Judged when all that are in the final view have
    stopped."""
    if not tables.later:
        return none(tables, *VIOLATION)
    facts = tables.places.where("final and not torn and not fallen_back and over and ready_i is not null")
    joined = facts.where("life > 1").select(
        "object", F.col("place").alias("joiner"), F.col("node").alias("joiner_node"), F.col("life").alias("joined")
    )
    done = histories(tables).select("place", "invocation").distinct().withColumn("done", F.lit(True))
    sent = tables.moves.where("sent_i is not null and not sent_readonly")
    there = F.broadcast(_replicas_in_view(tables))
    counts = sent.groupBy("group", "object", "sent_invocation", "sent_view", "origin").agg(
        F.countDistinct("place").alias("n")
    )
    whole = counts.join(there, (counts.object == there.o) & (counts.sent_view == there.v)).where("n >= replicas")
    whole = whole.select("group", "object", F.col("sent_invocation").alias("invocation"), "sent_view")
    survivors = sent.join(F.broadcast(facts.select("place")), "place", "left_semi")
    survivors = survivors.select("group", "object", "place", F.col("sent_invocation").alias("invocation"))
    survivors = survivors.join(done, ["place", "invocation"], "left")
    all_did = survivors.groupBy("group", "object").agg(
        F.count("*").alias("n"), F.count("done").alias("did"), F.min("place").alias("first")
    )
    all_did = all_did.where("n = did").select("group", "object", "first")
    asked = whole.join(F.broadcast(joined), "object").where("joined > sent_view").join(all_did, ["group", "object"])
    asked = asked.withColumnRenamed("joiner", "place").withColumnRenamed("joiner_node", "node")
    lost = asked.join(done, ["place", "invocation"], "left_anti")
    text = F.concat(
        F.col("place"),
        F.lit(" joined in view "),
        "joined",
        F.lit(" without "),
        "invocation",
        F.lit(", which was sent in view "),
        "sent_view",
        F.lit(" and performed at "),
        "first",
    )
    return lost.select(*violation("A7", text))


def _replicas_in_view(tables: Tables) -> DataFrame:
    """How many replicas of an object there were in a view."""
    where = tables.places.select("object", "node").distinct()
    rows = where.join(tables.members, "node").groupBy(F.col("object").alias("o"), F.col("view").alias("v"))
    return rows.agg(F.count("*").alias("replicas"))
