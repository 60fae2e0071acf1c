"""Views, lives and replicas of a run: what is small enough to be known before the jobs begin.

Only records about the group itself are brought to the driver (`install`, `out`, `stop`, `adopt`, `snapshot`), and one
row for each life. Everything about calls stays in Spark. Nodes that never share a view are different groups, each with
its own views; the traces of several groups can be judged together.

A *place* is a replica in one life of its node, as in framework.sim.verdict: what it performed, and what it adopted. One
that adopted a state has performed what its donor had performed by then: ``segments`` says whose records these are.
"""

from collections.abc import Mapping, Sequence

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from framework.analytics.little import little
from framework.analytics.pieces import Bounds, bounds
from framework.analytics.reading import Run
from framework.sim.oracle_views import Life, Views, named
from framework.trace.files import Trace
from framework.trace.record import Header, Record, is_unwritten, parse_ticket

_CONTROL = ("install", "out", "stop", "adopt", "snapshot")
MOST_CONTROL = 1_000_000  # more views, states and stops than any run has


class Written(msgspec.Struct, frozen=True):
    """What there is of the trace of a life."""

    records: int
    last_i: int
    last_event: str  # if it is one of _CONTROL; else empty
    first_at: float
    last_at: float

    @property
    def crashed(self) -> bool:
        """It ended in the middle of whatever it did."""
        return self.last_event not in ("stop", "out")

    @property
    def gaps(self) -> int:
        """Records that are missing before the last one."""
        return self.last_i - self.records


class Segment(msgspec.Struct, frozen=True):
    """A part of what a place adopted: what ``source`` performed itself, up to its record ``limit``."""

    source: str
    limit: int
    step: int  # order among the segments of a place


class Place(msgspec.Struct):
    name: str
    replica: str
    object: str
    life: Life
    final: bool = False  # its life is in the final view
    ready_view: int | None = None  # since which view it has a state; 0: from the beginning
    ready_i: int = 0  # the record of its life with which it got it
    history: int = 0  # 0: from the beginning of the run; else the view in which it began with nothing
    torn: bool = False  # nobody has written down what it adopted
    segments: tuple[Segment, ...] = ()


class Group:
    """The lives that share views."""

    def __init__(self, traces: Sequence[Trace], written: Mapping[Life, Written]) -> None:
        self.traces = traces
        self.views = Views(traces)
        self.written = written
        self.falls: list[tuple[Place, int]] = []  # began in this view without a member that could give a state
        self.fallen: set[str] = set()  # objects of which all replicas that had a state departed at once
        self.places: dict[str, Place] = {}
        self.faults: list[tuple[str, str, str]] = []  # rule, place or life, text
        for trace in traces:
            for name, placed in trace.header.objects.items():
                for replica in placed.replicas:
                    self._place(name, replica)
        self.stopped = {(t.header.node, t.header.life) for t in traces if any(r.event == "stop" for r in t.records)}
        self.over = bool(self.views.final) and self.views.final <= self.stopped
        self._adoptions()
        self.fallen = {place.object for place, version in self.falls if not self._has_a_state(place, version)}
        self._one_history()
        self._left_open()

    def _place(self, name: str, replica: str) -> None:
        node = replica.partition("@")[2]
        if node not in self.nodes:
            return
        for since in self.views.lives(node):
            place = Place(named(replica, since), replica, name, (node, since), (node, since) in self.views.final)
            place.ready_view = 0 if since == 1 else None
            self.places.setdefault(place.name, place)

    @property
    def nodes(self) -> set[str]:
        return {n for members in self.views.members.values() for n in members} | {t.header.node for t in self.traces}

    @property
    def formed(self) -> bool:
        """Were all nodes lost at once, and a new group formed?"""
        return any(version > 1 and self.views.formed(version) for version in self.views.members)

    def _adoptions(self) -> None:
        """In an order in which donors come before those who take from them."""
        todo = [(r.at, t.header.life, r) for t in self.traces for r in t.records if r.event == "adopt"]
        todo.sort(key=lambda item: (item[0], item[2].node, item[2].i))
        for _, life, r in todo:
            place = self.places.get(named(r.replica, life))
            if place is None:
                continue
            if place.ready_view is not None:
                text = f"{place.name} adopted {r.ticket or 'the initial state'}, but it had a state already"
                self.faults.append(("A1", place.name, text))
                continue
            self._adopt(place, r)

    def _left_open(self) -> None:
        """A8, as far as a node says it itself: what was not over when it stopped, such as a lost response."""
        for trace in self.traces:
            life = (trace.header.node, trace.header.life)
            stops = (r for r in trace.records if r.event == "stop" and life in self.views.final)
            self.faults += [("A8", named(*life), f"{named(*life)} stopped with {w}") for r in stops for w in r.open]

    def _adopt(self, place: Place, r: Record) -> None:
        place.ready_view, place.ready_i = r.view, r.i
        if not r.ticket:
            place.history = place.life[1]
            if not self.views.formed(r.view):
                self.falls.append((place, r.view))
            return
        if is_unwritten(r.ticket):
            place.torn = True
            return
        replica, since, i = parse_ticket(r.ticket)
        donor = self.places.get(named(replica, since))
        if donor is None:
            self.faults.append(("A1", place.name, f"{place.name} adopted {r.ticket}, which nobody gave"))
            return
        written = self.written.get(donor.life)
        if written is None or written.last_i < i:
            if written is not None and not written.crashed:
                self.faults.append(("A1", place.name, f"{place.name} adopted {r.ticket}, which nobody gave"))
            place.torn = True
            return
        place.history, place.torn = donor.history, donor.torn or bool(r.open)  # beside what its ticket says
        steps = donor.segments
        place.segments = (*steps, Segment(donor.name, i, len(steps)))
        if not self.views.has(r.view, donor.life):
            self.falls.append((place, r.view))

    def _has_a_state(self, place: Place, version: int) -> bool:
        """Had another replica of this object one when this view began?"""
        others = [p for p in self.places.values() if p.object == place.object and p is not place]
        return any(
            p.ready_view is not None and p.ready_view < version and self.views.has(version, p.life) for p in others
        )

    def _one_history(self) -> None:
        """A7, too: none begins with nothing beside one that has what was performed before."""
        first: dict[str, Place] = {}
        for place in self.places.values():
            if not place.final or place.ready_view is None or place.torn or self.fallen or not self.over:
                continue
            other = first.setdefault(place.object, place)
            if other.history != place.history:
                text = f"{other.name} {_began(other)}, and {place.name} {_began(place)}"
                self.faults.append(("A7", place.name, text))


def _began(place: Place) -> str:
    return f"began with nothing in view {place.history}" if place.history else "has the state from the beginning"


class Lives(msgspec.Struct):
    groups: list[Group]
    written: dict[Life, Written]
    snapshots: list[tuple[str, int, str]]  # place, record, to whom
    changes: list[tuple[float, str, int]]  # views: when, where, version
    unread: int = 0  # control records beyond the bound

    def places(self) -> list[Place]:
        return [place for group in self.groups for place in group.places.values()]

    def several(self) -> dict[str, list[int]]:
        """Nodes with lives other than the first."""
        found: dict[str, list[int]] = {}
        for group in self.groups:
            for node in group.nodes:
                lives = group.views.lives(node)
                if lives != [1]:
                    found[node] = lives
        return found

    def places_table(self, spark: SparkSession) -> DataFrame:
        rows = []
        for group in self.groups:
            for p in group.places.values():
                crashed = p.life not in self.written or self.written[p.life].crashed
                ready = None if p.ready_view is None else p.ready_i
                holes = p.life in self.written and self.written[p.life].gaps > 0
                facts = (p.final, ready, p.history, p.torn, crashed, holes, bool(group.fallen), group.over)
                lost = (p.object in group.fallen, group.formed)
                rows.append((p.name, p.replica, p.object, p.life[0], p.life[1], *facts, *lost))
        return little(
            spark,
            rows,
            "place string, replica string, object string, node string, life bigint, final boolean, ready_i bigint, "
            "history bigint, torn boolean, crashed boolean, holes boolean, fallen_back boolean, over boolean, "
            "fallen boolean, formed boolean",
        )

    def segments_table(self, spark: SparkSession) -> DataFrame:
        rows = [(p.name, s.source, s.limit, s.step) for p in self.places() for s in p.segments]
        return little(spark, rows, "place string, source string, upto bigint, step int")

    def members_table(self, spark: SparkSession) -> DataFrame:
        """(node, view): which life of it is a member."""
        rows = {
            (node, view, since)
            for group in self.groups
            for view, members in group.views.members.items()
            for node, since in members.items()
        }
        return little(spark, sorted(rows), "node string, view bigint, life bigint")


def find(run: Run) -> Lives:
    """Reads the control records of a run, and one row for each life."""
    fields = ["i", "node", "at", "event", "view", "replica", "members", "since", "to", "ticket", "open", "life"]
    wanted = run.events.where(F.col("event").isin(*_CONTROL)).select(*fields).orderBy("node", "life", "i")
    control = wanted.limit(MOST_CONTROL + 1).collect()
    return _build(run, _written(run, control), control)


def _written(run: Run, control: Sequence[Row]) -> dict[Life, Written]:
    """Numbers alone: which event was the last one matters only if it is in ``control``."""
    events = {(r.node, r.life, r.i): r.event for r in control}
    found = _bounds(run)
    return {
        life: Written(b.records, b.last_i, events.get((*life, b.last_i), ""), b.first_at, b.last_at)
        for life, b in found.items()
    }


def _bounds(run: Run) -> dict[Life, Bounds]:
    told = {(one.header.node, one.header.life): bounds(one.files) for one in run.lives}
    known = {life: found for life, found in told.items() if found is not None}
    if len(known) == len(run.lives):
        return known
    rows = run.events.groupBy("node", "life").agg(
        F.count("*").alias("records"), F.max("i").alias("last_i"), F.min("at").alias("first_at"),
        F.max("at").alias("last_at"),
    ).collect()  # fmt: skip
    return {(r.node, int(r.life)): Bounds(r.records, r.last_i, r.first_at, r.last_at) for r in rows}


def _build(run: Run, written: dict[Life, Written], control: Sequence[Row]) -> Lives:
    records: dict[Life, list[Record]] = {}
    for row in control[:MOST_CONTROL]:
        told = row.asDict()
        life = (told["node"], int(told.pop("life")))
        for name in ("members", "since", "open"):
            told[name] = tuple(told[name])
        records.setdefault(life, []).append(Record(**told))
    traces = [Trace(one.header, records.get((one.header.node, one.header.life), [])) for one in run.lives]
    found = Lives([Group(part, written) for part in _apart(traces)], written, [], [])
    found.unread = max(0, len(control) - MOST_CONTROL)
    for trace in traces:
        _note(found, trace.header, trace.records)
    found.changes.sort()
    return found


def _note(found: Lives, head: Header, records: Sequence[Record]) -> None:
    for r in records:
        if r.event == "snapshot":
            found.snapshots.append((named(r.replica, head.life), r.i, r.to))
        elif r.event == "install":
            found.changes.append((r.at, named(head.node, head.life), r.view))


def _apart(traces: Sequence[Trace]) -> list[list[Trace]]:
    """Traces by group: those whose members overlap belong together."""
    parts: list[tuple[set[str], list[Trace]]] = []
    for trace in sorted(traces, key=lambda t: (t.header.node, t.header.life)):
        nodes = {trace.header.node, *trace.header.members}
        nodes |= {n for r in trace.records if r.event == "install" for n in r.members}
        mine = [trace]
        rest = []
        for others, found in parts:
            if others & nodes:
                nodes |= others
                mine = found + mine
            else:
                rest.append((others, found))
        parts = [*rest, (nodes, mine)]
    return [found for _, found in parts]
