"""``obo sql explain`` and ``.explain``: what a statement touches, and what it would wait for."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from framework.cli.sql_where import TIMEOUT, Name, Seconds, database
from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir

if TYPE_CHECKING:
    from objects.sql.client import Sql


def run(
    statement: Annotated[str, typer.Argument(metavar="SQL", help="It is not performed.")],
    name: Name = None,
    timeout: Seconds = TIMEOUT,
    at: At = None,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
) -> None:
    """Say what a statement touches, and which others it would wait for.

    Example: obo sql explain "update accounts set balance = 0 where id = 5"
    """
    with database(name, at, config, credentials, "session", timeout) as found:
        show(Console(highlight=False), found.db, statement)


def show(console: Console, db: "Sql", statement: str) -> None:
    console.print(str(db.explain(statement)), markup=False)
