"""The parts of a journal: read, checked, and judged when they end badly.

Theory. Records are written in batches; a batch is written when the one before it is safely on disk, and only then its
records are confirmed. So a crash can spoil the last batch alone, but that in any way: pages of one write may arrive in
any order, so a whole record may follow a torn one. What is broken was confirmed, if

- a later part of the journal exists (it is begun when the one before it is safe), or
- a later record testifies it by its ``lag``, or
- a snapshot was taken at or after it (only of what is confirmed).

Then the file is damaged, and refused. Else it is the end of a write that a crash interrupted: it can be cut off.
Nothing testifies for the very last batch: if it rots after it was confirmed, it cannot be told from a torn one.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from framework.store.frames import (
    RECORD,
    BadHead,
    Frame,
    SegmentHead,
    decode_frame,
    decode_head,
    seed_of,
)
from framework.store.problems import damaged_replica

SUFFIX = ".journal"


class Segment(msgspec.Struct):
    """One file with the records ``first`` to ``last``; whole up to byte ``end``. ``torn`` bytes follow, to be cut."""

    path: Path
    first: int
    last: int
    end: int
    seed: int
    digest: Any  # a blake2b of all up to ``end``
    torn: int = 0


def digest(data: bytes) -> Any:
    return blake2b(data, digest_size=16)


def path_of(directory: Path, first: int) -> Path:
    return directory / f"{first:020}{SUFFIX}"


def paths_in(directory: Path) -> list[Path]:
    return sorted(directory.glob("*" + SUFFIX))


def first_in(path: Path) -> int:
    """From the name alone. The head says it, too; they are compared when the file is read."""
    if not path.stem.isdecimal():
        raise damaged_replica(path, 0, "this is no file of a journal: its name is not the position of a record")
    return int(path.stem)


def scan(path: Path, replica: str, before: Segment | None, is_last: bool, safe: int) -> Segment:
    """Reads a whole part. ``safe``: up to here all records are known to have been confirmed."""
    data = path.read_bytes()
    first, start = _check_head(path, data, replica, before)
    seed = seed_of(data[:start])
    end, last = start, first - 1
    for frame in walk(data, start, first, seed):
        end, last = frame.end, frame.number
    if end < len(data):
        _judge(path, data, end, last + 1, seed, is_last, safe)
    elif is_last and last < safe:
        raise damaged_replica(path, end, f"ends before record {last + 1}, which was confirmed")
    return Segment(path, first, last, end, seed, digest(data[:end]), len(data) - end)


def walk(data: bytes, at: int, expected: int, seed: int) -> Iterator[Frame]:
    """The whole records from here on, in sequence."""
    frame = decode_frame(data, at, seed)
    while frame is not None and frame.marker == RECORD and frame.number == expected:
        yield frame
        expected += 1
        frame = decode_frame(data, frame.end, seed)


def records(segment: Segment, after: int) -> Iterator[tuple[int, bytes]]:
    """Position and payload of the records after this position, checked again."""
    data = segment.path.read_bytes()[: segment.end]
    _, start = decode_head(data, SegmentHead)
    last = segment.first - 1
    for frame in walk(data, start, segment.first, segment.seed):
        last = frame.number
        if last > after:
            yield last, data[frame.at : frame.end]
    if last != segment.last:
        raise damaged_replica(segment.path, 0, f"changed while it was read: record {last + 1} is gone")


def _check_head(path: Path, data: bytes, replica: str, before: Segment | None) -> tuple[int, int]:
    try:
        head, start = decode_head(data, SegmentHead)
    except BadHead as e:
        raise damaged_replica(path, 0, str(e)) from None
    if head.replica != replica or head.first != first_in(path):
        what = f"this file is of {head.replica}, from record {head.first}: it was renamed or is in the wrong place"
        raise damaged_replica(path, 0, what)
    if before is None:
        return head.first, start
    if head.first != before.last + 1:
        what = f"begins with record {head.first}; the file before it, {before.path.name}, ends with {before.last}"
        raise damaged_replica(path, 0, f"{what} (a file or its end is missing)")
    if (head.before_size, head.before_digest) != (before.end, before.digest.digest()):
        raise damaged_replica(path, 0, f"does not follow {before.path.name}: one of them comes from another history")
    return head.first, start


def _judge(path: Path, data: bytes, at: int, expected: int, seed: int, is_last: bool, safe: int) -> None:
    """Returns if what follows may be cut off."""
    what = f"record {expected} is damaged or missing"
    if not is_last:
        raise damaged_replica(path, at, f"{what}, and a later file follows")
    if safe >= expected:
        raise damaged_replica(path, at, f"{what}, and it was confirmed: there is a snapshot of record {safe}")
    found = decode_frame(data, at, seed)
    if found is not None:
        raise damaged_replica(path, at, f"{what}: here is record {found.number}")
    while (at := data.find(RECORD, at + 1)) >= 0:
        found = decode_frame(data, at, seed)
        if found is None:
            continue
        if found.number - found.lag >= expected:
            raise damaged_replica(path, at, f"{what}, and record {found.number} at byte {at} says it was confirmed")
        at = found.end - 1  # no need to look inside of a whole one
