"""What becomes of a call that takes too long, or that a replica cannot perform: the same at all replicas.

A replica performs a call by itself, commits, and answers. So none of them can end a call alone: another one may have
answered already. Nor can they count steps: plans, disks and machines differ. They decide together (docs/backed.md):

    overdue      at a replica the call has run for longer than the limit of its store, or its caller does not wait any
                 more. If another replica has performed it, it goes on without a limit: it will end here, too
    promised     a replica that is asked, and has not performed it, ends it, takes it back, and will not perform it
                 before there is a verdict
    faulty       the same of a call that met ``Broken`` though the store works: which of them is to blame? Others are
                 not stopped: what they say when they have come so far tells
    verdict      a method of the framework whose calls are ordered: the first verdict counts, everywhere. "Not
                 performed" is said if all replicas that have a state have promised, and too few are left to have made
                 up the majority that an answer needs. "Performed" is said if one of them has performed it, and another
                 one has promised; and if those that have departed may have answered it

Why replicas do not differ: the first verdict is the same everywhere, and who has promised waits for it. Who has not
promised while all others had, was not in the group: its life is over, or ends here (``verdict``). Why nothing that was
answered is taken back: an answer needs a majority of all replicas that have performed it, and those that have promised
have not. Why it ends: a replica that is there performs the call, or promises when it is asked; one that is gone is not
asked. Whoever sees that nothing is decided asks again, so it does not matter which node ends meanwhile.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from framework.com.events import Response
from framework.com.receipt import CREC, majority, srec
from framework.errors import BadRequest, Broken, OboError
from framework.ids import Invocation, Replica, node_of, object_of
from framework.orb.backed.writing import Writing
from framework.orb.outcome import failure, stopped
from framework.orb.own import UNDECIDED, VERDICT, Which

if TYPE_CHECKING:
    from framework.com.core import Com
    from framework.orb.backed.resident import BackedResident
    from framework.orb.dispatch import Dispatch

log = logging.getLogger(__name__)

EVERY = 0.1  # seconds between two looks at what is being performed
LEAST = 0.2  # seconds that a call has, if nobody waits for it any more
APART = 0.25  # seconds between replicas that find the same call overdue: one of them is enough to ask
ANSWERS = 5.0  # seconds in which a replica says where it stands
LOOK = 0.01
MANY = 10_000  # verdicts, and cancelled calls, that are remembered

#: How a replica is asked.
SEES, PROMISES, FAULTY = "sees", "promises", "faulty"

#: Calls a method of the framework at those of some replicas of an object that are there.
Ask = Callable[..., Awaitable[Sequence[Response]]]
_told = msgspec.msgpack.Decoder(tuple[str, str])


class _Verdict(NamedTuple):
    part: int
    keep: bool
    why: str


class Verdicts:
    """Of one replica, in one life of its node. On the loop."""

    def __init__(self, resident: "BackedResident", com: "Com", dispatch: "Dispatch", ask: Ask) -> None:
        self._resident = resident
        self._com = com
        self._dispatch = dispatch
        self._ask = ask
        self._at = resident.replica
        self._late = com.directory.find(object_of(self._at)).replicas.index(self._at) * APART
        self._rounds: OrderedDict[str, int] = OrderedDict()  # how many verdicts there are on a call
        self.coming: dict[str, list[_Verdict]] = {}  # on calls that have not begun here
        self._cancelled: OrderedDict[Invocation, None] = OrderedDict()
        self._settling: dict[str, asyncio.Task[None]] = {}

    def close(self) -> None:
        for task in self._settling.values():
            task.cancel()

    # what is overdue here

    def look(self) -> None:
        """From time to time."""
        now = time.monotonic()
        self._resident.committer.look()
        work = self._resident.committer.performs
        if isinstance(work, Writing) and not work.halted and not work.unlimited:
            why = self._overdue(work, now)
            if why and _name(work) not in self._settling:
                self._begin(work, work.part, why, False)
        for reader in self._resident.reading(now, self._resident.store.limit):
            reader.end()

    def _overdue(self, work: Writing, now: float) -> str:
        """Why it has to end; empty if it may go on."""
        ran, limit = now - work.since, self._resident.store.limit
        if limit and ran > limit + self._late:
            return f"it was not over after {limit:g} s at {self._at}, the limit there"
        if ran < LEAST + self._late:
            return ""
        if work.envelope.deadline is not None and work.envelope.deadline < time.time():
            return f"the deadline of its caller has passed, and it was not over at {self._at}"
        if self._cancelled and work.caller in self._cancelled:
            return "its caller has cancelled it"
        return ""

    def cancelled(self, invocation: Invocation) -> None:
        """Nobody waits for this call any more. If it is under way, or comes, it has no time left."""
        self._cancelled[invocation] = None
        if len(self._cancelled) > MANY:
            self._cancelled.popitem(last=False)

    # what has ended here without a verdict

    def parked(self, work: Writing, fault: Broken | None) -> None:
        """The committer has taken it back, and does not perform it before it is entered again."""
        if self._resident.over:
            return
        work.parked = True
        if work.decided:
            self._resume(work)
            return
        work.halted = True
        if fault is not None:
            work.fault = fault
            log.warning("%s: %s fails: %s", self._at, work.method.where, fault)
            if _name(work) not in self._settling:
                self._begin(work, work.part, f"no replica can perform it: {fault}", True)

    def _resume(self, work: Writing) -> None:
        work.parked = work.halted = work.decided = False
        self._resident.committer.enter(work)

    def stop(self, work: Writing) -> None:
        """Its transaction is aborted, or it is for this replica alone, and nobody waits for it."""
        work.fail(0, failure(stopped(work.method.where)))
        self._decide(work)

    def _decide(self, work: Writing) -> None:
        work.decided = True
        if work.parked:
            self._resume(work)
        else:
            self._resident.committer.halt(work)

    # to decide

    def _begin(self, work: Writing, part: int, why: str, faulty: bool) -> None:
        name = _name(work)
        task = self._settling[name] = asyncio.ensure_future(self._settle(work, part, why, faulty))
        task.add_done_callback(lambda done: self._ended(name, done))

    def _ended(self, name: str, task: "asyncio.Task[None]") -> None:
        self._settling.pop(name, None)
        if not task.cancelled() and task.exception() is not None:
            log.error("nothing was decided on %s: a fault of the framework", name, exc_info=task.exception())

    async def _settle(self, work: Writing, part: int, why: str, faulty: bool) -> None:
        """Until there is a verdict, or it is over."""
        name, to = _name(work), _replicas(work)
        which = Which(name, str(work.known), self._rounds.get(name, 0))
        promised: set[Replica] = set()
        while not (self._resident.over or self._is_decided(which) or self.is_over(which)):
            for how in (FAULTY,) if faulty else (SEES, PROMISES):
                said = await self._asked(to, which, how)
                done = [at for at, (what, _) in said.items() if what == "done"]
                if done:
                    if faulty:
                        assert work.fault is not None
                        self._resident.fails(work.fault)
                    else:
                        await self._go_on(work, which, done[0])
                    return
                promised |= {at for at, (what, _) in said.items() if what == "promised"}
            if promised and promised.issuperset(self._there(to)):
                if enough(to, promised, self._cannot_have_it(work, to)):
                    log.warning("%s: %s (%s) is not performed: %s", self._at, work.method.where, name, why)
                    await self._say(to, which, part, False, why)
                else:  # it may have been answered, by replicas that have departed since
                    log.warning("%s: %s (%s) must be performed, though %s", self._at, work.method.where, name, why)
                    await self._say(to, which, 0, True, "a majority may have performed it")
            await asyncio.sleep(5 * LOOK)

    async def _go_on(self, work: Writing, which: Which, at: Replica) -> None:
        log.warning("%s: %s takes long here; %s has performed it", self._at, work.method.where, at)
        while not (self._resident.over or self._is_decided(which) or self.is_over(which)):
            if not work.halted:
                work.unlimited = True
                return
            await self._say(_replicas(work), which, 0, True, f"{at} has performed it")
            await asyncio.sleep(5 * LOOK)

    def _there(self, to: Sequence[Replica]) -> tuple[Replica, ...]:
        """Those that have a state. Who waits for one may wait for this very call to be over."""
        lives = self._com.lives
        return tuple([r for r in to if node_of(r) in lives.view.members and r not in lives.pending])

    def _cannot_have_it(self, work: Writing, to: Sequence[Replica]) -> set[Replica]:
        """Those that have had no state since the call was sent."""
        lives, sent = self._com.lives, work.effect.request.view
        return {r for r in to if r in lives.pending and 0 < (lives.view.life(node_of(r)) or 0) <= sent}

    async def _asked(self, to: Sequence[Replica], which: Which, how: str) -> dict[Replica, tuple[str, str]]:
        try:
            said = await self._ask(self._there(to), CREC, UNDECIDED, which, how)
        except OboError as error:
            log.info("%s: not all replicas say where they stand: %s", self._at, error)
            await asyncio.sleep(5 * LOOK)
            return {}
        return {r.replica: _told.decode(r.body) for r in said if r.status == "ok"}

    async def _say(self, to: Sequence[Replica], which: Which, part: int, keep: bool, why: str) -> None:
        try:
            await self._ask(to, srec(self._at), VERDICT, which, part, keep, why)
        except OboError as error:
            log.info("%s: the verdict is perhaps not known everywhere: %s", self._at, error)

    # what others ask and say

    async def undecided(self, which: Which, how: str) -> tuple[str, str]:
        """Where this replica stands: *done*, *promised*, *running*, *decided* already; *unknown* if it cannot tell."""
        until = time.monotonic() + ANSWERS
        while time.monotonic() < until and not self._resident.over:
            if self._rounds.get(which.invocation, 0) > which.round:
                return "decided", ""
            if self._rounds.get(which.invocation, 0) == which.round:
                found = self._stands(which, how)
                if found is not None:
                    return found
            await asyncio.sleep(LOOK)
        return "unknown", ""

    def _stands(self, which: Which, how: str) -> tuple[str, str] | None:
        """None: it is to be seen."""
        work = self._find(which)
        if work is None:
            return ("done", "") if self.is_over(which) else ("running", "") if how == SEES else None
        if work.parked:
            return "promised", str(work.fault or "")
        if how == SEES or work.unlimited:
            return "running", ""
        if how == PROMISES and not work.halted:
            self._resident.committer.halt(work)
        return None

    async def verdict(self, which: Which, part: int, keep: bool, why: str) -> bool:
        """The first one of its round counts. They come in the same order to all replicas."""
        if self._is_decided(which):
            return False
        self._rounds[which.invocation] = which.round + 1
        if len(self._rounds) > MANY:
            self._rounds.popitem(last=False)
        verdict = _Verdict(part, keep, why)
        work = self._find(which)
        if work is not None:
            self._apply(work, verdict)
        elif not self.is_over(which):
            self.coming.setdefault(which.invocation, []).append(verdict)
            if len(self.coming) > MANY:
                del self.coming[next(iter(self.coming))]
        elif not keep and self._has_performed(which):
            self._resident.fails(Broken(f"{which.invocation} was performed here, and the others have ended it: {why}"))
        return True

    def begun(self, work: Writing) -> None:
        """A call on which there were verdicts before it came to its turn here."""
        for verdict in self.coming.pop(_name(work), ()):
            self._note(work, verdict)

    def _note(self, work: Writing, verdict: _Verdict) -> None:
        if verdict.keep:
            work.unlimited = True
        else:
            work.fail(verdict.part, failure(self._resident.store.ended(verdict.why)))

    def _apply(self, work: Writing, verdict: _Verdict) -> None:
        self._note(work, verdict)
        if work.halted or not verdict.keep:
            self._decide(work)

    # what is known here

    def _is_decided(self, which: Which) -> bool:
        return self._rounds.get(which.invocation, 0) > which.round

    def _find(self, which: Which) -> Writing | None:
        found = self._dispatch.find(self._at, _parsed(which.invocation))
        return found if isinstance(found, Writing) else None

    def is_over(self, which: Which) -> bool:
        """Has it been performed here, well or not?"""
        invocation = _parsed(which.invocation)
        if any(i.invocation == invocation for i in self._com.instances.values() if i.sid.replica == self._at):
            return False
        return _parsed(which.known) in self._com.hosts[self._at].replies

    def _has_performed(self, which: Which) -> bool:
        reply = self._com.hosts[self._at].replies.get(_parsed(which.known))
        return reply is None or reply.outcome == "ok"


def enough(every: Sequence[str], promised: Collection[str], never: Collection[str] = ()) -> bool:
    """May be said that nobody performs it? So many have promised, or have ``never`` been able to perform it, that the
    others are no majority: nobody was told that it was performed."""
    return sum(at not in promised and at not in never for at in every) < majority(len(every)).r


def _parsed(text: str) -> Invocation:
    try:
        return Invocation.parse(text)
    except BadRequest:
        return Invocation(text, ())


def _replicas(work: Writing) -> tuple[Replica, ...]:
    """Those that are to perform it."""
    mine = object_of(work.effect.replica)
    return tuple([at for at, _ in work.effect.request.dests if object_of(at) == mine])


def _name(work: Writing) -> str:
    return str(work.effect.request.invocation)
