"""Notes of the framework in the store of a replica, each with a checksum: a byte that changes on disk is found.

What the framework knows of a state decides whose state counts after a crash of all (framework.orb.auditing), and
requests in it are sent again. So it is not used if it is not what was written.
"""

from typing import Final
from zlib import crc32

import msgspec

from framework.errors import Unreadable

#: Before the checksum. What an older version wrote has none: it begins with an array or a map of msgpack.
_MARK: Final = b"\x01"
_SIZE: Final = 4
_encoder = msgspec.msgpack.Encoder()


def checked(note: msgspec.Struct) -> bytes:
    """In a thread: a note may be large. It is written to its place, not copied there."""
    start = len(_MARK) + _SIZE
    out = bytearray(start)
    _encoder.encode_into(note, out, start)
    out[:start] = _MARK + crc32(memoryview(out)[start:]).to_bytes(_SIZE)
    return bytes(out)


def unchecked(data: bytes, where: str) -> bytes:
    """What ``checked`` was given; Unreadable if it is not what was written."""
    if data[:1] and not data[0] & 0x80:
        start = len(_MARK) + _SIZE
        if data[:1] != _MARK or crc32(data[start:]).to_bytes(_SIZE) != data[len(_MARK) : start]:
            raise Unreadable(f"{where} is not what was written: its checksum differs")
        return data[start:]
    return data
