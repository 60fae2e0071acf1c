"""One replica's queue (protocol.md §5): held → proposed → agreed (fast or slow) → delivered.

    held       waits until each predecessor here is ordered
    proposed   has a place here; later conflicting requests get a higher one: a promise
    agreed     the proposals of all destinations are here: the stamp is the largest
    safe       no crash can change the stamp any more: at once if all proposals equal the origin stamp (fast),
               else when all destinations have said that they know it (slow)
    delivered  predecessors delivered, no conflicting request known here may come before it, and none is running

Nothing here scans over waiting requests: requests, running instances and highest stamps are indexed by the slots of
footprints (framework.footprint). What cannot go on is registered with what it waits for, and looked at when it changes.

A request is *known* here when it is waiting or only announced. In the index a known request stands at its origin
stamp while it is unsafe and at its agreed stamp afterwards. "Nothing known before m" then says both conditions of
protocol.md §5.4 in one: no conflicting request has a smaller stamp, none with a smaller origin stamp is unsafe.

Copies: replicas of a caller make the same call; each copy is a message group of its own. The first one delivered is
performed. The others are *void* from then on: they delay nobody, but go on to be proposed and agreed, because other
replicas may deliver them first. As every copy has one place everywhere, so has the first of them.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Literal

from framework.com import convoy, made
from framework.com.absence import Absence
from framework.com.direct import direct, start
from framework.com.entry import Entry, lead, line_of, part_of
from framework.com.kin import Kin
from framework.com.late import Late
from framework.com.lives import Lives
from framework.com.messages import Dest, Mark, Request, WireContext
from framework.com.past import Past
from framework.com.reason import Reason, conflict, held, no_agreement
from framework.footprint import Footprint, Relation
from framework.ids import GroupId, Invocation, Replica, Stamp, object_of

What = Literal["propose", "known", "safe", "start", "void", "settled"]

PROPOSE: Final[What] = "propose"  # tell the other destinations my proposal
KNOWN: Final[What] = "known"  # tell them that I know the stamp
SAFE: Final[What] = "safe"
START: Final[What] = "start"  # perform it
VOID: Final[What] = "void"  # another copy is performed here: answer from its reply
SETTLED: Final[What] = "settled"  # delivered, with a final stamp: tell everybody (delivered marks)


class Order(Kin):
    """The queue of one replica. Calls change it; what is to be done comes out in ``out``."""

    def __init__(self, replica: Replica, relation: Relation, told: bool = True, lives: Lives | None = None) -> None:
        self.replica = replica
        self.absence = Absence(lives)
        self.closed = False  # nothing starts: the state is on its way, from or to this replica
        self.late = Late()  # what would have started
        self.begun = self.waited = 0  # requests; and those of them that had to wait for a conflicting one
        self.name = object_of(replica)
        self.told = told  # say when a stamp is safe
        self.relation = relation
        self.out: list[tuple[What, Entry]] = []
        self.entries: dict[GroupId, Entry] = {}
        super().__init__(Past(lambda origin: self.absence.base(origin, replica)), replica)
        self.copies: dict[Invocation, list[Entry]] = {}
        self._joining: dict[Mark, Invocation] = {}  # calls back to instances that wait for them
        self._todo: deque[Entry] = deque()

    # what happens to it

    def announce(
        self, group: GroupId, first: Stamp, footprint: Footprint, dests: tuple[Dest, ...], version: int = 1
    ) -> Entry:
        """A request that is known to exist; it may not be here yet."""
        entry = self.entries.get(group)
        if entry is None:
            entry = self.entries[group] = Entry(group, first, footprint, dests)
            self.absence.enter(entry, version)
            entry.places, entry.meets = self.relation.slots(footprint)
            self.ahead.stand(entry, first)
        return entry

    def arrive(
        self, request: Request, mark: Mark, preds: Iterable[Mark], performed: bool, beyond: WireContext = ()
    ) -> Entry:
        """A request is here. ``performed``: another copy of the call has been performed or is running here."""
        part = part_of(request, self.name)
        if not (performed or beyond) and (at_once := direct(self, request, part.footprint, mark, preds)) is not None:
            self._direct(at_once)
            return at_once
        first = made.stamp(request.number, request.group)
        entry = self.announce(request.group, first, part.footprint, request.dests, request.view)
        entry.request = request
        entry.invocation = request.invocation
        entry.ordered = request.ordered
        entry.mark = mark
        entry.line = line_of(request, self.name)
        entry.tran = self.tran_of(request) if request.chain else None
        if entry.tran is not None and self.aborted(entry.tran):
            self.ahead.leave(entry)
            entry.places = entry.meets = ()
            self._move(entry)  # requests that waited for its announcement go on
        entry.beyond = beyond
        if request.proposed:
            lead(entry, request)
        self._by_mark[mark] = entry
        entry.followers = self.awaited.pop(mark, None)
        self._precede(entry, preds)
        if entry.line and (not performed or self.ahead.is_running(request.invocation)):
            self._joining[mark] = request.invocation
        if performed:
            self._void(entry)
        else:
            self.copies.setdefault(request.invocation, []).append(entry)
        self._look(entry)
        if entry.followers:
            self._look(*entry.followers)
        self._run()
        return entry

    def _direct(self, entry: Entry) -> None:
        start(self, entry)
        self.begun += 1
        if self.told:
            self.out.append((SAFE, entry))
        self.out += ((START, entry), (SETTLED, entry))

    def propose(self, group: GroupId, replica: Replica, number: int) -> bool:
        """A proposal from another destination. False: no such request is known here, or it does not go there."""
        entry = self.entries.get(group)
        if entry is None or replica not in entry.dests or replica in entry.gone:
            return False
        if entry.proposals is None:
            entry.proposals = {}
        entry.proposals[replica] = number
        if len(entry.proposals) == entry.wanted:
            self._again(entry)
        return True

    def know(self, group: GroupId, replica: Replica) -> bool:
        """Another destination knows the stamp. False: no such request is known here, or it does not go there."""
        entry = self.entries.get(group)
        if entry is None or replica not in entry.dests or replica in entry.gone:
            return False
        if entry.known is None:
            entry.known = set()
        entry.known.add(replica)
        if len(entry.known) == entry.wanted:
            self._again(entry)
        return True

    def end(self, entry: Entry) -> None:
        """The instance that performed this request has ended."""
        self.ahead.end(entry)
        self._joined(entry)
        self._move(entry)
        self._run()

    def rode(self, entry: Entry) -> None:
        """The last call of this convoy has been delivered, and ended."""
        if entry.serial:
            self._end_of_convoy(entry)
            self._settle(entry)

    def wait(self, entry: Entry, calls: range) -> None:
        """The instance of this request now waits for these calls: what comes back from them may join it."""
        entry.awaits = calls
        if calls:
            self._move(entry)
            self._run()

    def is_settled(self, entry: Entry) -> bool:
        return entry.mark not in self._by_mark

    def blockers(self, entry: Entry) -> Reason:
        """Why a request waits, for people."""
        if entry.request is None:
            return Reason("announced, not here yet")
        if entry.proposal is None:
            return held(self._unordered(entry))
        if entry.stamp is None or not entry.safe:
            return no_agreement(entry)
        undelivered = self._undelivered(entry)
        if undelivered is not None:
            return Reason(f"its predecessor {undelivered} is not delivered", (undelivered,))
        return conflict(self.ahead.blocker(entry))

    def forget(self, entry: Entry) -> None:
        """A request that is void: it is announced and will never come, or can never be agreed."""
        del self.entries[entry.group]
        self.ahead.leave(entry)
        self._move(entry)
        if entry.mark is not None and entry.invocation is not None:
            del self._by_mark[entry.mark]
            self._joining.pop(entry.mark, None)
            copies = [c for c in self.copies.pop(entry.invocation, ()) if c is not entry]
            if copies:
                self.copies[entry.invocation] = copies

    def stand_in(self) -> None:
        """What a void request stood for takes its place (protocol.md §10.5), before a look drops it from
        predecessors."""
        self.awaited = {mark: entries for mark, entries in self.awaited.items() if not self.past.is_delivered(mark)}
        for entry in self.entries.values():
            for mark in tuple(entry.preds) if entry.proposal is None else ():  # who waits for a void one is held
                if self.past.is_delivered(mark):
                    self._lend(entry, mark)

    def again(self) -> None:
        """Look at all requests: what they wait for may be void."""
        self._look(*[entry for entry in self.entries.values() if entry.request is not None])
        self._run()

    def take_over(self, performed: Callable[[Request], bool]) -> None:
        """Some of what waits here has been performed in the state that was handed over."""
        for invocation, entries in list(self.copies.items()):
            if (request := entries[0].request) is not None and performed(request):
                for entry in self.copies.pop(invocation):
                    self._void(entry)
                    self._look(entry)

    # the way of a request

    def _again(self, entry: Entry) -> None:
        if entry.request is not None:
            self._look(entry)
            self._run()

    def _look(self, *entries: Entry) -> None:
        """At these, soon. Once: with a replica far behind, thousands of requests follow the same thousands."""
        for entry in entries:
            if not entry.queued:
                entry.queued = True
                self._todo.append(entry)

    def _run(self) -> None:
        todo = self._todo
        while todo:
            entry = todo.popleft()
            entry.queued = False
            self._advance(entry)

    def _advance(self, entry: Entry) -> None:
        if entry.mark not in self._by_mark:
            return
        if entry.proposal is None and not self._propose(entry):
            return
        if not entry.safe and not self._agree(entry):
            return
        if entry.void or entry.started:
            self._settle(entry)
        elif (first := self._undelivered(entry)) is not None:
            self.late.waits(entry)
            if entry.tran is None and not entry.line:
                entry.rests = first
        elif not (entry.beyond and self.gate(self, entry)):
            blocker = self.ahead.blocker(entry)
            if blocker is None:
                self._try_start(entry)
            else:
                entry.waited = True
                self.late.waits(entry)
                self._watch(blocker, entry)

    def _propose(self, entry: Entry) -> bool:
        """protocol.md §5.1 and §5.2."""
        if self._unordered(entry) is not None:
            return False
        bound = self._bound(entry)
        entry.proposal = entry.first if bound < entry.first else made.stamp(bound.number + 1, entry.group)
        self.past.promise(entry, entry.proposal)
        if entry.ordered:
            if entry.proposals is None:
                entry.proposals = {}
            entry.proposals[self.replica] = entry.proposal.number
            if entry.preds:
                self._note_alike(entry)
            self.out.append((PROPOSE, entry))
        if entry.followers:
            self._look(*entry.followers)
        return True

    def _agree(self, entry: Entry) -> bool:
        """protocol.md §5.3. A request without agreement has its place as soon as it has one here."""
        if entry.stamp is None:
            if not entry.ordered:
                entry.stamp = entry.proposal
                self._secure(entry, True)
                return True
            if not self._agreeable(entry):
                return False
            self._fix(entry)
        if not entry.safe and entry.all_know():
            self._secure(entry, False)
        return entry.safe

    def _agreeable(self, entry: Entry) -> bool:
        if entry.proposals is None or len(entry.proposals) < entry.wanted:
            return False
        return not entry.preds or all(self._has_stamp(p) for p in entry.preds)

    def _fix(self, entry: Entry) -> None:
        assert entry.proposals is not None
        number = max(entry.proposals.values())
        entry.stamp = made.stamp(self._without_gone(entry, number) if entry.gone else number, entry.group)
        if entry.stamp == entry.first:  # no proposal is below the origin stamp, so all of them equal it
            self._secure(entry, True)
        else:
            self.past.promise(entry, entry.stamp)
            entry.known = entry.known or set()
            entry.known.add(self.replica)
            self.out.append((KNOWN, entry))
        if entry.followers:
            self._look(*entry.followers)

    def _secure(self, entry: Entry, fast: bool) -> None:
        entry.safe = True
        entry.fast = fast
        assert entry.stamp is not None
        if self.told:
            self.out.append((SAFE, entry))
        if entry.key is not None and entry.key != entry.stamp:
            self.ahead.leave(entry)
            self.ahead.stand(entry, entry.stamp)
            self._move(entry)
        if entry.watchers:  # who looks through it at others (see _outside) learns from this
            self._look(*[w for w in entry.watchers if w.line or w.tran is not None])

    def _try_start(self, entry: Entry) -> None:
        if self.ahead.inside(entry) or not self.late.keeps(entry, self.closed):
            self._start(entry)

    def open(self) -> None:
        """What had to wait may start, bit by bit."""
        self.closed = False
        self._look(*self.late.open(self.entries.values()))
        self._run()

    def catch_up(self) -> None:
        self._look(*self.late.some())
        self._run()

    def _start(self, entry: Entry) -> None:
        entry.started = True
        if convoy.is_serial(entry):
            self._begin_convoy(entry)
        self.begun += 1
        self.waited += entry.waited
        self.ahead.start(entry)
        self.out.append((START, entry))
        assert entry.invocation is not None and entry.request is not None
        self._void_copies(entry, self.copies.pop(entry.invocation))
        for rider in entry.request.riders:
            self._void_copies(entry, self.copies.pop(rider.invocation, []))
        self._settle(entry)
        if entry.followers:  # not settled yet, but who joins the same ancestor need not wait for that
            self._look(*entry.followers)

    def _void_copies(self, entry: Entry, copies: list[Entry]) -> None:
        for copy in copies:
            if copy is not entry:
                self._void(copy)
                self._look(copy)

    def _void(self, entry: Entry) -> None:
        entry.void = True
        if self._riding:
            self._behind_convoys(entry)
        self.ahead.leave(entry)
        self.out.append((VOID, entry))
        self._move(entry)
        if entry.followers:
            self._look(*entry.followers)

    def _settle(self, entry: Entry) -> None:
        """Delivered, all that it waits for as well, and its stamp is final: contexts need not name it any more.

        A context names m instead of what m itself waits for (protocol.md §4.3). So a copy that is answered early, or a
        call that joins its ancestor, is settled only when its own predecessors are."""
        if entry.serial or not self._settleable(entry):
            return
        mark = entry.mark
        assert mark is not None and entry.stamp is not None
        del self._by_mark[mark]
        del self.entries[entry.group]
        self.past.deliver(mark, entry.stamp)
        self.out.append((SETTLED, entry))
        if entry.followers:
            self._look(*[f for f in entry.followers if f.rests is None or f.rests == mark])
            entry.followers = None

    # who looks again when something moves

    def _move(self, entry: Entry) -> None:
        if entry.watchers:
            self._look(*entry.watchers)
            entry.watchers = None
