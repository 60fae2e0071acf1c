"""Who met whom in a lane: one pass over all lanes (framework.analytics.slots), in the order of starting.

For each call in a lane, of the conflicting calls that started before it: until when the last of them runs (A4), and
which of those that have ended did so last (who waited for whom). Workers get the lanes as sorted arrays, a batch at a
time, and carry over only what the lane has so far: a lane may be of any length.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from framework.analytics.near import flags, name, travels
from framework.analytics.search import ALIKE, MODE, SIDE
from framework.analytics.tables import Tables
from framework.footprint import AGAINST

NEVER = 1 << 40  # records of a life: fewer
_MET = "lane bigint, sid bigint, start_i bigint, flags bigint, wait double, until bigint, ended bigint"


def crowded(tables: Tables, lanes: DataFrame) -> DataFrame:
    """lane, sid (both by near.name), start_i, flags, wait, and of conflicting calls before it: ``until`` when one runs
    that was not over, ``ended``: the end of the last that it had to wait for; -1 if there is none. In a trace with
    holes an end that is not there says nothing, and what was passed over was not performed: these are in nobody's
    way."""
    travels(sys.modules[__name__])
    holes = F.broadcast(tables.places.where("holes").select("place", F.lit(True).alias("holes")))
    rows = lanes.join(holes, "place", "left")
    judged = ~F.col("passed") & (F.col("end_i").isNotNull() | F.col("holes").isNull())
    none = F.lit(-1).cast("bigint")
    rows = rows.select(
        name("place", "slot", "lane").alias("lane"), name("sid").alias("sid"), "start_i",
        flags("side", "mode", F.col("alike"), F.lit(False)).cast("bigint").alias("flags"),
        F.when(F.col("agree_i").isNotNull(), F.col("start_at") - F.col("agree_at")).alias("wait"),
        F.coalesce("end_i", none).alias("end_i"), F.coalesce("agree_i", none).alias("agree_i"),
        F.when(judged, F.coalesce("end_i", F.lit(NEVER))).otherwise(none).alias("until"),
    )  # fmt: skip
    return rows.repartition("lane").sortWithinPartitions("lane", "start_i").mapInArrow(_passer(), _MET)


def _passer() -> Callable[[Iterator[Any]], Iterator[Any]]:
    modes = tuple(AGAINST)
    against = [[n for n, other in enumerate(modes) if other in AGAINST[m]] for m in modes]
    step = meet

    def passed(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        carried: dict[str, Any] = {}
        for batch in batches:
            rows = {n: batch.column(n).to_numpy(zero_copy_only=False) for n in batch.schema.names}
            found = step(rows, carried, against)
            yield pa.RecordBatch.from_pydict(found)

    return passed


def meet(rows: dict[str, Any], carried: dict[str, Any], against: list[list[int]]) -> dict[str, Any]:
    """Of sorted rows, those that met somebody. ``carried``: the last lane so far, and what it had."""
    import numpy as np

    count = len(rows["lane"])
    empty = {n: rows[n][:0] for n in ("lane", "sid", "start_i", "flags", "wait", "until")}
    if not count:
        return empty | {"ended": rows["until"][:0]}
    fresh = np.ones(count, bool)
    fresh[1:] = rows["lane"][1:] != rows["lane"][:-1]
    number = np.cumsum(fresh) - 1
    goes_on = carried.get("lane") == rows["lane"][0]
    # the first of those that started at once: nobody meets itself in two of its keys
    first = fresh.copy()
    first[1:] |= rows["start_i"][1:] != rows["start_i"][:-1]
    before = np.maximum.accumulate(np.where(first, np.arange(count), 0)) - 1
    outside = (before < 0) | (number[before] != number)

    def highest(value: Any, of: Any, slot: str) -> Any:
        """Of the rows before each in its lane, the highest value; -1 if there is none."""
        base = number * (4 * NEVER)
        high = np.maximum.accumulate(base + np.where(of, value, -1) + 1)
        last = int(high[-1] - base[-1]) - 1
        seen = np.where(outside, -1, np.maximum(high[before] - base, 0) - 1)
        old = carried.get(slot, -1) if goes_on else -1
        carried[slot] = max(last, old) if number[-1] == 0 else last
        return np.where(number == 0, np.maximum(seen, old), seen)

    side, mode = rows["flags"] // SIDE % 2, rows["flags"] // MODE % 4
    facing = np.where(rows["flags"] & ALIKE > 0, side, 1 - side)
    found = {"until": np.full(count, -1), "ended": np.full(count, -1)}
    for one in (0, 1):
        for other in range(len(against)):
            of = (side == one) & (mode == other)
            meets = (facing == one) & np.isin(mode, [m for m, them in enumerate(against) if other in them])
            for column, value in (("until", rows["until"]), ("ended", rows["end_i"])):
                seen = highest(value, of, f"{column} {one} {other}")
                found[column] = np.where(meets, np.maximum(found[column], seen), found[column])
    carried["lane"] = rows["lane"][-1]
    late = (found["until"] > rows["start_i"]) & (rows["until"] >= 0)
    waited = (rows["agree_i"] >= 0) & (found["ended"] > rows["agree_i"]) & (rows["start_i"] > found["ended"])
    found["until"], found["ended"] = np.where(late, found["until"], -1), np.where(waited, found["ended"], -1)
    kept = late | waited
    return {n: (found[n] if n in found else rows[n])[kept] for n in (*empty, "ended")}
