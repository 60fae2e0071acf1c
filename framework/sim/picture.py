"""What a run looks like, from its trace records alone: who sent what, and how each request fared at each replica.

The terminal (``terminal``), the SVG (``svg``) and the narrator (``narrate``) draw from this. It takes records as they
come, so it can follow a run; ``of_traces`` takes those of files. Times are those of the records: in a real run the
clocks of nodes may differ a little, and a message may seem to arrive before it was sent.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from framework.errors import BadRequest
from framework.footprint import AGAINST, Footprint
from framework.trace.files import Trace
from framework.trace.record import Header, Record

#: The three ways of waiting (protocol.md §5.1, 5.2-5.3, 5.4), and then it is performed.
Phase = Literal["held", "agreement", "turn", "performing"]
PHASES: dict[Phase, str] = {
    "held": "held: a request that must come first is not here",
    "agreement": "agreement on its place with the other replicas",
    "turn": "its turn: a conflicting request goes first",
    "performing": "being performed",
}


class Fault(msgspec.Struct, frozen=True):
    start: float
    end: float
    text: str
    nodes: tuple[str, ...]  # those it names


class Visit(msgspec.Struct):
    """A request at one replica: the times it came to each point, as far as it came."""

    group: str
    invocation: str
    replica: str
    arrived: float
    footprint: Footprint | None = None
    proposed: float | None = None
    agreed: float | None = None
    delivered: float | None = None
    ended: float | None = None
    duplicate: float | None = None  # a copy of a call performed here: answered, not performed
    committed: bool = True
    way: str = ""

    @property
    def node(self) -> str:
        return self.replica.partition("@")[2]

    @property
    def object(self) -> str:
        return self.replica.partition("@")[0]

    @property
    def label(self) -> str:
        return f"{self.invocation} {self.footprint or '?'}"

    def last(self, now: float) -> float:
        """When it was over; ``now`` if it is not."""
        over = self.ended if self.duplicate is None else self.duplicate
        return now if over is None else over

    def phases(self, now: float) -> Iterator[tuple[Phase, float, float]]:
        """What it did from when to when; up to ``now`` if it is not over. Nothing that took no time."""
        over = self.last(now)
        points: list[tuple[Phase, float | None]] = [
            ("held", self.arrived),
            ("agreement", self.proposed),
            ("turn", self.agreed),
            ("performing", self.delivered),
        ]
        reached = [(phase, at) for phase, at in points if at is not None]
        for n, (phase, start) in enumerate(reached):
            end = min(over, reached[n + 1][1] if n + 1 < len(reached) else over)
            if end > start:
                yield phase, start, end

    def running(self) -> bool:
        return self.delivered is not None and self.ended is None


class Picture:
    def __init__(self, headers: Sequence[Header], faults: Sequence[tuple[float, float, str]] = ()) -> None:
        self.nodes: list[str] = sorted({n for h in headers for n in (h.node, *h.members)})
        self.conflicts: dict[str, set[tuple[str, str]]] = {}
        self.replicas: list[str] = []
        for header in headers:
            for name, placed in header.objects.items():
                self.conflicts[name] = {pair for a, b in placed.conflicts for pair in ((a, b), (b, a))}
                self.replicas += [r for r in placed.replicas if r not in self.replicas]
        self.sends: dict[str, Record] = {}  # by group
        self.receipts: list[Record] = []
        self.visits: dict[tuple[str, str], Visit] = {}  # by replica and group, in the order of arrival
        self.at: dict[str, list[Visit]] = {r: [] for r in self.replicas}
        self.instances: dict[str, Visit] = {}  # by sid
        self.faults = [self._fault(*fault) for fault in faults]
        self.now = 0.0
        self.window = (-float("inf"), float("inf"))  # what is to be drawn

    def within(self, at: float) -> bool:
        return self.window[0] <= at <= self.window[1]

    def _fault(self, start: float, end: float, text: str) -> Fault:
        words = text.replace(",", " ").split()
        return Fault(start, end, text, tuple(n for n in self.nodes if n in words))

    def take(self, r: Record) -> Visit | None:
        """Records in the order of time. The visit that this one is about, if it is about one."""
        self.now = max(self.now, r.at)
        if r.event == "send":
            self.sends[r.group] = r
        elif r.event == "receive":
            self.receipts.append(r)
        elif r.event == "arrive":
            return self._arrive(r)
        elif r.event == "end":
            visit = self.instances.get(r.sid)
            if visit is not None:
                visit.ended, visit.committed = r.at, r.committed
            return visit
        elif r.event in ("propose", "agree", "deliver", "duplicate"):
            return self._progress(r)
        return None

    def _arrive(self, r: Record) -> Visit:
        send = self.sends.get(r.group)
        parts = dict(send.parts) if send is not None else {}
        visit = Visit(r.group, r.invocation, r.replica, r.at, parts.get(r.replica.partition("@")[0]))
        self.visits[(r.replica, r.group)] = visit
        self.at.setdefault(r.replica, []).append(visit)
        return visit

    def _progress(self, r: Record) -> Visit | None:
        visit = self.visits.get((r.replica, r.group))
        if visit is None:
            return None
        if r.event == "propose":
            visit.proposed = r.at
        elif r.event == "agree":
            visit.agreed, visit.way = r.at, r.way
        elif r.event == "duplicate":
            visit.duplicate = r.at
        else:
            visit.delivered, visit.footprint, visit.way = r.at, r.footprint, r.way
            self.instances[r.sid] = visit
        return visit

    def end_life(self, node: str, start: float, end: float) -> None:
        """The node crashed, or was excluded: what was there is over with it."""
        for visits in self.at.values():
            for v in visits:
                if v.node == node and start <= v.arrived <= end and v.ended is None and v.duplicate is None:
                    v.ended, v.committed = end, False

    def conflict(self, a: Visit, b: Visit) -> bool:
        """Do two requests at one replica conflict? (protocol.md §2.1)"""
        f, g = a.footprint, b.footprint
        if f is None or g is None or (f.method, g.method) not in self.conflicts.get(a.object, ()):
            return False
        if f.keys is None or g.keys is None:
            return True
        return any(k == j and n in AGAINST[m] for k, m in f.keys for j, n in g.keys)

    def went_first(self, visit: Visit) -> list[Visit]:
        """The conflicting requests that this one let go first, or lets: they began before it, and ended after its
        place was agreed."""
        if visit.agreed is None:
            return []
        found = []
        for other in self.at[visit.replica]:
            if other is visit or other.delivered is None or not self.conflict(visit, other):
                continue
            before = visit.delivered is None or other.delivered < visit.delivered
            if before and (other.ended is None or other.ended > visit.agreed):
                found.append(other)
        return found

    def undecided(self, visit: Visit) -> list[Visit]:
        """Conflicting requests that went after this one, but were still open to go first when its own place was agreed:
        it had to wait until that was settled, too."""
        if visit.agreed is None:
            return []
        began = self.now if visit.delivered is None else visit.delivered
        found = []
        for other in self.at[visit.replica]:
            if other is visit or other.arrived > began or not self.conflict(visit, other):
                continue
            after = other.delivered is None or other.delivered > began
            if after and other.duplicate is None and (other.agreed is None or other.agreed > visit.agreed):
                found.append(other)
        return found


def of_traces(traces: Sequence[Trace], faults: Sequence[tuple[float, float, str]] = ()) -> Picture:
    picture = Picture([t.header for t in traces], faults)
    for record in sorted((r for t in traces for r in t.records), key=lambda r: (r.at, r.event != "send", r.node, r.i)):
        picture.take(record)
    for trace in traces:
        if trace.records and trace.records[-1].event != "stop":
            picture.end_life(trace.header.node, trace.records[0].at, trace.records[-1].at)
    return picture


class Cut(msgspec.Struct, frozen=True):
    """The part of a picture that someone wants to see."""

    start: float | None = None
    end: float | None = None
    only: str = ""  # an invocation with all it called (ann/3), a client (ann), an object (bank), a replica (bank@n1)


def cut_out(picture: Picture, cut: Cut) -> Picture:
    """A picture with only what is wanted. BadRequest if that is nothing."""
    start = -float("inf") if cut.start is None else cut.start
    end = float("inf") if cut.end is None else cut.end
    part = Picture([], [])
    part.nodes, part.replicas, part.conflicts = picture.nodes, picture.replicas, picture.conflicts
    part.now, part.window = min(picture.now, end), (start, end)
    part.faults = [f for f in picture.faults if f.start <= end and f.end >= start]
    part.at, part.instances = picture.at, picture.instances
    wanted = {k: v for k, v in picture.visits.items() if _about(cut.only, v.invocation, v.replica)}
    part.visits = {k: v for k, v in wanted.items() if v.arrived <= end and v.last(picture.now) >= start}
    groups = {group for _, group in part.visits}
    part.sends = {g: r for g, r in picture.sends.items() if g in groups or _sent_within(r, cut.only, start, end)}
    part.receipts = [r for r in picture.receipts if r.group in part.sends and start <= r.at <= end]
    if not part.visits and not part.sends:
        raise BadRequest(
            f"nothing to draw: no request fits{f' --only {cut.only}' if cut.only else ''}"
            f"{'' if cut.start is None else f' --from {cut.start:g}'}{'' if cut.end is None else f' --to {cut.end:g}'}"
            f"; the run has times 0 to {picture.now:.1f}, for example --only "
            f"{next((v.invocation for v in picture.visits.values()), 'bank')}"
        )
    return part


def _about(only: str, invocation: str, replica: str) -> bool:
    if not only:
        return True
    if only in (replica, replica.partition("@")[0], invocation, invocation.partition("/")[0]):
        return True
    return invocation.startswith(only + ".")


def _sent_within(r: Record, only: str, start: float, end: float) -> bool:
    """A request that arrived nowhere in the part is drawn by its sending alone."""
    return start <= r.at <= end and any(_about(only, r.invocation, replica) for replica, _ in r.dests)
