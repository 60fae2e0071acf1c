"""Two runs: what got slower, and how sure that is.

The calls of a run hang together (a stall slows all that are under way), so they are no independent samples. Each run is
cut into stretches of equal length; what is compared are the figures of stretches, which hang together little (method of
batch means). The interval is Welch's for the difference of two means, at 95 %: analytic, no resampling.
"""

from collections.abc import Mapping, Sequence
from math import isnan, sqrt
from statistics import fmean, variance

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

STRETCHES = 20
FIGURES = ("rate", "mean", "p50", "p95", "p99")

#: Student's t at 97.5 % by degrees of freedom; between two the smaller degree counts (the wider interval).
_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 12: 2.179,
      15: 2.131, 20: 2.086, 25: 2.060, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980}  # fmt: skip


class Difference(msgspec.Struct, frozen=True):
    object: str
    method: str
    figure: str
    first: float
    second: float
    change: float  # second - first
    low: float  # 95 % interval of the change
    high: float
    stretches: int

    @property
    def word(self) -> str:
        """For the rate of all calls more is better, for latency less. How many calls a method gets is no merit."""
        if self.low <= 0 <= self.high or isnan(self.low):
            return "no difference seen"
        if self.figure == "rate" and self.object:
            return "more calls" if self.change > 0 else "fewer calls"
        better = (self.change > 0) == (self.figure == "rate")
        return "better" if better else "worse"


def stretches(called: DataFrame, count: int = STRETCHES) -> DataFrame:
    """Figures of each stretch of a run, by object and method; and of all calls (object and method empty)."""
    ends = called.select(F.min("due").alias("a"), F.max("done").alias("b")).first()
    if ends is None or ends.a is None:
        start, width = 0.0, 1.0
    else:
        start, width = ends.a, max((ends.b - ends.a) / count, 1e-9)
    good = called.where("status = 'ok'").withColumn(
        "stretch", F.least(F.floor((F.col("done") - start) / width), F.lit(count - 1)).cast("int")
    )
    figures = [
        (F.count("*") / width).alias("rate"), F.avg("latency").alias("mean"),
        F.percentile_approx("latency", [0.5, 0.95, 0.99], 2000).alias("p"),
    ]  # fmt: skip
    each = good.groupBy("object", "method", "stretch").agg(*figures)
    every = good.groupBy("stretch").agg(*figures).withColumns({"object": F.lit(""), "method": F.lit("")})
    rows = each.unionByName(every)
    return rows.withColumns({"p50": F.col("p")[0], "p95": F.col("p")[1], "p99": F.col("p")[2]}).drop("p")


def differences(first: Sequence[Mapping[str, object]], second: Sequence[Mapping[str, object]]) -> list[Difference]:
    """Of the stretches of two runs (a few rows for each method)."""
    found = []
    both = sorted(
        {(str(r["object"]), str(r["method"])) for r in first} & {(str(r["object"]), str(r["method"])) for r in second}
    )
    for name in both:
        for figure in FIGURES:
            a, b = _values(first, name, figure), _values(second, name, figure)
            if a and b:
                found.append(Difference(*name, figure, fmean(a), fmean(b), *welch(a, b), min(len(a), len(b))))
    return found


def _values(rows: Sequence[Mapping[str, object]], name: tuple[str, str], figure: str) -> list[float]:
    return [float(r[figure]) for r in rows if (r["object"], r["method"]) == name and r[figure] is not None]  # type: ignore[arg-type]


def welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    """The difference of the means of b and a, and its 95 % interval; no interval from a single value."""
    change = fmean(b) - fmean(a)
    if len(a) < 2 or len(b) < 2:
        return change, float("nan"), float("nan")
    u, v = variance(a) / len(a), variance(b) / len(b)
    if u + v == 0:
        return change, change, change
    freedom = (u + v) ** 2 / (u**2 / (len(a) - 1) + v**2 / (len(b) - 1))
    half = _t(freedom) * sqrt(u + v)
    return change, change - half, change + half


def _t(freedom: float) -> float:
    if freedom > 200:
        return 1.96
    return _T[max((f for f in _T if f <= freedom), default=1)]
