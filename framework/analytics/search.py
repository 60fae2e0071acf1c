"""Knowledge followed within a stretch of time, in memory: what framework.analytics.flows does, on arrays.

One stretch of a run comes as rows of whole numbers (framework.analytics.near says of what); names are their hashes.
Everything is done for all questions at once, round by round: who knows something, on which ways it goes on, who
inherits it. Nothing here needs Spark; a worker of Spark that runs it needs numpy and pyarrow.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

ASKED, SEED, WAY, GIVER, TAKER, BOTH = range(6)  # kinds of rows
FOLLOW, ADOPTED, ALIKE, SIDE, MODE = 1, 1, 2, 4, 8  # flags; MODE times 0 to 3
_FIRST = 1 << 40  # records of a life: fewer
_LATER = 1 << 26  # rows of a stretch: fewer

Array = Any  # numpy.ndarray
Rows = Mapping[str, Array]


def answers(rows: Rows, clash: Array) -> dict[str, Array]:
    """What was met: key, sid (of the instance that should have been later; 0 where a question asks for nothing but
    whether its ``who`` knows) and since. ``clash[m, n]``: do modes m and n conflict?"""
    stretch = _Stretch(rows, clash)
    stretch.follow()
    met = [np.concatenate(parts) if parts else np.empty(0, np.int64) for parts in zip(*stretch.met, strict=True)]
    return dict(zip(("key", "sid", "since"), met or [np.empty(0, np.int64)] * 3, strict=True))


def expand(first: Array, last: Array) -> tuple[Array, Array]:
    """All numbers from ``first`` up to before ``last``, one range after the other: (which range, number)."""
    many = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(first)), many)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(many) - many, many) + first[which]


class _Stretch:
    def __init__(self, rows: Rows, clash: Array) -> None:
        self.clash = clash
        self.met: list[tuple[Array, Array, Array]] = []
        where = [np.flatnonzero(rows["kind"] == one) for one in range(6)]
        part: dict[int, Rows] = {n: {name: column[at] for name, column in rows.items()} for n, at in enumerate(where)}
        part[GIVER] = _one(part[GIVER], {n: part[BOTH][m] for n, m in _GIVES.items()})
        part[TAKER] = _one(part[TAKER], part[BOTH])
        names = [part[SEED]["a"], part[WAY]["a"], part[WAY]["c"], part[GIVER]["a"], part[TAKER]["a"]]
        self.sids, (seeds, src, dst, givers, takers) = _numbered(names)
        self._asked(part[ASKED])
        self._ways(part[WAY], src, dst)
        self._lanes(part[GIVER], part[TAKER], givers, takers)
        seed = part[SEED]
        key = np.searchsorted(self.keys, seed["key"])
        self.begin: tuple[Array, ...] = (key, seeds, seed["b"], (seed["e"] & FOLLOW) > 0)

    def _asked(self, rows: Rows) -> None:
        order = np.argsort(rows["key"])
        self.keys, self.until = rows["key"][order], rows["x"][order]
        self.place, self.done_i, self.group = rows["a"][order], rows["b"][order], rows["c"][order]
        who = np.searchsorted(self.sids, rows["d"][order])
        here = (who < len(self.sids)) & (self.sids[np.minimum(who, len(self.sids) - 1)] == rows["d"][order])
        self.who, self.by = np.where(here, who, -1), rows["e"][order]
        self.over = np.zeros(len(self.keys), bool)

    def _ways(self, rows: Rows, src: Array, dst: Array) -> None:
        order = np.argsort(src, kind="stable")
        self.way_ends = np.searchsorted(src[order], np.arange(len(self.sids) + 1))
        self.upto, self.dst, self.dst_name = rows["b"][order], dst[order], rows["c"][order]
        self.since, self.way_place, self.way_group = rows["d"][order], rows["e"][order], rows["key"][order]
        self.at = rows["x"][order]

    def _lanes(self, givers: Rows, takers: Rows, giver: Array, taker: Array) -> None:
        order = np.argsort(giver, kind="stable")
        self.giver_ends = np.searchsorted(giver[order], np.arange(len(self.sids) + 1))
        _, (lane, giver_lane) = _numbered([takers["c"], givers["c"]])
        self.giver_lane, self.from_i = giver_lane[order], givers["b"][order]
        self.giver_flags, self.end_at = givers["e"][order], givers["x"][order]
        order = np.lexsort((takers["b"], lane))
        lane, self.start_i = lane[order], takers["b"][order]
        self.taker, self.taker_flags = taker[order], takers["e"][order]
        start_at = takers["x"][order]
        self.taker_at = start_at
        self.by_record = lane * _FIRST + self.start_i
        # from here to the end of its lane, the earliest: it does not fall along the lane, even if a clock does
        self.least = _least_after(lane, start_at)
        self.times = np.sort(self.least)
        self.by_time = lane * _LATER + np.searchsorted(self.times, self.least)

    def follow(self) -> None:
        key, sid, since, follow = self.begin
        self._meet(key[~follow], sid[~follow], since[~follow])  # known to itself alone
        codes: Array = np.empty(0, np.int64)
        sinces: Array = np.empty(0, np.int64)
        key, sid, since = key[follow], sid[follow], since[follow]
        while len(key):
            fresh, when = _earliest(key * len(self.sids) + sid, since)
            at = np.searchsorted(codes, fresh)
            old = np.minimum(at, max(len(codes) - 1, 0))
            known = (codes[old] == fresh) & (sinces[old] <= when) if len(codes) else np.zeros(len(fresh), bool)
            fresh, when = fresh[~known], when[~known]
            codes, sinces = _earliest(np.concatenate([codes, fresh]), np.concatenate([sinces, when]))
            key, sid = fresh // max(len(self.sids), 1), fresh % max(len(self.sids), 1)
            self._meet(key, sid, when)
            wanted = ~self.over[key]
            key, sid, when = key[wanted], sid[wanted], when[wanted]
            parts = zip(self._sent(key, sid, when), self._inherited(key, sid, when), strict=True)
            key, sid, since = [np.concatenate(pair) for pair in parts]

    def _meet(self, key: Array, sid: Array, since: Array) -> None:
        """Is somebody who knows the one that is asked for, or has he sent what was delivered too early?"""
        told = (self.who[key] == sid) & (since <= self.by[key]) & ~self.over[key]
        found = np.unique(key[told])
        self.over[found] = True
        self.met.append((self.keys[found], np.zeros(len(found), np.int64), np.zeros(len(found), np.int64)))
        asks = self.place[key] != 0
        key, sid, since = key[asks], sid[asks], since[asks]
        which, way = expand(self.way_ends[sid], self.way_ends[sid + 1])
        key, since = key[which], since[which]
        late = (self.way_place[way] == self.place[key]) & (self.upto[way] >= since)
        late &= (self.since[way] < self.done_i[key]) & (self.way_group[way] != self.group[key])
        self.met.append((self.keys[key[late]], self.dst_name[way[late]], self.since[way[late]]))

    def _sent(self, key: Array, sid: Array, since: Array) -> tuple[Array, Array, Array]:
        which, way = expand(self.way_ends[sid], self.way_ends[sid + 1])
        key, since = key[which], since[which]
        goes = (self.upto[way] >= since) & (self.at[way] <= self.until[key])
        return key[goes], self.dst[way[goes]], self.since[way[goes]]

    def _inherited(self, key: Array, sid: Array, since: Array) -> tuple[Array, Array, Array]:
        """From instances that ended, to those that start later in one of their lanes."""
        which, giver = expand(self.giver_ends[sid], self.giver_ends[sid + 1])
        key, since = key[which], since[which]
        gives = self.end_at[giver] <= self.until[key]
        gives &= ((self.giver_flags[giver] & ADOPTED) > 0) | (since <= self.from_i[giver])
        key, giver = key[gives], giver[gives]
        lane, until = self.giver_lane[giver], self.until[key]
        first = np.searchsorted(self.by_record, lane * _FIRST + self.from_i[giver], side="right")
        before = np.searchsorted(self.times, until, side="right")
        last = np.searchsorted(self.by_time, lane * _LATER + before, side="left")
        which, taker = expand(first, last)
        key, given, taken = key[which], self.giver_flags[giver][which], self.taker_flags[taker]
        takes = ((taken & ALIKE) > 0) | ((given & SIDE) != (taken & SIDE))
        takes &= self.clash[given // MODE % 4, taken // MODE % 4] & (self.taker_at[taker] <= self.until[key])
        return key[takes], self.taker[taker[takes]], self.start_i[taker[takes]]


_GIVES = {"kind": "kind", "key": "key", "a": "a", "b": "d", "c": "c", "d": "d", "e": "e", "x": "y", "y": "y"}


def _one(rows: Rows, more: Rows) -> Rows:
    """With those of rows that give and take. One that gives nothing has no time at which it does."""
    both = {name: np.concatenate([rows[name], more[name]]) for name in rows}
    has = ~np.isnan(both["x"])
    return {name: column[has] for name, column in both.items()}


def _earliest(codes: Array, since: Array) -> tuple[Array, Array]:
    """Each code once, in order, with the least of its values."""
    order = np.lexsort((since, codes))
    codes, since = codes[order], since[order]
    first = np.ones(len(codes), bool)
    first[1:] = codes[1:] != codes[:-1]
    return codes[first], since[first]


def _numbered(parts: list[Array]) -> tuple[Array, list[Array]]:
    """All names that there are, in order; and of each part their numbers. To look each up would take twice as long."""
    names, numbers = np.unique(np.concatenate(parts), return_inverse=True)
    return names, np.split(numbers.astype(np.int64), np.cumsum([len(one) for one in parts])[:-1])


def _least_after(lane: Array, at: Array) -> Array:
    """The least of ``at`` from each row to the end of its lane; rows are in the order of lanes."""
    if not len(at):
        return at
    times, ranks = np.unique(at, return_inverse=True)
    # a later lane has higher numbers, so the least to the right, over all, stays within the lane
    base = lane.astype(np.int64) * _LATER
    return times[np.minimum.accumulate((base + ranks)[::-1])[::-1] - base]
