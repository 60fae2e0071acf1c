"""What a place has performed, for judging: its own instances, and those that it adopted with a state.

``order`` is the place of an instance in the history of its place: what was adopted, in the order of the donor, then its
own. Rules about one replica use ``start_i``; rules about histories use ``order``.
"""

from weakref import WeakSet

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from framework.analytics.tables import Tables

_STEP = 1_000_000_000_000  # records of a life: fewer

_NONE: WeakSet[DataFrame] = WeakSet()

VIOLATION = ("rule", "node", "place", "invocation", "text")


def violation(rule: str, text: Column, invocation: str = "invocation", node: str = "node") -> list[Column]:
    """The columns of a violation; ``node`` and ``place`` say where."""
    return [
        F.lit(rule).alias("rule"), F.col(node).alias("node"), F.col("place"),
        F.col(invocation).alias("invocation"), text.alias("text"),
    ]  # fmt: skip


def none(tables: Tables, *columns: str) -> DataFrame:
    """No row, with these columns of text. As SQL, so that plans get shorter by it: Spark sees that it is empty."""
    empty = ", ".join(f"cast(null as string) as {name}" for name in columns)
    found = tables.places.sparkSession.sql(f"select {empty} where false")
    _NONE.add(found)
    return found


def is_none(found: DataFrame) -> bool:
    """Is it known to have no row, without asking Spark?"""
    return found in _NONE


def footprint(method: str = "method", keys: str = "keys") -> Column:
    """As people read it: deposit(ann:w)."""
    inside = F.concat_ws(", ", F.transform(keys, lambda k: F.concat_ws(":", k["key"], k["mode"])))
    return F.when(F.col(keys).isNull(), F.col(method)).otherwise(
        F.concat(F.col(method), F.lit("("), inside, F.lit(")"))
    )


def own(tables: Tables) -> DataFrame:
    """Instances of requests that were sent to that place; what was not is another fault (A1)."""
    return tables.moves.where("sent_i is not null and start_i is not null").select(
        "place",
        "object",
        F.col("dest_node").alias("node"),
        "group",
        "act",
        F.col("sent_invocation").alias("invocation"),
        "sid",
        "method",
        "keys",
        "readonly",
        "way",
        "view",
        "start_i",
        "start_at",
        "end_i",
        "end_at",
        "committed",
        "held_i",
        "told_i",
        "told_at",
        "told_ok",
        "cancelled",
        "acted_i",
        "acted_at",
        "tran",
        F.col("dest_life").alias("life"),
        "agree_i",
        "agree_at",
        "sent_view",
        "sent_to",
    )


def histories(tables: Tables) -> DataFrame:
    """``own`` and what was adopted; with ``adopted`` and ``order``."""
    if tables.history is not None:
        return tables.history
    mine = own(tables)
    segments = F.broadcast(tables.segments)
    if tables.alone:
        return mine.withColumns({"adopted": F.lit(False), "order": F.col("start_i")})
    steps = tables.segments.groupBy("place").agg(F.count("*").alias("steps"))
    own_rows = mine.join(F.broadcast(steps), "place", "left").withColumns(
        {"adopted": F.lit(False), "order": F.coalesce(F.col("steps"), F.lit(0)) * _STEP + F.col("start_i")}
    )
    taken = (
        mine.withColumnRenamed("place", "source").join(segments, "source").where("end_i is not null and end_i <= upto")
    )
    taken = _without_parts_of_running(taken, mine, segments, tables.sends)
    places = F.broadcast(tables.places.select("place", F.col("node").alias("node_")))
    taken = taken.drop("node").join(places, "place").withColumnRenamed("node_", "node")
    taken = taken.withColumns({"adopted": F.lit(True), "order": F.col("step") * _STEP + F.col("start_i")})
    columns = [*mine.columns, "adopted", "order"]
    return own_rows.select(*columns).unionByName(taken.select(*columns))


def _without_parts_of_running(taken: DataFrame, mine: DataFrame, segments: DataFrame, sends: DataFrame) -> DataFrame:
    """A state has nothing of an instance that was still running, nor of the calls that had come back to it."""
    running = (
        mine.withColumnRenamed("place", "source")
        .join(segments, "source")
        .where("start_i <= upto and (end_i is null or end_i > upto)")
        .select("place", "source", F.col("invocation").alias("ancestor"))
    )
    nested = taken.where(F.col("invocation").contains(".")).select("place", "source", "invocation")
    pairs = nested.join(F.broadcast(running), ["place", "source"]).where(
        "startswith(invocation, concat(ancestor, '.'))"
    )
    parts = within(pairs, "invocation", "ancestor", sends).select("place", "source", "invocation").distinct()
    return taken.join(F.broadcast(parts), ["place", "source", "invocation"], "left_anti")


def within(pairs: DataFrame, call: str, ancestor: str, sends: DataFrame) -> DataFrame:
    """Those pairs where ``call`` is a call of ``ancestor``, direct or not, with no one-way call between them. For few
    pairs: the path between the two is looked up call by call."""
    columns = pairs.columns
    below = pairs.where(F.startswith(F.col(call), F.concat(F.col(ancestor), F.lit("."))))
    numbers = F.split(F.expr(f"substring({call}, length({ancestor}) + 2)"), r"\.")
    path = F.transform(
        F.sequence(F.lit(1), F.size(numbers)),
        lambda n: F.concat(F.col(ancestor), F.lit("."), F.array_join(F.slice(numbers, F.lit(1), n), ".")),
    )
    steps = below.distinct().withColumn("step_", F.explode(path))
    oneway = F.broadcast(
        sends.where("kind = 'oneway'")
        .withColumn("j", F.explode(F.sequence(F.lit(0), F.size("parts") - 1)))
        .select(numbered("invocation", "j").alias("step_"))
        .distinct()
        .join(steps.select("step_").distinct(), "step_", "left_semi")
        .withColumn("oneway_", F.lit(True))
    )
    return (
        steps.join(oneway, "step_", "left")
        .groupBy(*columns)
        .agg(F.max(F.coalesce("oneway_", F.lit(False))).alias("cut_"))
        .where("not cut_")
        .select(*columns)
    )


def numbered(invocation: str, j: str) -> Column:
    """The invocation of part j: its last number is higher by j."""
    stem = F.regexp_extract(invocation, r"^(.*[./])\d+$", 1)
    last = F.regexp_extract(invocation, r"(\d+)$", 1)
    return F.concat(stem, (F.nullif(last, F.lit("")).cast("bigint") + F.col(j)).cast("string"))
