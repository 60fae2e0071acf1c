"""T3, isolation: some order of all committed transactions explains the run (framework.sim.oracle_tran).

The graph of conflicts between transactions has no cycle. To see that without the whole graph each transaction has a
*height*: of each of its calls the lowest clock at which a replica started it, and of those the highest. Where nothing
is wrong heights rise along every conflict: who comes after a transaction starts when that is over, and with it all of
its calls. So a cycle has a conflict along which the height does not rise, and a window over lanes finds these
(slots.py). Mostly there is none, and nothing more to do. Else all transactions between the lowest and the highest of
them are looked at, in memory: no cycle leaves that range.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from framework.analytics.judged import VIOLATION, histories, none
from framework.analytics.little import little
from framework.analytics.slots import clash, earlier, lanes
from framework.analytics.tables import TRAN, Tables
from framework.analytics.whole import judged
from framework.sim.oracle_tran import cycle

MOST = 20  # cycles that are told
EDGES = 1_000_000  # conflicts that are looked at in memory


def cycles(tables: Tables) -> DataFrame:
    """T3."""
    if not tables.whole:
        return none(tables, *VIOLATION)
    rows = lanes(_high(_calls(tables)), tables.relation)
    own = F.struct("height", "t")
    fallen = rows.withColumn("before", earlier(rows, ["place"], "order", own)).where(F.col("before") > own)
    bounds = fallen.select(F.min("height"), F.max("before.height")).first()
    spark = tables.places.sparkSession
    found: list[tuple[str, ...]] = []
    if bounds is not None and bounds[0] is not None:
        found = _told(_edges(rows.where(F.col("height").between(*bounds)), tables))
    return little(spark, found, ", ".join(f"{name} string" for name in VIOLATION))


def _calls(tables: Tables) -> DataFrame:
    """What is committed, with its transaction. A read that did not go to all replicas says nothing about the others;
    nor does one that came to its turn when its transaction was over: nobody was told of it."""
    done = histories(tables).where(f"object != '{TRAN}' and end_i is not null and committed")
    with_tran = F.broadcast(tables.places.where(f"object = '{TRAN}'").select("node").distinct())
    done = done.join(judged(tables), "place", "left_semi").join(with_tran, "node", "left_semi")
    there = tables.places.select("object", "node").distinct().join(tables.members.select("node", "view"), "node")
    there = there.groupBy("object", F.col("view").alias("sent_view")).agg(F.countDistinct("node").alias("there"))
    done = done.join(F.broadcast(there), ["object", "sent_view"], "left")
    asked = F.size(F.filter("sent_to", lambda to: F.substring_index(to, "@", 1) == F.col("object")))
    told = (asked >= F.coalesce("there", F.lit(0))) & ((F.col("tran") == "") | F.col("held_i").isNotNull())
    done = done.where(~F.col("readonly") | told)
    name = F.when(F.col("tran") != "", F.col("tran")).otherwise(F.col("invocation"))
    return done.select(
        "place", "object", "method", "keys", "order", "adopted", "invocation", name.alias("t"),
        F.substring_index("sid", ":", 1).cast("bigint").alias("clock"),
    )  # fmt: skip


def _high(calls: DataFrame) -> DataFrame:
    lowest = calls.where("not adopted").groupBy("t", "invocation").agg(F.min("clock").alias("clock"))
    heights = lowest.groupBy("t").agg(F.max("clock").alias("height"))
    return calls.join(heights, "t").drop("clock", "adopted", "invocation")


def _edges(rows: DataFrame, tables: Tables) -> list[tuple[str, str, str]]:
    """Which transaction comes before which, and where."""
    first = rows.select("place", "slot", "lane", "object", "method", F.col("keys").alias("a_keys"), "order", "t")
    then = rows.select(
        "place", "slot", "lane", F.col("method").alias("other"), F.col("keys").alias("b_keys"),
        F.col("order").alias("later"), F.col("t").alias("after"),
    )  # fmt: skip
    pairs = first.join(then, ["place", "slot", "lane"]).where("order < later and t != after")
    pairs = pairs.join(F.broadcast(tables.conflicts), ["object", "method", "other"], "left_semi").where(clash("a", "b"))
    return [(r.t, r.after, r.place) for r in pairs.select("t", "after", "place").distinct().limit(EDGES).collect()]


def _told(edges: list[tuple[str, str, str]]) -> list[tuple[str, ...]]:
    """One violation for each cycle that has no transaction with another one in common."""
    after: dict[str, dict[str, str]] = {}
    for one, other, place in sorted(edges):
        after.setdefault(one, {}).setdefault(other, place)
    found: list[tuple[str, ...]] = []
    while len(found) < MOST and (names := cycle(after)):
        steps = list(zip(names, [*names[1:], names[0]], strict=True))
        told = "; ".join(f"{a} before {b} at {after[a][b]}" for a, b in steps)
        place = after[names[0]][steps[0][1]]
        node = place.rpartition("@")[2].partition("#")[0]
        text = f"no order of these transactions explains the run: {told}"
        found.append(("T3", node, place, names[0], text))
        after = {a: {b: at for b, at in to.items() if b not in names} for a, to in after.items() if a not in names}
    return found
