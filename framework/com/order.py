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
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from framework.com import convoy
from framework.com.ahead import Ahead
from framework.com.convoy import calls_of
from framework.com.entry import LOWEST, Entry, line_of, part_of
from framework.com.lives import Lives
from framework.com.messages import Dest, Mark, Request, WireContext
from framework.com.past import Past
from framework.footprint import Footprint, Relation
from framework.ids import GroupId, Invocation, Node, ObjectName, Replica, Stamp, node_of, object_of

What = Literal["propose", "known", "safe", "start", "void", "settled"]

PROPOSE: Final[What] = "propose"  # tell the other destinations my proposal
KNOWN: Final[What] = "known"  # tell them that I know the stamp
SAFE: Final[What] = "safe"
START: Final[What] = "start"  # perform it
VOID: Final[What] = "void"  # another copy is performed here: answer from its reply
SETTLED: Final[What] = "settled"  # delivered, with a final stamp: tell everybody (delivered marks)

Union = Mapping[GroupId, Mapping[Replica, int]]


class Reason(NamedTuple):
    """Why a request waits at a replica: a text for people, and whom it waits for."""

    text: str
    after: tuple[Mark, ...] = ()  # predecessors
    missing: tuple[Replica, ...] = ()  # destinations that have not said their word about its place
    behind: Entry | None = None  # a conflicting request

    def __str__(self) -> str:
        return self.text


def held(mark: Mark | None) -> Reason:
    return Reason(f"held for {mark}", () if mark is None else (mark,))


def no_agreement(entry: Entry) -> Reason:
    """Proposals are missing, or the word that all are known, or it waits for its predecessors' places."""
    missing = sorted(set(entry.dests) - set(entry.proposals or ()))
    text = f"no agreement yet, missing {missing or 'known'}"
    if not missing and entry.stamp is None:
        return Reason(text, tuple(entry.preds))
    return Reason(text, (), tuple(missing or sorted(set(entry.dests) - (entry.known or set()))))


def conflict(behind: Entry | None) -> Reason:
    return Reason(f"conflicts with {behind}", behind=behind)


def _open(order: "Order", entry: Entry) -> bool:
    return False


def _going_on(name: Invocation) -> bool:
    return False


def _invocations(entry: Entry) -> list[Invocation]:
    assert entry.request is not None
    return [invocation for _, invocation in calls_of(entry.request)]


class Order:
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
        self.past = Past(lambda origin: self.absence.base(origin, replica))
        self._by_mark: dict[Mark, Entry] = {}
        self.ahead = Ahead(self._by_mark, replica)
        self.awaited: dict[Mark, list[Entry]] = {}
        self._riding: dict[Invocation, Entry] = {}  # calls of serial convoys that are performed: which one
        self.roots: Collection[ObjectName] = ()  # in whose transactions this replica takes part
        #: Must it wait for something at another replica of this node? If so, it is looked at again afterwards.
        self.gate: Callable[[Order, Entry], bool] = _open
        #: Has this transaction been aborted?
        self.aborted: Callable[[Invocation], bool] = _going_on
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
        if not (performed or beyond) and (at_once := self._at_once(request, part.footprint, mark, preds)) is not None:
            self._direct(at_once)
            return at_once
        first = Stamp(request.number, request.group)
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

    def _at_once(self, request: Request, footprint: Footprint, mark: Mark, preds: Iterable[Mark]) -> Entry | None:
        """Return the entry of a request that needs no agreement and waits for nobody, with the stamp it gets. None: it
        goes the usual way.

        These are the same steps, with the same result, but the request is entered nowhere in between. Most requests to
        a single replica and those that conflict with nothing go this way, and it costs half."""
        if request.ordered or self.closed or request.chain or request.riders or mark in self.awaited:
            return None
        if self.copies and request.invocation in self.copies:
            return None
        past = self.past
        group = request.group
        entry = Entry(group, Stamp(request.number, group), footprint, request.dests)
        for before in preds:
            # if it is void, what it stood for comes first (protocol.md §10.5)
            if not past.is_delivered(before) or past.instead(before):
                return None
            entry.floor = max(entry.floor, past.stamp_of(before))
        entry.places, entry.meets = self.relation.slots(footprint)
        bound = max(past.highest_conflicting(entry), entry.floor) if entry.meets else entry.floor
        entry.stamp = entry.proposal = entry.first if bound < entry.first else Stamp(bound.number + 1, group)
        if entry.meets and self.ahead.blocker(entry) is not None:
            return None
        entry.request, entry.invocation, entry.mark = request, request.invocation, mark
        entry.ordered = False
        entry.version = request.view
        return entry

    def _direct(self, entry: Entry) -> None:
        assert entry.stamp is not None and entry.mark is not None
        entry.safe = entry.fast = entry.started = True
        self.past.promise(entry, entry.stamp)
        self.ahead.start(entry)
        self.past.deliver(entry.mark, entry.stamp)
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
            if not entry.line:
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
        entry.proposal = entry.first if bound < entry.first else Stamp(bound.number + 1, entry.group)
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
        entry.stamp = Stamp(self._without_gone(entry, number) if entry.gone else number, entry.group)
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

    # transactions: who belongs to which, what is held; and calls that came back

    def tran_of(self, request: Request) -> Invocation | None:
        """The transaction of a request with ancestors, if this replica takes part in it."""
        root = request.chain[0]
        return request.invocation.ancestor(root.length) if root.object in self.roots else None

    def hold(self, entry: Entry) -> None:
        """The instance of this request is over for its caller. Its slots are taken until the transaction is over."""
        self.ahead.hold(entry)
        self._joined(entry)
        self._look(*[e for e in self.entries.values() if e.tran == entry.tran and e.request is not None])
        self._move(entry)
        self._run()

    def drop(self, entry: Entry) -> None:
        """Its transaction was aborted before it came to its turn. It will have no effect, so it has no place among
        those that conflict: another replica may have performed it, undone it, and forgotten its place."""
        self.ahead.leave(entry)
        entry.places = entry.meets = ()
        self._move(entry)
        self.look(entry)

    def look(self, entry: Entry) -> None:
        """What it waited for at another replica may be over."""
        self._look(entry)
        self._run()

    def has_performed(self, mark: Mark) -> bool:
        """Return whether this request, or another copy of its call, has started here."""
        entry = self._by_mark.get(mark)
        return self.past.is_delivered(mark) if entry is None else entry.started or entry.void

    def known(self, mark: Mark) -> Entry | None:
        """A request that is here and not settled."""
        return self._by_mark.get(mark)

    def comes_back(self, ancestor: Entry, calls: range) -> bool:
        """Does a request that came back from one of these calls of a running instance wait here, or is it running?"""
        assert ancestor.invocation is not None
        depth = len(ancestor.invocation.path)
        known = [*self.entries.values(), *self.ahead.performing.values()]
        return any(
            ancestor.invocation in e.line
            and not e.void
            and e.invocation is not None
            and e.invocation.path[depth] in calls
            for e in known
            if e is not ancestor and not e.held and (not e.started or e.invocation in self.ahead.performing)
        )

    def has_joined(self, mark: Mark) -> bool:
        """Is this call, which came back to an instance that waits for it, over? By this or another copy of it."""
        return mark not in self._joining and self.has_performed(mark)

    def _joined(self, entry: Entry) -> None:
        """It is over for who waits that calls which came back to this replica are."""
        if entry.line:
            self._joining = {m: i for m, i in self._joining.items() if i != entry.invocation}

    # what comes before a request here: its predecessors (protocol.md §5.1)

    def _lend(self, entry: Entry, void: Mark) -> None:
        """What a void request stood for takes its place. That went to other destinations, perhaps, so only this one may
        have them: none of them counts as alike."""
        lent = [m for m in self.past.instead(void) if m not in entry.preds]
        self._precede(entry, lent)
        entry.lent += tuple(lent)

    def _precede(self, entry: Entry, preds: Iterable[Mark]) -> None:
        for mark in preds:
            if self.past.is_delivered(mark):
                entry.floor = max(entry.floor, self.past.stamp_of(mark))
                if mark not in entry.preds:
                    self._lend(entry, mark)
                continue
            entry.preds.append(mark)
            before = self._by_mark.get(mark)
            if before is None:
                self.awaited.setdefault(mark, []).append(entry)
            elif before.followers is None:
                before.followers = [entry]
            else:
                before.followers.append(entry)

    def _begin_convoy(self, entry: Entry) -> None:
        """Its calls are delivered one after the other from now on."""
        entry.serial = True
        self._riding.update(dict.fromkeys(_invocations(entry), entry))

    def _behind_convoys(self, copy: Entry) -> None:
        """Of a call in a serial convoy nobody here can say whether it has been delivered, before all of them have: so
        its copy is not either, for those that follow that."""
        for invocation in _invocations(copy):
            before = self._riding.get(invocation)
            if before is None or before is copy:
                continue
            assert before.mark is not None
            if before.mark not in copy.preds:
                self._precede(copy, (before.mark,))

    def _end_of_convoy(self, entry: Entry) -> None:
        entry.serial = False
        for invocation in _invocations(entry):
            if self._riding.get(invocation) is entry:
                del self._riding[invocation]

    def _watch(self, blocker: Entry, entry: Entry) -> None:
        if blocker.watchers is None:
            blocker.watchers = [entry]
        else:
            blocker.watchers.append(entry)

    def bequeath(self, void: Collection[Entry]) -> None:
        """Who has a place behind a void request already, for it has the same destinations, follows what that one
        followed: that has a place as well. (Others are held, see ``Order.stand_in``: what they follow is not known.)"""
        gone = {entry.mark for entry in void}
        for entry in void:
            for follower in entry.followers or ():
                if follower.proposal is not None and follower.mark not in gone:
                    self._follow(follower, entry, gone)

    def _follow(self, entry: Entry, void: Entry, gone: Collection[Mark | None]) -> None:
        for mark in void.preds:
            before = self._by_mark.get(mark)
            if before is None or mark in entry.preds:
                continue
            if mark in gone:
                self._follow(entry, before, gone)
                continue
            self._precede(entry, (mark,))
            if mark in void.lent:  # that one has got a stamp above it
                entry.lent = (*entry.lent, mark)
            elif self._alike(before, entry):
                entry.alike = (*entry.alike, mark)

    def _unordered(self, entry: Entry) -> Mark | None:
        """A predecessor that keeps this request held; on the way, settled ones are dropped."""
        if not entry.preds:
            return None
        waits_for, left = None, []
        for mark in entry.preds:
            if self.past.is_delivered(mark):
                entry.floor = max(entry.floor, self.past.stamp_of(mark))
                continue
            left.append(mark)
            if not self._is_ordered(mark, entry):
                waits_for = mark
        entry.preds = left
        return waits_for

    def _is_ordered(self, mark: Mark, after: Entry) -> bool:
        """Agreed; or proposed, when both take part in agreement at the same destinations: then each of them
        proposes more for the later one, and so the largest proposal is larger, too."""
        before = self._by_mark.get(mark)
        if before is None:
            return False
        if before.stamp is not None:
            return True
        return before.proposal is not None and mark not in after.lent and self._alike(before, after)

    def _alike(self, before: Entry, after: Entry) -> bool:
        if not (before.ordered and after.ordered and before.dests == after.dests):
            return False
        # of a pcast that reads here and writes there, contexts may remember only the part that writes (P1 §4): then the
        # other destinations do not know that it comes first
        assert before.request is not None
        parts = before.request.parts
        return len(parts) == 1 or len({p.footprint.readonly for p in parts}) == 1

    def _has_stamp(self, mark: Mark) -> bool:
        before = self._by_mark.get(mark)
        return before.stamp is not None if before else self.past.is_delivered(mark)

    def _undelivered(self, entry: Entry) -> Mark | None:
        """Return a predecessor that must be delivered before this request starts (protocol.md §5.4 and §7.3).

        A request that joins the prepared work of its transaction waits for all of them, like any other. A call back to
        a running ancestor stands at the place of that instance: only calls made on behalf of it come first, because
        any other predecessor may be waiting for it. Of these, one that has started without being settled stands for
        those that it has not waited for."""
        if not entry.preds:
            return None
        running = [a for a in self.ahead.inside(entry) if not a.held]
        if not running:
            return self._last_undelivered(entry)
        todo, seen = list(entry.preds), set(entry.preds)
        while todo:
            mark = todo.pop()
            if self.past.is_delivered(mark):
                continue
            before = self._by_mark.get(mark)
            if before is None:
                return mark
            if before.started or before.void:
                todo += [m for m in before.preds if m not in seen]
                seen.update(before.preds)
            elif any(self.ahead.within(before, a) for a in running):
                return mark
        return None

    def _last_undelivered(self, entry: Entry) -> Mark | None:
        """Of a request that has its stamp, and wants nothing more of those that are delivered: the ones behind it are
        dropped. So n looks at n predecessors cost n, not n²."""
        preds, is_delivered = entry.preds, self.past.is_delivered
        while preds and is_delivered(preds[-1]):
            preds.pop()
        return preds[-1] if preds else None

    def _settleable(self, entry: Entry) -> bool:
        if entry.preds:
            entry.rests = self._last_undelivered(entry)
        return not entry.preds

    # stamps (protocol.md §5.2)

    def _bound(self, entry: Entry) -> Stamp:
        """The highest stamp that the proposal for this request must pass."""
        bound = self.past.highest_conflicting(entry)
        return max(bound, self._above_predecessors(entry))

    def _above_predecessors(self, entry: Entry) -> Stamp:
        bound = entry.floor
        for mark in entry.preds:
            before = self._by_mark.get(mark)
            if before is not None:
                bound = max(bound, before.stamp or before.proposal or LOWEST)
        return bound

    def _note_alike(self, entry: Entry) -> None:
        """Predecessors with the same destinations that may get their stamp after this one is proposed."""
        by_mark = self._by_mark
        preds = [m for m in entry.preds if m not in entry.lent] if entry.lent else entry.preds
        entry.alike = tuple([m for m in preds if m in by_mark and self._alike(by_mark[m], entry)])

    def _without_gone(self, entry: Entry, number: int) -> int:
        """What the departed have proposed counts as far as the flush brought it. It may have brought the proposal for a
        predecessor and not that for this one: so this one also goes above predecessors with the same destinations."""
        number = max(number, entry.heard)
        for mark in entry.alike:
            before = self._by_mark.get(mark)
            stamp = before.stamp if before is not None else self.past.stamp_of(mark)
            if stamp is not None and stamp >= (number, entry.group):
                number = stamp.number + 1
        return number


AT_ONCE: Final = 8  # so many start before others have their turn
WHILE: Final = 128  # steps after which twice as many do
MOST: Final = 8  # times as many, by that alone


class Late:
    """What was agreed while a replica was closed starts bit by bit when it is opened.

    A replica that has waited for its state for long has much to do at once, and everybody waits for its proposals
    meanwhile. What comes later is not delayed by that, unless it conflicts with what waits, or follows it: then it
    starts bit by bit as well. Sessions follow themselves, so else all that came meanwhile would start with the last of
    what had waited. If much has waited, larger bits are taken after a while: what comes meanwhile waits, too. And that
    it comes to an end even if as much comes as starts: the more has started, the more may start at once.
    """

    __slots__ = ("_behind", "_more", "_room", "_shut", "_size", "_started", "_steps")

    def __init__(self) -> None:
        self._shut: deque[Entry] = deque()  # what would have started
        self._behind: set[GroupId] = set()  # what was agreed while it was closed, and what waits for that
        self._room = 0  # so many of these may start
        self._size = 0  # so many were agreed while it was closed
        self._started = 0  # so many have started since
        self._steps = 0
        self._more = 1  # times as many as usual may start at once

    def keeps(self, entry: Entry, closed: bool) -> bool:
        """It may start, but not now."""
        late = entry.group in self._behind
        if closed or (late and not self._room):
            self._shut.append(entry)
            return True
        if late:
            self._room -= 1
            self._started += 1
            self._behind.remove(entry.group)
        return False

    def waits(self, entry: Entry) -> None:
        """For another one. When that is over much else may start, too, if the replica catches up."""
        if self._behind:
            self._behind.add(entry.group)

    def open(self, entries: Iterable[Entry]) -> list[Entry]:
        """The replica is not closed any more: what to look at."""
        self._behind = {e.group for e in entries if e.safe and not e.started}
        self._size, self._started, self._steps, self._more = len(self._behind), 0, 0, 1
        return self.some()

    def some(self) -> list[Entry]:
        """What to look at now. Not all that is kept: most of it would only be kept again, and be looked at n times."""
        self._steps += 1
        if self._steps % WHILE == 0 and self._more < MOST:
            self._more *= 2
        while self._started > 2 * self._more * self._size:
            self._more *= 2
        self._room = AT_ONCE * self._more
        return [self._shut.popleft() for _ in range(min(self._room, len(self._shut)))]

    @property
    def behind(self) -> bool:
        return bool(self._behind)

    def is_behind(self) -> bool:
        """Is something kept that the next look may start?"""
        if not self._shut:
            self._behind.clear()
        return bool(self._shut)


class Absence:
    """A replica's queue when destinations depart (protocol.md §5.3, §10.5): who is not waited for, and what is void.

    A request whose destination departs is agreed without it, and equally at all survivors: a proposal of the departed
    one counts iff it is in the union of the flush. What a departed origin sent and the union does not bring is void:
    neither it nor its announcement delays anybody.
    """

    __slots__ = ("_brought", "_lives")

    def __init__(self, lives: Lives | None) -> None:
        self._lives = lives
        self._brought: dict[GroupId, dict[Replica, int]] = {}  # proposals of the departed

    def base(self, origin: Node, at: Replica) -> int:
        return self._lives.base(origin, at) if self._lives is not None else 0

    def enter(self, entry: Entry, version: int) -> None:
        """A request becomes known here. What was sent in the current view has no departed destination."""
        entry.version = version
        if self._lives is not None and version != self._lives.view.version:
            self._miss(entry, [d for d in entry.dests if self._lives.gone(d, version)])

    def _miss(self, entry: Entry, gone: list[Replica]) -> None:
        said = self._brought.get(entry.group, {})
        for at in gone:
            if entry.proposals is not None:
                entry.proposals.pop(at, None)
            if entry.known is not None:
                entry.known.discard(at)
            entry.heard = max(entry.heard, said.get(at, 0))
        entry.gone = (*entry.gone, *gone)
        entry.wanted -= len(gone)

    def depart(self, order: "Order", left: Collection[Node], union: Union, alive: Collection[GroupId]) -> list[Entry]:
        """The lives of these nodes have ended. Returns what is void of what they sent."""
        for group, said in union.items():
            self._brought.setdefault(group, {}).update(said)
        void = []
        for entry in tuple(order.entries.values()):
            gone = [d for d in entry.dests if node_of(d) in left and d not in entry.gone]
            if gone:
                self._miss(entry, gone)
            if node_of(entry.group.replica) in left and entry.group not in alive and not entry.started:
                void.append(entry)
        return void

    def forget(self, known: Collection[GroupId]) -> None:
        """No request of an earlier view can come any more: only what is known here still matters."""
        self._brought = {g: said for g, said in self._brought.items() if g in known}
