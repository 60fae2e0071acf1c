"""The directory of one replica: which files there are, which of them count, and whether they are sound.

``examine`` only reads. ``recover`` also makes the directory as if the crash had not been: a torn end is cut off, what
no longer counts is removed, and what is there is made safe before anybody builds on it.
"""

import logging
import os
from pathlib import Path

import msgspec

from framework.store import segments, snapshots
from framework.store.disk import NEW, Disk
from framework.store.problems import damaged_replica
from framework.store.segments import Segment

log = logging.getLogger(__name__)


class Found(msgspec.Struct):
    """State as of ``base`` in ``snapshot``, and records up to ``position`` in ``segments``."""

    replica: str
    directory: Path
    snapshot: Path | None
    base: int
    segments: list[Segment]
    position: int
    needless: list[Path]


def examine(directory: Path, replica: str) -> Found:
    taken = snapshots.paths_in(directory)
    snapshot = taken[-1] if taken else None
    base = snapshots.check(snapshot, replica) if snapshot else 0
    paths = segments.paths_in(directory)
    firsts = [segments.first_in(p) for p in paths]
    before_base = sum(first <= base + 1 for first in firsts)  # the last of these has, or will have, record base + 1
    if (paths or base) and not before_base:
        what = f"the file with record {base + 1} is missing"
        raise damaged_replica(paths[0] if paths else segments.path_of(directory, base), 0, what)
    counting = paths[before_base - 1 :] if paths else []
    found: list[Segment] = []
    for path in counting:
        before = found[-1] if found else None
        found.append(segments.scan(path, replica, before, path == paths[-1], base))
    needless = [*taken[:-1], *paths[: len(paths) - len(counting)], *directory.glob("*" + NEW)]
    position = found[-1].last if found else base
    return Found(replica, directory, snapshot, base, found, position, needless)


def recover(disk: Disk, directory: Path, replica: str) -> Found:
    paths = segments.paths_in(directory)
    if paths:
        _make_safe(disk, paths[-1])
    found = examine(directory, replica)
    last = found.segments[-1] if found.segments else None
    if last is not None and last.torn:
        log.warning(
            "%s: cut at byte %d: the %d bytes after record %d are the end of a write that was interrupted; nothing of "
            "it had been confirmed",
            last.path,
            last.end,
            last.torn,
            last.last,
        )
        _cut(disk, last)
    disk.sync_directory(directory)  # names that the last process gave may not be safe yet
    for path in found.needless:
        disk.remove(path)
    return found


def _make_safe(disk: Disk, path: Path) -> None:
    """What can be read after a crash of the process may be in memory alone. After a sync that failed, memory and disk
    may even differ: what is read next shall come from the disk."""
    fd = disk.open(path)
    try:
        disk.sync(fd)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        disk.close(fd)


def _cut(disk: Disk, segment: Segment) -> None:
    fd = disk.open(segment.path)
    try:
        disk.truncate(fd, segment.end)
        disk.sync(fd)
    finally:
        disk.close(fd)
    segment.torn = 0
