"""``obo sql check``: do all replicas hold the same?"""

import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from framework.cli.sql_backup import TIMEOUT
from framework.cli.sql_replicas import awaited, findings, refused, statuses, whole
from framework.cli.sql_where import Name, Seconds, database
from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir
from framework.errors import Unavailable

if TYPE_CHECKING:
    from objects.sql.client import Digests


def run(
    as_json: Annotated[bool, typer.Option("--json", help="The digests of all tables at all replicas.")] = False,
    name: Name = None,
    timeout: Seconds = TIMEOUT,
    at: At = None,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
) -> None:
    """Compare the digests of all replicas at one point of the order. Ends with 1 if a table differs, or one is missing.

    Example: obo sql check --config examples/cluster.toml
    """
    with database(name, at, config, credentials, "linearizable", timeout) as found:
        told = statuses(found)
        if why := refused(found, told):
            raise Unavailable(why)
        for one in awaited(found, told):
            print(f"{one}: the comparison waits for it", file=sys.stderr)
        digests = found.db.digests()
        noted = findings(found, told)
    if as_json:
        said = {"replicas": digests.replicas, "missing": digests.missing, "differing": digests.differing}
        print(msgspec.json.encode({**said, "found": noted}).decode())
    else:
        _tell(digests)
    for note in noted:
        print(f"note: {note}", file=sys.stderr)
    wrong = problems(digests)
    for problem in wrong:
        print(f"obo: error: {problem}", file=sys.stderr)
    raise typer.Exit(1 if wrong else 0)


def _tell(digests: "Digests") -> None:
    for replica, tables in digests.replicas.items():
        print(f"{replica}: {len(tables)} tables, digest {whole(tables)}")
    if digests.equal:
        print("all that are there hold the same")


def problems(digests: "Digests") -> list[str]:
    """What is wrong, by table and replica; nothing, if all is well."""
    from objects.sql.client import odd_ones

    found = []
    for table, each in digests.differing.items():
        odd = odd_ones(each)
        who = " and ".join(odd)
        lacks = [r for r in odd if each[r] is None]
        what = f"{' and '.join(lacks)} has no such table" if lacks else "the rows are not the same"
        found.append(f"table {table} differs at {who}: {what}")
    if digests.missing:
        found.append(f"{', '.join(digests.missing)} did not answer: obo status says why")
    return found
