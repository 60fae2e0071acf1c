"""The one small record of the node: replaced as a whole, each time."""

import threading
from pathlib import Path

from framework.errors import BadRequest
from framework.store.commits import Commits, Told
from framework.store.disk import Disk
from framework.store.frames import (
    LONGEST,
    RECORD,
    BadHead,
    NodeHead,
    decode_frame,
    decode_head,
    encode_frame,
    encode_head,
    salt,
    seed_of,
)
from framework.store.problems import Damaged
from framework.store.writer import Writer


class Note(Commits):
    """If several are put while one is being written, only the newest of them is written next."""

    def __init__(self, path: Path, node: str, disk: Disk, writer: Writer, lock: threading.Lock) -> None:
        super().__init__(lock, 0)
        self._path, self._node, self._disk, self._writer = path, node, disk, writer
        self.data = read(path, node)  # what is on disk
        self._next = b""
        self._taken = (0, b"")

    def put(self, data: bytes) -> int:
        if len(data) > LONGEST:
            raise BadRequest(f"{self._path}: a record of {len(data)} bytes; {LONGEST} at most")
        with self._lock:
            self.last += 1
            self._next = data
            self._writer.wake_locked(self)
            return self.last

    def take_locked(self) -> bool:
        self._taken = (self.last, self._next)
        return True

    def write(self) -> None:
        """A failure leaves the old one; the next one is a new file, so nothing has to be refused from then on."""
        head = encode_head(NodeHead(self._node, salt()))
        self._disk.place(self._path, [head + encode_frame(RECORD, 1, 0, self._taken[1], seed_of(head))])

    def sync(self) -> None:
        """Done: it was placed safely."""

    def done_locked(self) -> list[Told]:
        self.data = self._taken[1]
        return self.advance_locked(self._taken[0])

    def undo(self) -> None:
        """Nothing to do: the old one or the new one is there."""

    def failed_locked(self, error: BaseException) -> list[Told]:
        return self.fail_locked(self._taken[0], f"{self._path} was not written: {error}")


def read(path: Path, node: str) -> bytes | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        head, at = decode_head(data, NodeHead)
    except BadHead as e:
        raise _damaged(path, 0, str(e)) from None
    frame = decode_frame(data, at, seed_of(data[:at]))
    if head.node != node:
        raise _damaged(path, 0, f"this is the record of node {head.node}, not of {node}")
    if frame is None or frame.end != len(data):
        raise _damaged(path, at, "the record is damaged")
    return data[frame.at :]


def _damaged(path: Path, offset: int, what: str) -> Damaged:
    advice = (
        f"Restore it from a backup, or move the whole directory {path.parent} away: the node then comes back as one "
        "that remembers nothing, and gets its state from its peers. Do not remove this file alone: the node would "
        "forget what it has promised"
    )
    return Damaged(path, offset, what, advice)
