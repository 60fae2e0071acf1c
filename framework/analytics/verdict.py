"""The verdict: A1 to A4, A7, receipts, what was left open, T1 to T3, over all traces, by the jobs of this room.

The same definitions as ``obo verify`` (framework.sim.oracle), which replays one run in memory; here nothing is replayed
and nothing needs to fit into memory. What that one finds beyond: A5, A6, A9, A10, needless waiting, causal cycles,
and of A8 what no node says itself.
"""

from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from framework.analytics import (
    alone,
    answers,
    crowd,
    flows,
    following,
    isolated,
    once,
    ratio,
    significant,
    states,
    whole,
)
from framework.analytics.at_once import at_once
from framework.analytics.groups import Lives
from framework.analytics.judged import VIOLATION, histories, own
from framework.analytics.little import little
from framework.analytics.slots import lanes
from framework.analytics.tables import Tables, store

RULES = ("A1", "A2", "A3", "A4", "A7", "A8", "P0 §3.2", "T1", "T2", "T3")


class Stage(msgspec.Struct):
    """What several jobs need besides the tables, written once."""

    answers: DataFrame
    elsewhere: DataFrame  # requests that were performed as another group, or not
    lanes: DataFrame
    met: DataFrame  # who met whom in the lanes


def stage(spark: SparkSession, tables: Tables, directory: Path) -> tuple[Tables, Stage]:
    """Also the tables, with their histories written, and what is seen of copies."""
    if not tables.alone:  # else they are what moves has already
        tables = msgspec.structs.replace(tables, history=store(spark, histories(tables), directory / "history"))

    def met() -> tuple[DataFrame, DataFrame]:
        # to make them again is less than to write and read them, unless transactions have to be looked up
        kept = store(spark, performed(tables), directory / "lanes") if tables.whole else performed(tables)
        return kept, store(spark, crowd.crowded(tables, kept), directory / "met")

    def told() -> tuple[DataFrame, DataFrame]:
        others = store(spark, answers.elsewhere(tables), directory / "elsewhere")
        return store(spark, answers.answers(tables, others), directory / "answers"), others

    found = at_once(spark, {"met": met, "told": told})
    staged = Stage(*found["told"], *found["met"])
    late = tables.seen.late_copy or answers.late_copies(staged.elsewhere)
    return msgspec.structs.replace(tables, seen=msgspec.structs.replace(tables.seen, late_copy=late)), staged


def performed(tables: Tables) -> DataFrame:
    """What places performed, in lanes; ``passed``: not really, because its transaction had been aborted. Each call is
    there several times, so only what all jobs ask is; the rest is looked up by place and start_i."""
    passed = F.broadcast(whole.passed_over(tables).withColumn("passed", F.lit(True)))
    calls = own(tables).join(passed, ["place", "invocation"], "left").select(
        "place", "node", "object", "method", "keys", "sid", "readonly", "start_i", "start_at", "end_i", "end_at",
        "committed", "agree_i", "agree_at", F.col("acted_i").isNotNull().alias("acted"),
        F.coalesce("passed", F.lit(False)).alias("passed"),
    )  # fmt: skip
    return lanes(calls, tables.relation).drop("method", "keys")


Rule = Callable[[], DataFrame]


def local(spark: SparkSession, tables: Tables, staged: Stage, lives: Lives) -> dict[str, Rule]:
    """The rules that need no following, by a name to show: what to call for their violations."""
    told = [
        (rule, place.rpartition("@")[2].partition("#")[0], place, "", text)
        for group in lives.groups
        for rule, place, text in group.faults
    ]
    return {
        "A1 states, A8 left open": lambda: little(spark, told, ", ".join(f"{n} string" for n in VIOLATION)),
        "A1 performed twice": partial(once.twice, tables),
        "A1 never sent": partial(once.never_sent, tables),
        "A1 copies": partial(once.copies, tables),
        "A1 not running": partial(once.not_running, tables),
        "A1 sessions": partial(once.sessions, tables),
        "A1 answers without an end": partial(answers.unanswered, staged.answers),
        "P0 §3.2 receipts": partial(answers.incomplete, tables),
        "A3 one order": partial(alone.reversed_pairs, tables),
        "A4 mutual exclusion": partial(alone.overlaps, tables, staged.lanes, staged.met),
        "A4 states": partial(alone.given_away, tables, lives.snapshots),
        "A4 answers": partial(answers.contradicted, staged.answers),
        "A7 no state yet": partial(states.before_a_state, tables),
        "A7 digests": partial(states.digests, tables),
        "A7 commit": partial(states.halves, tables),
        "A7 joined": partial(states.cut, tables),
        "T1 one outcome": partial(whole.one_outcome, tables),
        "T2 atomicity": partial(whole.atomic, tables),
        "T3 isolation": partial(isolated.cycles, tables),
    }


def union(frames: list[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b), [f.select(*VIOLATION) for f in frames])


Tell = Callable[[str], None]


class Followed(msgspec.Struct):
    """What following the ways of knowledge brought: A2, and the neighbours of ratio.py with their order."""

    broken: DataFrame
    pairs: DataFrame
    share: float  # of the neighbours that had to be followed
    overtaken: int
    rounds: int
    open: int


def followed(
    spark: SparkSession,
    tables: Tables,
    staged: Stage,
    slack: float,
    directory: Path,
    tell: Tell = lambda _: None,
    roots: bool = True,
) -> Followed:
    """A2 and the message ratio ask the same question of different messages: they are followed together. ``roots``:
    somebody asks to which calls the messages belong."""
    moved = flows.moved(tables).localCheckpoint()
    known = store(spark, significant.known(tables, staged.elsewhere, moved, roots), directory / "known")
    came = ratio.messages(known, staged.answers, roots)

    def pairs_() -> DataFrame:
        return store(spark, ratio.neighbours(came, tables.conflicts, slack), directory / "pairs")

    both = at_once(spark, {"ratio": pairs_, "a2": significant.overtaken(tables, known, slack).localCheckpoint})
    found, pairs = both["a2"], both["ratio"]
    pairs, share = ratio.sampled(pairs)
    asked = significant.asked(found).unionByName(ratio.asked(pairs, slack)).localCheckpoint()
    known_first = significant.seeds(found, moved).unionByName(ratio.seeds(pairs, slack))
    changes = significant.changes(found).unionByName(ratio.changes(pairs, slack))
    begin = known_first.unionByName(significant.instances(changes, tables))
    number, keys = found.count(), asked.count()
    tell(f"following {number} requests that were overtaken, {keys - number} neighbours")
    ways = flows.edges(tables, staged.answers, moved)
    done = following.answered(tables, ways, staged.lanes, asked, begin, slack, tell)
    broken = significant.broken(found, done.met.where("sid != 0"), tables)
    return Followed(broken, ratio.decided(pairs, done.met.where("sid = 0")), share, number, done.rounds, done.open)
