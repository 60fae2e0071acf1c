"""``obo sql import FILE.csv --table T``: rows in batches; each batch is in as a whole, or not at all."""

import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from framework.cli.sql_bar import Bar
from framework.cli.sql_run import explained
from framework.cli.sql_split import quoted
from framework.cli.sql_where import TIMEOUT, Found, Name, Seconds, database
from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest, OboError

MOST_ROWS = 1000  # of a batch
MOST_TEXT = 1 << 20  # characters of a batch: far below what fits into a message
MOST_FIELD = 16 << 20

_INTEGER = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})\Z")  # 007 is a text
_REAL = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?\Z")
_KINDS = ("INTEGER", "BIGINT", "DOUBLE PRECISION", "TEXT")  # each takes what those before it take

Row = list[str]


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="The first line has the names of the columns.")],
    table: Annotated[str, typer.Option("--table", metavar="T", help="Into this table.")],
    create: Annotated[
        bool,
        typer.Option("--create", help="Make the table, with INTEGER, DOUBLE PRECISION or TEXT, as the file has it."),
    ] = False,
    key: Annotated[
        str | None, typer.Option("--key", metavar="COLUMN", help="With --create: the column that is the primary key.")
    ] = None,
    null: Annotated[
        str, typer.Option(metavar="TEXT", help="A field that means NULL; the empty one, if not said.")
    ] = "",
    delimiter: Annotated[str, typer.Option(metavar="CHAR", help="Between two fields; 'tab' for a tabulator.")] = ",",
    skip: Annotated[int, typer.Option(min=0, metavar="ROWS", help="Go on behind so many rows that are in.")] = 0,
    name: Name = None,
    timeout: Seconds = TIMEOUT,
    at: At = None,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
) -> None:
    """Read a CSV file into a table. If it fails, it says which rows are in.

    Example: obo sql import accounts.csv --table accounts --create --key id
    """
    source = Source(file, delimiter, null)
    if key is not None and not create:
        raise BadRequest("--key says how to make the table: add --create")
    if key is not None and key not in source.columns:
        raise BadRequest(f"--key {key}: no such column; {did_you_mean(key, source.columns)}")
    with database(name, at, config, credentials, "session", timeout) as found:
        if create and not skip:
            found.db.execute(creation(table, source.columns, source.kinds(), key))
        else:
            _check(found, table, source.columns)
        _load(found, table, source, skip)


class Source:
    """A CSV file. Mistakes in it are told by line."""

    def __init__(self, file: Path, delimiter: str, null: str) -> None:
        self._delimiter = "\t" if delimiter == "tab" else delimiter
        if len(self._delimiter) != 1:
            raise BadRequest(f"--delimiter {delimiter!r}: one character, or tab")
        self._null = null
        self.file = file
        try:
            self.size = file.stat().st_size
            with file.open("rb") as binary:
                _, self.columns = next(self._lines(binary), (0, []))
        except OSError as error:
            raise BadRequest(f"{file}: {error.strerror}") from None
        if not self.columns:
            raise BadRequest(f"{file} is empty: the first line has the names of the columns")
        twice = next((c for at, c in enumerate(self.columns) if c in self.columns[:at]), None)
        if twice is not None or not all(c.strip() for c in self.columns):
            what = f"names {twice!r} twice" if twice is not None else "has a column without a name"
            raise BadRequest(f"{file}: the first line {what}")

    def _lines(self, binary: BinaryIO) -> "Iterator[tuple[int, Row]]":
        """Each record, and the line it ends with."""
        csv.field_size_limit(MOST_FIELD)
        text = io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
        records = csv.reader(text, delimiter=self._delimiter, strict=True)
        try:
            for row in records:
                yield records.line_num, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadRequest(f"{self.file}, line {records.line_num + 1}: {error}") from None

    def rows(self) -> Iterator[tuple[Row, int]]:
        """Each row, and how many bytes of the file have been read."""
        with self.file.open("rb") as binary:
            lines = self._lines(binary)
            next(lines)
            for line, row in lines:
                if not row:
                    continue  # an empty line
                if len(row) != len(self.columns):
                    raise BadRequest(
                        f"{self.file}, line {line}: {len(row)} fields, but the first line names {len(self.columns)}"
                    )
                yield row, binary.tell()

    def values(self, row: Row) -> list[Any]:
        return [None if field == self._null else field for field in row]

    def kinds(self) -> list[str]:
        """The narrowest type that takes every field of a column."""
        found = [0] * len(self.columns)
        some = [False] * len(self.columns)
        for row, _ in self.rows():
            for at, field in enumerate(row):
                if field != self._null:
                    some[at] = True
                    found[at] = max(found[at], _kind(field))
        return [_KINDS[kind] if any_value else "TEXT" for kind, any_value in zip(found, some, strict=True)]


def _kind(field: str) -> int:
    if _INTEGER.match(field):
        return 0 if -(1 << 31) <= int(field) < 1 << 31 else 1
    return 2 if _REAL.match(field) else 3


def creation(table: str, columns: Sequence[str], kinds: Sequence[str], key: str | None) -> str:
    parts = [
        f"{quoted(column)} {kind}{' PRIMARY KEY' if column == key else ''}"
        for column, kind in zip(columns, kinds, strict=True)
    ]
    return f"CREATE TABLE {quoted(table)} ({', '.join(parts)})"


def _check(found: Found, table: str, columns: Sequence[str]) -> None:
    known = found.db.tables("linearizable")
    if table not in known:
        raise BadRequest(f"no table {table!r}; {did_you_mean(table, known)}; --create makes it")
    has = found.db.query(f"SELECT * FROM {quoted(table)} LIMIT 0", read="linearizable").columns
    unknown = next((c for c in columns if c not in has), None)
    if unknown is not None:
        raise BadRequest(f"{table} has no column {unknown!r}; {did_you_mean(unknown, has)}")


def _load(found: Found, table: str, source: Source, skip: int) -> None:
    columns = ", ".join(quoted(c) for c in source.columns)
    text = f"INSERT INTO {quoted(table)} ({columns}) VALUES ({', '.join('?' * len(source.columns))})"
    done = 0  # rows that are in
    batch: list[list[Any]] = []
    try:
        with Bar(table, source.size) as bar:
            for rows, at in _batches(source):
                batch = rows[max(0, skip - done) :]
                if batch:
                    done += len(rows) - len(batch)
                    found.db.executemany(text, batch)
                    done += len(batch)
                else:
                    done += len(rows)
                bar.advance(len(batch), at)
                batch = []
    except (OboError, KeyboardInterrupt) as error:
        _failed(error, done, len(batch))
    print(f"{bar.rows:,} rows into {table} in {bar.seconds:.1f} s, {bar.rate:,.0f} rows/s", file=sys.stderr)


def _failed(error: OboError | KeyboardInterrupt, done: int, size: int) -> None:
    """Which rows are in, and how to go on. ``size``: of the batch that failed."""
    why = explained(error) if isinstance(error, OboError) else "cancelled"
    words = [why]
    if done:
        words.append(f"Rows 1 to {done:,} are in")
    if size:
        these = f"rows {done + 1:,} to {done + size:,}"
        known = isinstance(error, OboError) and error.happened is not None  # it was refused, or never began
        words.append(f"None of {these} is in" if known else f"Nobody knows of {these}: all of them are in, or none")
    if done:
        words.append(f"To go on behind those that are in: --skip {done}")
    print(f"obo: error: {'. '.join(words)}", file=sys.stderr)
    raise typer.Exit(130 if isinstance(error, KeyboardInterrupt) else 1)


def _batches(source: Source) -> Iterator[tuple[list[list[Any]], int]]:
    rows: list[list[Any]] = []
    size = at = 0
    for row, at in source.rows():
        rows.append(source.values(row))
        size += sum(map(len, row))
        if len(rows) >= MOST_ROWS or size >= MOST_TEXT:
            yield rows, at
            rows, size = [], 0
    if rows:
        yield rows, at
