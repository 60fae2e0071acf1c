"""A2: what significantly precedes a request is delivered before it, at every place where both go.

A request m1 can only be overtaken at a place P by one that was sent after somebody else could know of m1, and that P
delivers before m1. One window over the deliveries of each place finds the few m1 for which there is such a request at
all (``overtaken``); for these, what follows from them is followed (framework.analytics.flows) until P delivers m1.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from framework.analytics import whole
from framework.analytics.judged import VIOLATION, histories, none, own, violation, within
from framework.analytics.near import name
from framework.analytics.tables import Tables

_NEVER = 9_000_000_000_000_000_000


def leaks(tables: Tables, moved: DataFrame) -> DataFrame:
    """Of each group, before when nobody but its sender and its own instances can know of it: one of these ends or
    sends, or its sender sends again, here or at another node."""
    again = F.lead("at").over(Window.partitionBy("sid").orderBy("i"))
    goers = F.broadcast(moved.select(F.col("src").alias("sid"), F.lit(True).alias("goes")).distinct())
    mine = tables.sends.select("group", "sid", "at", again.alias("again")).join(goers, "sid", "left")
    mine = mine.select("group", F.when(F.col("goes"), F.col("at")).otherwise(F.col("again")).alias("again"))
    told = F.min(F.least("acted_at", "told_at")).alias("told")
    starts = tables.moves.where("start_i is not null").groupBy("group").agg(told)
    return mine.join(starts, "group", "left").select("group", F.least("again", "told").alias("leak_at"))


_SENT = ("place", "group", "sender", "sent_i", "sent_at", "origin", "origin_life", "sent_readonly")
_STARTED = ("dest_node", "dest_life", "act", "object", "method", "keys", "readonly", "sid", "end_i")


def known(tables: Tables, elsewhere: DataFrame, moved: DataFrame, roots: bool = True) -> DataFrame:
    """What was sent to a place. ``done_i``: since when that has performed it, as this group (``started``) or another;
    ``came``: it was there; ``leak_at``. ``elsewhere``: of answers, ``moved``: of flows. ``roots``: somebody asks for
    the calls that they belong to (``act``)."""
    rows = _delivered(tables, elsewhere)
    return (rows if roots else rows.drop("act")).join(leaks(tables, moved), "group", "left")


def overtaken(tables: Tables, known: DataFrame, slack: float) -> DataFrame:
    """Requests at a place before which that place delivered something sent after they could be known."""
    torn = F.broadcast(tables.places.where("torn").select("place"))
    sent = known.select(*_SENT, "came", "started", "done_i", "leak_at").join(torn, "place", "left_anti")
    sent = sent.withColumn("position", F.coalesce("done_i", F.lit(_NEVER)))
    window = Window.partitionBy(name("place")).orderBy("position").rangeBetween(Window.unboundedPreceding, -1)
    newest = F.max(F.when(F.col("started"), F.col("sent_at"))).over(window)
    rows = sent.withColumn("newest", newest).where(F.col("newest") >= F.col("leak_at") - slack)
    return _until(rows, tables, slack)


def _delivered(tables: Tables, elsewhere: DataFrame) -> DataFrame:
    yes, no = F.lit(True), F.lit(False)
    sent = tables.moves.where("sent_i is not null")
    if tables.alone and not tables.seen.renamed:  # each call was performed once, and its request says when
        done_i = F.col("start_i").alias("done_i")
        here = sent.where("start_i is not null")
        here = here.select(*_SENT, *_STARTED, yes.alias("came"), yes.alias("started"), done_i)
        copied = F.col("copy_i").isNotNull().alias("came")
        there = elsewhere.select(*_SENT, copied, no.alias("started"), "done_i")
        return here.unionByName(there, allowMissingColumns=True)
    done_i = F.when(F.col("adopted"), F.lit(0)).otherwise(F.col("start_i"))
    done = histories(tables).groupBy("place", "invocation").agg(F.min(done_i).alias("done_i"))
    came = F.expr("copy_i is not null or start_i is not null").alias("came")
    started, invocation = F.col("start_i").isNotNull().alias("started"), F.col("sent_invocation").alias("invocation")
    rows = sent.select(*_SENT, *_STARTED, came, started, invocation)
    return rows.join(done, ["place", "invocation"], "left").drop("invocation")


def _until(rows: DataFrame, tables: Tables, slack: float) -> DataFrame:
    """Up to when one that follows from it can be sent and yet be delivered before it. What never comes, of an origin
    that has gone, is waited for only in views that have its origin."""
    sent = tables.moves.where("sent_i is not null and start_i is not null")
    lasts = sent.groupBy("place", "view").agg(F.max("sent_at").alias("last_at"))
    by_origin = lasts.join(F.broadcast(tables.members), "view").groupBy(
        "place", F.col("node").alias("origin"), F.col("life").alias("origin_life")
    )
    lasts = by_origin.agg(F.max("last_at").alias("last_at"))
    rows = rows.join(F.broadcast(lasts), ["place", "origin", "origin_life"], "left")
    until = F.when(F.col("came"), F.col("newest")).when(F.col("last_at").isNotNull(), F.least("newest", "last_at"))
    rows = rows.withColumn("until", until + slack).where(F.col("until") >= F.col("leak_at") - slack)
    return rows.withColumn("key", F.xxhash64(F.lit("A2"), "place", "group")).drop("position", "newest", "last_at")


def asked(found: DataFrame) -> DataFrame:
    """The question: who knows of it and sent something that this place delivered earlier?"""
    none = F.lit(0).cast("bigint")
    return found.select(
        "key", F.col("sent_at").alias("lo"), "until", name("place").alias("place"),
        F.coalesce("done_i", F.lit(_NEVER)).alias("done_i"), name("group").alias("group"), none.alias("who"),
        none.alias("by"),
    )  # fmt: skip


def seeds(found: DataFrame, moved: DataFrame) -> DataFrame:
    """Who knows of it first: its sender. A read is known to its own caller alone (not ``follow``), and to where that
    one goes; of what changes something also the instances know (``changes``). Callers by near.name."""
    asked = found.withColumn("lo", F.col("sent_at"))
    mine = asked.select(
        "key", name("sender").alias("sid"), F.col("sent_i").alias("since"), "lo", "until",
        (~F.col("sent_readonly")).alias("follow"),
    )  # fmt: skip
    reads = asked.where("sent_readonly").join(moved, (asked.sender == moved.src) & (moved.upto >= asked.sent_i))
    reads = reads.where("at <= until").select("key", name("dst").alias("sid"), "since", "lo", "until")
    return mine.unionByName(reads.withColumn("follow", F.lit(True)))


def changes(found: DataFrame) -> DataFrame:
    """Those whose instances know of them: key, group, lo, until."""
    return found.where("not sent_readonly").select(
        "key", name("group").alias("group"), F.col("sent_at").alias("lo"), "until"
    )


def instances(changes: DataFrame, tables: Tables) -> DataFrame:
    """Their instances, as seeds."""
    starts = tables.moves.where("start_i is not null").select(
        name("group").alias("group"), name("sid").alias("sid"), F.col("start_i").alias("since")
    )
    rows = changes.join(starts, "group").select("key", "sid", "since", "lo", "until")
    return rows.withColumn("follow", F.lit(True))


def broken(found: DataFrame, met: DataFrame, tables: Tables) -> DataFrame:
    """Requests that follow from one of ``found`` and were delivered before it: ``met`` has the instances, by their
    names (near.name) and first records."""
    first = found.withColumnRenamed("group", "first_group").join(met, "key")
    first = first.select("key", "place", "came", "origin", "origin_life", "first_group", "sid", "since")
    first = first.localCheckpoint()
    if first.isEmpty():
        return none(tables, *VIOLATION)
    names = tables.moves.where("sent_i is not null").select(
        "place", F.col("group").alias("first_group"), F.col("sent_invocation").alias("first")
    )
    first = names.join(F.broadcast(first), ["place", "first_group"])
    later = tables.moves.where("sent_i is not null and start_i is not null").select(
        F.col("place").alias("place"),
        name("sid").alias("sid"),
        F.col("start_i").alias("since"),
        F.col("sent_invocation").alias("invocation"),
        "start_i",
        "view",
        F.col("dest_node").alias("node"),
        "group",
    )
    pairs = (
        later.join(F.broadcast(first), ["place", "sid", "since"])
        .where("group != first_group and invocation != first")
        .drop("sid", "since")
        .localCheckpoint()
    )
    if pairs.isEmpty():
        return none(tables, *VIOLATION)
    members = F.broadcast(
        tables.members.select(
            "view", F.col("node").alias("origin"), F.col("life").alias("origin_life"), F.lit(True).alias("there")
        )
    )
    pairs = pairs.join(members, ["view", "origin", "origin_life"], "left").where("came or there")
    pairs = pairs.join(F.broadcast(whole.passed_over(tables)), ["place", "invocation"], "left_anti")
    pairs = whole.outside_kin(_outside_ancestors(pairs, tables), tables)
    text = F.concat(
        F.col("place"),
        F.lit(" delivered "),
        "invocation",
        F.lit(" before "),
        "first",
        F.lit(", which significantly precedes it"),
    )
    return pairs.select(*violation("A2", text)).distinct()


def _outside_ancestors(pairs: DataFrame, tables: Tables) -> DataFrame:
    """A call that comes back to its running ancestor stands at that one's place: of what precedes the call, only other
    calls of this ancestor have to be delivered before it."""
    nested = pairs.where(F.col("invocation").contains(".")).select("place", "invocation", "start_i").distinct()
    if nested.isEmpty():
        return pairs
    running = own(tables).select(
        "place", F.col("invocation").alias("ancestor"), F.col("start_i").alias("a_start"), "end_i"
    )
    parents = F.expr(
        "transform(sequence(1, size(split(invocation, '[.]')) - 1), n -> substring_index(invocation, '.', n))"
    )
    inside = running.join(F.broadcast(nested.withColumn("ancestor", F.explode(parents))), ["place", "ancestor"])
    inside = (
        inside.where("a_start < start_i and (end_i is null or end_i > start_i)")
        .select("place", "invocation", "ancestor")
        .localCheckpoint()
    )
    if inside.isEmpty():
        return pairs
    inside = within(inside, "invocation", "ancestor", tables.sends)
    asked = pairs.select("place", "invocation", "first").distinct().join(inside, ["place", "invocation"])
    also = within(asked.select("first", "ancestor").distinct(), "first", "ancestor", tables.sends).withColumn(
        "also", F.lit(True)
    )
    excused = (
        asked.join(also, ["first", "ancestor"], "left").where("also is null").select("place", "invocation", "first")
    )
    return pairs.join(excused.distinct(), ["place", "invocation", "first"], "left_anti").localCheckpoint()
