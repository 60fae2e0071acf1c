"""One look at the first tables: which faults there may be at all.

Most rules find nothing, and to find nothing they would join and sort all requests, each in its own way. So each says
here what must be seen of a request, or of an instance, for the rule to be broken; all of that is counted in one pass.
Where nothing is seen nothing can be found. Where something is, the rule itself is asked, and what it says counts: to
see too much costs time, to see too little would be a fault.
"""

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


class Seen(msgspec.Struct, frozen=True):
    stray: bool  # at a place, and not sent there
    late_copy: bool  # a copy of what was performed later, twice, of another call, or of none that was sent
    undone: bool  # a change that ended, and was not committed
    renamed: bool  # performed as another call than it was sent as
    again: bool  # performed again
    wild: bool  # ended or sent something before it was started, or without; or ended twice


def look(moves: DataFrame, performed: DataFrame) -> Seen:
    of_moves = {
        "stray": F.col("sent_i").isNull(),
        "late_copy": F.col("odd_copy"),
        "undone": F.col("end_i").isNotNull() & ~F.col("committed") & ~F.col("readonly"),
        "renamed": F.col("renamed"),
    }
    of_performed = {"again": F.col("nth") > 1, "wild": _wild()}
    return Seen(**_any(moves, of_moves), **_any(performed, of_performed))


def _any(rows: DataFrame, what: dict[str, Column]) -> dict[str, bool]:
    """What is not known counts as seen."""
    seen = {name: F.coalesce(condition, F.lit(True)) for name, condition in what.items()}
    found = rows.agg(*[F.max(condition).alias(name) for name, condition in seen.items()]).first()
    return {name: bool(found and found[name]) for name in what}


def _same(a: str, b: str) -> Column:
    return F.col(a).eqNullSafe(F.col(b))


def renamed() -> Column:
    there = F.col("start_i").isNotNull() & F.col("sent_i").isNotNull()
    return there & ~_same("invocation", "sent_invocation")


def odd_copy() -> Column:
    """A request, with copies as far as it says itself; where it was not performed: answers.elsewhere."""
    named = _same("copy_of", "copy_of_too") & (F.col("copy_of") == F.xxhash64("sent_invocation"))
    fine = (F.col("copies") == 1) & F.col("sent_i").isNotNull() & named
    fine &= F.col("start_i").isNull() | (F.col("start_i") <= F.col("copy_i"))
    return F.col("copy_i").isNotNull() & ~F.coalesce(fine, F.lit(False))


def _wild() -> Column:
    ended = (F.col("ends") > 1) | (F.col("start_i") > F.col("last_end_i"))
    odd = F.col("start_i").isNull() | ended | (F.col("start_i") > F.col("acted_i"))
    return F.coalesce(odd, F.lit(False))
