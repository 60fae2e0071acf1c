"""A4, mutual exclusion, and A3, one order: conflicting calls at a replica, and at several.

Both by windows over lanes (framework.analytics.slots): of a call, the window sees the conflicting ones before it. Only
where one is out of place are pairs made.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from framework.analytics import whole
from framework.analytics.judged import VIOLATION, footprint, histories, none, own, violation, within
from framework.analytics.little import little
from framework.analytics.near import name
from framework.analytics.slots import clash, earlier
from framework.analytics.slots import lanes as in_lanes
from framework.analytics.tables import Tables, few

_NEVER = 9_000_000_000_000_000_000


def overlaps(tables: Tables, lanes: DataFrame, met: DataFrame) -> DataFrame:
    """A4: an instance that started while one that conflicts with it was running or held, but for those that waited for
    it, and what was held for its own transaction. ``met``: crowd.crowded."""
    found = met.where("until >= 0").select("lane", "start_i").distinct().localCheckpoint()
    if found.isEmpty():
        return none(tables, *VIOLATION)
    holes = F.broadcast(tables.places.select("place", "holes"))
    rows = lanes.join(holes, "place", "left").where("end_i is not null or not coalesce(holes, false)")
    rows = rows.withColumn("met", name("place", "slot", "lane"))
    rows = rows.join(F.broadcast(found.select(F.col("lane").alias("met")).distinct()), "met", "left_semi")
    calls = own(tables).select("place", "start_i", "invocation", "method", "keys", "tran", "held_i")
    rows = calls.join(few(rows.where("not passed")), ["place", "start_i"])
    rows = rows.withColumn("until", F.coalesce("end_i", F.lit(_NEVER))).localCheckpoint()
    late = rows.join(F.broadcast(found.withColumnRenamed("lane", "met")), ["met", "start_i"], "left_semi")
    late = late.select("place", "slot", "lane", "node", "object", "invocation", "method", "keys", "start_i", "tran")
    other = rows.select(
        "place", "slot", "lane", F.col("invocation").alias("other"), F.col("method").alias("o_method"),
        F.col("keys").alias("o_keys"), F.col("start_i").alias("o_start"), "until", F.col("tran").alias("o_tran"),
        F.col("held_i").alias("o_held"),
    )  # fmt: skip
    pairs = late.join(other, ["place", "slot", "lane"]).where("o_start < start_i and until > start_i")
    kin = F.coalesce((F.col("o_held") < F.col("start_i")) & (F.col("o_tran") == F.col("tran")), F.lit(False))
    pairs = pairs.where(~kin | (F.col("tran") == ""))
    pairs = pairs.withColumns({"c_keys": F.col("keys")}).drop("slot", "lane").distinct()
    pairs = _conflicting(pairs, tables, "method", "o_method", "c", "o")
    joined = within(pairs.select("place", "invocation", "other"), "invocation", "other", tables.sends)
    pairs = pairs.join(joined, ["place", "invocation", "other"], "left_anti")
    text = F.concat(
        F.col("place"), F.lit(" started "), F.col("invocation"), F.lit(" ("), footprint(), F.lit(") while "), "other",
        F.lit(" ("), footprint("o_method", "o_keys"), F.lit(") is running"),
    )  # fmt: skip
    return pairs.select(*violation("A4", text))


def _conflicting(pairs: DataFrame, tables: Tables, method: str, other: str, a: str, b: str) -> DataFrame:
    relation = tables.conflicts.select("object", F.col("method").alias(method), F.col("other").alias(other))
    return pairs.join(F.broadcast(relation), ["object", method, other], "left_semi").where(clash(a, b))


def given_away(tables: Tables, taken: Sequence[tuple[str, int, str]]) -> DataFrame:
    """A4: a state that was taken while something was being performed has half of it; but for what only reads, and had
    called nobody by then. ``taken``: groups.Lives.snapshots."""
    if not taken:
        return none(tables, *VIOLATION)
    snapshots = little(tables.places.sparkSession, taken, "place string, snapshot_i bigint, to string")
    rows = own(tables).join(F.broadcast(snapshots), "place")
    rows = rows.where("start_i < snapshot_i and (end_i is null or end_i > snapshot_i)")
    rows = rows.where("not readonly or acted_i < snapshot_i")
    text = F.concat(
        F.col("place"), F.lit(" gave its state to "), "to", F.lit(" while "), "invocation", F.lit(" is running")
    )
    return rows.select(*violation("A4", text))


def reversed_pairs(tables: Tables) -> DataFrame:
    """A3: conflicting requests that two places delivered in different orders. Acts are compared, so that the parts of a
    pcast have one order on all its objects."""
    both = _at_two_places(tables).localCheckpoint()  # few, and asked for more than once
    rows = in_lanes(both, tables.relation)
    value = F.when(F.col("b_own"), F.col("b_order"))  # of what both adopted, the donor is asked
    wrong = rows.withColumn("before", earlier(rows, ["place", "b_place"], "order", value))
    wrong = wrong.where("not adopted and before > b_order")
    wrong = wrong.select(
        "place", "b_place", "slot", "lane", "node", "object", "invocation", "method", "keys", "order", "b_order",
        F.col("b_method").alias("late_method"), F.col("b_keys").alias("late_keys"), "b_object", "joined", "b_joined",
    )  # fmt: skip
    first = rows.where("b_own").select(
        "place", "b_place", "slot", "lane", F.col("invocation").alias("other"), F.col("method").alias("o_method"),
        F.col("keys").alias("o_keys"), F.col("order").alias("o_order"), F.col("b_order").alias("o_b_order"),
        F.col("b_method").alias("early_method"), F.col("b_keys").alias("early_keys"),
        (F.col("joined") | F.col("b_joined")).alias("o_joined"),
    )  # fmt: skip
    pairs = wrong.join(first, ["place", "b_place", "slot", "lane"]).where("o_order < order and o_b_order > b_order")
    # on one of several objects it may stand at the place of what its transaction holds there
    pairs = pairs.where("object = b_object or not (joined or b_joined or o_joined)")
    pairs = pairs.withColumns({"c_keys": F.col("keys")})
    pairs = _conflicting(pairs, tables, "method", "o_method", "c", "o")
    pairs = _conflicting(  # at the other place, too: it may be another object of the same pcast
        pairs.drop("object").withColumnRenamed("b_object", "object"),
        tables,
        "late_method",
        "early_method",
        "late",
        "early",
    )
    text = F.concat(
        F.col("place"), F.lit(" delivered "), "other", F.lit(" ("), footprint("o_method", "o_keys"), F.lit(") before "),
        "invocation", F.lit(" ("), footprint(), F.lit("), "), "b_place", F.lit(" the other way round"),
    )  # fmt: skip
    return pairs.select(*violation("A3", text)).distinct()


def _at_two_places(tables: Tables) -> DataFrame:
    """What two places with one history both performed and both had been sent, in different orders. Between lives of the
    final view all copies of a call that changes something count as one; else it must be this very request (oracle:
    _common). Only numbers are compared, of places (``p``) and orders; what else is asked of a call is looked up for the
    few that moved."""
    places = sorted(tables.places.select("place", "final", "history", "fallen_back").collect())
    names = F.array(*[F.lit(one.place) for one in places])
    facts = little(
        tables.places.sparkSession,
        [(*one, n) for n, one in enumerate(places)],
        "place string, final boolean, history bigint, fallen_back boolean, p int",
    )
    done = whole.lost(histories(tables), tables).where("not lost").join(F.broadcast(facts), "place")
    asking = F.broadcast(tables.conflicts.select("object", "method"))  # others have an order with nobody
    done = done.where("not fallen_back").join(asking, ["object", "method"], "left_semi").withColumn("call", name("act"))
    gone = any(not one.final for one in places)
    done = done.withColumn("asked", F.when(F.col("readonly") | F.lit(gone), F.col("sent_to")))
    kept = ["p", "order", "final", "readonly", "asked", "history"]
    both = done.select("call", *kept).join(done.select("call", *[F.col(c).alias(f"b_{c}") for c in kept]), "call")
    both = both.where("p < b_p and history = b_history")

    def common(final: str, readonly: str, asked: str, place: str) -> Column:
        return (F.col(final) & ~F.col(readonly)) | F.array_contains(F.col(asked), F.get(names, F.col(place)))

    both = both.where(common("b_final", "readonly", "asked", "b_p") & common("final", "b_readonly", "b_asked", "p"))
    return _looked_up(_moved(both.select("p", "b_p", "order", "b_order")), done, tables)


def _looked_up(moved: DataFrame, done: DataFrame, tables: Tables) -> DataFrame:
    moved = few(moved)  # then nothing but what moved is sent around
    joined = F.broadcast(whole.joined(tables).withColumn("joined", F.lit(True)))
    calls = done.join(joined, "sid", "left").fillna({"joined": False})
    mine = calls.select(
        "p", "place", "order", "node", "object", "act", "invocation", "method", "keys", "adopted", "joined"
    )
    named = {c: F.col(c).alias(f"b_{c}") for c in ("p", "place", "order", "object", "act", "method", "keys", "joined")}
    other = calls.select(*named.values(), (~F.col("adopted")).alias("b_own"))
    other = other.join(moved.select("b_p", "b_order"), ["b_p", "b_order"], "left_semi")
    return mine.join(moved, ["p", "order"]).join(other, ["b_p", "b_order"]).where("act = b_act")


def _moved(both: DataFrame) -> DataFrame:
    """Those that do not stand between the same others at both places. All pairs that are the other way round are among
    them; where two places performed everything in one order, nothing is left to be looked at."""
    at = Window.partitionBy("p", "b_p")
    highest = F.max("b_order").over(at.orderBy("order").rangeBetween(Window.unboundedPreceding, -1))
    # backwards, for of a frame that ends at the last row Spark looks at all rows again for each row
    lowest = F.min("b_order").over(at.orderBy(-F.col("order")).rangeBetween(Window.unboundedPreceding, -1))
    rows = both.withColumns({"highest": highest, "lowest": lowest})
    return rows.where("b_order < highest or b_order > lowest").drop("highest", "lowest")
