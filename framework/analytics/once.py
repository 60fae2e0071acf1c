"""A1: nothing is created, nothing performed twice; every answer has an instance that gave it, every state a donor.

A causal cycle between files (a request performed before it was sent, by way of other nodes) is not looked for here:
``obo verify`` replays the records in causal order and finds it.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from framework.analytics.judged import VIOLATION, histories, none, violation
from framework.analytics.tables import Tables, few


def twice(tables: Tables) -> DataFrame:
    """Performed again on the same replica, as the same group or as a copy; or after it was adopted with a state."""
    text = F.concat(F.col("place"), F.lit(" performed "), "invocation", F.lit(" twice, the second time as "), "group")
    again = tables.performed.where("nth > 1").select(*violation("A1", text))
    if tables.alone:
        return again if tables.seen.again else none(tables, *VIOLATION)
    taken = histories(tables).where("adopted").select("place", "invocation").distinct()
    mine = tables.performed.where("nth = 1").join(taken, ["place", "invocation"], "left_semi")
    return again.unionByName(mine.select(*violation("A1", text)))


def never_sent(tables: Tables) -> DataFrame:
    """Performed, or there, but not sent; or not sent to that place."""
    if not tables.seen.stray:
        return none(tables, *VIOLATION)
    known = tables.sends.select("group").distinct().withColumn("known", F.lit(True))
    stray = tables.moves.where("sent_i is null and coalesce(start_i, arrive_at, propose_at, agree_at) is not null")
    stray = stray.join(known, "group", "left")  # a copy that was never sent there is another fault (copies)
    stray = stray.where("start_i is not null or known is null")  # a request that arrives at a later life is thrown away
    where = F.when(F.col("known"), F.lit(", which was not sent to it")).otherwise(F.lit(", which was never sent"))
    what = F.when(F.col("start_i").isNotNull(), F.lit(" delivered ")).otherwise(F.lit(" got "))
    stray = stray.withColumn("node", F.regexp_extract("place", "@([^#]+)", 1))
    return stray.select(*violation("A1", F.concat(F.col("place"), what, "group", where)))


def copies(tables: Tables) -> DataFrame:
    """A copy is answered once, and only where the call was performed before."""
    if not tables.seen.late_copy:
        return none(tables, *VIOLATION)
    facts = F.broadcast(tables.places.select("place", "torn"))
    done = (
        histories(tables)
        .join(tables.copies.select("place", "invocation").distinct(), ["place", "invocation"], "left_semi")
        .groupBy("place", "invocation")
        .agg(F.min(F.when(F.col("adopted"), F.lit(0)).otherwise(F.col("start_i"))).alias("done_i"))
    )
    rows = tables.copies.join(done, ["place", "invocation"], "left").join(facts, "place", "left")
    text = F.concat(F.col("place"), F.lit(" took "), "group", F.lit(" for a copy, but never performed "), "invocation")
    never = rows.where("not coalesce(torn, false) and (done_i is null or done_i > i)").select(*violation("A1", text))
    twice_told = tables.copies.groupBy("place", "node", "group").agg(
        F.count("*").alias("n"), F.min("invocation").alias("invocation")
    )
    again = F.concat(F.col("place"), F.lit(" answered the copy "), "group", F.lit(" twice"))
    unsent = tables.copies.join(tables.sends.select("group"), "group", "left_anti")
    unknown = F.concat(F.col("place"), F.lit(" got the copy "), "group", F.lit(", which was never sent"))
    return (
        never.unionByName(twice_told.where("n > 1").select(*violation("A1", again)))
        .unionByName(unsent.select(*violation("A1", unknown)))
    )  # fmt: skip


def not_running(tables: Tables) -> DataFrame:
    """Ended, or sending, without having been started there."""
    if not tables.seen.wild:
        return none(tables, *VIOLATION)
    starts = tables.performed.where("start_i is not null")
    starts = starts.groupBy("node", "life", "sid").agg(F.min("start_i").alias("start_i"))
    key = ["node", "life", "sid"]
    ends = tables.ends.groupBy(*key).agg(
        F.count("*").alias("n"),
        F.max("i").alias("i"),
        F.max("replica").alias("place"),
        F.max("invocation").alias("invocation"),
    )
    rows = ends.join(starts, key, "left").where("start_i is null or n > 1 or start_i > i")
    text = F.concat(F.col("node"), F.lit(" record "), "i", F.lit(": "), "sid", F.lit(" ended but is not running"))
    ended = rows.select(*violation("A1", text))
    nested = (
        tables.sends.where("client = ''")
        .groupBy(*key)
        .agg(
            F.min("i").alias("i"),
            F.min_by("group", "i").alias("group"),
            F.min_by("invocation", "i").alias("invocation"),
        )
    )
    wild = nested.join(starts, key, "left").where("start_i is null or start_i > i").withColumn("place", F.col("sid"))
    text = F.concat(
        F.col("node"),
        F.lit(" record "),
        "i",
        F.lit(": "),
        "sid",
        F.lit(" sends "),
        "group",
        F.lit(" but was never started"),
    )
    return ended.unionByName(wild.select(*violation("A1", text)))


def sessions(tables: Tables) -> DataFrame:
    """What a client brings along from other nodes must have happened there."""
    brought = tables.sends.where("size(sessions) > 0").select(
        "node", "group", "invocation", "i", F.explode("sessions").alias("after")
    )
    sent = tables.sends.where("client != ''").select(F.concat("group", F.lit(" sent")).alias("after"))
    got = tables.receipts.where("client != ''").select(F.concat("group", F.lit(" received")).alias("after"))
    there = sent.unionByName(got).join(few(brought.select("after").distinct()), "after", "left_semi")
    lost = brought.join(there, "after", "left_anti").withColumn("place", F.col("node"))
    text = F.concat(
        F.col("node"),
        F.lit(" record "),
        "i",
        F.lit(": "),
        "group",
        F.lit(" follows "),
        "after",
        F.lit(", which never was"),
    )
    return lost.select(*violation("A1", text))
