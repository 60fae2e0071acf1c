"""How knowledge of a message goes from one caller to the next: the relation "significantly precedes" as a graph.

By protocol.md §2.2 a message precedes whatever is sent by one who knows of it. A caller is a session or an instance,
named by its sid; it may know something from some record of its trace on. Knowledge goes

- with a request to the instances that perform it;
- with a response to the caller that receives it;
- from an instance that ended to those that start later on the same replica and conflict with it;
- with a client that goes to another node.

``reach`` follows it from given starting points, round by round, each within a time of its own: who asks knows until
when an answer can matter. In a run most messages are delivered everywhere before anything that follows from them is
sent, so there is little to follow; what is followed is exact.
"""

from collections.abc import Callable

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from framework.analytics.judged import histories
from framework.analytics.near import name
from framework.analytics.tables import Tables, few
from framework.footprint import AGAINST

MOST_ROUNDS = 40


class Reached(msgspec.Struct):
    """``known``: key, sid, since (the record from which on it knows). ``open``: keys that were not followed to the
    end."""

    known: DataFrame
    rounds: int
    open: int


def edges(tables: Tables, answers: DataFrame, went: DataFrame) -> DataFrame:
    """All ways but inheritance: who knows something by record ``upto`` of ``src`` passes it on to ``dst``. Of a request
    also its group, its place, and when it was sent; else these are 0. ``went``: moved. All names by near.name: numbers
    are joined and sent sooner than text."""
    requests = tables.moves.where("sent_i is not null and start_i is not null").select(
        name("sender").alias("src"), (F.col("sent_i") - 1).alias("upto"), name("sid").alias("dst"),
        F.col("start_i").alias("since"), F.col("start_at").alias("at"), name("place").alias("place"),
        name("group").alias("group"), "sent_at",
    )  # fmt: skip
    responses = answers.where("done_end_i is not null and status != 'OutcomeUnknown'").select(
        name("done_sid").alias("src"), F.col("done_end_i").alias("upto"), name("sid").alias("dst"),
        F.col("i").alias("since"), "at",
    )  # fmt: skip
    rest = responses.unionByName(went.withColumns({"src": name("src"), "dst": name("dst")}))
    nowhere = F.lit(0).cast("bigint")
    return requests.unionByName(rest.withColumns({"place": nowhere, "group": nowhere, "sent_at": F.col("at")}))


def moved(tables: Tables) -> DataFrame:
    """Sessions that went on at another node; what they had only read comes along, too. Not many do."""
    brought = tables.sends.where("size(sessions) > 0").select("sid", "i", "at", F.explode("sessions").alias("after"))
    brought = brought.select(
        "*", F.substring_index("after", " ", 1).alias("group"), F.substring_index("after", " ", -1).alias("what")
    )
    sent = tables.sends.select(
        "group", F.lit("sent").alias("what"), F.col("sid").alias("src"), F.col("i").alias("upto")
    )
    got = tables.receipts.select(
        "group", F.lit("received").alias("what"), F.col("sid").alias("src"), F.col("i").alias("upto")
    )
    return (
        few(brought)
        .join(sent.unionByName(got), ["group", "what"])
        .select("src", "upto", F.col("sid").alias("dst"), (F.col("i") - 1).alias("since"), "at")
    )


def heirs(tables: Tables, lanes: DataFrame, width: float) -> tuple[DataFrame, DataFrame]:
    """(givers, takers) of inheritance, by lane. A giver has committed and left a trace: it changes something, or has
    sent or received. Takers are found by lane and by a slice of time of this width."""
    done = histories(tables).where("end_i is not null and committed")
    since = F.when(F.col("adopted"), F.lit(0)).otherwise(F.col("end_i")).alias("from_i")
    done = done.where("acted_i is not null or not readonly").select("place", "sid", "adopted", since, "end_at")
    mine = lanes.select("sid", "slot", "lane", F.col("side").alias("g_side"), F.col("mode").alias("g_mode"))
    slice_ = F.floor(F.col("start_at") / F.lit(width)).alias("slice")
    takers = lanes.where("not passed").select(
        "place", "slot", "lane", "side", "mode", "alike", name("sid").alias("sid"), "start_i", "start_at", slice_
    )
    return done.join(mine, "sid").withColumn("sid", name("sid")), takers


def reach(
    seeds: DataFrame,
    ways: DataFrame,
    givers: DataFrame,
    takers: DataFrame,
    width: float,
    most: int = MOST_ROUNDS,
    tell: Callable[[str], None] = lambda _: None,
) -> Reached:
    """Seeds: key, sid, since, until (time up to which it matters)."""
    limits = seeds.groupBy("key").agg(F.max("until").alias("until")).localCheckpoint()
    known = seeds.groupBy("key", "sid").agg(F.min("since").alias("since")).localCheckpoint()
    fresh, rounds, left = known, 0, known.count()
    while left and rounds < most:
        rounds += 1
        todo = fresh.join(limits, "key")
        by_message = todo.join(ways, todo.sid == ways.src).where((ways.upto >= todo.since) & (ways.at <= todo.until))
        steps = by_message.select("key", F.col("dst").alias("sid"), ways.since.alias("since"))
        found = steps.unionByName(_inherited(todo, givers, takers, width))
        found = found.groupBy("key", "sid").agg(F.min("since").alias("since"))
        old = known.select("key", "sid", F.col("since").alias("before"))
        fresh = found.join(old, ["key", "sid"], "left").where("before is null or since < before")
        fresh = fresh.select("key", "sid", "since").localCheckpoint()
        left = fresh.count()
        tell(f"following, round {rounds}: {left} more know")
        if left:
            merged = known.unionByName(fresh).groupBy("key", "sid").agg(F.min("since").alias("since"))
            known = merged.localCheckpoint()
    still = fresh.select("key").distinct().count() if left else 0
    return Reached(known, rounds, still)


def met(known: DataFrame, asked: DataFrame, ways: DataFrame) -> DataFrame:
    """What search.answers says of those in a stretch: which questions are met by what is known, and by whom."""
    aware = known.join(asked.drop("lo", "until"), "key")
    told = aware.where("who = sid and since <= by").select(
        "key", F.lit(0).cast("bigint").alias("sid"), F.lit(0).cast("bigint").alias("since")
    )
    sent = ways.where("place != 0").select(
        F.col("src").alias("sid"), "upto", "dst", F.col("since").alias("start_i"), "place",
        F.col("group").alias("its_group"),
    )  # fmt: skip
    late = aware.join(sent, ["sid", "place"]).where("upto >= since and start_i < done_i and its_group != group")
    late = late.select("key", F.col("dst").alias("sid"), F.col("start_i").alias("since"))
    return told.unionByName(late).distinct()


def _inherited(todo: DataFrame, givers: DataFrame, takers: DataFrame, width: float) -> DataFrame:
    """From instances that ended, to those that start later in one of their lanes."""
    ended = todo.join(givers, "sid").where("end_at <= until and (adopted or since <= from_i)")
    slices = F.sequence(F.floor(F.col("end_at") / width), F.floor(F.col("until") / width))
    rows = ended.select(
        "key", "place", "slot", "lane", "from_i", "until", "g_side", "g_mode", F.explode(slices).alias("slice")
    )
    met = rows.join(takers, ["place", "slot", "lane", "slice"]).where(
        "start_i > from_i and start_at <= until and (alike or side != g_side)"
    )
    pairs = [f"{m} {n}" for m, against in AGAINST.items() for n in against]
    met = met.where(F.concat_ws(" ", "g_mode", "mode").isin(*pairs))
    return met.select("key", "sid", F.col("start_i").alias("since"))
