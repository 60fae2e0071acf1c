"""Traces of nodes (JSON lines) become Parquet in the run directory, and say how complete they are.

A record that is missing shows: they are numbered without gaps. A node writes each record before it acts on it, and
stops if it cannot; so there should be none. What is counted here is what was found, not what is hoped for.
"""

from pathlib import Path

import msgspec

from framework.analytics.columns import TRACE, from_records
from framework.load.parts import Parts
from framework.trace.record import Record

BATCH = 20_000
_record = msgspec.json.Decoder(Record)


class Life(msgspec.Struct):
    """What was found of one life of a node."""

    files: int = 0
    records: int = 0
    dropped: int = 0  # numbers that are missing between records
    unreadable: int = 0  # lines that are no records
    cut: int = 0  # bytes after the last whole line: it was being written
    ended: str = ""  # stop, out, or empty: it crashed, or goes on


class Converter:
    """Takes a trace in pieces, as they come."""

    def __init__(self, directory: Path) -> None:
        self.life = Life()
        self._directory = directory
        self._parts = Parts(directory, TRACE)
        self._header = False
        self._rest = b""
        self._records: list[Record] = []
        self._last = 0

    def take(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._line(line)

    def _line(self, line: bytes) -> None:
        if not self._header:
            self._header = True
            (self._directory / "header.json").write_bytes(line + b"\n")
            return
        try:
            record = _record.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.life.unreadable += 1
            return
        self.life.dropped += max(0, record.i - self._last - 1)
        self._last = max(self._last, record.i)
        self.life.ended = record.event if record.event in ("stop", "out") else ""
        self._records.append(record)
        if len(self._records) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        records, self._records = self._records, []
        self._parts.write(from_records(records))

    def close(self) -> Life:
        self.life.cut = len(self._rest)
        self._flush()
        self._parts.close()
        self.life.records, self.life.files = self._parts.rows, self._parts.files
        if not self._header:
            self._directory.rmdir()  # it died before it wrote anything
        return self.life


def life_name(file: str) -> str:
    """``n1.since4`` of ``n1.since4.jsonl``."""
    return file.removesuffix(".jsonl")


def convert(file: Path, traces: Path) -> Life:
    """A file of a node that ran here."""
    converter = Converter(traces / life_name(file.name))
    with file.open("rb") as opened:
        while piece := opened.read(1 << 20):
            converter.take(piece)
    return converter.close()
