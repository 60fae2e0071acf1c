"""Knowledge followed on arrays, and who met whom in a lane: against a few lines of plain Python."""

import random

import numpy as np
import pytest
from pyspark.sql import functions as F

from framework.analytics import crowd, near, search
from framework.analytics.search import ALIKE, ASKED, BOTH, FOLLOW, MODE, SEED, SIDE, WAY
from framework.footprint import AGAINST

MODES = tuple(AGAINST)
CLASH = np.array([[n in AGAINST[m] for n in MODES] for m in MODES])
NONE = float("nan")


def rows(*made):
    names = ("kind", "key", "a", "b", "c", "d", "e", "x", "y")
    columns = list(zip(*made, strict=True))
    return {n: np.array(c, float if n in "xy" else np.int64) for n, c in zip(names, columns, strict=True)}


def found(*made):
    answer = search.answers(rows(*made), CLASH)
    return set(zip(*(answer[n].tolist() for n in ("key", "sid", "since")), strict=True))


def asked(key, who, by, until=10.0):
    return (ASKED, key, 0, 0, 0, who, by, until, NONE)


def way(src, upto, dst, since, at):
    return (WAY, 0, src, upto, dst, since, 0, at, NONE)


def test_it_goes_from_one_to_the_next_and_not_back_in_time():
    seed = (SEED, 7, 100, 5, 0, 0, FOLLOW, 0.0, NONE)
    there = [way(100, 5, 200, 1, 1.0), way(200, 3, 300, 8, 2.0)]
    assert found(asked(7, 300, 8), seed, *there) == {(7, 0, 0)}
    assert found(asked(7, 300, 7), seed, *there) == set(), "300 knows from its record 8 on"
    assert found(asked(7, 300, 8, until=1.5), seed, *there) == set(), "after that it does not matter"
    assert found(asked(7, 300, 8), (SEED, 7, 100, 6, 0, 0, FOLLOW, 0.0, NONE), *there) == set(), "sent before"
    assert found(asked(7, 300, 8), (SEED, 7, 100, 5, 0, 0, 0, 0.0, NONE), *there) == set(), "known to itself alone"


def test_who_starts_later_in_a_lane_inherits_if_modes_conflict():
    seed = (SEED, 7, 100, 5, 0, 0, FOLLOW, 0.0, NONE)

    def lane(sid, start_i, end_i, start_at, end_at, mode, lane=50):
        return (BOTH, 0, sid, start_i, lane, end_i, ALIKE + MODE * MODES.index(mode), start_at, end_at)

    one = lane(100, 4, 6, 1.0, 2.0, "w")
    assert found(asked(7, 200, 9), seed, one, lane(200, 9, 10, 3.0, 4.0, "r")) == {(7, 0, 0)}
    assert found(asked(7, 200, 9), seed, lane(100, 4, 6, 1.0, NONE, "w"), lane(200, 9, 10, 3.0, 4.0, "r")) == set()
    assert found(asked(7, 200, 5), seed, one, lane(200, 5, 10, 3.0, 4.0, "r")) == set(), "started before it ended"
    assert found(asked(7, 200, 9), seed, one, lane(200, 9, 10, 3.0, 4.0, "r", lane=51)) == set()
    reads = lane(100, 4, 6, 1.0, 2.0, "r")
    assert found(asked(7, 200, 9), seed, reads, lane(200, 9, 10, 3.0, 4.0, "r")) == set()


def test_a_request_that_was_delivered_too_early_is_met():
    """100 knows and sends: 200 performs that at place 9 with record 3, before record 8, where it should have been."""
    seed = (SEED, 7, 100, 5, 0, 0, FOLLOW, 0.0, NONE)
    sent = (WAY, 66, 100, 5, 200, 3, 9, 99.0, NONE)  # too late to be followed: what it brought is in time
    question = (ASKED, 7, 9, 8, 55, 0, 0, 10.0, NONE)
    assert found(question, seed, sent) == {(7, 200, 3)}
    assert found((ASKED, 7, 9, 3, 55, 0, 0, 10.0, NONE), seed, sent) == set()
    assert found((ASKED, 7, 8, 8, 55, 0, 0, 10.0, NONE), seed, sent) == set()
    assert found((ASKED, 7, 9, 8, 66, 0, 0, 10.0, NONE), seed, sent) == set(), "the request itself"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_batches_of_any_size_say_the_same_as_looking_at_all_pairs(size):
    chance = random.Random(size)
    calls = []
    for lane in range(12):
        for start in sorted(chance.sample(range(400), chance.randrange(1, 30))):
            end = chance.choice([-1, start + chance.randrange(1, 60)])
            alike = lane % 2
            side = 0 if alike else chance.randrange(2)
            mode = chance.randrange(4)
            agree = start - chance.randrange(1, 40)
            calls.append((lane, start, end, agree, side, mode, alike))
    table = {
        "lane": [c[0] for c in calls], "sid": list(range(len(calls))), "start_i": [c[1] for c in calls],
        "flags": [c[6] * ALIKE + c[4] * SIDE + c[5] * MODE for c in calls], "end_i": [c[2] for c in calls],
        "agree_i": [c[3] for c in calls], "until": [c[2] if c[2] >= 0 else crowd.NEVER for c in calls],
    }  # fmt: skip
    columns = {n: np.array(v, np.int64) for n, v in table.items()} | {"wait": np.ones(len(calls))}
    against = [[n for n, other in enumerate(MODES) if other in AGAINST[m]] for m in MODES]
    carried, met = {}, {}
    for first in range(0, len(calls), size):
        part = crowd.meet({n: v[first : first + size] for n, v in columns.items()}, carried, against)
        met |= {int(s): (int(u), int(e)) for s, u, e in zip(part["sid"], part["until"], part["ended"], strict=True)}
    assert met == dict(_plain(calls))
    assert len(met) > 20


def _plain(calls):
    for sid, (lane, start, _, agree, side, mode, alike) in enumerate(calls):
        others = [
            c for c in calls
            if c[0] == lane and c[1] < start and (alike or c[4] != side) and MODES[c[5]] in AGAINST[MODES[mode]]
        ]  # fmt: skip
        until = max((c[2] if c[2] >= 0 else crowd.NEVER for c in others), default=-1)
        ended = max((c[2] for c in others), default=-1)
        until = until if until > start else -1
        ended = ended if agree < ended < start and agree >= 0 else -1
        if until >= 0 or ended >= 0:
            yield sid, (until, ended)


def test_a_stretch_is_bounded_also_where_a_run_is_busiest(spark):
    """All of ten million rows in a hundredth of the time: stretches are a hundred times shorter."""
    asked = spark.createDataFrame([(1, 0.0, 1.0)], "key bigint, lo double, until double")
    even = near.cut(asked, 10_000_000, 1000.0, 0.0, 1 / near.SLICES)
    burst = near.cut(asked, 10_000_000, 1000.0, 0.0, 100 / near.SLICES)
    assert even.width == pytest.approx(1000.0 * near.MOST_ROWS / 10_000_000)
    assert burst.width == pytest.approx(even.width / 100)
    assert near.cut(asked, 1000, 1000.0, 0.0).margin == 1000.0
    rows = spark.createDataFrame([(0.0,), (even.width * 1.1,), (even.width * 1.9,)], "t double")
    where = sorted((r.t, r.chunk) for r in rows.select("t", even.of(F.col("t"), F.col("t"))).collect())
    assert where == [(0.0, -1), (0.0, 0), (even.width * 1.1, 0), (even.width * 1.1, 1), (even.width * 1.9, 1)]
