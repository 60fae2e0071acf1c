"""Trace files: written by a node as it goes, read back whole for a verdict."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from framework.errors import BadTrace
from framework.trace.record import VERSION, Header, Record, line

_header = msgspec.json.Decoder(Header)
_record = msgspec.json.Decoder(Record)


class Trace(msgspec.Struct):
    """What one life of a node wrote."""

    header: Header
    records: list[Record]


def file_name(node: str, life: int = 1) -> str:
    """Where a life of a node writes its trace, in the directory of the run."""
    return f"{node}.jsonl" if life == 1 else f"{node}.since{life}.jsonl"


def write(path: Path, trace: Trace) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(line(trace.header))
        for record in trace.records:
            file.write(line(record))


def find(paths: Iterable[Path]) -> list[Path]:
    """Files as they are, and the ``*.jsonl`` of directories."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.glob("*.jsonl"))
            if not inside:
                raise BadTrace(f"{path}: no trace files (*.jsonl) in this directory")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise BadTrace(f"{path}: no such file or directory")
    return found


def read(path: Path) -> Trace:
    """The trace in a file, or BadTrace that names file, line and what is wrong there."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as e:
        raise BadTrace(f"{path}: {e.strerror}") from None
    if lines[-1]:
        raise BadTrace(f"{path}:{len(lines)}: the last line is cut off; {len(lines[-1])} bytes without an end of line")
    lines.pop()
    if not lines:
        raise BadTrace(f"{path}: empty; a trace starts with a header line")
    head = decode_header(path, lines[0])
    records: list[Record] = []
    for number, text in enumerate(lines[1:], 2):
        try:
            record = _record.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            raise BadTrace(f"{path}:{number}: {e}") from None
        records.append(record)
    check_numbers(path, head, records)
    return Trace(head, records)


def check_numbers(path: Path, head: Header, records: Sequence[Record]) -> None:
    """BadTrace unless they are all of this node, from 1 on without gaps."""
    for expected, record in enumerate(records, 1):
        if record.node != head.node or record.i != expected:
            raise BadTrace(
                f"{path}:{expected + 1}: record {record.i} of {record.node}; expected {expected} of {head.node} "
                "(a line is missing, repeated or from another file)"
            )


def decode_header(path: Path, text: bytes) -> Header:
    """From the first line of a trace."""
    try:
        version = msgspec.json.decode(text, type=_Version).version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise BadTrace(f"{path}:1: not a trace header: {e}") from None
    if version != VERSION:
        raise BadTrace(f"{path}:1: trace version {version}; this obo reads version {VERSION}")
    try:
        return _header.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise BadTrace(f"{path}:1: not a trace header: {e}") from None


class _Version(msgspec.Struct):
    version: int
