"""``obo sql backup FILE``: schema and rows of a database at one point of the order, through its own calls.

A small database is read by one transaction: that is one point, whatever others write. A large one is read in pages;
if its digests were the same before and after, nothing happened in between. If they were not, it is tried again.
"""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from framework.cli.sql_bar import Bar
from framework.cli.sql_file import KIND, VERSION, Header, Writer
from framework.cli.sql_split import quoted
from framework.cli.sql_where import Found, Name, Seconds, database
from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir
from framework.errors import Aborted, BadRequest, RemoteError

if TYPE_CHECKING:
    from objects.sql.client import Sql

TIMEOUT = 600.0
SMALL = 5000  # rows: so many are read at once
TRIES = 3
PAGE = 4 << 20  # bytes that a page should have
MOST_ROWS = 20_000  # of a page


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A name that ends with .gz is compressed.")],
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    name: Name = None,
    timeout: Seconds = TIMEOUT,
    at: At = None,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
) -> None:
    """Write schema and rows to a file, as of one moment. `obo sql restore FILE` makes them again.

    Example: obo sql backup accounts.gz
    """
    if file.exists() and not force:
        raise BadRequest(f"{file} is there already: name another one, or add --force")
    with database(name, at, config, credentials, "linearizable", timeout) as found:
        backup = Backup(found, file)
        try:
            rows, tables = backup.run()
        except KeyboardInterrupt:
            print("cancelled; no file was written", file=sys.stderr)
            raise typer.Exit(130) from None
    print(f"{rows:,} rows of {tables} tables in {file}, {file.stat().st_size:,} bytes", file=sys.stderr)


class Point(NamedTuple):
    """What must be the same before and after."""

    schema: list[str]
    digests: dict[str, str]


class Backup:
    def __init__(self, found: Found, file: Path) -> None:
        self._db = found.db
        self._file = file
        self._dialect = dialect(found.db)

    def run(self) -> tuple[int, int]:
        """Rows and tables that were written."""
        for attempt in range(TRIES):
            if attempt:
                print(f"somebody wrote meanwhile; once more ({attempt + 1} of {TRIES})", file=sys.stderr)
            before = self._point()
            tables = self._db.tables()
            columns = {table: self._columns(table) for table in tables}
            counts = {table: self._count(table) for table in tables}
            writer = Writer(self._file)
            try:
                writer.header(self._header(tables, before.schema))
                small = sum(counts.values()) <= SMALL
                read = self._at_once(columns) if small else self._in_pages(columns)
                self._write(writer, columns, read, sum(counts.values()))
                after = self._point()
                if after == before or (small and after.schema == before.schema):
                    writer.finish(after.digests if after == before else None)
                    return writer.rows, len(tables)
            finally:
                writer.drop()
        raise Aborted(
            f"{self._db.name} changed while it was being read, {TRIES} times. More than {SMALL:,} rows are read in "
            "pages: stop the writers for a moment"
        )

    def _point(self) -> Point:
        return Point(self._db.schema(), self._db.digest())

    def _header(self, tables: list[str], schema: list[str]) -> Header:
        made = datetime.now(UTC).isoformat(" ", "seconds")
        return Header(KIND, VERSION, self._db.name, self._dialect, made, tables, schema)

    def _columns(self, table: str) -> list[str]:
        return list(self._db.query(f"SELECT * FROM {quoted(table)} LIMIT 0").columns)

    def _count(self, table: str) -> int:
        return int(self._db.query(f"SELECT count(*) FROM {quoted(table)}").rows[0][0])

    def _select(self, table: str, columns: list[str]) -> str:
        """SQLite gives values back by the declared types of their columns; '+' asks for what it really keeps."""
        plus = "+" if self._dialect == "sqlite" else ""
        return f"SELECT {', '.join(plus + quoted(c) for c in columns)} FROM {quoted(table)}"

    def _write(
        self, writer: Writer, columns: dict[str, list[str]], pages: Iterator[tuple[str, list[Any]]], total: int
    ) -> None:
        last = None
        with Bar("reading", total) as bar:
            for table, rows in pages:
                if table != last:
                    last = table
                    writer.table(table, columns[table])
                    bar.say(table)
                for row in rows:
                    writer.row(row)
                bar.advance(len(rows), writer.rows)

    def _at_once(self, columns: dict[str, list[str]]) -> Iterator[tuple[str, list[Any]]]:
        results = self._db.transaction([(self._select(table, names), ()) for table, names in columns.items()])
        for table, result in zip(columns, results, strict=True):
            yield table, result.rows

    def _in_pages(self, columns: dict[str, list[str]]) -> Iterator[tuple[str, list[Any]]]:
        for table, names in columns.items():
            yield table, []  # also an empty table is one
            read = self._behind if self._has_rowid(table) else self._from
            for rows in pages(read(table, names)):
                yield table, rows

    def _has_rowid(self, table: str) -> bool:
        """SQLite finds the next page by it, and does not have to count from the beginning."""
        if self._dialect != "sqlite":
            return False
        try:
            self._db.query(f"SELECT _rowid_ FROM {quoted(table)} LIMIT 0")
        except (RemoteError, BadRequest):
            return False
        return True

    def _behind(self, table: str, names: list[str]) -> "Read":
        text = self._select(table, names).replace("SELECT ", "SELECT _rowid_, ", 1)
        text += " WHERE _rowid_ > ? ORDER BY _rowid_ LIMIT ?"
        last = -(1 << 63)

        def read(limit: int, offset: int) -> list[Any]:
            nonlocal last
            rows = self._db.query(text, [last, limit]).rows
            last = rows[-1][0] if rows else last
            return [row[1:] for row in rows]

        return read

    def _from(self, table: str, names: list[str]) -> "Read":
        """By an order that is the same at each replica: there are types that have none but as text."""
        every = ", ".join(str(at + 1) for at in range(len(names)))
        order = f"{quoted(table)}::text" if self._dialect == "postgres" else every
        text = f"{self._select(table, names)} ORDER BY {order} LIMIT ? OFFSET ?"
        return lambda limit, offset: self._db.query(text, [limit, offset]).rows


Read = Callable[[int, int], list[Any]]


def pages(read: Read) -> Iterator[list[Any]]:
    """``read(limit, offset)`` until nothing comes; of about PAGE bytes each."""
    limit, offset = 500, 0
    while rows := read(limit, offset):
        yield rows
        offset += len(rows)
        size = sum(_size(row) for row in rows)
        limit = max(1, min(MOST_ROWS, 4 * limit, len(rows) * PAGE // max(1, size)))


def _size(row: Any) -> int:
    return sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)


def dialect(db: "Sql") -> str:
    try:
        db.query("SELECT sqlite_version()")
    except (RemoteError, BadRequest):
        return "postgres"
    return "sqlite"
