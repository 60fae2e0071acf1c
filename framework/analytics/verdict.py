"""The verdict: A1 to A4, A7 and receipts over all traces of a run, by the jobs of this room.

The same definitions as ``obo verify`` (framework.sim.oracle), which replays one run in memory; here nothing is replayed
and nothing needs to fit into memory. What that one finds beyond: A5, A6, A8 to A10, needless waiting, causal cycles.
"""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from framework.analytics import alone, answers, flows, once, significant, states
from framework.analytics.judged import VIOLATION, own
from framework.analytics.lives import Lives
from framework.analytics.slots import lanes
from framework.analytics.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RULES = ("A1", "A2", "A3", "A4", "A7", "P0 §3.2")


class Stage(msgspec.Struct):
    """What several jobs need besides the tables, written once."""

    answers: "DataFrame"
    lanes: "DataFrame"


def stage(spark: "SparkSession", tables: Tables, directory: Path) -> Stage:
    made = {"answers": answers.answers(tables), "lanes": lanes(own(tables), tables.conflicts)}
    for name, frame in made.items():
        path = str(directory / name)
        frame.write.mode("overwrite").parquet(path)
        made[name] = spark.read.schema(frame.schema).parquet(path)
    return Stage(**made)


def local(spark: "SparkSession", tables: Tables, staged: Stage, lives: Lives) -> "dict[str, DataFrame]":
    """The rules that need no following, by a name to show."""
    snapshots = spark.createDataFrame(lives.snapshots, "place string, snapshot_i bigint, to string")
    told = [(rule, place.partition("@")[2].partition("#")[0], place, "", text) for group in lives.groups for rule, place, text in group.faults]
    return {
        "A1 states that nobody gave": spark.createDataFrame(told, ", ".join(f"{n} string" for n in VIOLATION)),
        "A1 performed twice": once.twice(tables),
        "A1 never sent": once.never_sent(tables),
        "A1 copies": once.copies(tables),
        "A1 not running": once.not_running(tables),
        "A1 sessions": once.sessions(tables),
        "A1 answers without an end": answers.unanswered(staged.answers),
        "P0 §3.2 receipts": answers.incomplete(tables),
        "A3 one order": alone.reversed_pairs(tables),
        "A4 mutual exclusion": alone.overlaps(tables),
        "A4 states": alone.given_away(tables, snapshots),
        "A4 answers": answers.contradicted(staged.answers),
        "A7 no state yet": states.before_a_state(tables),
        "A7 digests": states.digests(tables),
        "A7 commit": states.halves(tables),
        "A7 joined": states.cut(tables),
    }


def union(frames: "list[DataFrame]") -> "DataFrame":
    return reduce(lambda a, b: a.unionByName(b), [f.select(*VIOLATION) for f in frames])


Tell = Callable[[str], None]


def significant_order(spark: "SparkSession", tables: Tables, staged: Stage, slack: float, tell: Tell = lambda _: None) -> "tuple[DataFrame, flows.Reached]":
    """A2, with how far it was followed."""
    from pyspark.sql import functions as F

    found = significant.overtaken(tables, significant.leaks(tables), slack).localCheckpoint()
    moved = flows.moved(tables)
    begin = significant.seeds(found, tables, moved).localCheckpoint()
    span = found.select(F.percentile_approx(F.col("until") - F.col("leak_at"), 0.9)).first()
    width = max(float(span[0] or 0.0), 1e-3) if span else 1.0
    tell(f"A2: following {found.count()} requests that were overtaken")
    givers, takers = flows.heirs(tables, staged.lanes, width)
    reached = flows.reach(spark, begin, flows.edges(tables, staged.answers), givers, staged.lanes, takers, width)
    return significant.broken(found, reached.known, tables), reached
