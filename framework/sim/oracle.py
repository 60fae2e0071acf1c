"""Judges a run by the definitions of protocol.md §2 and the properties of §13, from its trace alone.

It knows nothing of stamps, contexts, epochs or queues and calls none of the rules it judges. What it computes is the
relation "significantly precedes" itself:

- messages are the parts of message groups; m1 → m2 is kept as a bit set ``before`` per message;
- per instance ``knows``: what precedes the next message it sends. It starts with its request and what precedes that,
  and with all that conflicting instances that ended before it on this replica knew (rules 1 and 2 of protocol.md §2.2);
  sending and receiving add to it. *Received* is what the receipt says (P0 Tables 1 and 2);
- a request that only reads precedes later messages of its own instance, and nothing beyond (P1 §4).

Copies of one call, made by replicas of the caller or by a client that repeats it, are one invocation: it counts as
delivered at a replica when one of them is performed there.

A replica is one life of it (framework.sim.verdict). One that joined begins with what it adopted: it has performed what
its donor had performed by then, in that order, and knows what that one knew.

This module replays the records in causal order and judges what can be judged at once; the rules about whole runs are in
oracle_whole, those about lives that ended in oracle_crash, and A9 in oracle_stop.
"""

from collections.abc import Sequence

from framework.sim import oracle_crash, oracle_stop, oracle_tran, oracle_whole
from framework.sim.oracle_replay import crashed
from framework.sim.oracle_states import States
from framework.sim.oracle_tran import TRAN
from framework.sim.oracle_views import Life, named
from framework.sim.verdict import Group, Performed, Place, Verdict, satisfied
from framework.trace.files import Trace
from framework.trace.record import Record


class Oracle(States):
    """One run. ``judge()`` gives the verdict.

    ``no_stop``: judge A9, too, with this bound for the time from sending to delivery. Only where all nodes have one
    clock and the links between survivors are quick, as the simulator knows. ``ended``: the run is over, so that whoever
    has not stopped and is in the final view should not be there (A8). ``outbox``: no one-way call was declared to be
    independent of its caller, which a trace does not say: so none leaves an instance that is aborted."""

    def __init__(
        self,
        traces: Sequence[Trace],
        most: int = 20,
        no_stop: float | None = None,
        ended: bool = False,
        outbox: bool = False,
    ) -> None:
        super().__init__(traces, most)
        self.outbox = outbox
        self.no_stop = no_stop
        self.ended = ended
        self.bits = 0
        self.others: dict[Life, int] = {}  # records that say that something else has gone on there
        self.sessions = {}
        self.followed: dict[tuple[Life, str], int] = {}  # what clients know by their transactions that are committed
        self.early: list[
            tuple[Place, int, Group, Group]
        ] = []  # delivered in this view, before another that precedes it

    def judge(self) -> Verdict:
        for fault in self.views.faults:
            self.blame("A6", fault)
        self._replay()
        self._fall()
        self._significant()
        oracle_tran.recall(self)
        oracle_whole.judge(self)
        oracle_crash.judge(self)
        oracle_tran.judge(self, self.outbox)
        oracle_whole.judge_liveness(self, self.ended)
        if self.no_stop is not None:
            oracle_stop.judge(self, self.no_stop)
        verdict = self.verdict
        verdict.views = len(self.views.members)
        verdict.crashed = sum(crashed(trace) for trace in self.traces)
        return verdict

    def _apply(self, r: Record) -> None:
        if r.event not in ("agree", "deliver", "duplicate"):
            self.others[self.life] = self.others.get(self.life, 0) + 1
        if r.event == "send":
            self._send(r)
        elif r.event == "arrive":
            self._arrive(r)
        elif r.event == "deliver":
            self._deliver(r)
        elif r.event == "end":
            self._end(r)
        elif r.event == "prepare":
            self._prepare(r)
        elif r.event == "receive":
            self._receive(r)
        elif r.event == "duplicate":
            self._duplicate(r)
        elif r.event == "agree" and r.replica in self.places:
            self._place_here(r.replica).agreed[r.group] = r.i, self.others.get(self.life, 0)
        elif r.event in ("install", "snapshot", "adopt"):
            self._pause(r)
        elif r.event == "state":
            self._place_here(r.replica).states.append(r)
        elif r.event == "stop":
            self.stopped[self.life] = r

    def _send(self, r: Record) -> None:
        caller = self.callers.get(r.sid)
        if caller is None:
            caller = self.callers[r.sid] = Performed(r.sid, None, "", None, r.i)
            if not r.client:
                self.blame("A1", f"{r.node} record {r.i}: {r.sid} sends {r.group} but was never started")
        for after in r.sessions:
            caller.knows |= self.sessions[after]
        if r.client and not r.tran:
            caller.knows |= self.followed.get((self.life, r.client), 0)
        group = Group(r, self.life, {replica: self.place_at(replica, r.view) for replica, _ in r.dests})
        if r.group in self.groups:
            self.blame("A1", f"{r.node} record {r.i}: group id {r.group} was used twice")
            return
        for replica in group.waived:
            if group.places[replica].life[1] == 1 or caller.group is None:
                self.blame("P0 §3.2", f"{r.sid} does not wait for {replica}, which has been there from the beginning")
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
            if r.tran:
                oracle_tran.part(self, r, invocation, bit, caller)
            if footprint.readonly:
                caller.reads |= bit
            else:
                caller.knows |= bit
        if r.client:
            self.sessions[f"{r.group} sent"] = caller.knows | caller.reads
        for place in group.places.values():
            bit = group.bits[place.object]
            place.here |= bit
            place.groups.append(group)
            if group.invocations[place.object] in place.by_invocation:
                place.delivered |= bit

    def _arrive(self, r: Record) -> None:
        """Whatever its sender had told this node before has come, too. Of who was there from the beginning nobody needs
        to know."""
        group = self.groups[r.group]
        if group.origin[1] > 1:
            came = self.heard.setdefault((self.life, group.origin), [])
            came.append((r.i, max(group.i, came[-1][1]) if came else group.i))

    def _deliver(self, r: Record) -> None:
        group, place = self.groups[r.group], self._place_here(r.replica)
        self.verdict.delivered += 1
        if r.way in ("fast", "slow"):
            setattr(self.verdict, r.way, getattr(self.verdict, r.way) + 1)
        if group.places.get(r.replica) is not place:
            self.blame("A1", f"{place.name} delivered {r.group}, which was not sent to it")
            return
        invocation = group.invocations[place.object]
        if invocation in place.by_invocation:
            self.blame("A1", f"{place.name} performed {invocation} twice, the second time as {r.group}")
            return
        if place.ready is None:
            self.blame("A7", f"{place.name} performed {invocation} before it had a state")
        instance = Performed(r.sid, group, invocation, r.footprint, r.i)
        instance.cid, instance.way, instance.at = r.cid, r.way, r.at
        held = self._held_kin(instance, place) if group.tran else []
        instance.joined = bool(held)
        instance.passed_over = r.cancelled and self._is_passed_over(instance)
        if not instance.passed_over:
            self._check_before(r.view, instance, group, place, held)
            self._check_alone(instance, place, held)
        if _clock(r.sid) <= _clock(group.sid):
            self.blame("P3 §4.1", f"{r.sid} started after {group.sid}, which sent its request {r.group}")
        if _clock(r.sid) <= place.clock:
            self.blame("P3 §4.1", f"{r.sid} started with a state that has an instance of {place.clock}")
        instance.knows = group.carries | (0 if instance.passed_over else self._inherited(instance, place))
        for name, footprint in group.parts.items():
            if not footprint.readonly:
                instance.knows |= group.bits[name]
        place.performed.append(instance)
        place.by_invocation[invocation] = instance
        if place.object == TRAN and (found := oracle_tran.outcome(self, place, instance)) is not None:
            self.outcomes.setdefault(*found)
        now = self.others.get(self.life, 0)
        since, then = place.agreed.get(r.group, (r.i, now))
        if now > then:  # calls that travel together are agreed together, too, and then start
            place.waited.append((instance, since, r.view))
        place.delivered |= self.of_invocation[invocation]
        self.callers[r.sid] = instance

    def _held_kin(self, instance: Performed, place: Place) -> list[Performed]:
        """What is held here of its own transaction."""
        held = [p for p in place.performed if p.prepared is not None and p.ended is None]
        return [p for p in held if p.tran == instance.tran]

    def _is_passed_over(self, instance: Performed) -> bool:
        """It had not begun when the replica of tran on its node heard that its transaction is aborted. It is answered,
        not performed. What others it conflicts with or precedes do not matter then: nothing is delivered
        (protocol.md §2.3)."""
        assert instance.group is not None
        here = self.places.get(named(f"{TRAN}@{self.life[0]}", self.life[1]))
        return here is not None and bool(instance.group.tran) and oracle_tran.is_aborted(self, here, instance.tran)

    def _check_before(
        self, view: int, instance: Performed, group: Group, place: Place, held: Sequence[Performed]
    ) -> None:
        """A2: everything that significantly precedes it and has this destination was delivered here before.

        A call that comes back to its running ancestor is part of that one and stands at its place: of what precedes
        the call, only other calls of this ancestor have to be delivered before it. So does one that joins what is held
        here of its transaction, with those that cannot be delivered before that transaction is over."""
        missing = group.before & place.here & ~place.delivered
        if missing and held:
            missing &= self.of_tran.get(instance.tran, 0) | ~oracle_tran.wait_for(held, place)
        for other in place.performed if missing else ():
            if other.ended is None and self.within(instance.invocation, other.invocation):
                missing &= self._calls_of(other.invocation)
        if missing and not place.torn:
            first = (g for g in place.groups if g.bits[place.object] & missing)
            self.early += [(place, view, group, g) for g in first]

    def _significant(self) -> None:
        """A2, now that it is known what became of the others. A request whose origin is gone may be void, if nobody
        who decided on the view without it had it (protocol.md §10.5): it never comes to this replica. As another copy
        it may."""
        told = set()
        for place, view, group, first in self.early:
            done = place.by_invocation.get(first.invocations[place.object])
            came = first.name in place.over or (done is not None and done.group is first)
            void = not came and not self.views.has(view, first.origin)
            if not void and (place, group) not in told:
                told.add((place, group))
                self.blame(
                    "A2",
                    f"{place.name} delivered {group.invocations[place.object]} before "
                    f"{first.invocations[place.object]}, which significantly precedes it",
                )

    def _calls_of(self, ancestor: str) -> int:
        bits = 0
        for invocation, own in self.of_invocation.items():
            if self.within(invocation, ancestor):
                bits |= own
        return bits

    def _check_alone(self, instance: Performed, place: Place, held: Sequence[Performed]) -> None:
        """A4: no conflicting instance is running or held, but for those that wait for this one, and what is held for
        its own transaction: that is over, but for others."""
        for other in place.performed:
            if other.ended is None and not other.passed_over and place.conflict(instance.footprint, other.footprint):
                if other not in held and not self.within(instance.invocation, other.invocation):
                    self.blame(
                        "A4",
                        f"{place.name} started {instance.invocation} ({instance.footprint}) while {other.invocation} "
                        f"({other.footprint}) is running",
                    )

    def _inherited(self, instance: Performed, place: Place) -> int:
        """What conflicting instances knew that ended before this one started, on the same replica. The last ones first:
        mostly they know what the others knew."""
        knows = 0
        for other in reversed(place.performed):
            if other.ended is not None and other.ended.committed and other.knows & ~knows:
                if place.conflict(instance.footprint, other.footprint) and self._leaves_trace(other):
                    knows |= other.knows
        return knows

    def _prepare(self, r: Record) -> None:
        instance = self.callers.get(r.sid)
        if instance is None or instance.answered is not None:
            self.blame("A1", f"{r.node} record {r.i}: {r.sid} is prepared but is not running")
            return
        instance.prepared, instance.said = r, instance.knows

    def _end(self, r: Record) -> None:
        instance = self.callers.get(r.sid)
        if instance is None or instance.ended is not None:
            self.blame("A1", f"{r.node} record {r.i}: {r.sid} ended but is not running")
            return
        instance.ended = r
        if instance.group is not None:
            self._place_here(r.replica).over[instance.group.name] = r

    def _receive(self, r: Record) -> None:
        if not r.group:
            return  # it never left its node
        caller, group = self.callers[r.sid], self.groups[r.group]
        caller.acted = True
        since = caller.group.view if caller.group is not None else r.view  # it waits for no life that began later
        lives = {replica: place.life for replica, place in group.places.items()}
        gone = [at for at, life in lives.items() if life[1] > since or not self.views.has(r.view, life)]
        got = [replica for replica, _ in r.received]
        nested = caller.group is not None
        if r.complete and not satisfied(r.receipt, group.dests, got, {*gone, *group.waived}, nested):
            self.blame("P0 §3.2", f"{r.sid} completed {r.receipt} of {r.group} with {r.received}")
        for place, status in self._answers(r):
            done = place.by_invocation.get(group.invocations[place.object])
            told = done.answered if done is not None else None
            if done is None or told is None or status == "OutcomeUnknown":
                continue  # torn; or an answer without the reply, which brings nothing
            if told.committed != (status == "ok"):
                self.blame("A4", f"{r.sid} got {status!r} of {r.group} from {place.name}, committed: {told.committed}")
            caller.knows |= done.said if told is done.prepared else done.knows
        if r.complete:
            self._acknowledge(r, group)
        if r.client:
            self.sessions[f"{r.group} received"] = caller.knows | caller.reads
        if r.client and TRAN in group.parts and self.outcomes.get(oracle_tran.decided(group.act)):
            known = self.followed.get((self.life, r.client), 0)
            self.followed[self.life, r.client] = known | caller.knows

    def _acknowledge(self, r: Record, group: Group) -> None:
        """For A10: a change that a majority of the replicas of an object, as declared, has answered with ok. What is
        part of a transaction is promised if that is committed (framework.sim.oracle_crash)."""
        for name, footprint in group.parts.items():
            fine = sum(status == "ok" and replica.partition("@")[0] == name for replica, status in r.received)
            if not footprint.readonly and 2 * fine > len(self.objects[name].replicas):
                self.acknowledged.append((group, name))
        for place, status in self._answers(r) if r.client else ():
            if status == "ok" and group.parts[place.object].readonly and self.objects[place.object].durable:
                self._seen(place, place.by_invocation.get(group.invocations[place.object]))

    def _seen(self, place: Place, read: Performed | None) -> None:
        """For A10, too: a client has seen what a read of a durable object followed."""
        for change in place.performed:
            if read is None or change is read:
                return
            done = change.changes and change.ended is not None and change.ended.committed
            if done and change.group is not None and place.conflict(change.footprint, read.footprint):
                self.seen.setdefault((change.group, place.object), read.invocation)

    def _duplicate(self, r: Record) -> None:
        place = self._place_here(r.replica)
        self.verdict.duplicates += 1
        if r.invocation not in place.by_invocation and not place.torn:
            self.blame("A1", f"{place.name} took {r.group} for a copy, but never performed {r.invocation}")
        if r.group in place.duplicates:
            self.blame("A1", f"{place.name} answered the copy {r.group} twice")
        place.duplicates.add(r.group)
        place.over[r.group] = r


def _clock(sid: str) -> int:
    """Start identifiers respect happened-before: it is what ids are for (P3 §4.1)."""
    return int(sid.partition(":")[0])


def judge(traces: Sequence[Trace], no_stop: float | None = None, ended: bool = False, outbox: bool = False) -> Verdict:
    return Oracle(traces, no_stop=no_stop, ended=ended, outbox=outbox).judge()
