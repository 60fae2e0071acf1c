"""``obo sql restore FILE``: what ``obo sql backup`` wrote, in a database that is empty, or is emptied."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from framework.cli.sql_again import after_rows, before_rows, drops, numbered
from framework.cli.sql_backup import TIMEOUT
from framework.cli.sql_bar import Bar
from framework.cli.sql_check import problems
from framework.cli.sql_file import Reader, Table
from framework.cli.sql_run import explained
from framework.cli.sql_split import quoted
from framework.cli.sql_where import Found, Name, Seconds, database
from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir
from framework.errors import Aborted, BadRequest, OboError, RemoteError

MOST_ROWS, MOST_BYTES = 1000, 1 << 20  # of a batch

_GENERATED = re.compile(r'generated column "([^"]+)"|Column "([^"]+)" is a generated column')
_IDENTITY = "is an identity column"
_FOREIGN = re.compile(r"foreign key", re.I)


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="From obo sql backup.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Drop all tables and views that are there, with their rows.")
    ] = False,
    name: Name = None,
    timeout: Seconds = TIMEOUT,
    at: At = None,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
) -> None:
    """Make schema and rows of a backup again. The file is checked first, and the replicas at the end.

    Example: obo sql restore accounts.gz --replace
    """
    backup = Reader(file)
    with database(name, at, config, credentials, "linearizable", timeout) as found:
        restore = Restore(found, backup)
        restore.check_empty(replace)
        try:
            restore.run(replace)
        except (OboError, KeyboardInterrupt) as error:
            why = explained(error) if isinstance(error, OboError) else "cancelled"
            print(f"obo: error: {why}. The database has a part of the backup: --replace begins anew", file=sys.stderr)
            raise typer.Exit(1 if isinstance(error, OboError) else 130) from None
        wrong = restore.wrong()
    for problem in wrong:
        print(f"obo: error: {problem}", file=sys.stderr)
    if wrong:
        raise typer.Exit(1)
    header, rows = backup.header, backup.trailer.rows
    as_it_was = ", as it was backed up" if backup.trailer.digests is not None else ""
    print(f"{rows:,} rows of {len(header.tables)} tables; all replicas hold the same{as_it_was}", file=sys.stderr)


class Restore:
    def __init__(self, found: Found, backup: Reader) -> None:
        self._db = found.db
        self._backup = backup

    def check_empty(self, replace: bool) -> None:
        there = self._db.tables()
        if there and not replace:
            some = ", ".join(there[:5]) + (", ..." if len(there) > 5 else "")
            raise BadRequest(f"{self._db.name} has tables: {some}; --replace drops them and their rows")

    def run(self, replace: bool) -> None:
        schema = self._backup.header.schema
        if replace:
            _in_some_order(drops(self._db.schema()), self._db.execute)
        _in_some_order(before_rows(schema), self._db.execute)
        self._rows()
        self._count_on(schema)
        _in_some_order(after_rows(schema), self._db.execute)

    def _count_on(self, schema: list[str]) -> None:
        for each in numbered(schema) if self._backup.header.dialect == "postgres" else ():
            highest = self._db.query(f"SELECT max({each.column}) FROM {each.table}").rows[0][0]
            if highest is not None:
                self._db.execute(each.restart(highest + 1))

    def _rows(self) -> None:
        """A row may refer to one that comes later: what is refused for that waits until the others are in."""
        late: list[tuple[Table, list[Any]]] = []
        with Bar("writing", self._backup.trailer.rows) as bar:
            for table, rows in self._batches():
                bar.say(table.table)
                try:
                    self._insert(table, rows)
                except RemoteError as error:
                    if not _FOREIGN.search(str(error)):
                        raise
                    late += [(table, row) for row in rows]
                else:
                    bar.advance(len(rows), bar.rows + len(rows))

            def one(what: tuple[Table, list[Any]]) -> None:
                self._insert(what[0], [what[1]])
                bar.advance(1, bar.rows + 1)

            _in_some_order(late, one)

    def _insert(self, table: Table, rows: list[list[Any]]) -> None:
        """Columns that the database computes are not given; which they are it says itself."""
        columns, overriding = list(table.columns), ""
        while True:
            at = [table.columns.index(c) for c in columns]
            names = ", ".join(map(quoted, columns))
            places = ", ".join("?" * len(columns))
            text = f"INSERT INTO {quoted(table.table)} ({names}) {overriding}VALUES ({places})"
            try:
                self._db.executemany(text, [[row[i] for i in at] for row in rows])
                return
            except RemoteError as error:
                computed = _GENERATED.search(str(error))
                if computed and len(columns) > 1:
                    columns.remove(computed[1] or computed[2])
                elif _IDENTITY in str(error) and not overriding:
                    overriding = "OVERRIDING SYSTEM VALUE "
                else:
                    raise

    def _batches(self) -> Iterator[tuple[Table, list[list[Any]]]]:
        table: Table | None = None
        rows: list[list[Any]] = []
        size = 0
        for of, row in self._backup.rows():
            if rows and (of is not table or len(rows) >= MOST_ROWS or size >= MOST_BYTES):
                assert table is not None
                yield table, rows
                rows, size = [], 0
            table = of
            rows.append(row)
            size += sum(len(v) for v in row if isinstance(v, str | bytes))
        if table is not None and rows:
            yield table, rows

    def wrong(self) -> list[str]:
        """Nothing, if all replicas have what was backed up."""
        digests = self._db.digests()
        found = problems(digests)
        wanted = self._backup.trailer.digests or {}
        has = next(iter(digests.replicas.values()), {})
        other = [t for t in self._backup.header.tables if t in wanted and has.get(t) != wanted[t]]
        if other:
            found.append(f"{', '.join(other)} is not what it was when it was backed up")
        return found


def _in_some_order(todo: list[Any], do: Callable[[Any], Any]) -> None:
    """One may need another to be done first: as long as some succeed, those that failed are tried again."""
    while todo:
        failed: list[tuple[Any, OboError]] = []
        for one in todo:
            try:
                do(one)
            except RemoteError as error:
                failed.append((one, error))
        if len(failed) == len(todo):
            raise Aborted(f"{explained(failed[0][1])} ({len(failed):,} left)")
        todo = [one for one, _ in failed]
