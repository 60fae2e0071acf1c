"""Who precedes whom in a run, by the definitions: the protocol's relation and that of a traditional protocol.

Computed from the trace alone. ``Relations`` replays the run as the oracle does, whose ``before`` is "significantly
precedes" (protocol.md §2.2, P0 Def. 1-3), and adds what P0 §6 compares it with:

- responses are messages, too: each has a bit, is sent when its instance ends, and is preceded by what that one knew;
- ``direct``: the same relation without its transitive rule (P0 Def. 1.3);
- ``network``: m1 causally precedes m2 in the traditional sense (P0 §4.1), between *computers*: a computer sent or
  received m1, for whatever object, and then sends m2. The instances of one mcast or pcast leave one after the other
  (P0 §4.2, Fig. 5), so the network orders them as well.

The trace has no record of the arrival of a single response. It counts as arrived when its receipt is over: at crec
that is the arrival of the last one. So ``network`` is, if anything, too small.

Numbers are given when a message is sent, in a causal order: whatever precedes a message has a smaller number. Every
request has one destination, because objects are not replicated (fig9_workload).
"""

from collections.abc import Iterator, Sequence

import msgspec

from framework.footprint import Footprint
from framework.sim.oracle import Oracle
from framework.sim.verdict import Performed, Place
from framework.trace.files import Trace
from framework.trace.record import Record


class Message(msgspec.Struct):
    """A message instance. Sets of messages are bit sets over ``number``."""

    number: int
    request: bool
    sender: str  # replica, or session of a transaction
    target: str  # replica, or session
    computer: str  # of the target
    before: int  # what significantly precedes it
    direct: int  # ... without the transitive rule
    network: int  # what causally precedes it at the network
    footprint: Footprint | None = None  # of a request
    conflicts: int = 0  # requests to the same object that conflict with it

    @property
    def bit(self) -> int:
        return 1 << self.number


class Relations(Oracle):
    """A run with all its messages. Use ``relations()``."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        super().__init__(traces)
        self.messages: list[Message] = []
        self.deliveries: list[tuple[int, Message]] = []  # with the number of the record
        self.known: dict[str, int] = {t.header.node: 0 for t in self.traces}  # per computer: sent or received there
        self.own: dict[str, int] = {}  # per caller: what it sent and received itself
        self.requests: dict[tuple[str, str], Message] = {}  # by group and replica
        self.responses: dict[tuple[str, str], Message] = {}
        self.origins: dict[str, tuple[str, str]] = {}  # per group: computer and address of its sender
        self.homes: dict[str, Place] = {}  # of instances; a transaction has none
        self.asked: dict[str, str] = {}  # per instance: the group of its request

    def replayed(self) -> "Relations":
        self._replay()
        if self.verdict.violations:
            raise ValueError(f"not a run to be counted: {self.verdict.violations[0]}")
        for place in self.places.values():
            self._conflicts(place)
        self.deliveries.sort(key=lambda d: d[0])  # matters only within a computer, whose records are numbered
        return self

    # what the oracle replays, with responses and the network

    def _apply(self, r: Record) -> None:
        super()._apply(r)
        if r.event == "arrive":
            self._arrived(r.node, self.requests[(r.group, r.replica)])

    def _send(self, r: Record) -> None:
        super()._send(r)
        group = self.groups[r.group]
        if len(group.dests) != len(group.parts):
            raise ValueError(f"{r.group}: only objects with one replica can be counted, not {sorted(group.dests)}")
        caller = self.callers[r.sid]
        address = self.homes[r.sid].name if r.sid in self.homes else r.sid
        self.origins[r.group] = (r.node, address)
        direct = self._direct(caller)
        for replica, _ in r.dests:
            name, _, computer = replica.partition("@")
            message = Message(
                group.bits[name].bit_length() - 1,
                request=True,
                sender=address,
                target=replica,
                computer=computer,
                before=group.before,
                direct=direct,
                network=self.known[r.node],
                footprint=group.parts[name],
            )
            self.requests[(r.group, replica)] = message
            self._sent(r, message)

    def _deliver(self, r: Record) -> None:
        super()._deliver(r)
        self.homes[r.sid] = self.places[r.replica]
        self.asked[r.sid] = r.group
        self.own[r.sid] = sum(self.groups[r.group].bits.values())
        self.deliveries.append((r.i, self.requests[(r.group, r.replica)]))

    def _end(self, r: Record) -> None:
        super()._end(r)
        instance = self.callers[r.sid]
        group = self.asked[r.sid]
        computer, address = self.origins[group]
        message = Message(
            self.bits,
            request=False,
            sender=r.replica,
            target=address,
            computer=computer,
            before=instance.knows | instance.reads,
            direct=self._direct(instance),
            network=self.known[r.node],
        )
        self.bits += 1
        instance.knows |= message.bit
        self.responses[(group, r.replica)] = message
        self._sent(r, message)

    def _receive(self, r: Record) -> None:
        super()._receive(r)
        for replica, _ in r.received:
            message = self.responses[(r.group, replica)]
            self._arrived(r.node, message)
            self.own[r.sid] |= message.bit
            self.deliveries.append((r.i, message))

    def _sent(self, r: Record, message: Message) -> None:
        self.messages.append(message)
        self.known[r.node] |= message.bit
        self.own[r.sid] = self.own.get(r.sid, 0) | message.bit

    def _arrived(self, node: str, message: Message) -> None:
        self.known[node] |= message.network | message.bit

    # parts of the definitions

    def _direct(self, caller: Performed) -> int:
        """P0 Def. 1.1, 1.2, 3: what it sent and received itself, and what conflicting instances did that ended before
        it started, on the same replica."""
        bits = self.own.get(caller.sid, 0)
        place = self.homes.get(caller.sid)
        for other in place.performed if place is not None else ():
            ended = other.ended is not None and other.ended.i < caller.start
            if place is not None and ended and place.conflict(caller.footprint, other.footprint):
                bits |= self.own[other.sid]
        return bits

    def _conflicts(self, place: Place) -> None:
        here = [m for m in self.messages if m.request and m.target == place.name]
        for m in here:
            for other in here:
                if other is not m and place.conflict(m.footprint, other.footprint):
                    m.conflicts |= other.bit

    def sequences(self, by: str) -> Iterator[list[Message]]:
        """What each target (or computer) got, in the order of delivery there."""
        seen: dict[str, list[Message]] = {}
        for _, message in self.deliveries:
            seen.setdefault(getattr(message, by), []).append(message)
        yield from seen.values()


def relations(traces: Sequence[Trace]) -> Relations:
    return Relations(traces).replayed()
