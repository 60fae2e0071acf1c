"""Where things go in the SVG picture of a run: time to the right, a band for each node, a row for each replica."""

from bisect import bisect_right
from statistics import median

from framework.sim.picture import Picture, Visit

LEFT = 118.0  # labels of the rows
TOP = 128.0  # title and legend
LANE = 27.0  # a request: its label, and its bar below
HEAD = 30.0  # the node's own line, where its clients act
FAULT = 15.0  # a line for each fault that is told in a band
LETTER = 6.1  # width of a letter of a label
_USUAL = 15.0  # pixels of the usual time between two happenings
_LEAST = 900.0  # what little there is fills this
_MOST = 78.0  # a longer silence is shortened to this, and marked


class Axis:
    """Time to pixels: true to scale where things happen, shortened where nothing does."""

    def __init__(self, times: list[float]) -> None:
        self.times = sorted(set(times)) or [0.0]
        gaps = [b - a for a, b in zip(self.times, self.times[1:], strict=False)]
        scale = _USUAL / (median(gaps) if gaps else 1.0)
        self.places = [LEFT + 16.0]
        wide = [min(max(2.0, gap * scale), _MOST) for gap in gaps]
        stretch = max(1.0, _LEAST / (sum(wide) or 1.0))
        self.breaks: list[float] = []  # pixels where time is left out
        for gap, pixels in zip(gaps, wide, strict=True):
            if gap * scale > _MOST:
                self.breaks.append(self.places[-1] + pixels * stretch / 2)
            self.places.append(self.places[-1] + pixels * stretch)
        self.end = self.places[-1] + 40.0

    def x(self, at: float) -> float:
        """Outside of what is drawn: its edge."""
        n = bisect_right(self.times, at) - 1
        if n < 0:
            return self.places[0]
        if n >= len(self.times) - 1:
            return self.places[-1]
        share = (at - self.times[n]) / (self.times[n + 1] - self.times[n])
        return self.places[n] + share * (self.places[n + 1] - self.places[n])

    def ticks(self) -> list[tuple[float, str]]:
        """(pixel, time) of marks that are far enough from each other to be read."""
        found: list[tuple[float, str]] = []
        for at, place in zip(self.times, self.places, strict=True):
            if not found or place - found[-1][0] >= 70.0:
                found.append((place, f"{at:.1f}"))
        return found


class Layout:
    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.axis = Axis(_times(picture))
        self.lane: dict[tuple[str, str], int] = {}  # of each visit, in the row of its replica
        self.rows: dict[str, tuple[float, float]] = {}  # replica: top and height
        self.bands: dict[str, tuple[float, float]] = {}  # node: top and height
        self.told = {n: [f for f in picture.faults if n in f.nodes] for n in picture.nodes}
        lanes = self._lanes()
        top = TOP
        for node in picture.nodes:
            start = top
            top += HEAD + FAULT * len(self.told[node])
            for replica in (r for r in picture.replicas if r.partition("@")[2] == node and lanes.get(r)):
                self.rows[replica] = (top, lanes[replica] * LANE + 6.0)
                top += self.rows[replica][1]
            top += 6.0
            self.bands[node] = (start, top - start)
            top += 12.0
        self.width, self.height = max(self.axis.end, 1100.0), top + 34.0

    def _lanes(self) -> dict[str, int]:
        """Each request gets the first lane of its row that is free for its bar and its label."""
        ends: dict[str, list[float]] = {}
        for key, visit in self.picture.visits.items():
            start, end = self.span(visit)
            row = ends.setdefault(visit.replica, [])
            lane = next((n for n, taken in enumerate(row) if taken < start), len(row))
            row[lane : lane + 1] = [max(end, start + len(visit.label) * LETTER) + 5.0]
            self.lane[key] = lane
        return {replica: len(row) for replica, row in ends.items()}

    def span(self, visit: Visit) -> tuple[float, float]:
        """Left and right edge of its bar; one of no length can still be seen."""
        left, right = self.axis.x(visit.arrived), self.axis.x(visit.last(self.picture.now))
        return left, max(right, left + 3.0)

    def bar(self, visit: Visit) -> float:
        """Top of its bar."""
        return self.rows[visit.replica][0] + self.lane[(visit.replica, visit.group)] * LANE + 14.0

    def line(self, node: str) -> float:
        """Height of the node's own line."""
        return self.bands[node][0] + HEAD / 2 + FAULT * len(self.told[node])

    def sender(self, sid: str, node: str) -> float:
        """Height where this one sends and receives: its bar, or the node's line for clients."""
        visit = self.picture.instances.get(sid)
        if visit is not None and (visit.replica, visit.group) in self.lane:
            return self.bar(visit) + 5.0
        return self.line(node)


def _times(picture: Picture) -> list[float]:
    times = [r.at for r in picture.sends.values()] + [r.at for r in picture.receipts]
    for v in picture.visits.values():
        points = (v.arrived, v.proposed, v.agreed, v.delivered, v.ended, v.duplicate)
        times += [at for at in points if at is not None]
    times = [at for at in times if picture.within(at)]
    times += [at for at in picture.window if abs(at) <= picture.now]
    first, last = min(times, default=0.0), max(times, default=0.0)
    # Faults outside of all that happens are drawn to the edge.
    return times + [at for f in picture.faults for at in (f.start, f.end) if first <= at <= last]
