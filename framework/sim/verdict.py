"""What the oracle knows of a run: message groups, instances, replicas; and its verdict (framework.sim.oracle)."""

from collections.abc import Collection, Sequence

import msgspec

from framework.footprint import Footprint
from framework.trace.record import Record


class Violation(msgspec.Struct, frozen=True):
    rule: str  # A1 ... A8
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
    violations: list[Violation] = []


class Group:
    """A message group as it was sent."""

    __slots__ = ("act", "before", "bits", "carries", "dests", "entries", "invocations", "kind", "name", "parts", "sid")

    def __init__(self, record: Record) -> None:
        self.act = record.invocation  # the same for all copies of this act
        stem, _, number = record.invocation.replace("/", ".").rpartition(".")
        stem = record.invocation[: len(stem) + 1]
        self.invocations = {name: f"{stem}{int(number) + j}" for j, (name, _) in enumerate(record.parts)}
        self.name = record.group
        self.kind = record.kind
        self.entries = record.entries
        self.sid = record.sid
        self.parts = dict(record.parts)
        self.dests = {replica for replica, _ in record.dests}
        self.bits: dict[str, int] = {}  # per object: the bit of this message
        self.before = 0  # all messages that significantly precede it
        self.carries = 0  # the same without the reads of its own instance: they go no further


class Performed:
    """An instance on a replica, or a client session."""

    __slots__ = ("acted", "cid", "ended", "footprint", "group", "invocation", "knows", "reads", "sid", "start")

    def __init__(self, sid: str, group: Group | None, invocation: str, footprint: Footprint | None, start: int) -> None:
        self.sid = sid
        self.group = group
        self.invocation = invocation
        self.footprint = footprint
        self.start = start  # counter of the record that started it
        self.cid = ""
        self.ended: Record | None = None
        self.knows = 0
        self.reads = 0
        self.acted = False

    @property
    def changes(self) -> bool:
        """May it change the state of its object?"""
        return self.footprint is None or not self.footprint.readonly


class Place:
    """A replica: what was performed there, in order."""

    def __init__(self, name: str, conflicts: set[tuple[str, str]]) -> None:
        self.name = name
        self.object = name.partition("@")[0]
        self.conflicts = conflicts
        self.performed: list[Performed] = []
        self.by_invocation: dict[str, Performed] = {}
        self.duplicates: set[str] = set()  # groups
        self.here = 0  # bits of messages with this destination
        self.delivered = 0  # bits of those whose invocation was performed here
        self.states: list[Record] = []
        self.groups: list[Group] = []  # sent to it
        self.agreed: dict[str, int] = {}  # by group: counter of the record
        self.over: dict[str, int] = {}  # by group: when it ended, or was found to be a copy
        self.waited: list[tuple[Performed, int]] = []  # not started at once when agreed: since when

    def conflict(self, f: Footprint | None, g: Footprint | None) -> bool:
        """PROTOCOL §1: declared for the methods, and keys that meet in something not read by both."""
        if f is None or g is None or (f.method, g.method) not in self.conflicts:
            return False
        if f.keys is None or g.keys is None:
            return True
        return any(k1 == k2 and "w" in (m1, m2) for k1, m1 in f.keys for k2, m2 in g.keys)


def satisfied(receipt: str, dests: Collection[str], got: Sequence[str]) -> bool:
    """Do these answers complete a receipt? By what the words mean (PROTOCOL §1), not as com/ decides it."""
    way, _, detail = receipt.rstrip(")").partition("(")
    if way == "crec":
        return set(got) == set(dests)
    if way == "drec":
        return len(got) == 1
    if way == "srec":
        return len(got) == 1 and detail in ("", got[0])
    if way != "quorum" or not detail.isdecimal():
        return True  # a trace that does not say how it waited
    objects = {d.partition("@")[0] for d in dests}
    return all(sum(g.partition("@")[0] == o for g in got) >= int(detail) for o in objects)
