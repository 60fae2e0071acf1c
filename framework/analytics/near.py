"""Questions whose answer lies near in time are followed in memory, a stretch of the run at a time.

Who asks what follows from a message (framework.analytics.significant, ratio) knows from when to when it matters. Mostly
that is a moment. So the run is cut into stretches, of bounded size; each gets the questions that begin in it, and all
ways, givers and takers (framework.analytics.flows) up to a margin after its end: the longest time that a question of
it may take. Stretches are independent of each other, and go to the workers as arrays (framework.analytics.search). What
asks for longer is followed by joins over the whole run, round by round (flows.reach).
"""

from functools import reduce
from types import ModuleType
from typing import Any

import msgspec
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from framework.analytics import search
from framework.footprint import AGAINST

MOST_ROWS = 400_000  # of a stretch, about
SLICES = 10_000  # of a run, to see where it is busiest
_MODES = tuple(AGAINST)
_SHAPE = "chunk bigint, kind int, key bigint, a bigint, b bigint, c bigint, d bigint, e bigint, x double, y double"
_MET = "key bigint, sid bigint, since bigint"


class Cut(msgspec.Struct, frozen=True):
    """A run in stretches of time of this ``width``; questions take up to ``margin``; clocks may be ``slack`` apart."""

    width: float
    margin: float
    slack: float

    def of(self, first: Column, last: Column) -> Column:
        """The stretches that need what happened between ``first`` and ``last``."""
        low = F.floor((first - (self.margin + self.slack)) / self.width)
        return F.explode(F.sequence(low, F.floor((last + self.slack) / self.width))).alias("chunk")


def cut(asked: DataFrame, rows: int, span: float, slack: float, busiest: float = 1 / SLICES) -> Cut:
    """``rows`` in all, over ``span``, of which the ``busiest`` of SLICES equal parts has this share: a stretch has no
    more than MOST_ROWS of them also there, and no question takes longer than a quarter of it."""
    if rows <= MOST_ROWS:
        longest = asked.select(F.max(F.col("until") - F.col("lo"))).first()
        margin = max(float((longest and longest[0]) or 0.0), span, 1e-6)
        return Cut(8 * (margin + slack), margin, slack)
    width = max(span / SLICES * MOST_ROWS / (rows * max(busiest, 1 / SLICES)), 16 * slack, 1e-6)
    return Cut(width, width / 4, slack)


def is_near(how: Cut) -> Column:
    return F.col("until") - F.col("lo") <= how.margin


def name(*columns: str) -> Column:
    """What stands for a name in arrays."""
    return F.xxhash64(*columns)


def travels(module: ModuleType) -> None:
    """Its functions are sent to the workers as they are: these need not have this package."""
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def met(asked: DataFrame, seeds: DataFrame, things: list[DataFrame], how: Cut) -> DataFrame:
    """key, sid, since: what search.answers found. ``asked``: key, lo, until, place, done_i, group, who, by. ``seeds``:
    key, lo, sid, since, follow. ``things`` come from ``ways``, ``apart`` or ``together``."""
    travels(search)
    start = F.floor(F.col("lo") / how.width).alias("chunk")
    number = F.lit(0).cast("bigint")
    questions = asked.select(
        start, *_row(search.ASKED, "key", "place", "done_i", "group", "who", "by", F.col("until")),
    )  # fmt: skip
    follow = F.col("follow").cast("bigint")
    begin = seeds.select(start, *_row(search.SEED, "key", "sid", "since", number, number, follow, F.lit(0.0)))
    rows = reduce(lambda a, b: a.unionByName(b), [questions, begin, *things])
    return rows.groupBy("chunk").applyInArrow(_searcher(), _MET)


def _row(kind: int, key: Any, a: Any, b: Any, c: Any, d: Any, e: Any, x: Column, y: Any = None) -> list[Column]:
    numbers = {"key": key, "a": a, "b": b, "c": c, "d": d, "e": e}
    columns = {n: F.col(v) if isinstance(v, str) else v for n, v in numbers.items()}
    return [
        F.lit(kind).alias("kind"), *[c.cast("bigint").alias(n) for n, c in columns.items()],
        x.cast("double").alias("x"), (F.lit(None) if y is None else y).cast("double").alias("y"),
    ]  # fmt: skip


def ways(edges: DataFrame, how: Cut) -> DataFrame:
    """``edges`` of flows, with sent_at."""
    row = _row(search.WAY, "group", "src", "upto", "dst", "since", "place", F.col("at"))
    time = F.col("sent_at")
    return edges.select(how.of(time, time), *row)


def flags(side: str, mode: str, alike: Column, adopted: Column) -> Column:
    """How a call stands in a lane, as a number."""
    number = F.array_position(F.array(*map(F.lit, _MODES)), F.col(mode)) - 1
    return (
        adopted.cast("int") * search.ADOPTED + alike.cast("int") * search.ALIKE + F.col(side) * search.SIDE
        + number * search.MODE
    )  # fmt: skip


def apart(givers: DataFrame, takers: DataFrame, how: Cut) -> list[DataFrame]:
    """``flows.heirs``, where places have adopted what others did."""
    lane, none = name("place", "slot", "lane"), F.lit(0)
    gives = _row(
        search.GIVER, none, "sid", "from_i", lane, none,
        flags("g_side", "g_mode", F.lit(False), F.col("adopted")), F.col("end_at"),
    )  # fmt: skip
    takes = _row(
        search.TAKER, none, "sid", "start_i", lane, none, flags("side", "mode", F.col("alike"), F.lit(False)),
        F.col("start_at"),
    )  # fmt: skip
    end, start = F.col("end_at"), F.col("start_at")
    return [givers.select(how.of(end, end), *gives), takers.select(how.of(start, start), *takes)]


def together(lanes: DataFrame, how: Cut) -> list[DataFrame]:
    """Rows of lanes that take and, where they have ``gives_at``, give."""
    row = _row(
        search.BOTH, F.lit(0), name("sid"), "start_i", name("place", "slot", "lane"), "end_i",
        flags("side", "mode", F.col("alike"), F.lit(False)),
        F.when(F.col("takes"), F.col("start_at")), F.col("gives_at"),
    )  # fmt: skip
    return [lanes.select(how.of(F.col("start_at"), F.coalesce("gives_at", "start_at")), *row)]


def _searcher() -> Any:
    against = [[n in AGAINST[m] for n in _MODES] for m in _MODES]
    answers = search.answers  # the function, not its module: it travels as it is

    def answered(table: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        rows = {name: table.column(name).to_numpy() for name in table.column_names if name != "chunk"}
        rows = {n: v if v.dtype != object else v.astype(np.float64) for n, v in rows.items()}
        found = answers(rows, np.array(against))
        return pa.table({n: pa.array(v, pa.int64()) for n, v in found.items()})

    return answered
