"""Clocks that disagree: how far, as far as messages tell, and times corrected by it.

A message from a to b takes at least no time at all. So what its two time stamps say, arrival at b minus sending at a,
is never less than how far b's clock is ahead; and the other way round. With messages both ways the offset lies in an
interval, whose middle is off by half its length at most. If 0 is inside, the clocks may agree, and nothing is
corrected. An interval that is empty means a clock that was set or that drifts during the run: it is told, and not
corrected.
"""

import heapq
from collections.abc import Mapping

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from framework.analytics.tables import Tables

CLIENTS = "client "  # "client 0": the clock of client process 0


class Offset(msgspec.Struct, frozen=True):
    """How far a clock is ahead of that of ``of``."""

    node: str
    of: str
    offset: float  # what is subtracted; 0 where the clocks may agree
    error: float  # the true one is this far away at most
    steady: bool  # False: no offset fits all messages


def delays(tables: Tables, answers: DataFrame, clients: DataFrame | None) -> DataFrame:
    """The least time that messages seem to take between two clocks: a, b, least, messages."""

    def seem(rows: DataFrame, a: Column, b: Column, least: Column) -> DataFrame:
        return rows.select(a.alias("a"), b.alias("b"), least.alias("least")).where("a != b and least is not null")

    asked = seem(tables.moves, F.col("origin"), F.col("dest_node"), F.col("arrive_at") - F.col("sent_at"))
    told = answers.where("not coalesce(adopted, true)")
    node = F.regexp_extract("place", "@([^#]+)", 1)
    found = asked.unionByName(seem(told, node, F.col("node"), F.col("at") - F.col("done_end_at")))
    if clients is not None:
        who = F.concat(F.lit(CLIENTS), F.col("process"))
        sent = tables.sends.where("client != ''").select("invocation", "group", F.col("node").alias("home"), "at")
        got = tables.receipts.where("client != ''").select("group", F.col("at").alias("got_at"))
        calls = clients.where("kind != 'oneway' and status = 'ok'").select("invocation", "process", "sent", "done")
        calls = calls.join(sent, "invocation").join(got, "group")
        found = found.unionByName(seem(calls, who, F.col("home"), F.col("at") - F.col("sent")))
        found = found.unionByName(seem(calls, F.col("home"), who, F.col("done") - F.col("got_at")))
    return found.groupBy("a", "b").agg(F.min("least").alias("least"), F.count("*").alias("messages"))


def estimate(least: Mapping[tuple[str, str], float]) -> list[Offset]:
    """From the least delays between two clocks, the offsets of all clocks that are connected with the first, by the
    ways on which the errors add up to least."""
    edges: dict[str, list[tuple[str, float, float]]] = {}
    for (a, b), there in least.items():
        back = least.get((b, a))
        if back is not None:
            edges.setdefault(a, []).append((b, (there - back) / 2, (there + back) / 2))
    if not edges:
        return []
    root = min(edges, key=lambda n: (n.startswith(CLIENTS), n))
    found: dict[str, Offset] = {}
    todo: list[tuple[float, str, float, bool]] = [(0.0, root, 0.0, True)]
    while todo:
        error, node, offset, steady = heapq.heappop(todo)
        if node in found:
            continue
        agrees = abs(offset) <= error or not steady
        found[node] = Offset(node, root, 0.0 if agrees else offset, error, steady)
        for other, step, half in edges.get(node, ()):
            if other not in found:
                heapq.heappush(todo, (error + abs(half), other, offset + step, steady and half >= 0))
    return sorted(found.values(), key=lambda one: one.node)


def correct(rows: DataFrame, offsets: list[Offset], columns: Mapping[str, str]) -> DataFrame:
    """``columns``: a time, and the column that names the clock it was read from."""
    wrong = {one.node: one.offset for one in offsets if one.offset}
    if not wrong:
        return rows
    known = F.create_map(*[F.lit(x) for pair in wrong.items() for x in pair])
    made = {
        time: F.col(time) - F.coalesce(F.try_element_at(known, F.col(clock)), F.lit(0.0))
        for time, clock in columns.items()
    }
    return rows.withColumns(made)


def slack(offsets: list[Offset]) -> float:
    """How far times of different nodes may still be apart after correction."""
    steady = [one.error for one in offsets if not one.node.startswith(CLIENTS)]
    return 2 * max(steady, default=0.0)
