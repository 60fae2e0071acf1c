"""P0 §6 on live traffic: which share of the messages needs no order.

The counting is that of ``obo fig9`` (docs/fig9.md, ``next/all/computer/ob``): on every computer the messages that come
in, requests and responses, are one sequence, in the order of delivery. A traditional protocol orders each with the one
before it. Here that is needed only if one of the two significantly precedes the other, or both are requests that
conflict.

What is computed differently from the simulator, which replays the whole graph in memory: which of two neighbours was
sent first is told by corrected clocks, and "significantly precedes" is followed from the earlier one only until the
later one was sent (framework.analytics.flows), for a bounded number of rounds. Pairs that are not decided by then are
told.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from framework.analytics.judged import numbered
from framework.analytics.near import name
from framework.analytics.slots import clash
from framework.analytics.tables import Tables

MOST_FOLLOWED = 100_000  # with so many, the share is right within 0.3 points, 19 times of 20
_GRAINS = 1_000_000
_FIELDS = (
    "request", "sent_at", "leak_at", "group", "sender", "sent_i", "object", "method", "keys", "readonly", "sid",
    "end_i",
)  # fmt: skip
_FOLLOWED = (
    "a_request", "a_sent_at", "a_group", "a_sender", "a_sent_i", "a_readonly", "a_sid", "a_end_i", "b_request",
    "b_sent_at", "b_sender", "b_sent_i", "b_sid", "b_end_i",
)  # fmt: skip


def messages(known: DataFrame, answers: DataFrame, roots: bool = True) -> DataFrame:
    """What comes in at each computer: requests that are performed there (``known``: significant.known), responses that
    are received there; groups and callers by near.name. ``roots``: somebody asks for the calls that they belong to."""
    none = F.lit(None)
    act = root() if roots else none.cast("string").alias("root")
    requests = known.where("started").select(
        F.col("dest_node").alias("node"),
        F.col("dest_life").alias("life"),
        F.col("done_i").alias("pos"),
        F.lit(0).alias("sub"),
        F.lit(True).alias("request"),
        "sent_at",
        "leak_at",
        name("group").alias("group"),
        name("sender").alias("sender"),
        "sent_i",
        "object",
        "method",
        "keys",
        "readonly",
        name("sid").alias("sid"),
        "end_i",
        act,
    )
    responses = answers.where("done_end_i is not null and not adopted").select(
        "node",
        "life",
        F.col("i").alias("pos"),
        F.col("nth").alias("sub"),
        F.lit(False).alias("request"),
        F.col("done_end_at").alias("sent_at"),
        none.cast("double").alias("leak_at"),
        name("group").alias("group"),
        name("sid").alias("sender"),
        none.cast("bigint").alias("sent_i"),
        none.cast("string").alias("object"),
        none.cast("string").alias("method"),
        none.cast(requests.schema["keys"].dataType).alias("keys"),
        none.cast("boolean").alias("readonly"),
        name("done_sid").alias("sid"),
        F.col("done_end_i").alias("end_i"),
        act,
    )
    return requests.unionByName(responses)


def root() -> Column:
    """The client's act that a message belongs to, as clients write it down. Names of clients may have dots."""
    return F.regexp_extract("act", r"^(.*/\d+)", 1).alias("root")


def neighbours(came: DataFrame, conflicts: DataFrame, slack: float) -> DataFrame:
    """Each message with the one before it on its computer. ``a_`` is the one that was sent first. ``conflict``: both
    are requests that conflict. ``follow``: the first could be known when the second was sent; has to be followed."""
    window = Window.partitionBy(name("node", "life")).orderBy("pos", "sub")  # numbers are sorted sooner than names
    this = F.struct(*_FIELDS)
    rows = came.withColumn("this", this).withColumn("last", F.lag("this").over(window)).where("last is not null")
    first = F.col("last.sent_at") <= F.col("this.sent_at")
    pick = {
        "a": F.when(first, F.col("last")).otherwise(F.col("this")),
        "b": F.when(first, F.col("this")).otherwise(F.col("last")),
    }
    rows = rows.select("node", "life", "pos", "sub", "root", *[c.alias(n) for n, c in pick.items()])
    rows = rows.select("*", *[F.col(f"{n}.{f}").alias(f"{n}_{f}") for n in "ab" for f in _FIELDS]).drop("a", "b")
    relation = F.broadcast(
        conflicts.select(
            F.col("object").alias("a_object"), F.col("method").alias("a_method"), F.col("other").alias("b_method"),
            F.lit(True).alias("declared"),
        )
    )  # fmt: skip
    rows = rows.join(relation, ["a_object", "a_method", "b_method"], "left")
    same = F.col("a_request") & F.col("b_request") & (F.col("a_object") == F.col("b_object"))
    rows = rows.withColumn("conflict", F.coalesce(same & F.col("declared") & clash("a", "b"), F.lit(False)))
    known = F.when(F.col("a_request"), F.col("a_leak_at")).otherwise(F.col("a_sent_at"))
    siblings = F.col("a_request") & F.col("b_request") & (F.col("a_group") == F.col("b_group"))
    follow = ~F.col("conflict") & (F.col("b_sent_at") >= known - slack) & ~siblings
    rows = rows.withColumn("follow", F.coalesce(follow, F.lit(False)))
    key = F.when(F.col("follow"), F.xxhash64(F.lit("next"), "node", "life", "pos", "sub")).alias("key")
    # of the others nobody asks more than whether they conflict
    asked = [F.when(F.col("follow"), F.col(c)).alias(c) for c in _FOLLOWED]
    return rows.select(key, "node", "root", "conflict", "follow", *asked)


def sampled(pairs: DataFrame, most: int = MOST_FOLLOWED) -> tuple[DataFrame, float]:
    """Of the pairs that have to be followed no more than about ``most``; each then stands for several (``weight``). And
    which share was taken: 1.0 for all."""
    share = min(1.0, most / max(1, pairs.where("follow").count()))
    taken = ~F.col("follow") | (F.pmod("key", F.lit(_GRAINS)) < int(share * _GRAINS))
    share = int(share * _GRAINS) / _GRAINS
    weight = F.when(F.col("follow"), F.lit(1 / max(share, 1 / _GRAINS))).otherwise(F.lit(1.0))
    return pairs.where(taken).withColumn("weight", weight), share


def asked(pairs: DataFrame, slack: float) -> DataFrame:
    """The question: does who sent the later one know of the earlier one by then?"""
    none = F.lit(0).cast("bigint")
    rows = _later(pairs).withColumns({"lo": F.col("a_sent_at"), "until": F.col("b_sent_at") + slack})
    return rows.select(
        "key", "lo", "until", none.alias("place"), none.alias("done_i"), none.alias("group"), F.col("sid").alias("who"),
        "by",
    )  # fmt: skip


def seeds(pairs: DataFrame, slack: float) -> DataFrame:
    """Who sent the earlier one, and what it was an answer of. ``changes``: the instances, too."""
    rows = pairs.where("follow").withColumns({"lo": F.col("a_sent_at"), "until": F.col("b_sent_at") + slack})
    sent = rows.where("a_request and not a_readonly")
    mine = sent.select("key", F.col("a_sender").alias("sid"), F.col("a_sent_i").alias("since"), "lo", "until")
    told = rows.where("not a_request").select(
        "key", F.col("a_sid").alias("sid"), F.col("a_end_i").alias("since"), "lo", "until"
    )
    return mine.unionByName(told).withColumn("follow", F.lit(True))


def changes(pairs: DataFrame, slack: float) -> DataFrame:
    """Earlier ones whose instances know of them: key, group, lo, until."""
    until = (F.col("b_sent_at") + slack).alias("until")
    sent = pairs.where("follow and a_request and not a_readonly")
    return sent.select("key", F.col("a_group").alias("group"), F.col("a_sent_at").alias("lo"), until)


def _later(pairs: DataFrame) -> DataFrame:
    """Of pairs to be followed: who sent the later message, and by which of its records it had to know the earlier."""
    who = F.when(F.col("b_request"), F.col("b_sender")).otherwise(F.col("b_sid")).alias("sid")
    by = F.when(F.col("b_request"), F.col("b_sent_i") - 1).otherwise(F.col("b_end_i")).alias("by")
    return pairs.where("follow").select("*", who, by)


def decided(pairs: DataFrame, met: DataFrame) -> DataFrame:
    """``pairs`` with ``ordered``: does the definition order the two? ``met``: keys of those where the later one's
    sender knew. What only reads is known to its own caller alone."""
    reads = _later(pairs).where("a_request and a_readonly and a_sender = sid and a_sent_i <= by").select("key")
    yes = met.select("key").unionByName(reads).distinct().withColumn("precedes", F.lit(True))
    rows = pairs.join(F.broadcast(yes), "key", "left")  # no more than MOST_FOLLOWED
    return rows.withColumn("ordered", F.col("conflict") | F.coalesce("precedes", F.lit(False)))


def shares(rows: DataFrame, labels: DataFrame | None) -> DataFrame:
    """Messages, those that need their order, and the share that does not; by the settings of the run at that time
    (``labels``: root invocation, conflict, ucast)."""
    if labels is None:
        rows = rows.withColumns({"conflict_ratio": F.lit(None).cast("double"), "ucast": F.lit(None).cast("double")})
    else:
        rows = rows.join(labels, "root", "left")

    def counted(condition: Column) -> Column:
        return F.sum(F.when(condition, F.col("weight")).otherwise(0.0))

    every, needed = F.sum("weight"), counted(F.col("ordered"))
    found = rows.groupBy("conflict_ratio", "ucast").agg(
        F.round(every).cast("bigint").alias("messages"),
        F.round(needed).cast("bigint").alias("needed"),
        F.round(counted(F.col("conflict"))).cast("bigint").alias("conflicting"),
        (100 * (1 - needed / every)).alias("not_ordered"),
    )
    return found.orderBy("ucast", "conflict_ratio")


def labels(clients: DataFrame) -> DataFrame:
    """The settings by root. Each part of a pcast has a number of its own, and calls below it have that for a root."""
    parts = F.size(F.split("object", r"\+"))
    rows = clients.where("invocation != ''").withColumn("j", F.explode(F.sequence(F.lit(0), parts - 1)))
    return rows.select(numbered("invocation", "j").alias("root"), F.col("conflict").alias("conflict_ratio"), "ucast")


def imposed(tables: Tables) -> DataFrame:
    """What the protocol did to order requests, by method: delivered, agreed on (fast, slow) or not, held by a
    context."""
    done = tables.moves.where("sent_i is not null and start_i is not null")

    def count(condition: Column, name: str) -> Column:
        return F.count(F.when(condition, 1)).alias(name)

    return done.groupBy("object", "method").agg(
        F.count("*").alias("delivered"), count(F.col("way") == "fast", "fast"), count(F.col("way") == "slow", "slow"),
        count(~F.col("way").isin("fast", "slow"), "not_agreed"), count(F.col("entries") > 0, "with_context"),
    ).orderBy(F.desc("delivered"))  # fmt: skip
