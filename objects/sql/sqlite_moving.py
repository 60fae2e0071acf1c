"""The state of a SQLite replica on its way to another one: the file itself, and a digest at its end.

A transaction that reads holds the moment; the backup API copies it into a file of its own while writes go on. The notes
of the framework are taken out of the copy, which is then sent in pieces.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from framework import Broken
from objects.sql import sqlite_notes
from objects.sql.sqlite_connect import Connection

MAGIC: Final = b"obo sqlite state 1\n"
_PIECE: Final = 1 << 20
_SIZE: Final = 32


def leaving(connection: Connection, copy: Path) -> Iterator[bytes]:
    """The state at the moment of the call. The copy is made when the second chunk is wanted, and is gone when nobody
    wants more."""
    chunks = _leaving(connection, copy)
    return chain([next(chunks)], chunks)


def _leaving(connection: Connection, copy: Path) -> Iterator[bytes]:
    try:
        connection.raw.execute("BEGIN")
        connection.raw.execute("SELECT 1 FROM sqlite_schema").fetchone()  # from now on it sees what there is now
        yield MAGIC
        _write(connection.raw, copy)
        connection.close()
        found = blake2b(MAGIC, digest_size=_SIZE)
        with copy.open("rb") as file:
            while piece := file.read(_PIECE):
                found.update(piece)
                yield piece
        yield found.digest()
    except (sqlite3.Error, OSError) as error:
        raise Broken(f"{copy}: the copy failed: {error}") from error
    finally:
        connection.close()
        copy.unlink(missing_ok=True)


def _write(source: sqlite3.Connection, copy: Path) -> None:
    target = sqlite3.connect(copy, isolation_level=None)
    try:
        target.execute("PRAGMA synchronous = OFF")  # nobody needs it after a crash, and others wait for the disk
        source.backup(target)
        target.execute("PRAGMA journal_mode = OFF")  # only now: how the source keeps its journal was copied, too
        sqlite_notes.erase(target)
    finally:
        target.close()


def arrive(chunks: Iterable[bytes], path: Path) -> bool:
    """What ``leaving`` gave, into a file; ``Broken`` if it is not what was sent. False: there was nothing at all."""
    found = blake2b(digest_size=_SIZE)
    tail = b""
    some = False
    try:
        with path.open("wb") as file:
            started = False
            for chunk in chunks:
                some = True
                tail += chunk
                if not started and len(tail) >= len(MAGIC) + _SIZE:
                    tail, started = _begun(tail), True
                    found.update(MAGIC)
                if started and len(tail) > _SIZE:
                    tail = _take(file, found, tail)
            if some and (not started or tail != found.digest()):
                raise Broken("the state that came is not what was sent: its digest differs")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise Broken(f"{path}: {error.strerror}") from error
    return some


def _begun(data: bytes) -> bytes:
    if not data.startswith(MAGIC):
        raise Broken(f"the state that came is none of a SQLite database: it begins with {data[:20]!r}")
    return data[len(MAGIC) :]


def _take(file: BinaryIO, found: "blake2b", data: bytes) -> bytes:
    """All but the digest at the end; what is kept back may be it."""
    piece = data[:-_SIZE]
    file.write(piece)
    found.update(piece)
    return data[-_SIZE:]
