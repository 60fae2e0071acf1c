"""The directory of one node.

lock                    held by the process that works with it; has its number
meta                    format and node, as JSON
node                    the record of the node (``Store.remember``)
replicas/bank@n1/       a journal: 00000000000000000001.journal, 00000000000000004711.snapshot

"""

import fcntl
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

import msgspec

from framework.errors import BadRequest
from framework.ids import Node, Replica, check_name, node_of, object_of
from framework.store.disk import NEW, Disk
from framework.store.frames import FORMAT
from framework.store.journal import SEGMENT_BYTES, Journal
from framework.store.note import Note
from framework.store.problems import StoreBusy, StoreFailed, WrongStore
from framework.store.replica import recover
from framework.store.writer import Writer

LOCK, META, NODE, REPLICAS = "lock", "meta", "node", "replicas"

#: So long a start waits for the lock: the process before it may be just ending, or somebody looks.
PATIENCE_S = 1.0


class Meta(msgspec.Struct):
    store: str
    format: int
    node: str


class Store:
    """One process at a time works with a directory. ``threads=False``: a test turns ``writer.round()`` itself."""

    def __init__(
        self,
        directory: Path,
        node: Node,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        disk: Disk | None = None,
        threads: bool = True,
    ) -> None:
        self.directory = directory
        self.node = node
        self._disk = disk or Disk()
        self._segment_bytes = segment_bytes
        self._journals: dict[Replica, Journal] = {}
        check_name(node, "node")
        self._lock_fd = -1
        lock = threading.Lock()
        self.writer = Writer(node, lock)
        try:
            self._disk.make_directory(directory)
            self._lock_fd = _lock(directory / LOCK)
            self._check_meta()
            self._note = Note(directory / NODE, node, self._disk, self.writer, lock)
        except BaseException as e:
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
            if isinstance(e, OSError):
                raise StoreFailed(f"{directory}: the store cannot be opened: {e}") from e
            raise
        self._copier = ThreadPoolExecutor(1, f"obo-store-copy-{node}")
        self._closed = False
        self._opening = threading.Lock()
        if threads:
            self.writer.start()

    def _check_meta(self) -> None:
        path = self.directory / META
        meta = read_meta(path)
        if meta is None:
            others = sorted({p.name for p in self.directory.iterdir()} - {LOCK, META + NEW})
            if others:
                raise WrongStore(
                    f"{self.directory} has no file {META}, but {', '.join(others[:3])}: this is no store, or a part of "
                    "one. Name an empty or new directory, or restore it from a backup"
                )
            self._disk.place(path, [msgspec.json.encode(Meta("obo", FORMAT, self.node)) + b"\n"])
        elif meta.node != self.node:
            raise WrongStore(f"{self.directory} is the store of node {meta.node}, not of {self.node}: name another one")

    async def remember(self, data: bytes) -> None:
        """Replaces the record of the node. Returns when it is on disk."""
        await self._note.committed(self._note.put(data))

    def remember_now(self, data: bytes) -> None:
        """The same for a thread, which is blocked so long."""
        self._note.wait(self._note.put(data))

    def remembered(self) -> bytes | None:
        """The record of the node that is on disk."""
        return self._note.data

    def journal(self, replica: Replica) -> Journal:
        """Opens the journal of a replica, also again after it failed. Reads it through: not for an event loop."""
        check_name(object_of(replica), "object")
        if node_of(replica) != self.node:
            raise BadRequest(f"{replica} is not on node {self.node}, whose store {self.directory} is")
        with self._opening:
            if self._closed:
                raise BadRequest(f"{self.directory}: the store is closed")
            old = self._journals.get(replica)
            if old is not None and not old.failure:
                raise BadRequest(f"{self.directory}: the journal of {replica} is open already")
            if old is not None:
                old.retire()
                with self.writer.busy:
                    old.close()
            journal = self._journals[replica] = self._open(replica)
            return journal

    def _open(self, replica: Replica) -> Journal:
        directory = self.directory / REPLICAS / replica
        try:
            self._disk.make_directory(directory)
            found = recover(self._disk, directory, replica)
            return Journal(found, self._disk, self.writer, self._copier, self._segment_bytes)
        except OSError as e:
            raise StoreFailed(f"{directory}: the journal cannot be opened: {e}") from e

    def close(self) -> None:
        """Writes all that waits, also a snapshot that is under way, and lets others have the directory."""
        with self._opening:
            if self._closed:
                return
            self._closed = True
        self._copier.shutdown(wait=True, cancel_futures=True)
        self.writer.stop()
        for journal in self._journals.values():
            journal.close()
        os.close(self._lock_fd)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def read_meta(path: Path) -> Meta | None:
    """None if there is none."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        meta = msgspec.json.decode(data, type=Meta)
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise WrongStore(f"{path} cannot be read: {e}. Restore it from a backup, or name another directory") from None
    if meta.store != "obo":
        raise WrongStore(f"{path} says this is a store of {meta.store!r}, not of obo: name another directory")
    if meta.format > FORMAT:
        raise WrongStore(
            f"{path} has format {meta.format}, written by a newer obo; this one reads format {FORMAT}: use the newer "
            "one, or name another directory"
        )
    return meta


def _lock(path: Path) -> int:
    """The system gives the lock back when the process ends, however it ends."""
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                holder = os.pread(fd, 20, 0).decode(errors="replace").strip() or "unknown"
                os.close(fd)
                raise StoreBusy(
                    f"{path.parent} is in use by process {holder}: end that one, or name another directory for this one"
                ) from None
            time.sleep(0.02)
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd
