"""Judges a run by the definitions of PROTOCOL §2 and the properties of §8, from its trace alone.

It knows nothing of stamps, contexts, epochs or queues and calls none of the rules it judges. What it computes is the
relation "significantly precedes" itself:

- messages are the parts of message groups; m1 → m2 is kept as a bit set ``before`` per message;
- per instance ``knows``: what precedes the next message it sends. It starts with its request and what precedes that,
  and with all that conflicting instances that ended before it on this replica knew (rules 1 and 2 of §2); sending and
  receiving add to it. *Received* is what the receipt says (P0 Tables 1 and 2);
- a request that only reads precedes later messages of its own instance, and nothing beyond (P1 §4).

Copies of one call, made by replicas of the caller or by a client that repeats it, are one invocation: it counts as
delivered at a replica when one of them is performed there.
"""

from collections.abc import Sequence
from itertools import combinations

from framework.sim.verdict import Group, Performed, Place, Verdict, Violation, satisfied
from framework.trace.files import Trace
from framework.trace.record import Placed, Record


class Oracle:
    """One run. ``judge()`` gives the verdict."""

    def __init__(self, traces: Sequence[Trace], most: int = 20) -> None:
        self.traces = sorted(traces, key=lambda t: t.header.node)
        self.most = most
        self.verdict = Verdict(violations=[])
        self.groups: dict[str, Group] = {}
        self.kinds: dict[str, str] = {}  # by invocation
        self.places: dict[str, Place] = {}
        self.callers: dict[str, Performed] = {}
        self.of_invocation: dict[str, int] = {}  # bits of all copies
        self.bits = 0
        self.sessions: dict[str, int] = {}  # what a session knew after it sent or received this group
        self.stopped = 0
        for trace in self.traces:
            for name, placed in trace.header.objects.items():
                self._place(name, placed)

    def judge(self) -> Verdict:
        self._headers()
        self._replay()
        self._agreement()
        self._states()
        self._alike()
        self._compatible()
        self._needless()
        if self.stopped == len(self.traces) and self.traces:
            self._liveness()
        return self.verdict

    def _blame(self, rule: str, text: str) -> None:
        if len(self.verdict.violations) < self.most:
            self.verdict.violations.append(Violation(rule, text))

    def _place(self, name: str, placed: Placed) -> None:
        conflicts = {pair for a, b in placed.conflicts for pair in ((a, b), (b, a))}
        for replica in placed.replicas:
            if replica not in self.places:
                self.places[replica] = Place(replica, conflicts)

    def _headers(self) -> None:
        """A6 as far as one view goes: same version, same members."""
        views: dict[int, tuple[str, ...]] = {}
        for trace in self.traces:
            members = views.setdefault(trace.header.view, trace.header.members)
            if members != trace.header.members:
                self._blame("A6", f"view {trace.header.view} has two member lists: {members}, {trace.header.members}")

    # replay in causal order

    def _replay(self) -> None:
        """Records of a node in their order, a receipt of anything after what it receives was sent."""
        heads = [0] * len(self.traces)
        moved = True
        while moved:
            moved = False
            for n, trace in enumerate(self.traces):
                records = trace.records
                while heads[n] < len(records) and self._ready(records[heads[n]]):
                    self._apply(records[heads[n]])
                    heads[n] += 1
                    moved = True
        for n, trace in enumerate(self.traces):
            if heads[n] < len(trace.records):
                r = trace.records[heads[n]]
                self._blame("A1", f"{r.node} record {r.i}: {r.event} of {r.group} at {r.replica or r.sid}, never sent")

    def _ready(self, r: Record) -> bool:
        if r.event in ("deliver", "duplicate", "arrive"):
            return r.group in self.groups
        if r.event == "receive":
            return not r.group or all(self._ended(replica, r.group) for replica, _ in r.received)
        if r.event == "send":
            return all(after in self.sessions for after in r.sessions)
        return True

    def _ended(self, replica: str, group: str) -> bool:
        sent = self.groups.get(group)
        place = self.places.get(replica)
        if sent is None or place is None or place.object not in sent.parts:
            return False
        done = place.by_invocation.get(sent.invocations[place.object])
        return done is not None and done.ended is not None

    def _apply(self, r: Record) -> None:
        if r.event == "send":
            self._send(r)
        elif r.event == "deliver":
            self._deliver(r)
        elif r.event == "end":
            self._end(r)
        elif r.event == "receive":
            self._receive(r)
        elif r.event == "duplicate":
            self._duplicate(r)
        elif r.event == "agree" and r.replica in self.places:
            self.places[r.replica].agreed[r.group] = r.i
        elif r.event == "state":
            self.places[r.replica].states.append(r)
        elif r.event == "stop":
            self.stopped += 1
            for what in r.open:
                self._blame("A8", f"{r.node} stopped with {what}")

    def _send(self, r: Record) -> None:
        caller = self.callers.get(r.sid)
        if caller is None:
            caller = self.callers[r.sid] = Performed(r.sid, None, "", None, r.i)
            if not r.client:
                self._blame("A1", f"{r.node} record {r.i}: {r.sid} sends {r.group} but was never started")
        for after in r.sessions:
            caller.knows |= self.sessions[after]
        group = Group(r)
        if r.group in self.groups:
            self._blame("A1", f"{r.node} record {r.i}: group id {r.group} was used twice")
            return
        group.before = caller.knows | caller.reads
        group.carries = caller.knows
        self.groups[r.group] = group
        self.verdict.requests += len(group.dests)
        caller.acted = True
        for name, footprint in r.parts:
            bit = group.bits[name] = 1 << self.bits
            self.bits += 1
            invocation = group.invocations[name]
            self.kinds[invocation] = r.kind
            self.of_invocation[invocation] = self.of_invocation.get(invocation, 0) | bit
            if footprint.readonly:
                caller.reads |= bit
            else:
                caller.knows |= bit
        if r.client:
            self.sessions[f"{r.group} sent"] = caller.knows | caller.reads
        for replica in group.dests:
            place = self.places[replica]
            bit = group.bits[place.object]
            place.here |= bit
            place.groups.append(group)
            if group.invocations[place.object] in place.by_invocation:
                place.delivered |= bit

    def _deliver(self, r: Record) -> None:
        group, place = self.groups[r.group], self.places[r.replica]
        self.verdict.delivered += 1
        if r.way in ("fast", "slow"):
            setattr(self.verdict, r.way, getattr(self.verdict, r.way) + 1)
        if r.replica not in group.dests:
            self._blame("A1", f"{r.replica} delivered {r.group}, which was not sent to it")
            return
        invocation = group.invocations[place.object]
        if invocation in place.by_invocation:
            self._blame("A1", f"{r.replica} performed {invocation} twice, the second time as {r.group}")
            return
        instance = Performed(r.sid, group, invocation, r.footprint, r.i)
        instance.cid = r.cid
        self._check_before(instance, group, place)
        self._check_alone(instance, place)
        if _clock(r.sid) <= _clock(group.sid):
            self._blame("P3 §4.1", f"{r.sid} started after {group.sid}, which sent its request {r.group}")
        instance.knows = group.carries | self._inherited(instance, place)
        for name, footprint in group.parts.items():
            if not footprint.readonly:
                instance.knows |= group.bits[name]
        place.performed.append(instance)
        place.by_invocation[invocation] = instance
        since = place.agreed.get(r.group, r.i)
        if r.i > since + 1:
            place.waited.append((instance, since))
        place.delivered |= self.of_invocation[invocation]
        self.callers[r.sid] = instance

    def _check_before(self, instance: Performed, group: Group, place: Place) -> None:
        """A2: everything that significantly precedes it and has this destination was delivered here before.

        A call that comes back to its running ancestor is part of that one and stands at its place: of what precedes
        the call, only other calls of this ancestor have to be delivered before it."""
        missing = group.before & place.here & ~place.delivered
        for other in place.performed if missing else ():
            if other.ended is None and self._within(instance.invocation, other.invocation):
                missing &= self._calls_of(other.invocation)
        if missing:
            first = next(g for g in self.groups.values() if g.bits.get(place.object, 0) & missing)
            self._blame(
                "A2",
                f"{place.name} delivered {group.invocations[place.object]} before {first.invocations[place.object]}, "
                "which significantly precedes it",
            )

    def _calls_of(self, ancestor: str) -> int:
        bits = 0
        for invocation, own in self.of_invocation.items():
            if self._within(invocation, ancestor):
                bits |= own
        return bits

    def _check_alone(self, instance: Performed, place: Place) -> None:
        """A4: no conflicting instance is running, but for those that wait for this one."""
        for other in place.performed:
            if other.ended is None and place.conflict(instance.footprint, other.footprint):
                if not self._within(instance.invocation, other.invocation):
                    self._blame(
                        "A4",
                        f"{place.name} started {instance.invocation} ({instance.footprint}) while {other.invocation} "
                        f"({other.footprint}) is running",
                    )

    def _within(self, invocation: str, ancestor: str) -> bool:
        """Is it a call of ``ancestor``, direct or not, with no one-way call between them?"""
        if not invocation.startswith(ancestor + "."):
            return False
        while invocation != ancestor:
            if self.kinds.get(invocation) == "oneway":
                return False
            invocation = invocation.rpartition(".")[0]
        return True

    def _inherited(self, instance: Performed, place: Place) -> int:
        """What conflicting instances knew that ended before this one started, on the same replica."""
        knows = 0
        for other in place.performed:
            if other.ended is not None and other.ended.committed and other.knows & ~knows:
                if place.conflict(instance.footprint, other.footprint) and self._leaves_trace(other):
                    knows |= other.knows
        return knows

    def _leaves_trace(self, instance: Performed) -> bool:
        assert instance.footprint is not None
        return instance.acted or not instance.footprint.readonly

    def _end(self, r: Record) -> None:
        instance = self.callers.get(r.sid)
        if instance is None or instance.ended is not None:
            self._blame("A1", f"{r.node} record {r.i}: {r.sid} ended but is not running")
            return
        instance.ended = r
        if instance.group is not None:
            self.places[r.replica].over[instance.group.name] = r.i

    def _receive(self, r: Record) -> None:
        if not r.group:
            return  # it never left its node
        caller, group = self.callers[r.sid], self.groups[r.group]
        caller.acted = True
        if r.complete and not satisfied(r.receipt, group.dests, [replica for replica, _ in r.received]):
            self._blame("P0 §3.2", f"{r.sid} completed {r.receipt} of {r.group} with {r.received}")
        for replica, status in r.received:
            if status == "OutcomeUnknown":
                continue  # an answer without the reply brings nothing
            self._check_answer(r, replica, status)
            place = self.places[replica]
            caller.knows |= place.by_invocation[group.invocations[place.object]].knows
        if r.client:
            self.sessions[f"{r.group} received"] = caller.knows | caller.reads

    def _check_answer(self, r: Record, replica: str, status: str) -> None:
        place = self.places[replica]
        ended = place.by_invocation[self.groups[r.group].invocations[place.object]].ended
        if ended is not None and ended.committed != (status == "ok"):
            self._blame("A4", f"{r.sid} got {status!r} of {r.group} from {replica}, committed: {ended.committed}")

    def _duplicate(self, r: Record) -> None:
        place = self.places[r.replica]
        self.verdict.duplicates += 1
        if r.invocation not in place.by_invocation:
            self._blame("A1", f"{r.replica} took {r.group} for a copy, but never performed {r.invocation}")
        if r.group in place.duplicates:
            self._blame("A1", f"{r.replica} answered the copy {r.group} twice")
        place.duplicates.add(r.group)
        place.over[r.group] = r.i

    # over the whole run

    def _agreement(self) -> None:
        """A3: conflicting requests are delivered in one order at all common destinations.

        Over all objects: two acts that conflict on several objects (pcast) have one order on all of them."""
        first: dict[tuple[str, str], str] = {}
        for place in self.places.values():
            done = place.performed
            for i, j in combinations(range(len(done)), 2):
                a, b = done[i], done[j]
                self.verdict.pairs += 1
                if not place.conflict(a.footprint, b.footprint):
                    continue
                self.verdict.ordered += 1
                assert a.group is not None and b.group is not None
                first.setdefault((a.group.act, b.group.act), place.name)
                other = first.get((b.group.act, a.group.act))
                if other is not None:
                    self._blame(
                        "A3",
                        f"{place.name} delivered {a.invocation} ({a.footprint}) before {b.invocation} "
                        f"({b.footprint}), {other} the other way round",
                    )

    def _compatible(self) -> None:
        """Equal compatibility identifiers mean compatible (P3 §4.1, PROTOCOL §3)."""
        for place in self.places.values():
            epochs: dict[str, list[Performed]] = {}
            for instance in [p for p in place.performed if p.cid]:
                for other in epochs.setdefault(instance.cid, []):
                    if place.conflict(instance.footprint, other.footprint):
                        self._blame(
                            "P3 §4.1", f"{place.name}: {instance.sid} and {other.sid} conflict, with cid {instance.cid}"
                        )
                epochs[instance.cid].append(instance)

    def _needless(self) -> None:
        """Compatible calls never wait for each other: one that brought no context and was agreed on, but not started
        at once, must have had a conflicting one before it."""
        for place in self.places.values():
            for instance, since in place.waited:
                if instance.group is None or instance.group.entries:
                    continue
                if not any(
                    place.over.get(other.name, since + 1) > since
                    and other is not instance.group
                    and place.conflict(instance.footprint, other.parts[place.object])
                    for other in place.groups
                ):
                    self._blame(
                        "OBO", f"{place.name} kept {instance.invocation} waiting, but nothing conflicts with it"
                    )

    def _states(self) -> None:
        """A7: same requests that change it, same state."""
        seen: dict[tuple[str, frozenset[str]], tuple[str, str]] = {}
        for place in self.places.values():
            if not place.states:
                continue
            record = place.states[-1]
            done = frozenset(p.invocation for p in place.performed if p.ended and p.ended.committed and p.changes)
            digest, where = seen.setdefault((place.object, done), (record.digest, place.name))
            if digest != record.digest:
                self._blame(
                    "A7",
                    f"{where} and {place.name} performed the same {len(done)} changes, but their states differ: "
                    f"{digest}, {record.digest}",
                )

    def _alike(self) -> None:
        """A7, too: a request that changes state commits at all replicas that perform it, or at none."""
        ends: dict[tuple[str, str], tuple[bool, str]] = {}
        for place in self.places.values():
            for instance in place.performed:
                if instance.ended is None or not instance.changes:
                    continue
                committed = instance.ended.committed
                first, where = ends.setdefault((place.object, instance.invocation), (committed, place.name))
                if first != committed:
                    yes, no = (where, place.name) if first else (place.name, where)
                    self._blame("A7", f"{instance.invocation} committed at {yes} and aborted at {no}")

    def _liveness(self) -> None:
        """A8, in a run that says it has stopped: everything sent was delivered, everything started has ended."""
        for name, group in self.groups.items():
            for replica in group.dests:
                place = self.places[replica]
                invocation = group.invocations[place.object]
                if invocation not in place.by_invocation:
                    self._blame("A8", f"{name} ({invocation}) was never delivered at {replica}")
        for place in self.places.values():
            for instance in place.performed:
                if instance.ended is None:
                    self._blame("A8", f"{instance.invocation} at {place.name} never ended")


def _clock(sid: str) -> int:
    """Start identifiers respect happened-before: it is what ids are for (P3 §4.1)."""
    return int(sid.partition(":")[0])


def judge(traces: Sequence[Trace]) -> Verdict:
    return Oracle(traces).judge()
