"""Questions about what follows from a message, answered: those that are near in memory, the others by joins."""

from collections.abc import Callable

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from framework.analytics import flows, near
from framework.analytics.tables import Tables


class Answered(msgspec.Struct):
    """``met``: key, sid, since (search.answers). ``far``: questions that were followed by joins, for so many
    ``rounds``; ``open``: those of them that were not followed to the end."""

    met: DataFrame
    far: int
    rounds: int
    open: int


def answered(
    tables: Tables,
    ways: DataFrame,
    lanes: DataFrame,
    asked: DataFrame,
    begin: DataFrame,
    slack: float,
    tell: Callable[[str], None] = lambda _: None,
) -> Answered:
    """``asked`` and ``begin`` as near.met wants them. ``ways``: flows.edges."""
    span, usual, many = _span(tables)
    rows = lanes.count() + 2 * many
    how = near.cut(asked, rows, span, slack, _busiest(tables, span) if rows > near.MOST_ROWS else 1.0)
    here = near.is_near(how)
    things = [near.ways(ways, how), *_things(tables, lanes, how)]
    met = near.met(asked.where(here), begin.where(here), things, how).localCheckpoint()
    far = asked.where(~here)
    many = far.count()
    if not many:
        return Answered(met.distinct(), 0, 0, 0)
    tell(f"following {many} of them by joins over the whole run")
    more, reached = _far(tables, lanes, ways, far, begin.where(~here).localCheckpoint(), (span, usual), tell)
    return Answered(met.unionByName(more).distinct(), many, reached.rounds, reached.open)


def _things(tables: Tables, lanes: DataFrame, how: near.Cut) -> list[DataFrame]:
    if not tables.alone:
        return near.apart(*flows.heirs(tables, lanes, how.width), how)
    gives = F.expr("end_i is not null and committed and (acted or not readonly)")
    rows = lanes.withColumns({"takes": ~F.col("passed"), "gives_at": F.when(gives, F.col("end_at"))})
    return near.together(rows, how)


def _far(
    tables: Tables,
    lanes: DataFrame,
    ways: DataFrame,
    asked: DataFrame,
    begin: DataFrame,
    times: tuple[float, float],
    tell: Callable[[str], None],
) -> tuple[DataFrame, flows.Reached]:
    span, usual = times
    # slices of time in which little happens, but not so little that a long wait has thousands of them
    width = max(4 * usual, span / 5000, 1e-6)
    givers, takers = flows.heirs(tables, lanes, width)
    reached = flows.reach(begin.where("follow"), ways, givers.localCheckpoint(), takers, width, tell=tell)
    alone = begin.where("not follow").select("key", "sid", "since")
    return flows.met(reached.known.unionByName(alone), asked, ways).localCheckpoint(), reached


def _busiest(tables: Tables, span: float) -> float:
    """The share of what started in the busiest slice of the run: a minute of load in a day is not spread evenly."""
    slice_ = F.floor(F.col("start_at") / max(span / near.SLICES, 1e-9))
    counts = tables.moves.where("start_at is not null").groupBy(slice_.alias("slice")).count()
    found = counts.select(F.max("count"), F.sum("count")).first()
    return found[0] / found[1] if found is not None and found[1] else 1.0


def _span(tables: Tables) -> tuple[float, float, int]:
    """From the first to the last start, how long a request usually takes, and how many there are."""
    found = tables.moves.select(
        F.max("start_at") - F.min("start_at"), F.avg(F.col("start_at") - F.col("sent_at")), F.count("*")
    ).first()
    if found is None:
        return 0.0, 0.0, 0
    return float(found[0] or 0.0), float(found[1] or 0.0), found[2]
