"""The journal of one replica: records in sequence, and the snapshot they stand on.

Positions count from 1 for as long as the directory lives; 0 is before the first record. Files: see ``segments`` and
``snapshots``. Records are appended by the event loop, written by the thread of ``writer``; snapshots are written by a
third thread, beside both.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from itertools import chain

import msgspec

from framework.errors import BadRequest
from framework.store import segments, snapshots
from framework.store.commits import Commits, Done, Told, tell
from framework.store.disk import Disk
from framework.store.frames import LONGEST, RECORD, SegmentHead, encode_frame, encode_head, salt, seed_of
from framework.store.problems import StoreFailed
from framework.store.replica import Found
from framework.store.segments import Segment
from framework.store.writer import Writer

log = logging.getLogger(__name__)

SEGMENT_BYTES = 64 << 20


class Loaded(msgspec.Struct):
    """``snapshot``: chunks of the state as of position ``base`` (None: there is none, start with the initial state).
    ``records``: position and bytes of each record after it, up to ``position``."""

    snapshot: Iterator[bytes] | None
    base: int
    records: Iterator[tuple[int, bytes]]
    position: int


class Journal(Commits):
    """Made by ``Store.journal``. ``last`` is the position of the last record appended, ``durable`` of the last one on
    disk."""

    def __init__(self, found: Found, disk: Disk, writer: Writer, copier: Executor, segment_bytes: int) -> None:
        super().__init__(writer.lock, found.position)
        self.replica = found.replica
        self.base = found.base
        self.directory = found.directory
        self._found: Found | None = found
        self._disk, self._writer, self._copier, self._segment_bytes = disk, writer, copier, segment_bytes
        self._closed = found.segments[:-1]  # parts that are complete
        self._open = found.segments[-1] if found.segments else None
        self._fd = disk.open(self._open.path) if self._open else -1
        self._pending: list[bytes] = []
        self._taken: list[bytes] = []
        self._written = b""
        self._hold: int | None = None  # records after this one wait for a snapshot that they stand on
        self._copying = threading.Lock()
        self._retired = False
        self.backlog = 0  # bytes that are not on disk yet

    def load(self) -> Loaded:
        """What was found at opening. Read it before anything is appended: later it may be gone."""
        found = self._found
        if found is None:
            raise BadRequest(f"{self.replica}: the journal is loaded before the first append or checkpoint, not after")
        chunks = snapshots.read(found.snapshot, found.replica) if found.snapshot else None
        records = chain.from_iterable(segments.records(s, found.base) for s in found.segments)
        return Loaded(chunks, found.base, records, found.position)

    def append(self, record: bytes) -> int:
        """Returns its position. Never waits for the disk: see ``committed`` for that."""
        if len(record) > LONGEST:
            raise BadRequest(f"{self.replica}: {len(record)} bytes in one record; {LONGEST} at most")
        with self._lock:
            if self.failure:
                raise StoreFailed(self.failure)
            self._found = None
            self.last += 1
            self.backlog += len(record)
            self._pending.append(record)
            self._writer.wake_locked(self)
            return self.last

    def checkpoint(self, chunks: Iterable[bytes], position: int) -> Done:
        """Writes the state as of this position while records are appended; then drops what lies wholly before it.

        The chunks are taken in another thread. If it fails, the journal goes on as it was."""
        self._check_place(position)
        return asyncio.get_running_loop().run_in_executor(self._copier, self.checkpoint_now, chunks, position)

    def checkpoint_now(self, chunks: Iterable[bytes], position: int) -> None:
        """The same for a thread, which is blocked so long."""
        self.wait(position)  # a snapshot is proof that all before it was confirmed
        with self._copying:
            if self._retired:
                raise StoreFailed(self.failure)
            self._check_place(position)
            self._found = None
            try:
                snapshots.write(self._disk, self.directory, self.replica, position, chunks)
            except OSError as e:
                raise StoreFailed(f"{self.directory}: the snapshot at {position} was not written: {e}") from e
            self._drop_before(position)

    def _check_place(self, position: int) -> None:
        """An older snapshot must not take the place of a newer one: the records between them are gone."""
        if not self.base <= position <= self.last:
            raise BadRequest(f"{self.replica}: a checkpoint at {position}; it must be from {self.base} to {self.last}")

    def adopt(self, chunks: Iterable[bytes]) -> Done:
        """The state comes from elsewhere: it takes the place of all up to now. Records that are appended from now on
        stand on it: they are written when it is safe. If it fails, the journal fails."""
        position = self.hold()
        return asyncio.get_running_loop().run_in_executor(self._copier, self.adopt_now, chunks, position)

    def hold(self) -> int:
        with self._lock:
            if self.failure:
                raise StoreFailed(self.failure)
            if self._hold is not None:
                raise BadRequest(f"{self.replica}: a state is being taken over already")
            self._hold = self.last
            return self.last

    def adopt_now(self, chunks: Iterable[bytes], position: int) -> None:
        """For a thread, after ``hold``."""
        try:
            self.checkpoint_now(chunks, position)
        except BaseException as e:
            with self._writer.busy, self._lock:  # not while the writer is at it
                told = [] if self.failure else self.failed_locked(e)
            tell(told)
            raise
        with self._lock:
            self._hold = None
            if self._pending:
                self._writer.wake_locked(self)

    def _drop_before(self, position: int) -> None:
        """The snapshot at this position is safe. What fails to go away now goes at the next checkpoint or opening."""
        with self._lock:
            self.base = position
            gone = [s.path for s in self._closed if s.last <= position]
            self._closed = [s for s in self._closed if s.last > position]
        gone += [p for p in snapshots.paths_in(self.directory) if p != snapshots.path_of(self.directory, position)]
        try:
            for path in gone:
                self._disk.remove(path)
        except OSError as e:
            log.warning("%s: cannot remove what the snapshot at %d made needless: %s", self.directory, position, e)

    # what the writer calls

    def take_locked(self) -> bool:
        if self.failure:
            return False
        count = len(self._pending) if self._hold is None else max(0, self._hold - self.last + len(self._pending))
        self._taken, self._pending = self._pending[:count], self._pending[count:]
        return bool(self._taken)

    def write(self) -> None:
        durable = self.durable
        if self._open is None or self._open.end >= self._segment_bytes:
            self._open = self._begin(durable + 1)
        seed = self._open.seed
        self._written = b"".join(
            [encode_frame(RECORD, durable + lag, lag, record, seed) for lag, record in enumerate(self._taken, 1)]
        )
        self._disk.write(self._fd, self._written, self._open.end)

    def _begin(self, first: int) -> Segment:
        """A file with nothing but its head. It gets its name when the head is safe: a bad head is never a torn one."""
        before = self._open
        head = SegmentHead(self.replica, first, salt())
        if before is not None:
            head = msgspec.structs.replace(head, before_size=before.end, before_digest=before.digest.digest())
        data = encode_head(head)
        path = segments.path_of(self.directory, first)
        self._disk.place(path, [data])
        fd = self._disk.open(path)
        if before is not None:
            self._disk.close(self._fd)
            with self._lock:
                self._closed.append(before)
        self._fd = fd
        return Segment(path, first, first - 1, len(data), seed_of(data), segments.digest(data))

    def sync(self) -> None:
        self._disk.sync(self._fd)

    def done_locked(self) -> list[Told]:
        assert self._open is not None
        self._open.end += len(self._written)
        self._open.last += len(self._taken)
        self._open.digest.update(self._written)
        self.backlog -= sum(map(len, self._taken))
        self._taken, self._written = [], b""
        return self.advance_locked(self._open.last)

    def undo(self) -> None:
        """What failed to be synced may be readable and yet not be on disk: no later opening shall find it."""
        if self._open is not None:
            self._disk.truncate(self._fd, self._open.end)
            self._disk.sync(self._fd)

    def failed_locked(self, error: BaseException) -> list[Told]:
        self._pending, self._taken, self._written, self.backlog = [], [], b"", 0
        why = f"{self.directory}: records after {self.durable} are not on disk: {error}. Open the journal again"
        log.error("%s", why)
        return self.fail_locked(self.last, why)

    def retire(self) -> None:
        """No snapshot is written from now on: somebody else may open the directory. Waits for one under way."""
        with self._copying:
            self._retired = True

    def close(self) -> None:
        """By the store, when the writer is not at work."""
        with self._lock:
            told = [] if self.failure else self.fail_locked(self.last, f"{self.directory}: the store is closed")
        tell(told)
        if self._fd >= 0:
            self._disk.close(self._fd)
            self._fd = -1
