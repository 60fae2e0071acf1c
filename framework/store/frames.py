"""How bytes lie in the files of a store: a head, then frames. Nothing here touches a file.

- A *head*: eight letters that say which kind of file this is, format version, length, a msgpack map, checksum.
- A *frame*: marker, length, number, lag, checksum, payload. Checksums start from that of the head, which has a random
  part: a frame of another file is never taken for one of this file, even if a payload contains one.

The number of a record is its position. Its ``lag`` says how far behind it the records ended that were safely on disk
when it was written. So a later record can testify that an earlier, broken one was once whole (see ``segments``).
"""

import os
import struct
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from framework.errors import BadRequest

FORMAT = 1
RECORD = b"\xf1rec"
CHUNK = b"\xf1chk"
END = b"\xf1end"

#: A length above this is not a length. One record, chunk or node record is at most this long.
LONGEST = 1 << 28

_START = struct.Struct("<4sIQI")
_SUM = struct.Struct("<I")
FRAME_START = _START.size + _SUM.size
_HEAD = struct.Struct("<8sHI")


class SegmentHead(msgspec.Struct, frozen=True):
    """A part of a journal. ``before``: size and digest of the part before it, which is complete."""

    replica: str
    first: int
    salt: bytes
    before_size: int = 0
    before_digest: bytes = b""


class SnapshotHead(msgspec.Struct, frozen=True):
    replica: str
    position: int
    salt: bytes


class NodeHead(msgspec.Struct, frozen=True):
    node: str
    salt: bytes


Head = TypeVar("Head", SegmentHead, SnapshotHead, NodeHead)
MAGIC: dict[type, bytes] = {SegmentHead: b"OBOJRNL\n", SnapshotHead: b"OBOSNAP\n", NodeHead: b"OBONODE\n"}
_DECODERS: dict[type, msgspec.msgpack.Decoder[Any]] = {kind: msgspec.msgpack.Decoder(kind) for kind in MAGIC}


class BadHead(Exception):
    """Says what is wrong with the first bytes of a file."""


class Frame(NamedTuple):
    marker: bytes
    number: int
    lag: int
    at: int  # where its payload begins
    end: int


def salt() -> bytes:
    return os.urandom(8)


def encode_head(head: SegmentHead | SnapshotHead | NodeHead) -> bytes:
    body = msgspec.msgpack.encode(head)
    data = _HEAD.pack(MAGIC[type(head)], FORMAT, len(body)) + body
    return data + _SUM.pack(crc32(data))


def seed_of(head: bytes) -> int:
    return crc32(head)


def decode_head(data: bytes, kind: type[Head]) -> tuple[Head, int]:
    """The head at the start of ``data``, and its length."""
    if len(data) < _HEAD.size:
        raise BadHead(f"only {len(data)} bytes, shorter than any head")
    magic, version, length = _HEAD.unpack_from(data)
    if magic != MAGIC[kind]:
        raise BadHead(f"starts with {magic!r} and not with {MAGIC[kind]!r}")
    if version > FORMAT:
        raise BadHead(f"format {version}, written by a newer obo; this one reads format {FORMAT}")
    end = _HEAD.size + length
    if len(data) < end + _SUM.size or _SUM.unpack_from(data, end)[0] != crc32(data[:end]):
        raise BadHead("the checksum of the head is wrong")
    try:
        return _DECODERS[kind].decode(data[_HEAD.size : end]), end + _SUM.size
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise BadHead(f"the head cannot be read: {e}") from None


def encode_frame(marker: bytes, number: int, lag: int, payload: bytes, seed: int) -> bytes:
    if len(payload) > LONGEST:
        raise BadRequest(f"{len(payload)} bytes in one record or chunk; {LONGEST} at most")
    start = _START.pack(marker, len(payload), number, lag)
    return start + _SUM.pack(crc32(payload, crc32(start, seed))) + payload


def decode_frame(data: bytes, at: int, seed: int) -> Frame | None:
    """The frame that begins here, or None if there is no whole one."""
    if at + FRAME_START > len(data):
        return None
    marker, length, number, lag = _START.unpack_from(data, at)
    start, end = at + FRAME_START, at + FRAME_START + length
    if length > LONGEST or end > len(data):
        return None
    view = memoryview(data)
    total = crc32(view[start:end], crc32(view[at : at + _START.size], seed))
    if total != _SUM.unpack_from(data, start - _SUM.size)[0]:
        return None
    return Frame(marker, number, lag, start, end)


def payload_length(start: bytes) -> int | None:
    """What the first bytes of a frame say, before the rest is read. None: this is no frame."""
    if len(start) < FRAME_START:
        return None
    length: int = _START.unpack_from(start)[1]
    return length if length <= LONGEST else None
