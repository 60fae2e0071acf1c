"""A backed replica in one life of its node: what is performed but not committed, and who waits for that.

A method that only reads runs beside the committer and sees what is committed. The com layer starts it when what it
conflicts with has been performed; so it waits here, if that is not committed yet. It waits for nothing else.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from framework.com.core import Com
from framework.com.events import Completed, Deliver, Safe
from framework.declare import Backed, Method
from framework.footprint import Footprint, Relation
from framework.ids import Replica, Sid
from framework.orb.backed.committer import Committer
from framework.orb.backed.committer import Head as HeadWork
from framework.orb.backed.writing import Writing
from framework.orb.durable.entries import Head, encode
from framework.orb.durable.noting import entry_of
from framework.orb.messages import Envelope
from framework.orb.performance import Instance, Performance, Resident
from framework.orb.stage import Stage
from framework.orb.tracing import Tracing
from framework.orb.turn import Lane, Turn
from framework.orb.workers import Workers

if TYPE_CHECKING:
    from framework.orb.dispatch import Dispatch

RECORDS, BYTES = 20_000, 16 << 20  # of entries, after which the notes are begun anew


class BackedResident(Resident):
    def __init__(self, replica: Replica, target: Backed, workers: Workers, relation: Relation) -> None:
        super().__init__(target, workers, durable=True, tracked=False)
        self.replica = replica
        self.store = target
        self.committer: Committer  # from ``begin`` on
        self._relation = relation
        self._unsafe: dict[Sid, tuple[str, ...]] = {}  # performed and not committed: the places it has touched
        self._last: dict[str, Sid] = {}  # by place: the last of them
        self._readers: list[tuple[set[Sid], _Reader]] = []  # who waits until these are committed
        self._entries = self._bytes = 0  # since the last head
        self._closing = False  # for a head

    def begin(
        self,
        stage: Stage,
        com: Com,
        tracing: Tracing | None,
        dispatch: "Dispatch",
        failed: Callable[[Replica, Exception], None],
    ) -> None:
        """A life begins."""
        self._stage = stage
        self._com = com
        self._tracing = tracing
        self._dispatch = dispatch
        name = f"obo-{self.replica}-commit"
        self.committer = Committer(name, self.store, stage, self._safe, lambda error: failed(self.replica, error))

    # instances

    def performance(self, stage: Stage, effect: Deliver, method: Method, envelope: Envelope) -> Instance:
        if method.readonly:
            return _Reader(stage, self, effect, method, envelope)
        return Writing(self, effect, method, envelope, stage.loop.time())

    def hold(self, reader: "_Reader") -> bool:
        """True: it is started when what it must see is committed."""
        if not self._last:
            return False
        meets = self._relation.slots(reader.effect.footprint)[1]
        sids = {self._last[slot] for slot in meets if slot in self._last}
        if sids:
            self._readers.append((sids, reader))
        return bool(sids)

    def take_note(self, writing: Writing, completed: Completed) -> None:
        """On the loop. What conflicts with it may begin; it does so in the same batch, perhaps."""
        entry = encode(entry_of(self._com, self._tracing, writing, completed))
        places = self._relation.slots(writing.effect.footprint)[0]
        self._unsafe[completed.sid] = places
        for slot in places:
            self._last[slot] = completed.sid
        self._entries += 1
        self._bytes += len(entry)
        self._stage.feed(completed)
        self.committer.note(entry)

    def _safe(self, sids: Sequence[Sid]) -> None:
        if self._stage.stopped:
            return
        for sid in sids:
            for slot in self._unsafe.pop(sid):
                if self._last.get(slot) == sid:
                    del self._last[slot]
        self._stage.feed(Safe(tuple(sids)))
        if self._readers:
            self._let_read(set(sids))
        self._dispatch.look(self.replica)
        if not self._closing and (self._entries > RECORDS or self._bytes > BYTES):
            self._closing = True
            self._dispatch.when_quiet(self.replica, self._renew)

    def _let_read(self, safe: set[Sid]) -> None:
        waiting, self._readers = self._readers, []
        for sids, reader in waiting:
            sids -= safe
            if sids:
                self._readers.append((sids, reader))
            else:
                reader.go()

    @property
    def readers(self) -> Turn | Lane:
        return self.lane

    @property
    def waits(self) -> bool:
        """Is something performed that is not committed?"""
        return bool(self._unsafe)

    # notes of the framework

    def _renew(self, quiet: bool) -> None:
        """Nothing is being performed, all is committed: the notes so far can be told in short."""
        self._closing = False
        if quiet:
            ticket = self._tracing.ticket(self.replica) if self._tracing is not None else ""
            self.note_head(self._com.handover.keep(self.replica), ticket, lambda: None)

    def note_head(self, part: bytes, ticket: str, done: Callable[[], None]) -> None:
        """The state is what it is now, and the com layer knows this of it. What is performed from here on comes after
        it in the store, too."""
        self._entries = self._bytes = 0
        head = Head(self._com.view, self.changes, part, ticket, self.recent.requests()[-1000:])
        self.committer.enter(HeadWork(encode(head), done))

    def adopt(self, chunks: Iterable[bytes]) -> None:
        self.store.set_state(chunks)

    def close(self) -> None:
        """The life is over. What is not committed did not happen."""
        self.over = True
        self.committer.stop()

    def footprint(self, method: Method, values: tuple[object, ...]) -> tuple[Footprint, int | None]:
        touched = self.store.touched(method.name, values)
        return Footprint(method.name, touched.keys, method.readonly), touched.basis


class _Reader(Performance):
    """An instance that only reads."""

    def start(self) -> "asyncio.Task[None] | None":
        assert isinstance(self.resident, BackedResident)
        return None if self.resident.hold(self) else super().start()

    def go(self) -> None:
        super().start()
