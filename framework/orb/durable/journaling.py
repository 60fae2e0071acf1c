"""One life writes down what its durable replicas do.

An instance that has been performed goes to the journal at once, and is over for the com layer: what conflicts with it
begins, and shares a sync with it. It is safe, and others are told, when it is on disk. So is one that only reads: what
it has seen is on disk. And an instance sends nothing to others before what it follows is on disk (performance.py).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from framework.com.core import Com
from framework.com.event import Decided
from framework.com.events import Completed
from framework.ids import Replica, Sid
from framework.orb.durable.disk import Disk
from framework.orb.durable.entries import Entry, Head, Settled, encode
from framework.orb.durable.noting import entry_of, outcome_of, settled_of
from framework.orb.moving import capture
from framework.orb.performance import Instance, Resident
from framework.orb.recent import HEAD
from framework.orb.tracing import Tracing

if TYPE_CHECKING:
    from framework.orb.dispatch import Dispatch

log = logging.getLogger(__name__)

RECORDS, BYTES = 50_000, 64 << 20  # of a journal, after which a snapshot is taken


class Journaling:
    def __init__(
        self, disk: Disk, com: Com, tracing: Tracing | None, dispatch: "Dispatch", fail: Callable[[Exception], None]
    ) -> None:
        self._disk = disk
        self._com = com
        self._tracing = tracing
        self._dispatch = dispatch
        self._fail = fail
        self._unsafe: dict[Replica, set[int]] = {r: set() for r in disk.journals}  # records not known to be on disk
        self._on_disk: list[tuple[Sid, int]] = []  # the com layer hears of all that one commit brought in one go
        self._bytes = dict.fromkeys(disk.journals, 0)  # since the last snapshot
        self._copying: set[Replica] = set()  # a snapshot is being taken or written
        self._ready: set[Replica] = set()  # these have a state, and it is on disk
        self._tasks: set[asyncio.Task[None]] = set()

    def __contains__(self, replica: Replica) -> bool:
        return replica in self._disk.journals

    def remember(self) -> None:
        """The view has changed. It is on disk before anything that a durable replica does in this view: it goes into
        the same round of the writer, or an earlier one."""
        self._start(self._disk.remember(self._com.view, sorted(self._ready)))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not self._dispatch.stopped:
            self._fail(error if isinstance(error, Exception) else RuntimeError(str(error)))

    # what is performed

    def note(self, performance: Instance, completed: Completed) -> Completed | None:
        """An instance has been performed: what the com layer is to hear of it. None: the node has failed."""
        replica = performance.effect.replica
        if replica not in self:
            return completed
        journal = self._disk.journals[replica]
        if performance.method.readonly:
            if not self.waits(replica):
                return completed
            position = journal.last
        else:
            entry = entry_of(self._com, self._tracing, performance, completed)
            if entry.tran is not None:
                performance.noted = entry
            found = self._append(replica, entry)
            if found is None:
                return None
            position = found
        self._watch(completed.sid, position)
        return msgspec.structs.replace(completed, safe=False)

    def decided(self, effect: Decided) -> None:
        """An outcome, or a vote, was delivered to tran."""
        position = self._append(effect.replica, outcome_of(self._com, self._tracing, effect))
        if position is not None:
            self._watch(effect.sid, position)

    def after_outcomes(self, act: Callable[[], None]) -> None:
        """``act`` when every outcome that tran of this node has heard is on disk. Until then no state with what was
        committed may be where an outcome cannot be read from it, as from a journal: elsewhere, or in a snapshot."""
        at = self._com.trans.at
        if not self.waits(at):
            act()
            return
        self.on_disk(at, self.position(at)).add_done_callback(lambda done: _if_done(done, act))

    def settle(self, performance: Instance, commit: bool) -> None:
        """The transaction of an instance is over. What follows it stands behind it in the journal, and a read that does
        waits until it is there."""
        replica, noted = performance.effect.replica, performance.noted
        if replica in self and noted is not None and noted.tran is not None:
            position = self._append(replica, settled_of(self._tracing, performance, noted.tran, commit))
            if position is not None:
                self._watch(performance.effect.sid, position)

    def _append(self, replica: Replica, record: Entry | Settled) -> int | None:
        data = encode(record)
        try:
            position = self._disk.journals[replica].append(data)
        except Exception as error:
            self._fail(error)
            return None
        self._bytes[replica] += len(data)
        return position

    def _watch(self, sid: Sid, position: int) -> None:
        self._unsafe[sid.replica].add(position)
        future = self._disk.journals[sid.replica].committed(position)
        future.add_done_callback(lambda done: self._committed(done, sid, position))

    def _committed(self, done: "asyncio.Future[None]", sid: Sid, position: int) -> None:
        error = None if done.cancelled() else done.exception()
        if self._dispatch.stopped:
            return
        if error is not None:
            self._fail(error if isinstance(error, Exception) else RuntimeError(str(error)))
            return
        if not self._on_disk:
            asyncio.get_running_loop().call_soon(self._tell)
        self._on_disk.append((sid, position))

    def _tell(self) -> None:
        done, self._on_disk = self._on_disk, []
        sids = tuple([sid for sid, _ in done])
        if self._dispatch.stopped:
            return
        self._dispatch.safe(sids)
        for sid, position in done:
            self._unsafe[sid.replica].discard(position)
        for replica in dict.fromkeys(sid.replica for sid in sids):
            self._dispatch.look(replica)
            self._look(replica)

    def waits(self, replica: Replica) -> bool:
        """Has something been performed there that is not known to be on disk?"""
        return bool(self._unsafe.get(replica))

    def position(self, replica: Replica) -> int:
        """Of the last record there that is not known to be on disk; 0 if all are."""
        return self._disk.journals[replica].last if self.waits(replica) else 0

    def on_disk(self, replica: Replica, position: int) -> "asyncio.Future[None]":
        """Done when this record is."""
        return self._disk.journals[replica].committed(position)

    # snapshots

    def _look(self, replica: Replica) -> None:
        journal = self._disk.journals[replica]
        much = journal.last - journal.base > RECORDS or self._bytes[replica] > BYTES
        if much and replica not in self._copying:
            self._copying.add(replica)
            self._dispatch.when_quiet(replica, lambda quiet: self._checkpoint(replica, quiet))

    def _checkpoint(self, replica: Replica, quiet: bool) -> None:
        """Nothing is being performed on it now. (Or it did not come to that: another time.)"""
        journal = self._disk.journals[replica]
        if not quiet:
            asyncio.get_running_loop().call_later(1.0, self._copying.discard, replica)
            return
        resident = self._dispatch.residents[replica]
        ticket = self._tracing.ticket(replica) if self._tracing is not None else ""
        head = self._head(resident, self._com.handover.keep(replica), ticket)
        self._bytes[replica] = 0
        taken = capture(resident.object)
        position = journal.last

        def write() -> None:
            done = journal.checkpoint(_chunks(head, taken.chunks, taken.close), position)
            done.add_done_callback(lambda future: self._written(future, replica, position))

        self.after_outcomes(write)

    def _written(self, done: "asyncio.Future[None]", replica: Replica, position: int) -> None:
        self._copying.discard(replica)
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("%s: no snapshot, the journal goes on growing: %s", replica, error)
        else:
            log.info("%s: a snapshot after %d records", replica, position)

    def _head(self, resident: Resident, part: bytes, ticket: str) -> Head:
        done = resident.recent.requests(HEAD)
        return Head(self._com.view, resident.changes, part, ticket, done, resident.position)

    # states that are taken

    def took(self, replica: Replica, resident: Resident, part: bytes, ticket: str) -> None:
        """Before Take: its state is this one now. What it performs from here on stands on it."""
        journal = self._disk.journals[replica]
        if not journal.last and not part:
            self.has(replica)  # nothing is the initial state
            return
        taken = capture(resident.object)
        self._bytes[replica] = 0
        chunks = _chunks(self._head(resident, part, ticket), taken.chunks, taken.close)
        try:
            done = self._disk.adopting[replica] = journal.adopt(chunks)
        except Exception as error:
            self._fail(error)
            return
        self._start(self._adopted(replica, done))

    async def _adopted(self, replica: Replica, done: "asyncio.Future[None]") -> None:
        await done
        self.has(replica)

    async def settled(self, replica: Replica) -> None:
        """No state is on its way to the disk, not even one of an earlier life: then the next one can be taken."""
        if replica in self._disk.adopting:
            await asyncio.wait((self._disk.adopting[replica],))

    def has(self, replica: Replica) -> None:
        """It has a state, and that is on disk."""
        self._ready.add(replica)
        if not self._dispatch.stopped:
            self.remember()


def _if_done(done: "asyncio.Future[None]", act: Callable[[], None]) -> None:
    """If it has failed, the node does."""
    if not done.cancelled() and done.exception() is None:
        act()


def _chunks(head: Head, chunks: Callable[[], Iterator[bytes]], close: Callable[[], None]) -> Iterator[bytes]:
    try:
        yield from chain((encode(head),), chunks())
    finally:
        close()
