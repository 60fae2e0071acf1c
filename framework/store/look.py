"""What lies in a store directory, for people. Only reads; works beside the node that writes to it."""

import fcntl
import os
from pathlib import Path

import msgspec

from framework.ids import Replica
from framework.store import note, snapshots
from framework.store.problems import StoreError, WrongStore
from framework.store.replica import Found, examine
from framework.store.store import LOCK, META, NODE, REPLICAS, read_meta

_TRIES = 5


class ReplicaLook(msgspec.Struct):
    """``problem``: why the journal would be refused, "" if it would not."""

    replica: Replica
    base: int = 0
    position: int = 0
    snapshot_bytes: int = 0
    journal_bytes: int = 0
    segments: int = 0
    torn_bytes: int = 0
    problem: str = ""

    @property
    def tail(self) -> str:
        """The state of the end, in words."""
        if self.problem:
            return "damaged"
        if self.torn_bytes:
            return f"{self.torn_bytes} bytes are being written, or will be cut off at the next start"
        return "clean"


class StoreLook(msgspec.Struct):
    """``record_bytes``: length of the record of the node; None if there is none. ``in_use``: a process holds it."""

    directory: Path
    node: str
    format: int
    in_use: bool
    record_bytes: int | None
    replicas: list[ReplicaLook]
    problem: str = ""


def look(directory: Path) -> StoreLook:
    meta = read_meta(directory / META) if directory.is_dir() else None
    if meta is None:
        raise WrongStore(f"{directory} is no store: it has no file {META}")
    found = StoreLook(directory, meta.node, meta.format, _in_use(directory / LOCK), None, [])
    try:
        record = note.read(directory / NODE, meta.node)
        found.record_bytes = None if record is None else len(record)
    except StoreError as e:
        found.problem = str(e)
    inside = directory / REPLICAS
    for path in sorted(p for p in inside.iterdir() if p.is_dir()) if inside.is_dir() else []:
        found.replicas.append(_look_at(path))
    return found


def _look_at(directory: Path) -> ReplicaLook:
    """A node that is at work drops and begins files meanwhile: look again before calling it damage."""
    replica = Replica(directory.name)
    problem = ""
    for _ in range(_TRIES):
        try:
            return _describe(examine(directory, replica))
        except (StoreError, OSError) as e:
            problem = str(e)
    return ReplicaLook(replica, problem=problem)


def _describe(found: Found) -> ReplicaLook:
    return ReplicaLook(
        Replica(found.replica),
        found.base,
        found.position,
        sum(p.stat().st_size for p in snapshots.paths_in(found.directory)),
        sum(s.end for s in found.segments),
        len(found.segments),
        found.segments[-1].torn if found.segments else 0,
    )


def _in_use(path: Path) -> bool:
    """Takes a shared lock for a moment; a node that starts at this moment tries again."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
