"""Conflict as something that a window can see.

Two calls on one object conflict iff their methods are declared to, and their keys meet in modes that do
(protocol.md §2.1). To find conflicting calls without comparing all with all, each call is put into *lanes*: one for
each of its keys and each method that its own conflicts with. Calls that conflict share a lane; in a lane the calls of
one method stand against those of the other, and modes decide. A call without key meets every key: it stands, as a
writer of everything, in the lane of the slot ``*``, where keyed calls of methods it conflicts with stand as well, as
ones that only it can touch.
"""

from collections.abc import Collection, Iterable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from framework.analytics.little import little
from framework.footprint import AGAINST

_EVERYTHING = "*"


def relation(
    spark: SparkSession, conflicts: Iterable[tuple[str, str, str]], bare: Collection[tuple[str, str]]
) -> DataFrame:
    """Pairs of methods that conflict, with their lanes: few, so that nothing is left to do for each call.
    ``conflicts``: object, method, other, both ways; ``bare``: object and method of all calls without key."""
    rows = [(o, m, " ".join(sorted((m, n))), int(m > n), m == n, (o, n) in bare) for o, m, n in conflicts]
    return little(spark, rows, "object string, method string, lane string, side int, alike boolean, other_bare boolean")


def lanes(calls: DataFrame, relation: DataFrame) -> DataFrame:
    """Each call once for each lane: ``slot``, ``lane``, ``side`` (which of the two methods), ``alike`` (the lane of a
    method that conflicts with itself) and ``mode``. Calls have object, method and keys."""
    rows = calls.join(F.broadcast(relation), ["object", "method"])
    one = "array<struct<slot:string,mode:string>>"
    keyed = F.transform(
        "keys", lambda k: F.struct(F.concat(F.lit("k"), k["key"]).alias("slot"), k["mode"].alias("mode"))
    )
    all_keys = F.array(F.struct(F.lit(_EVERYTHING).alias("slot"), F.lit("w").alias("mode")))
    touched = F.array(F.struct(F.lit(_EVERYTHING).alias("slot"), F.lit("ir").alias("mode")))
    slots = F.when(F.col("keys").isNull(), all_keys.cast(one)).otherwise(
        F.concat(keyed.cast(one), F.when(F.col("other_bare"), touched).otherwise(F.array()).cast(one))
    )
    rows = rows.withColumn("at_slot", F.explode(slots)).select("*", "at_slot.slot", "at_slot.mode")
    return rows.drop("at_slot", "other_bare")


def earlier(rows: DataFrame, by: Sequence[str], order: str, value: Column) -> Column:
    """The largest ``value`` of the calls before this one in its lane that conflict with it; null if there is none.

    ``by`` are the columns that tell sequences apart, ``order`` is a whole number."""
    window = Window.partitionBy(*by, "slot", "lane").orderBy(order).rangeBetween(Window.unboundedPreceding, -1)

    def most(side: int, modes: Sequence[str]) -> Column:
        return F.max(F.when((F.col("side") == side) & F.col("mode").isin(*modes), value)).over(window)

    against = F.when(F.col("alike"), F.col("side")).otherwise(1 - F.col("side"))
    found = F.lit(None)
    for side in (0, 1):
        for mode, clashing in AGAINST.items():
            found = F.when((against == side) & (F.col("mode") == mode), most(side, clashing)).otherwise(found)
    return found


def clash(a: str, b: str) -> Column:
    """Do the keys of two calls, in columns ``a_keys`` and ``b_keys``, meet in modes that conflict? The methods are the
    caller's business: join with the conflict relation first."""
    mine, other = F.col(f"{a}_keys"), F.col(f"{b}_keys")

    def modes_clash(x: Column, y: Column) -> Column:
        pairs = [(m, n) for m, against in AGAINST.items() for n in against]
        met = F.concat_ws(" ", x["mode"], y["mode"]).isin(*[f"{m} {n}" for m, n in pairs])
        return (x["key"] == y["key"]) & met

    return mine.isNull() | other.isNull() | F.exists(mine, lambda x: F.exists(other, lambda y: modes_clash(x, y)))
