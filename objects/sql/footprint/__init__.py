"""What a statement touches, so that replicas order only what must be ordered.

    Schema      read_sqlite(connection, version), read_postgres(connection, version): anew after each change of it
    touches     the keys of a statement with its parameters (framework.footprint says how keys meet)
    union       of the statements of one transaction
    explain     the same in words

The way: ``judge`` finds in sqlglot's tree which rows are meant, by the primary key. SQLite itself tells (``asked``), or
PostgreSQL's catalogue, which tables are reached through triggers, views and foreign keys: these are touched as a whole,
and so is whatever is read in a place that the judge did not see.
``effects`` adds what foreign keys and unique constraints make of it, ``template`` makes it ready for parameters. In
doubt a statement touches the whole table; what is not understood conflicts with everything. docs/sql.md has
the rules in short.
"""

from objects.sql.footprint.postgres_schema import read_postgres
from objects.sql.footprint.schema import Schema
from objects.sql.footprint.sqlite_schema import read_sqlite
from objects.sql.footprint.touched import Explained, explain, single_rows, touches, union

__all__ = ["Explained", "Schema", "explain", "read_postgres", "read_sqlite", "single_rows", "touches", "union"]
