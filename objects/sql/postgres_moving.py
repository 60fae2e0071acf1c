"""The state of a PostgreSQL replica on its way to another one: pg_dump writes it, pg_restore reads it.

A transaction holds the moment; pg_dump is given its snapshot and works while writes go on. What it writes is sent as it
comes, with a digest at the end. It has no notes of the framework. Nothing lies on disk in between.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import IO, Final, NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo

from framework import Broken
from objects.sql.postgres_connect import Raw

_MAGIC: Final = b"obo postgres state 1\n"
_PIECE: Final = 1 << 20
_SIZE: Final = 32
_NOTES: Final = ("--exclude-table-data=obo._obo_head", "--exclude-table-data=obo._obo_log")


class Place(NamedTuple):
    """Of a database, for the tools: how to reach it, and where they are."""

    target: str
    environment: Mapping[str, str]
    tools: Path


def place_of(raw: Raw, tools: str | None) -> Place:
    known = raw.info.get_parameters()
    known.pop("options", None)
    environment = {**os.environ, **({"PGPASSWORD": raw.info.password} if raw.info.password else {})}
    return Place(make_conninfo(**known), environment, _directory(raw, tools))


def _directory(raw: Raw, tools: str | None) -> Path:
    """Where the option says, beside the server if it is on this machine, or on the PATH."""
    places = [Path(tools)] if tools else [*_beside(raw), *(Path(p) for p in os.get_exec_path())]
    for place in places:
        if all(shutil.which(name, path=str(place)) for name in ("pg_dump", "pg_restore")):
            return place
    where = tools or "beside the server, or on the PATH"
    raise Broken(f"pg_dump and pg_restore are not there ({where}): say where in the option tools")


def _beside(raw: Raw) -> list[Path]:
    try:
        found = raw.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'").fetchone()
    except psycopg.Error:
        return []  # only a superuser may ask
    return [Path(found[0])] if found else []


def leaving(raw: Raw, place: Place, about: bytes) -> Iterator[bytes]:
    """The state at the moment of the call. ``raw`` is a connection of its own, and is closed at the end. ``about``:
    what the receiving server must have in common with this one."""
    chunks = _leaving(raw, place, about)
    return chain([next(chunks)], chunks)


def _leaving(raw: Raw, place: Place, about: bytes) -> Iterator[bytes]:
    try:
        raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        snapshot = raw.execute("SELECT pg_export_snapshot()").fetchall()[0][0]
        found = blake2b(digest_size=_SIZE)
        head = _MAGIC + about + b"\n"
        found.update(head)
        yield head
        words = ["--format=custom", "--compress=0", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", *_NOTES]
        with tempfile.TemporaryFile() as said, _started(place, "pg_dump", words, said) as process:
            assert process.stdout is not None
            try:
                while piece := process.stdout.read(_PIECE):
                    found.update(piece)
                    yield piece
                _check(process, said)
            finally:
                process.kill()
        yield found.digest()
    except psycopg.Error as error:
        raise Broken(f"the state cannot be read: {' '.join(str(error).split())}") from error
    finally:
        raw.close()


def dump(place: Place, path: Path) -> None:
    """What is committed, with the notes of the framework, to a file for pg_restore."""
    words = ["--format=custom", "--no-owner", "--no-privileges", f"--file={path}"]
    with tempfile.TemporaryFile() as said, _started(place, "pg_dump", words, said) as process:
        try:
            _check(process, said)
        finally:
            process.kill()


def arrive(chunks: Iterable[bytes], place: Place, about: bytes) -> None:
    """What ``leaving`` gave, into an empty database; ``Broken`` if that fails, or if it is not what was sent. No chunks
    at all leave it empty.

    In one transaction: if this process is killed, pg_restore is not, but it does not find the end. Had it found it, it
    would fail where a new process has made the schema obo anew."""
    pieces = iter(chunks)
    first = next(pieces, None)
    if first is None:
        return
    words = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges"]
    with tempfile.TemporaryFile() as said, _started(place, "pg_restore", words, said) as process:
        assert process.stdin is not None
        try:
            _pour(chain([first], pieces), process.stdin, about)
            process.stdin.close()
            _check(process, said)
        except BrokenPipeError:
            _check(process, said)
            raise Broken("pg_restore ended too early") from None
        finally:
            process.kill()


def _pour(chunks: Iterable[bytes], into: IO[bytes], about: bytes) -> None:
    """All between the first line and the digest at the end."""
    head = _MAGIC + about + b"\n"
    found = blake2b(digest_size=_SIZE)
    tail, begun = b"", False
    for chunk in chunks:
        tail += chunk
        if not begun and len(tail) >= len(head) + _SIZE:
            _check_head(tail, head)
            found.update(head)
            tail, begun = tail[len(head) :], True
        if begun and len(tail) > _SIZE:
            found.update(tail[:-_SIZE])
            into.write(tail[:-_SIZE])
            tail = tail[-_SIZE:]
    if not begun or tail != found.digest():
        raise Broken("the state that came is not what was sent: its digest differs")


def _check_head(data: bytes, head: bytes) -> None:
    if not data.startswith(_MAGIC):
        raise Broken(f"the state that came is none of a PostgreSQL database: it begins with {data[:20]!r}")
    if not data.startswith(head):
        other = data.split(b"\n", 2)[1].decode(errors="replace")
        raise Broken(f"the replica that gave its state has a server of another kind: {other}, here {about_text(head)}")


def about_text(head: bytes) -> str:
    return head.split(b"\n", 2)[1].decode(errors="replace")


def _started(place: Place, tool: str, words: list[str], said: IO[bytes]) -> "subprocess.Popen[bytes]":
    command = [str(place.tools / tool), *words, f"--dbname={place.target}"]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    dumps = tool == "pg_dump"
    try:
        return subprocess.Popen(
            command,
            env=dict(place.environment),
            stdin=null if dumps else pipe,
            stdout=pipe if dumps else null,
            stderr=said,
            process_group=0,  # Ctrl-C is for the node: it decides what becomes of this
        )
    except OSError as error:
        raise Broken(f"{command[0]}: {error.strerror}") from error


def _check(process: "subprocess.Popen[bytes]", said: IO[bytes]) -> None:
    if process.wait():
        said.seek(0)
        text = said.read().decode(errors="replace").strip().splitlines()[-3:]
        raise Broken(f"{Path(str(process.args[0])).name} failed: {' '.join(text)}")  # type: ignore[index]
