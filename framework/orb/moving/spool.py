"""A file that a state goes through. It has no name: whatever becomes of the process, nothing is left behind.

In it stand chunks as ``get_state`` gave them, each behind its length in four bytes. Any thread may use it.
"""

import os
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from framework.errors import Aborted, BadMessage
from framework.orb.moving.aside import aside

_LENGTH = struct.Struct(">I")
LONGEST = (1 << 32) - 1
LARGE = 4 << 20  # bytes


class Spool:
    def __init__(self, directory: Path | None = None) -> None:
        self.size = 0
        self._closed = False
        self._lock = threading.Lock()  # nobody reads from a file number that means another file by now
        self._file = tempfile.TemporaryFile(dir=directory, prefix="obo-state-", buffering=0)  # noqa: SIM115

    def write(self, data: bytes) -> None:
        """At the end."""
        rest = memoryview(data)
        with self._lock:
            self._check_open()
            while rest:
                written = os.pwrite(self._file.fileno(), rest, self.size)
                self.size += written
                rest = rest[written:]

    def read(self, offset: int, most: int) -> bytes:
        with self._lock:
            self._check_open()
            return os.pread(self._file.fileno(), min(most, max(self.size - offset, 0)), offset)

    def close(self) -> None:
        """To give back a large file takes the system a while (20 ms for 100 MB): a thread waits for that."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self.size > LARGE:
            aside(self._file.close)
        else:
            self._file.close()

    @property
    def closed(self) -> bool:
        return self._closed

    def _check_open(self) -> None:
        if self._closed:
            raise Aborted("this state is not kept any more")

    def chunks(self) -> Iterator[bytes]:
        """As they were given. BadMessage if the file is not made of chunks."""
        at = 0
        while at < self.size:
            head = self.read(at, _LENGTH.size)
            length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else LONGEST
            at += _LENGTH.size
            if length > self.size - at:
                raise BadMessage(f"a state of {self.size:,} bytes ends in the middle of a chunk")
            yield self.read(at, length)
            at += length


def framed(chunk: bytes) -> bytes:
    if len(chunk) > LONGEST:
        raise BadMessage(f"get_state gave a chunk of {len(chunk):,} bytes: chunks of 256 KiB are about right")
    return _LENGTH.pack(len(chunk)) + chunk
