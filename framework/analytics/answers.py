"""Receipts: what was received was answered (A1), as it ended (A4), and enough of it (P0 §3.2): none is missing."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from framework.analytics.judged import VIOLATION, histories, none, violation
from framework.analytics.tables import Tables


def elsewhere(tables: Tables) -> DataFrame:
    """Requests that were not performed as this group where they were sent, with the instance that was performed there
    instead, if there is one: as a copy of it, or it came with a state."""
    sent = tables.moves.where("sent_i is not null and start_i is null").select(
        "group", "place", "act", F.col("sent_invocation").alias("invocation"), F.col("sent_replica").alias("replica"),
        "dest_node", "sender", "sent_i", "sent_at", "origin", "origin_life", "sent_readonly", "copy_i",
    )  # fmt: skip
    done_i = F.when(F.col("adopted"), F.lit(0)).otherwise(F.col("start_i")).alias("done_i")
    other = histories(tables).select("place", "invocation", done_i, *_done(F.col("adopted")))
    return sent.join(other, ["invocation", "place"], "left")


def late_copies(rows: DataFrame) -> bool:
    """Is there a copy, of ``elsewhere``, of what had not been performed?"""
    return not rows.where("copy_i is not null and (done_i is null or done_i > copy_i)").isEmpty()


def answers(tables: Tables, others: DataFrame) -> DataFrame:
    """One row for each response of each receipt, with the instance that gave it (``done_*``), if it is known. Mostly it
    was performed as this group; ``others``: elsewhere."""
    told = tables.receipts.withColumn("n", F.size("received")).select(
        "node", "life", "i", "at", "sid", "group", "client", "n", F.posexplode("received").alias("nth", "answer")
    )
    told = told.select("*", "answer.replica", "answer.status").drop("answer")
    here = tables.moves.where("sent_i is not null and start_i is not null").select(
        "group", "place", "act", F.col("sent_replica").alias("replica"), F.col("sent_invocation").alias("invocation"),
        *_done(F.lit(False)),
    )  # fmt: skip
    there = here.unionByName(others.select(*here.columns))
    facts = F.broadcast(tables.places.select("place", "final", "crashed"))
    return told.join(there, ["group", "replica"], "left").join(facts, "place", "left")


def _done(adopted: Column) -> list[Column]:
    """The instance that gave an answer. It is over for who is told; perhaps it is held for others."""
    names = {"sid": "done_sid", "told_i": "done_end_i", "told_at": "done_end_at", "told_ok": "done_committed"}
    return [*[F.col(name).alias(alias) for name, alias in names.items()], adopted.alias("adopted")]


def unanswered(rows: DataFrame) -> DataFrame:
    """A1: a response of an instance that never ended. Excused where a life crashed before it wrote that down, and for
    errors that the com layer makes itself about one that is gone."""
    bad = rows.where("done_end_i is null and not coalesce(crashed, true) and not (status != 'ok' and not final)")
    text = F.concat(
        F.col("node"),
        F.lit(" record "),
        "i",
        F.lit(": "),
        "sid",
        F.lit(" received "),
        "status",
        F.lit(" of "),
        "group",
        F.lit(" from "),
        "place",
        F.lit(", which never ended it"),
    )
    return bad.select(*violation("A1", text))


def contradicted(rows: DataFrame) -> DataFrame:
    """A4: told that it was done and it was not, or the other way round."""
    bad = rows.where("done_end_i is not null and status != 'OutcomeUnknown' and done_committed != (status = 'ok')")
    text = F.concat(
        F.col("sid"),
        F.lit(" got '"),
        "status",
        F.lit("' of "),
        "group",
        F.lit(" from "),
        "place",
        F.lit(", committed: "),
        F.col("done_committed").cast("string"),
    )
    return bad.select(*violation("A4", text))


def incomplete(tables: Tables) -> DataFrame:
    """P0 §3.2: a receipt that was over before it had what it waits for. Nobody waits for destinations that are gone; an
    instance takes what it can get."""
    rows = _short(tables).localCheckpoint()
    if rows.isEmpty():
        return none(tables, *VIOLATION)
    asked = rows.select("group").distinct()
    rows = rows.join(_destinations(tables, asked), "group")
    views = tables.sends.select("group", F.col("view").alias("since"))
    callers = tables.moves.where("start_i is not null").select("sid", F.col("group").alias("asked"))
    callers = callers.join(rows.select("sid").distinct(), "sid", "left_semi")
    callers = callers.join(views, callers.asked == views.group).select("sid", "since")
    nested = F.col("since").isNotNull()
    rows = rows.join(callers, "sid", "left").withColumn("since_view", F.coalesce("since", "view"))
    lost = F.expr(
        "filter(dests, d -> d.waived or d.life > since_view or not coalesce(array_contains(d.views, view), false))"
    )
    rows = rows.withColumn("all_dests", F.transform("dests", lambda d: d["replica"])).withColumn(
        "left_over", F.array_except("all_dests", F.transform(lost, lambda d: d["replica"]))
    )
    bad = rows.where(~_satisfied(nested)).withColumn("place", F.col("sid"))
    text = F.concat(
        F.col("sid"),
        F.lit(" completed "),
        "receipt",
        F.lit(" of "),
        "group",
        F.lit(" with "),
        F.array_join("got", ", "),
    )
    return bad.select(*violation("P0 §3.2", text))


def _short(tables: Tables) -> DataFrame:
    """Receipts that would not be enough if all destinations were there and nobody took less. Mostly there is none, and
    then nobody has to know who was."""
    sent = tables.sends.select("group", "invocation", F.transform("dests", lambda d: d["replica"]).alias("all_dests"))
    rows = tables.receipts.where("complete").select(
        "node", "i", "view", "sid", "group", "client", "receipt",
        F.transform("received", lambda a: a["replica"]).alias("got"),
    ).join(sent, "group").withColumn("left_over", F.col("all_dests"))  # fmt: skip
    return rows.where(~_satisfied(F.lit(False))).drop("all_dests", "left_over")


def _destinations(tables: Tables, groups: DataFrame) -> DataFrame:
    """Of each of these groups: replica, life, waived, and the views in which that life is a member."""
    views = tables.members.groupBy("node", "life").agg(F.collect_list("view").alias("views"))
    views = views.select(F.col("node").alias("dest_node"), F.col("life").alias("dest_life"), "views")
    sent = tables.moves.where("sent_i is not null").join(groups, "group", "left_semi")
    rows = sent.join(F.broadcast(views), ["dest_node", "dest_life"], "left")
    one = F.struct(
        F.col("sent_replica").alias("replica"),
        F.col("dest_life").alias("life"),
        F.col("is_waived").alias("waived"),
        "views",
    )
    return rows.groupBy("group").agg(F.collect_list(one).alias("dests"))


def _satisfied(nested: Column) -> Column:
    """protocol.md §8.2, as framework.sim.verdict.satisfied reads it; here as an expression."""
    way = F.regexp_extract("receipt", r"^([a-z]+)", 1)
    detail = F.regexp_extract("receipt", r"\((.*)\)$", 1)
    n = F.size("got")
    crec = (F.size(F.array_except("left_over", "got")) == 0) & (F.size(F.array_except("got", "all_dests")) == 0)
    first = F.try_element_at(F.col("got"), F.lit(1))
    srec = (n == 1) & ((detail == "") | (detail == first) | (nested & ~F.array_contains("left_over", detail)))
    objects = F.array_distinct(F.transform("all_dests", lambda d: F.substring_index(d, "@", 1)))
    number = F.when(detail.rlike(r"^\d+$"), detail.cast("bigint"))

    def enough(name: Column) -> Column:
        there = F.size(F.filter(F.array_union("left_over", "got"), lambda d: F.substring_index(d, "@", 1) == name))
        least = F.when(nested, F.least(number, F.greatest(F.lit(1), there))).otherwise(number)
        return F.size(F.filter("got", lambda d: F.substring_index(d, "@", 1) == name)) >= least

    quorum = number.isNull() | F.forall(objects, enough)
    return (
        F.when(way == "crec", crec).when(way == "drec", n == 1).when(way == "srec", srec)
        .when(way == "quorum", quorum).otherwise(F.lit(True))
    )  # fmt: skip
