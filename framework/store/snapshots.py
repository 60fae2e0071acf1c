"""The state of a replica as of a position: one file of chunks, whole or not there."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from framework.store.disk import Disk
from framework.store.frames import (
    CHUNK,
    END,
    FRAME_START,
    BadHead,
    SnapshotHead,
    decode_frame,
    decode_head,
    encode_frame,
    encode_head,
    payload_length,
    salt,
    seed_of,
)
from framework.store.problems import damaged_replica

SUFFIX = ".snapshot"
_LONGEST_HEAD = 4096


def path_of(directory: Path, position: int) -> Path:
    return directory / f"{position:020}{SUFFIX}"


def paths_in(directory: Path) -> list[Path]:
    return sorted(directory.glob("*" + SUFFIX))


def write(disk: Disk, directory: Path, replica: str, position: int, chunks: Iterable[bytes]) -> Path:
    path = path_of(directory, position)
    disk.place(path, _pieces(replica, position, chunks))
    return path


def _pieces(replica: str, position: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    head = encode_head(SnapshotHead(replica, position, salt()))
    seed = seed_of(head)
    yield head
    all_of_it, number = blake2b(digest_size=16), 0
    for number, chunk in enumerate(chunks, 1):
        all_of_it.update(chunk)
        yield encode_frame(CHUNK, number, 0, chunk, seed)
    yield encode_frame(END, number + 1, 0, all_of_it.digest(), seed)


def check(path: Path, replica: str) -> int:
    """Reads it through. Returns its position."""
    for _ in read(path, replica):
        pass
    return int(path.stem)


def read(path: Path, replica: str) -> Iterator[bytes]:
    with path.open("rb") as file:
        start = file.read(_LONGEST_HEAD)
        try:
            head, at = decode_head(start, SnapshotHead)
        except BadHead as e:
            raise damaged_replica(path, 0, str(e)) from None
        if head.replica != replica or path.stem != f"{head.position:020}":
            what = f"this is a snapshot of {head.replica} at {head.position}: it was renamed or is in the wrong place"
            raise damaged_replica(path, 0, what)
        yield from _chunks(path, file, at, seed_of(start[:at]))


def _chunks(path: Path, file: BinaryIO, at: int, seed: int) -> Iterator[bytes]:
    file.seek(at)
    all_of_it, number = blake2b(digest_size=16), 1
    while True:
        data = file.read(FRAME_START)
        length = payload_length(data)
        if length is not None:
            data += file.read(length)
        frame = decode_frame(data, 0, seed)
        if frame is None or frame.number != number or frame.marker not in (CHUNK, END):
            raise damaged_replica(path, at, f"chunk {number} of the snapshot is damaged or missing")
        payload = data[frame.at :]
        if frame.marker == END:
            if payload != all_of_it.digest() or file.read(1):
                raise damaged_replica(path, at, "the snapshot does not end as it was written")
            return
        all_of_it.update(payload)
        yield payload
        number, at = number + 1, at + frame.end
