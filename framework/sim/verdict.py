"""What the oracle knows of a run: message groups, instances, replicas; and its verdict (framework.sim.oracle).

A replica is one life of it: bank@n1 of the node that was there from the beginning, and bank@n1#4 of the one that joined
in view 4, are two. What the second begins with is what it adopted.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence

import msgspec

from framework.footprint import Footprint
from framework.sim.oracle_views import Life, Views, named
from framework.trace.files import Trace
from framework.trace.record import Placed, Record


class Violation(msgspec.Struct, frozen=True):
    rule: str  # A1 ... A10
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class Verdict(msgspec.Struct):
    requests: int = 0  # message instances sent to replicas
    delivered: int = 0  # performed
    duplicates: int = 0
    fast: int = 0
    slow: int = 0
    ordered: int = 0  # pairs that the definitions order
    pairs: int = 0  # pairs of requests at a common destination
    views: int = 0  # different ones that were seen
    crashed: int = 0  # lives that ended with neither stop nor out
    adopted: int = 0  # states that came from another life
    torn: int = 0  # what cannot be judged because a life that crashed has not written it down
    unpromised: int = 0  # lost or out of order, but with a majority of the replicas at once: nobody promises it
    violations: list[Violation] = []


def together(*verdicts: Verdict) -> Verdict:
    """Of groups that had nothing to do with each other."""
    return Verdict(**{f: sum((getattr(v, f) for v in verdicts), type(getattr(verdicts[0], f))()) for f in FIELDS})


FIELDS = Verdict.__struct_fields__


class Group:
    """A message group as it was sent."""

    __slots__ = (
        "act", "at", "before", "bits", "carries", "dests", "entries", "i", "invocations", "kind", "name", "origin",
        "parts", "places", "sid", "tran", "view", "waived",
    )  # fmt: skip

    def __init__(self, record: Record, origin: Life, places: Mapping[str, "Place"]) -> None:
        self.act = record.invocation  # the same for all copies of this act
        stem, _, number = record.invocation.replace("/", ".").rpartition(".")
        stem = record.invocation[: len(stem) + 1]
        self.invocations = {name: f"{stem}{int(number) + j}" for j, (name, _) in enumerate(record.parts)}
        self.tran = record.tran  # by its root; empty: it is a transaction of its own
        self.name = record.group
        self.i = record.i  # counter of the record
        self.kind = record.kind
        self.entries = record.entries
        self.sid = record.sid
        self.parts = dict(record.parts)
        self.dests = {replica for replica, _ in record.dests}
        self.places = dict(places)  # the lives of its destinations
        self.origin = origin
        self.view = record.view
        self.waived = record.waived
        self.at = record.at
        self.bits: dict[str, int] = {}  # per object: the bit of this message
        self.before = 0  # all messages that significantly precede it
        self.carries = 0  # the same without the reads of its own instance: they go no further


class Performed:
    """An instance on a replica, or a client session."""

    __slots__ = (
        "acted", "at", "cid", "ended", "footprint", "group", "invocation", "joined", "knows", "passed_over", "prepared",
        "reads", "said", "sid", "start", "way",
    )  # fmt: skip

    def __init__(self, sid: str, group: Group | None, invocation: str, footprint: Footprint | None, start: int) -> None:
        self.sid = sid
        self.group = group
        self.invocation = invocation
        self.footprint = footprint
        self.start = start  # counter of the record that started it
        self.at = 0.0
        self.cid = ""
        self.way = ""
        self.passed_over = False  # its transaction was aborted before its turn: it is not performed, and has no place
        self.joined = False  # something of its transaction was held where it started: it stands at the place of that
        self.prepared: Record | None = None  # it has been answered, and is held
        self.ended: Record | None = None
        self.knows = 0
        self.said = 0  # what it knew when it was answered, if that was before its end: it may have voted since
        self.reads = 0
        self.acted = False

    @property
    def tran(self) -> str:
        """The transaction that it is a part of, or is."""
        return (self.group.tran if self.group is not None else "") or self.invocation

    @property
    def answered(self) -> Record | None:
        """What has been told of it."""
        return self.prepared or self.ended

    @property
    def changes(self) -> bool:
        """May it change the state of its object?"""
        return self.footprint is None or not self.footprint.readonly


class Place:
    """A replica in one life of its node: what was performed there, in order."""

    def __init__(self, replica: str, life: Life, placed: Placed, final: bool) -> None:
        self.replica = replica
        self.life = life
        self.name = named(replica, life[1])
        self.object = replica.partition("@")[0]
        self.conflicts = {pair for a, b in placed.conflicts for pair in ((a, b), (b, a))}
        self.final = final  # is this life in the final view?
        self.ready = 0 if life[1] == 1 else None  # since which version it has a state
        self.history = 0  # 0: from the beginning of the run; else the version in which it began with nothing
        self.torn = False  # nobody has written down what it adopted
        self.took: int | None = None  # counter of the record with which a life that joined got its state
        self.clock = 0  # of the last instance that started here, or in the state that was adopted
        self.adopted = 0  # so many of the first it performed are what it adopted
        self.performed: list[Performed] = []
        self.by_invocation: dict[str, Performed] = {}
        self.duplicates: set[str] = set()  # groups
        self.here = 0  # bits of messages with this destination
        self.delivered = 0  # bits of those whose invocation was performed here
        self.states: list[Record] = []
        self.groups: list[Group] = []  # sent to it
        self.agreed: dict[str, tuple[int, int]] = {}  # by group: counter of the record, and of those of other kinds
        self.over: dict[str, Record] = {}  # by group: when it ended, or was found to be a copy
        self.pauses: list[int] = []  # counters of records: a view was installed, a state taken or adopted
        self.waited: list[
            tuple[Performed, int, int]
        ] = []  # not started at once when agreed: since when, until which view

    @property
    def own(self) -> list[Performed]:
        """What it performed itself."""
        return self.performed[self.adopted :]

    def conflict(self, f: Footprint | None, g: Footprint | None) -> bool:
        """protocol.md §2.1: declared for the methods, and keys that meet in something not read by both. Where one only
        intends to read or write, it does so to a part of what the key names; then only a whole one can clash."""
        if f is None or g is None or (f.method, g.method) not in self.conflicts:
            return False
        if f.keys is None or g.keys is None:
            return True
        met = [{m1, m2} for k1, m1 in f.keys for k2, m2 in g.keys if k1 == k2]
        return any("w" in modes or modes == {"r", "iw"} for modes in met)


#: One order, uniformity and equal states are promised as long as a replica with the state is left. Where an object
#: falls back on what somebody still holds, there are two orders, before and after: also for those who call it.
_NEEDS_A_STATE = ("A3", "A5", "A7")


class Facts:
    """What is known of a run, and what is wrong with it. The oracle fills it in; rules about whole runs read it."""

    def __init__(self, traces: Sequence[Trace], most: int) -> None:
        self.traces = sorted(traces, key=lambda t: (t.header.node, t.header.life))
        self.most = most
        self.verdict = Verdict(violations=[])
        self.views = Views(self.traces)
        self.objects: dict[str, Placed] = {}
        self.groups: dict[str, Group] = {}
        self.kinds: dict[str, str] = {}  # by invocation
        self.places: dict[str, Place] = {}  # by name
        self.callers: dict[str, Performed] = {}
        self.of_invocation: dict[str, int] = {}  # bits of all copies
        self.acknowledged: list[tuple[Group, str]] = []  # with the object: a majority of its replicas said ok
        self.seen: dict[tuple[Group, str], str] = {}  # changes of a durable object, and a read that has told of each
        self.stopped: dict[Life, Record] = {}
        self.falls: list[tuple[Place, int]] = []  # began in this view without a member that could give a state
        self.fallen: set[str] = set()  # objects of which all replicas that had a state departed at once
        self.of_tran: dict[str, int] = {}  # bits of what is part of each transaction
        self.parts_of: dict[str, set[str]] = {}  # what the root of each transaction called itself
        self.roots: set[str] = set()  # instances that have called parts of their own transaction
        self.outcomes: dict[str, bool] = {}  # is it committed? By what was decided on: a transaction, or a part of one
        self.heard: dict[tuple[Life, Life], list[tuple[int, int]]] = {}  # by receiver and sender: arrived, sent as
        self.missing: set[tuple[str, str]] = set()  # (place, invocation): lacks it, and that has been told
        for trace in self.traces:
            for name, placed in trace.header.objects.items():
                self._place(name, placed)

    def _place(self, name: str, placed: Placed) -> None:
        self.objects.setdefault(name, placed)
        for replica in placed.replicas:
            node = replica.partition("@")[2]
            for since in self.views.lives(node):
                life = (node, since)
                place = Place(replica, life, placed, life in self.views.final)
                self.places.setdefault(place.name, place)

    def place_at(self, replica: str, version: int) -> Place:
        """Where a request of this version to this replica goes."""
        return self.places[named(replica, self.views.life_at(replica.partition("@")[2], version))]

    def survivors(self, name: str) -> list[Place]:
        """Replicas of an object in the final view that have a state, and it is known what is in it."""
        places = self.places.values()
        return [p for p in places if p.object == name and p.final and p.ready is not None and not p.torn]

    def within(self, invocation: str, ancestor: str) -> bool:
        """Is it a call of ``ancestor``, direct or not, with no one-way call between them?"""
        if not invocation.startswith(ancestor + "."):
            return False
        while invocation != ancestor:
            if self.kinds.get(invocation) == "oneway":
                return False
            invocation = invocation.rpartition(".")[0]
        return True

    def is_asked(self, place: Place, view: int, since: int) -> bool:
        """May somebody who joined be waiting for the state of this replica, as far as is known here by this record? Who
        was given one asks again while it is on its way, as it may be lost; and none can be given while something is
        held for a transaction. So it counts as waiting until it is known here that it has one (protocol.md §11.1)."""
        return any(
            other.object == place.object
            and other.life[1] > 1
            and self.views.has(view, other.life)
            and not self._knows_ready(place.life, other, since)
            for other in self.places.values()
            if other is not place
        )

    def _knows_ready(self, life: Life, other: Place, since: int) -> bool:
        """It tells everybody at once when it has its state, and links are FIFO (protocol.md §9.1): had a request come
        here by then that it sent later?"""
        came = self.heard.get((life, other.life), [])
        last = bisect_left(came, (since + 1, 0)) - 1
        return other.took is not None and last >= 0 and came[last][1] > other.took

    def fate(self, instance: Performed) -> bool | None:
        """Of an instance that is part of a transaction, or one: False if that, or a part of it that it belongs to, was
        aborted; None if nothing is decided."""
        name, tran = instance.invocation, instance.tran
        while len(name) > len(tran):
            if self.outcomes.get(name) is False:
                return False
            name = name.rpartition(".")[0]
        return self.outcomes.get(tran)

    def lost(self, instance: Performed) -> bool:
        """Was it part of a transaction that was aborted, or of a part that was undone alone? Then it leaves no trace
        (A4), and nobody but its own kin has seen it, because it was held; so nothing is before or after it."""
        return bool(instance.group and instance.group.tran) and self.fate(instance) is False

    @property
    def fallen_back(self) -> bool:
        return bool(self.fallen)

    def is_over(self) -> bool:
        """Have all lives of the final view stopped? Only then can it be said what never happened."""
        return bool(self.views.final) and all(life in self.stopped for life in self.views.final)

    def blame(self, rule: str, text: str) -> None:
        if self.fallen_back and rule in _NEEDS_A_STATE:
            self.verdict.unpromised += 1
            return
        if len(self.verdict.violations) < self.most:
            self.verdict.violations.append(Violation(rule, text))

    def blame_missing(self, rule: str, place: Place, invocation: str, text: str) -> None:
        """That a replica lacks a request is told once, by the first rule that finds it."""
        if (place.name, invocation) not in self.missing:
            self.missing.add((place.name, invocation))
            self.blame(rule, text)


def satisfied(
    receipt: str, dests: Collection[str], got: Sequence[str], gone: Collection[str] = (), nested: bool = False
) -> bool:
    """Do these answers complete a receipt? By what the words mean (protocol.md §8.2), not as com/ decides it. Nobody
    waits for destinations that are gone. A quorum of a client counts against all; an instance takes what it can get, so
    that replicas of the caller come to the same result."""
    way, _, detail = receipt.rstrip(")").partition("(")
    left = set(dests) - set(gone)
    if way == "crec":
        return left <= set(got) <= set(dests)
    if way == "drec":
        return len(got) == 1
    if way == "srec":
        return len(got) == 1 and (detail in ("", got[0]) or (nested and detail not in left))
    if way != "quorum" or not detail.isdecimal():
        return True  # a trace that does not say how it waited
    for name in {d.partition("@")[0] for d in dests}:
        there = sum(d.partition("@")[0] == name for d in {*left, *got})
        least = min(int(detail), max(1, there)) if nested else int(detail)
        if sum(g.partition("@")[0] == name for g in got) < least:
            return False
    return True
