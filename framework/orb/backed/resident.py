"""A backed replica in one life of its node: what is performed but not committed, and who waits for that.

A method that only reads runs beside the committer and sees what is committed. The com layer starts it when what it
conflicts with has been performed; so it waits here, if that is not committed yet. It waits for nothing else. One whose
own transaction has changed the object reads in the committer's thread, where that can be seen.
"""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from framework.com.core import Com
from framework.com.events import Completed, Deliver, Safe, Settle
from framework.declare import Backed, Method
from framework.errors import Broken
from framework.footprint import Footprint, Relation
from framework.ids import Invocation, Replica, Sid
from framework.orb.backed.committer import Check, Committer, Moment, Work
from framework.orb.backed.committer import Head as HeadWork
from framework.orb.backed.parts import Settling
from framework.orb.backed.verdicts import LEAST, Ask, Verdicts
from framework.orb.backed.writing import Convoy, Writing
from framework.orb.durable.entries import Entry, Head, Settled
from framework.orb.durable.noting import entry_of
from framework.orb.messages import Envelope
from framework.orb.moving.captures import Capture
from framework.orb.own import Which
from framework.orb.performance import Instance, Performance, Resident
from framework.orb.recent import HEAD
from framework.orb.stage import Stage
from framework.orb.tracing import Tracing
from framework.orb.turn import Lane, Turn
from framework.orb.workers import Workers

if TYPE_CHECKING:
    from framework.orb.dispatch import Dispatch

RECORDS, BYTES = 20_000, 16 << 20  # of entries, after which the notes are begun anew
_AROUND = 200  # bytes of an entry beside arguments and result, about
AGAIN = 1.0  # seconds until that is tried again


def _at_once(act: Callable[[], None]) -> None:
    act()


def _nothing() -> None:
    pass


def _size(entry: Entry | Settled) -> int:
    return len(entry.request.args) + len(entry.body) if isinstance(entry, Entry) else 0


class BackedResident(Resident):
    def __init__(self, replica: Replica, target: Backed, workers: Workers, relation: Relation) -> None:
        super().__init__(target, workers, durable=True, tracked=False)
        self.replica = replica
        self.store = target
        self.committer: Committer  # from ``begin`` on
        self._relation = relation
        self.held: dict[Sid, Writing] = {}  # type: ignore[assignment]  # prepared (parts.py)
        self._unsafe: dict[Work, tuple[str, ...]] = {}  # performed and not committed: the places it has touched
        self._last: dict[str, Work] = {}  # by place: the one of them that is committed last
        self._readers: list[tuple[set[Work], _Reader]] = []  # who waits until these are committed
        #: On the loop: a transaction is committed. ``act`` is to be called, now or later, when that may be in the
        #: store: until then nothing more is committed there.
        self.may_settle: Callable[[Callable[[], None]], None] = _at_once
        self._entries = self._bytes = 0  # since the last head
        self._head = 0  # bytes of that
        self._share = 1.0  # of what is allowed of them, this time
        self._closing = False  # for a head
        self._beside: dict[int, Beside] = {}  # what only reads, by the thread that performs it
        self._ending = threading.Lock()  # held while that changes, and while one of them is ended

    def begin(
        self,
        stage: Stage,
        com: Com,
        tracing: Tracing | None,
        dispatch: "Dispatch",
        failed: Callable[[Replica, Exception], None],
        ask: Ask,
    ) -> None:
        """A life begins. ``ask`` calls methods of the framework at all replicas of this object."""
        self._stage = stage
        self._com = com
        self._tracing = tracing
        self._dispatch = dispatch
        name = f"obo-{self.replica}-commit"
        self._failed = partial(failed, self.replica)
        self.verdicts = Verdicts(self, com, dispatch, ask)
        self.committer = Committer(name, self.store, stage, self._safe, self._failed, self.verdicts.parked)

    def breaks(self, error: BaseException) -> bool:
        if not isinstance(error, Broken):
            return False
        self._stage.on_loop(lambda: self._failed(error))
        return True

    def fails(self, error: Broken) -> None:
        """On the loop: this replica is not what it should be. Its node leaves, and comes back with a fresh state."""
        self._failed(error)

    # what only reads, and for how long

    @contextmanager
    def beside(self, envelope: Envelope, wanted: Callable[[], bool]) -> Iterator[None]:
        ident = threading.get_ident()
        mine = Beside(self, ident, envelope, wanted)
        self._beside[ident] = mine
        try:
            yield
        finally:
            with self._ending:
                del self._beside[ident]

    def reading(self, now: float, limit: float) -> list["Beside"]:
        """Return those whose time is over."""
        return [one for one in tuple(self._beside.values()) if one.is_late(now, limit)]

    def end_reading(self, one: "Beside") -> None:
        """In a thread."""
        with self._ending:
            if self._beside.get(one.ident) is one:
                self.store.interrupt(one.ident)

    async def check(self) -> None:
        """Return when the committer has found that the store works. If it does not, the life is over."""
        works: asyncio.Future[None] = self._stage.loop.create_future()
        self.committer.enter(Check(lambda: None if works.done() else works.set_result(None)))
        await works

    async def undecided(self, which: Which, how: str) -> tuple[str, str]:
        return await self.verdicts.undecided(which, how)

    async def verdict(self, which: Which, part: int, keep: bool, why: str) -> bool:
        return await self.verdicts.verdict(which, part, keep, why)

    # instances

    def performance(self, stage: Stage, effect: Deliver, method: Method, envelope: Envelope) -> Instance:
        if method.readonly and not self._has_changed(effect.tran):
            return _Reader(stage, self, effect, method, envelope)
        return self._begun(Writing(self, effect, method, envelope, stage.loop.time()))

    def convoy(self, stage: Stage, effect: Deliver, method: Method, envelopes: Sequence[Envelope]) -> Instance:
        return self._begun(Convoy(self, effect, method, envelopes, stage.loop.time()))

    def _begun(self, writing: Writing) -> Writing:
        if self.verdicts.coming:
            self.verdicts.begun(writing)
        return writing

    def hold(self, reader: "_Reader") -> bool:
        """True: it is started when what it must see is committed."""
        those = self.uncommitted(reader.effect.footprint)
        if those:
            self._readers.append((those, reader))
        return bool(those)

    def uncommitted(self, footprint: Footprint) -> set[Work]:
        """What was performed and not committed, of all that such a call must see."""
        if not self._last:
            return set()
        meets = self._relation.slots(footprint)[1]
        return {self._last[slot] for slot in meets if slot in self._last}

    def _has_changed(self, tran: Invocation | None) -> bool:
        return tran is not None and any(part.effect.tran == tran for part in self.held.values())

    def prepare(self, writing: Writing, completed: Completed) -> None:
        """On the loop, before anybody hears of it: if it is part of a transaction, that decides on it."""
        if completed.ok and writing.changes and writing.effect.tran is not None:
            self.held[completed.sid] = writing

    def take_note(self, writing: Writing, completed: Completed) -> None:
        """On the loop. What conflicts with it may begin; it does so in the same batch, perhaps."""
        entries = [entry_of(self._com, self._tracing, writing, completed)] if writing.changes else []
        self._follow(writing, self._places(writing) if writing.effect.tran is None else ())
        self._stage.feed(completed)
        self._note(entries)

    def _places(self, writing: Writing) -> tuple[str, ...]:
        return self._relation.places(writing.effect.footprint)

    def _follow(self, work: Work, places: tuple[str, ...]) -> None:
        """Who reads there waits until this is committed. What is settled is followed when it enters, and another work
        when it has been performed: that may be after one that is committed later."""
        self._unsafe[work] = places
        for slot in places:
            if slot not in self._last or self._last[slot].order < work.order:
                self._last[slot] = work

    def _note(self, entries: Sequence[Entry | Settled]) -> None:
        self._entries += len(entries)
        self._bytes += sum([_AROUND + _size(entry) for entry in entries])
        self.committer.note(*entries)

    def settle(self, effect: Settle) -> Sequence[Writing]:
        """On the loop. What is in the state from now on, for all that the com layer delivers after this. A commit is
        one of all that is held of its transaction."""
        part = self.held.get(effect.sid)
        if part is None:
            return ()
        name = part.effect.tran
        parts = [p for p in self.held.values() if p.effect.tran == name] if effect.commit else [part]
        for each in parts:
            del self.held[each.effect.sid]
        settling = Settling(self, parts, effect.commit)
        self.committer.enter(settling)
        self._follow(settling, tuple(chain.from_iterable(map(self._places, parts))) if effect.commit else ())
        if not effect.commit:
            return ()
        self.may_settle(lambda: self.committer.allow(settling))
        return parts

    def note_settled(self, settling: Settling) -> None:
        """On the loop: it has been performed."""
        ticket = self._tracing.ticket(self.replica) if self._tracing is not None else ""
        invocations = [part.effect.request.invocation for part in settling.parts]
        self._note([Settled(i, settling.name, settling.commit, ticket) for i in invocations])

    def _safe(self, done: Sequence[Work]) -> None:
        if self._stage.stopped:
            return
        for work in done:
            for slot in self._unsafe.pop(work):
                if self._last.get(slot) is work:
                    del self._last[slot]
        self._stage.feed(Safe(tuple([work.effect.sid for work in done if isinstance(work, Writing)])))
        if self._readers:
            self._let_read(set(done))
        self._dispatch.look(self.replica)
        if not self._closing and self._is_much(1 if not self.held else 2):
            self._closing = True
            self._dispatch.when_quiet(self.replica, self._renew)

    def _is_much(self, times: float) -> bool:
        """To begin the notes anew, what is held must end, and others wait for that: it is put off for a while. The last
        requests are written once more with a head: where they are large, that must not be as much again each time."""
        times *= self._share
        return self._entries > times * RECORDS or self._bytes > times * max(BYTES, 2 * self._head)

    def _let_read(self, safe: set[Work]) -> None:
        waiting, self._readers = self._readers, []
        for those, reader in waiting:
            those -= safe
            if those:
                self._readers.append((those, reader))
            else:
                reader.go()

    @property
    def readers(self) -> Turn | Lane:
        return self.lane

    @property
    def waits(self) -> bool:
        """Is something performed that is not committed, or not decided on?"""
        return bool(self._unsafe or self.held)

    # notes of the framework

    def _renew(self, quiet: bool) -> None:
        """Nothing is being performed or held, all is committed: the notes so far can be told in short."""
        if not quiet:
            self._stage.loop.call_later(AGAIN, self._reopen)
        else:
            self._closing = False
            ticket = self._tracing.ticket(self.replica) if self._tracing is not None else ""
            self.note_head(self._com.handover.keep(self.replica), ticket, lambda: None)

    def _reopen(self) -> None:
        self._closing = False

    def moment(self, taken: Callable[[Capture], None]) -> None:
        """The state as of now, with all that the com layer takes for done: ``taken`` hears of it in a later turn."""

        def told(found: Capture) -> None:
            if self._stage.stopped:
                found.close()
            else:
                taken(self.watched(found))

        self.committer.enter(Moment(told))

    def watched(self, found: Capture) -> Capture:
        """Return a state of this store, for others. If it cannot be read, the store is checked: is it the fault?"""
        return _Watched(found, lambda: self._stage.on_loop(lambda: self.committer.enter(Check(_nothing))))

    def note_head(self, part: bytes, ticket: str, done: Callable[[], None]) -> None:
        """The state is what it is now, and the com layer knows this of it. What is performed from here on comes after
        it in the store, too."""
        self._entries = self._bytes = 0
        # Replicas have the same entries: if all of them did this at once nobody would have a majority meanwhile.
        self._share = random.uniform(0.6, 1.0)
        head = Head(self._com.view, self.changes, part, ticket, self.recent.requests(HEAD), self.position)
        self._head = sum([_AROUND + len(request.args) for request in head.done])
        self.committer.enter(HeadWork(head, done))

    def adopt(self, chunks: Iterable[bytes]) -> None:
        self.store.set_state(chunks)

    def close(self) -> None:
        """The life is over. What is not committed did not happen; of what is held the store knows."""
        self.over = True
        self.held.clear()
        self.verdicts.close()
        self.committer.stop()
        for one in tuple(self._beside.values()):
            one.end()

    def footprint(self, method: Method, values: tuple[object, ...]) -> tuple[Footprint, int | None]:
        touched = self.store.touched(method.name, values)
        return Footprint(method.name, touched.keys, method.readonly), touched.basis


class Beside:
    """A method that only reads, while a thread performs it."""

    def __init__(self, resident: BackedResident, ident: int, envelope: Envelope, wanted: Callable[[], bool]) -> None:
        self.ident = ident
        self._resident = resident
        self._deadline = envelope.deadline
        self._wanted = wanted
        self._since = time.monotonic()
        self._ended = 0.0  # when that was tried last

    def is_late(self, now: float, limit: float) -> bool:
        ran = now - self._since
        if now < self._ended + AGAIN:
            return False
        if limit and ran > limit:
            return True
        return ran > LEAST and (not self._wanted() or (self._deadline is not None and self._deadline < time.time()))

    def end(self) -> None:
        """Nobody waits for it any more, or it has no more time. It may take more than one to end it."""
        self._ended = time.monotonic()
        threading.Thread(target=self._resident.end_reading, args=(self,), name="obo-end", daemon=True).start()


class _Watched:
    """A capture that says when it cannot be read."""

    def __init__(self, found: Capture, failed: Callable[[], None]) -> None:
        self._found = found
        self._failed = failed

    def chunks(self) -> Iterator[bytes]:
        try:
            yield from self._found.chunks()
        except Exception:
            self._failed()
            raise

    def close(self) -> None:
        self._found.close()


class _Reader(Performance):
    """An instance that only reads."""

    _answered = True

    def start(self) -> "asyncio.Task[None] | None":
        assert isinstance(self.resident, BackedResident)
        return None if self.resident.hold(self) else super().start()

    def go(self) -> None:
        super().start()

    def perform(self) -> None:
        assert isinstance(self.resident, BackedResident)
        with self.resident.beside(self.envelope, lambda: not self.cancelled):
            super().perform()

    def _raised(self, error: BaseException) -> tuple[bool, bytes]:
        self._answered = not self.resident.breaks(error)
        return super()._raised(error)

    def _over(self, ok: bool, packed: bytes) -> None:
        if self._answered:
            super()._over(ok, packed)
