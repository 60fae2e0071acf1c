"""The records of all traces of a run in a causal order, for the oracle.

Records of a life come in their order, and each after what it needs: a delivery after the sending, a receipt after the
instances it received have ended, a state that is adopted after it was given. Time plays no part.
"""

from framework.sim.oracle_views import Life, named
from framework.sim.verdict import Facts, Place
from framework.trace.files import Trace
from framework.trace.record import Record, is_unwritten, parse_ticket


class Replay(Facts):
    """``_replay`` gives every record to ``_apply``."""

    life: Life = ("", 1)  # whose record is being replayed
    replayed_to: dict[Life, int]  # how many records of each life
    sessions: dict[str, int]  # what a session knew after it sent or received this group

    def _apply(self, r: Record) -> None:
        raise NotImplementedError

    def _replay(self) -> None:
        """Records of a life in their order, a receipt of anything after what it receives was sent."""
        heads = {(t.header.node, t.header.life): t for t in self.traces}
        self.replayed_to = dict.fromkeys(heads, 0)
        moved = True
        while moved:
            moved = False
            for life, trace in heads.items():
                moved |= self._advance(life, trace)
            moved = moved or any(self._excuse(life, trace) for life, trace in heads.items())
        for life, trace in heads.items():
            r = self._next(life, trace)
            if r is not None and r.event == "adopt":
                self.blame("A1", f"{r.node} record {r.i}: {r.replica} adopted {r.ticket}, which nobody gave")
            elif r is not None:
                self.blame("A1", f"{r.node} record {r.i}: {r.event} of {r.group} at {r.replica or r.sid}, never sent")

    def _next(self, life: Life, trace: Trace) -> Record | None:
        i = self.replayed_to[life]
        return trace.records[i] if i < len(trace.records) else None

    def _advance(self, life: Life, trace: Trace, excused: bool = False) -> bool:
        """As far as it goes. ``excused``: the first record need not be ready."""
        start = self.replayed_to[life]
        self.life = life
        while (r := self._next(life, trace)) is not None and (excused or self._ready(r)):
            excused = False
            self._apply(r)
            self.replayed_to[life] += 1
        return self.replayed_to[life] > start

    def _excuse(self, life: Life, trace: Trace) -> bool:
        """Nothing is ready: go on where a life that crashed may have lost what is missing, at the end of its trace."""
        r = self._next(life, trace)
        if r is None:
            return False
        self.life = life
        if r.event == "receive" and self._fits(r):
            lost = [(place, status) for place, status in self._answers(r) if not self._has_ended(place, r.group)]
            if not all(self._is_torn(p.life) or (status != "ok" and not p.final) for p, status in lost):
                return False
            self.verdict.torn += any(status == "ok" for _, status in lost)
        elif r.event == "adopt":
            replica, since, _ = parse_ticket(r.ticket)
            if not self._is_torn((replica.partition("@")[2], since)):
                return False
            self._place_here(r.replica).torn = True
            self.verdict.torn += 1
        else:
            return False
        return self._advance(life, trace, excused=True)

    def _is_torn(self, life: Life) -> bool:
        """A life that crashed, and all that it has written is replayed. (One without a trace wrote nothing.)"""
        trace = next((t for t in self.traces if (t.header.node, t.header.life) == life), None)
        return trace is None or (crashed(trace) and self._next(life, trace) is None)

    def _ready(self, r: Record) -> bool:
        if r.event in ("deliver", "duplicate", "arrive"):
            return r.group in self.groups
        if r.event == "receive":
            return not r.group or (
                self._fits(r) and all(self._has_ended(place, r.group) for place, _ in self._answers(r))
            )
        if r.event == "send":
            return all(after in self.sessions for after in r.sessions)
        if r.event == "adopt" and r.ticket and not is_unwritten(r.ticket):
            replica, since, i = parse_ticket(r.ticket)
            given = self.replayed_to.get((replica.partition("@")[2], since), -1) >= i
            return given and all(self._is_performed(r.replica.partition("@")[0], invocation) for invocation in r.open)
        return True

    def _is_performed(self, name: str, invocation: str) -> bool:
        """By any replica of this object."""
        return any(place.object == name and invocation in place.by_invocation for place in self.places.values())

    def _fits(self, r: Record) -> bool:
        """Was it sent, and to those that have answered?"""
        group = self.groups.get(r.group)
        return group is not None and all(replica in group.places for replica, _ in r.received)

    def _answers(self, r: Record) -> list[tuple[Place, str]]:
        """Who has answered, in which life: the one to which it was sent."""
        group = self.groups[r.group]
        return [(group.places[replica], status) for replica, status in r.received]

    def _has_ended(self, place: Place, group: str) -> bool:
        done = place.by_invocation.get(self.groups[group].invocations[place.object])
        return done is not None and done.answered is not None

    def _place_here(self, replica: str) -> Place:
        """A replica in the life whose record this is."""
        return self.places[named(replica, self.life[1])]


def crashed(trace: Trace) -> bool:
    """Did it end in the middle of whatever it did?"""
    return not trace.records or trace.records[-1].event not in ("stop", "out")
