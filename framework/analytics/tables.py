"""The tables that all jobs start from, made of the records of a run in one pass.

``moves``: a request at one of its destinations, from sending to the end of its instance. One row for each (place,
group): what was sent there, and what happened to it there. A row without ``sent_i`` was never sent there; one without
``start_i`` was not performed there as this group.
``performed``: instances, by place and invocation. ``nth`` counts if one was performed again. A row without ``start_i``
is an end, or the sending, of an instance that nobody started.
``sends``, ``receipts``: what callers did.

Keys begin with what differs most: Spark sorts by the first bytes of the first of them as long as these differ.

All keep ``i``, the number of the record in its file: the order of things at one node, which no clock can change.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from framework.analytics import seen, slots
from framework.analytics.at_once import at_once
from framework.analytics.groups import Lives
from framework.analytics.little import little
from framework.analytics.reading import Run
from framework.analytics.seen import Seen

_NEEDLESS = (
    "parquet.column.statistics.enabled", "parquet.size.statistics.enabled", "parquet.page.write-checksum.enabled",
)  # fmt: skip
FEW = 300_000  # rows of a few names and numbers: some 30 MB
TRAN = "tran"  # the object that knows the outcome of transactions


class Tables(msgspec.Struct):
    """DataFrames. The big ones lie on disk as Parquet when made by ``stored``."""

    moves: DataFrame
    performed: DataFrame
    sends: DataFrame
    receipts: DataFrame
    copies: DataFrame  # duplicate records
    ends: DataFrame
    states: DataFrame
    places: DataFrame
    segments: DataFrame
    members: DataFrame
    conflicts: DataFrame  # object, method, other: both ways
    relation: DataFrame  # the same, with lanes (slots.relation)
    alone: bool  # nobody has adopted a state: a history is what the place performed itself
    later: bool  # some life joined a group that was there
    whole: bool  # there are transactions: some node has a replica of tran
    seen: Seen  # which faults there may be at all
    history: DataFrame | None = None  # judged.histories, when it was written


def make(spark: SparkSession, run: Run, lives: Lives, directory: Path | None = None) -> Tables:
    """With a ``directory`` the big ones are written there, each once, so that no job makes them again."""

    def kept(name: str, frame: Callable[[], DataFrame]) -> DataFrame:
        return frame() if directory is None else store(spark, frame(), directory / name)

    events = run.events
    raw = {"performed": partial(_performed, run), "sends": partial(_sends, events)}
    raw["receipts"] = partial(_receipts, events)
    found = at_once(spark, {name: partial(kept, name, frame) for name, frame in raw.items()})
    performed, sends = _counted(found["performed"]), found["sends"]
    moves = kept("moves", lambda: _moves(requests(sends, lives), performed, _steps(events), lives))
    pairs = conflicts(run)
    look: dict[str, Callable[[], Any]] = {"seen": partial(seen.look, moves, performed), "bare": partial(_bare, moves)}
    looked = at_once(spark, look)
    return Tables(
        moves=moves,
        performed=performed,
        sends=sends,
        receipts=found["receipts"],
        copies=_copies(events),
        ends=_ends(events),
        states=events.where("event = 'state'").select(_place(), "node", "life", "i", "digest"),
        places=lives.places_table(spark),
        segments=lives.segments_table(spark),
        members=lives.members_table(spark),
        conflicts=little(spark, pairs, "object string, method string, other string"),
        relation=slots.relation(spark, pairs, looked["bare"]),
        alone=not any(place.segments for place in lives.places()),
        later=any(place.life[1] > 1 for place in lives.places()),
        whole=_whole(lives),
        seen=looked["seen"],
    )


def store(spark: SparkSession, frame: DataFrame, path: Path) -> DataFrame:
    """The same rows, written once and read from there. Most columns have a value of their own in each row: a writer
    that looks for repeated ones gives up soon. Nobody asks these files for bounds and sums."""
    small = {"compression": "lz4", "parquet.dictionary.page.size": str(1 << 16)}
    small |= dict.fromkeys(_NEEDLESS, "false")
    frame.write.mode("overwrite").options(**small).parquet(str(path))
    return spark.read.schema(frame.schema).parquet(str(path))


def few(rows: DataFrame) -> DataFrame:
    """The same rows, made once; sent to all who join them if they are few."""
    rows = rows.localCheckpoint()
    return F.broadcast(rows) if rows.count() <= FEW else rows


def conflicts(run: Run) -> list[tuple[str, str, str]]:
    """object, method, other: both ways."""
    rows = set()
    for one in run.lives:
        for name, placed in one.header.objects.items():
            for a, b in placed.conflicts:
                rows |= {(name, a, b), (name, b, a)}
    return sorted(rows)


def _bare(moves: DataFrame) -> set[tuple[str, str]]:
    """Object and method of what was performed without a key."""
    rows = moves.where("sent_i is not null and start_i is not null and keys is null").select("object", "method")
    return {(r.object, r.method) for r in rows.distinct().collect()}


def _place(replica: str = "replica", life: str = "life") -> Column:
    """bank@n1, and bank@n1#4 in the life that joined in view 4."""
    name = F.when(F.col(life) == 1, F.col(replica)).otherwise(F.concat(F.col(replica), F.lit("#"), F.col(life)))
    return name.alias("place")


def _copies(events: DataFrame) -> DataFrame:
    return events.where("event = 'duplicate'").select(_place(), "node", "life", "i", "group", "invocation")


def _ends(events: DataFrame) -> DataFrame:
    return events.where("event = 'end'").select("node", "life", "sid", "i", "replica", "invocation")


def _performed(run: Run) -> DataFrame:
    events: DataFrame = run.events
    starts = events.where("event = 'deliver'").select(
        _place(),
        "node",
        "life",
        "group",
        "invocation",
        "sid",
        "view",
        "footprint.method",
        "footprint.keys",
        "footprint.readonly",
        "way",
        F.coalesce("cancelled", F.lit(False)).alias("cancelled"),
        F.col("i").alias("start_i"),
        F.col("at").alias("start_at"),
    )
    key = ["sid", "node", "life"]
    if all(one.header.life == 1 for one in run.lives):  # then it is no key: with it Spark would send all ends twice
        key.remove("life")
        return starts.drop("life").join(_ended(events, key), key, "full").withColumn("life", F.lit(1).cast("bigint"))
    return starts.join(_ended(events, key), key, "full")


def _ended(events: DataFrame, key: list[str]) -> DataFrame:
    """When an instance ended, and how; when that was told, and what: earlier, if it is held for a transaction. And when
    it first sent something (``acted_i``, ``acted_at``), how often it ended, and the last time."""
    rows = events.where("event in ('prepare', 'end') or (event = 'send' and client = '')")

    def of(event: str, column: str) -> Column:
        here = F.when(F.col("event") == event, F.col("i"))
        return F.min(here) if column == "i" else F.min_by(F.when(F.col("event") == event, F.col(column)), here)

    end = F.when(F.col("event") == "end", F.col("i"))
    ends = rows.groupBy(*key).agg(
        of("end", "i").alias("end_i"), of("end", "at").alias("end_at"), of("end", "committed").alias("committed"),
        of("prepare", "i").alias("held_i"), of("prepare", "at").alias("held_at"),
        of("prepare", "committed").alias("held_ok"), of("send", "i").alias("acted_i"),
        of("send", "at").alias("acted_at"), F.count(end).alias("ends"), F.max(end).alias("last_end_i"),
    )  # fmt: skip
    told = {"i": ("held_i", "end_i"), "at": ("held_at", "end_at"), "ok": ("held_ok", "committed")}
    return ends.withColumns({f"told_{n}": F.coalesce(*pair) for n, pair in told.items()}).drop("held_at", "held_ok")


def _counted(performed: DataFrame) -> DataFrame:
    """With ``nth``. Hardly any call is performed again: only those are sorted, and mostly there is none."""
    key = ["place", "invocation"]
    starts = performed.where("start_i is not null")
    if starts.groupBy(F.xxhash64(*key)).count().where("count > 1").isEmpty():
        return performed.withColumn("nth", F.lit(1))
    several = starts.groupBy(*key).count().where("count > 1").select(*key)
    nth = F.row_number().over(Window.partitionBy(*key).orderBy("start_i"))
    again = starts.join(several, key, "left_semi").withColumn("nth", nth)
    later = F.broadcast(again.where("nth > 1").select("node", "life", "start_i", "nth"))
    counted = performed.join(later, ["node", "life", "start_i"], "left")
    return counted.withColumn("nth", F.coalesce("nth", F.lit(1)))


def _sends(events: DataFrame) -> DataFrame:
    return events.where("event = 'send'").select(
        "node", "life", "i", "at", "view", "sid", "group", "invocation", "client", "sessions", "kind",
        "transmission", "receipt", "parts", "dests", "entries", "waived",
        F.coalesce("tran", F.lit("")).alias("tran"),
    )  # fmt: skip


def _receipts(events: DataFrame) -> DataFrame:
    return events.where("event = 'receive' and group != ''").select(
        "node", "life", "i", "at", "view", "sid", "group", "client", "receipt", "received", "complete"
    )


def life_at(node: Column, view: Column, lives: Lives) -> Column:
    """The life that a request of this view is sent to: the last one that began by then."""
    several = lives.several()
    if not several:
        return F.lit(1).cast("bigint")
    known = F.create_map(
        *[x for n, found in several.items() for x in (F.lit(n), F.array(*map(F.lit, found)).cast("array<bigint>"))]
    )
    found = F.coalesce(F.try_element_at(known, node), F.array(F.lit(1).cast("bigint")))
    return F.coalesce(F.array_max(F.filter(found, lambda one: one <= view)), found[0])


def requests(sends: DataFrame, lives: Lives) -> DataFrame:
    """One row for each destination of each group: which part it gets, and the invocation id of that part."""

    def place(dest: Column) -> Column:
        life = life_at(F.substring_index(dest["replica"], "@", -1), F.col("view"), lives)
        return F.when(life == 1, dest["replica"]).otherwise(F.concat(dest["replica"], F.lit("#"), life.cast("string")))

    rows = sends.withColumn("sent_to", F.transform("dests", place))
    rows = rows.select("*", F.explode("dests").alias("dest")).withColumns(
        {
            "dest_replica": F.col("dest.replica"),
            "object": F.substring_index("dest.replica", "@", 1),
            "dest_node": F.substring_index("dest.replica", "@", -1),
        }
    )
    index = F.array_position(F.transform("parts", lambda p: p["object"]), F.col("object")) - 1
    rows = rows.withColumn("part", index.cast("int")).withColumn("footprint", F.expr("parts[part].footprint"))
    last = F.regexp_extract("invocation", r"(\d+)$", 1)
    stem = F.regexp_extract("invocation", r"^(.*[./])\d+$", 1)
    invocation = F.when(F.col("part") == 0, F.col("invocation")).otherwise(
        F.concat(stem, (F.nullif(last, F.lit("")).cast("bigint") + F.col("part")).cast("string"))
    )
    rows = rows.withColumn("dest_life", life_at(F.col("dest_node"), F.col("view"), lives))
    return rows.select(
        _place("dest_replica", "dest_life"), "group", "object", F.col("dest_replica").alias("sent_replica"),
        F.col("dest_node"), "dest_life",
        invocation.alias("sent_invocation"), F.col("invocation").alias("act"), F.col("sid").alias("sender"),
        F.col("node").alias("origin"), F.col("life").alias("origin_life"), F.col("i").alias("sent_i"),
        F.col("at").alias("sent_at"), F.col("view").alias("sent_view"), "entries",
        F.col("footprint.method").alias("sent_method"),
        F.col("footprint.keys").alias("sent_keys"), F.col("footprint.readonly").alias("sent_readonly"),
        F.array_contains("waived", F.col("dest_replica")).alias("is_waived"), "sent_to", "tran",
    )  # fmt: skip


def _steps(events: DataFrame) -> DataFrame:
    """When a request arrived at a place, got a proposal, was agreed on, was taken for a copy. Also of what was
    performed without any of these: so every place and group is there that records of the place itself speak of."""

    def of(event: str, column: str) -> Column:
        return F.when(F.col("event") == event, F.col(column))

    wanted = events.where("event in ('arrive', 'propose', 'agree', 'duplicate', 'deliver')")
    rows = wanted.select(
        _place(), "group", of("arrive", "at").alias("arrive_at"), of("propose", "at").alias("propose_at"),
        of("agree", "i").alias("agree_i"), of("agree", "at").alias("agree_at"), of("duplicate", "i").alias("copy_i"),
        F.when(F.col("event") == "duplicate", F.xxhash64("invocation")).alias("copy_of"),
    )  # fmt: skip
    return rows.groupBy("group", "place").agg(
        *[F.min(c).alias(c) for c in ("arrive_at", "propose_at", "agree_i", "agree_at", "copy_i")],
        F.count("copy_i").alias("copies"),
        F.min("copy_of").alias("copy_of"),
        F.max("copy_of").alias("copy_of_too"),
    )


def _moves(sent: DataFrame, performed: DataFrame, steps: DataFrame, lives: Lives) -> DataFrame:
    """What nobody asks for is not written: where else a request went matters for reads and if lives have ended, what
    it was sent as only where it may wait for a transaction."""
    started = performed.where("nth = 1 and start_i is not null").select(
        "place", "group", "invocation", "sid", "view", "method", "keys", "readonly", "way", "start_i", "start_at",
        "end_i", "end_at", "committed", "held_i", "told_i", "told_at", "told_ok", "cancelled", "acted_i", "acted_at",
    )  # fmt: skip
    if not _whole(lives):
        sent = sent.drop("sent_method", "sent_keys")
    # the full join comes last: Spark does not take what it brings for being where it belongs, and would send it again
    rows = steps.join(started, ["group", "place"], "left").join(sent, ["group", "place"], "full")
    ended = F.lit(not all(place.final for place in lives.places()))
    asked = F.coalesce("readonly", F.lit(False)) | F.coalesce("sent_readonly", F.lit(False)) | ended
    rows = rows.withColumns(
        {
            "sent_to": F.when(asked, F.col("sent_to")),
            "odd_copy": seen.odd_copy(),
            "renamed": seen.renamed(),
            "invocation": F.when(F.col("sent_i").isNull(), F.col("invocation")),  # else sent_invocation is asked for
        }
    )
    return rows.drop("copies", "copy_of", "copy_of_too")


def _whole(lives: Lives) -> bool:
    return any(place.object == TRAN for place in lives.places())
