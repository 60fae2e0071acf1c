"""The file of ``obo sql backup``: JSON, a line each, so that people and programs in any language can read it.

    {"obo": "sql backup", "version": 1, ..., "schema": ["CREATE TABLE t ...", ...]}
    {"table": "t", "columns": ["id", "name"]}
    [1, "one"]
    [2, {"bytes": "AAE="}]
    ...
    {"rows": 2, "digests": {"t": "..."}, "sha256": "..."}

The last line has the digest of all bytes before it: a file that was cut off or changed is not taken. A name that ends
with .gz is compressed.
"""

import base64
import datetime as dt
import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, cast
from uuid import UUID

import msgspec

from framework.errors import BadRequest

KIND, VERSION = "sql backup", 1


class Header(msgspec.Struct):
    obo: str
    version: int
    object: str
    dialect: str
    made: str
    tables: list[str]
    schema: list[str]


class Table(msgspec.Struct):
    table: str
    columns: list[str]


class Trailer(msgspec.Struct):
    rows: int
    digests: dict[str, str] | None  # None: it was not known at just that point
    sha256: str


class Writer:
    """Beside the file first, which appears only when it is complete. Use it in a ``with``."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._part = file.with_name(file.name + ".part")
        self._sum = hashlib.sha256()
        self.rows = 0
        try:
            self._raw = self._part.open("wb")
        except OSError as error:
            raise BadRequest(f"{file}: {error.strerror}") from None
        self._out: Any = gzip.GzipFile(fileobj=self._raw, mode="wb", mtime=0) if file.suffix == ".gz" else self._raw

    def header(self, header: Header) -> None:
        self._line(msgspec.json.encode(header))

    def table(self, name: str, columns: list[str]) -> None:
        self._line(msgspec.json.encode(Table(name, columns)))

    def row(self, row: Sequence[Any]) -> None:
        self.rows += 1
        self._line(json.dumps([to_json(value) for value in row], ensure_ascii=False).encode("utf-8", "surrogatepass"))

    def _line(self, line: bytes) -> None:
        self._sum.update(line + b"\n")
        self._out.write(line + b"\n")

    def finish(self, digests: dict[str, str] | None) -> None:
        self._line(msgspec.json.encode(Trailer(self.rows, digests, self._sum.hexdigest())))
        self._out.close()
        self._raw.close()
        self._part.replace(self._file)

    def drop(self) -> None:
        """It is not complete and never will be."""
        self._raw.close()
        self._part.unlink(missing_ok=True)


class Reader:
    """A file that is whole: BadRequest otherwise, before anything is taken from it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.header, self.trailer = self._checked()

    def _open(self) -> IO[bytes]:
        return cast(IO[bytes], gzip.GzipFile(self.file)) if self.file.suffix == ".gz" else self.file.open("rb")

    def _checked(self) -> tuple[Header, Trailer]:
        try:
            return self._check()
        except OSError as error:  # also of gzip
            raise BadRequest(f"{self.file}: {error.strerror or error}") from None
        except EOFError:
            raise BadRequest(f"{self.file} is cut off: make it again with obo sql backup") from None

    def _check(self) -> tuple[Header, Trailer]:
        found, last = hashlib.sha256(), b""
        with self._open() as lines:
            first = lines.readline()
            try:
                header = msgspec.json.decode(first, type=Header)
            except msgspec.DecodeError:
                raise BadRequest(f"{self.file} was not made by obo sql backup") from None
            if header.obo != KIND or header.version != VERSION:
                raise BadRequest(f"{self.file} is a {header.obo} of version {header.version}, not of {VERSION}")
            last = first
            for line in lines:
                found.update(last)
                last = line
        try:
            trailer = msgspec.json.decode(last, type=Trailer)
        except msgspec.DecodeError:
            raise EOFError from None
        if trailer.sha256 != found.hexdigest():
            raise BadRequest(f"{self.file} has been changed: its digest is not the one in its last line")
        return header, trailer

    def rows(self) -> Iterator[tuple[Table, list[Any]]]:
        """All rows, each with its table."""
        table: Table | None = None
        with self._open() as lines:
            next(lines)
            for line in lines:
                if line.startswith(b"["):
                    assert table is not None
                    yield table, [from_json(value) for value in json.loads(line.decode("utf-8", "surrogatepass"))]
                elif line.startswith(b'{"table"'):
                    table = msgspec.json.decode(line, type=Table)


# values that JSON does not have


def to_json(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else {"float": repr(value)}
    if isinstance(value, list | tuple):
        return {"list": [to_json(one) for one in value]}
    if isinstance(value, dict):
        return {"dict": [[name, to_json(one)] for name, one in value.items()]}
    for name, (kind, write, _) in _KINDS.items():
        if isinstance(value, kind):
            return {name: write(value)}
    raise BadRequest(f"a value of type {type(value).__name__} cannot be written: {value!r:.80}")


def from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((name, inner),) = value.items()
    if name == "list":
        return [from_json(one) for one in inner]
    if name == "dict":
        return {key: from_json(one) for key, one in inner}
    return _KINDS[name][2](inner)


def _from_seconds(parts: Sequence[int]) -> dt.timedelta:
    return dt.timedelta(*parts)


#: A datetime is a date, too: it comes first.
_KINDS: dict[str, tuple[Any, Any, Any]] = {
    "bytes": (bytes, lambda v: base64.b64encode(v).decode(), base64.b64decode),
    "float": (float, repr, float),
    "decimal": (Decimal, str, Decimal),
    "uuid": (UUID, str, UUID),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "time": (dt.time, dt.time.isoformat, dt.time.fromisoformat),
    "timedelta": (dt.timedelta, lambda v: [v.days, v.seconds, v.microseconds], _from_seconds),
}
