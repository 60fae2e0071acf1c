"""``obo sql explain`` and ``.explain``: what a statement touches, and what it would wait for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from framework.cli.sql_run import Runner
from framework.cli.sql_show import Shower
from framework.cli.sql_where import TIMEOUT, Name, Seconds, database
from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir
from framework.errors import OboError

if TYPE_CHECKING:
    from objects.sql.footprint import Explained

#: How something is touched: whom one waits for. "rows of" stands beside the rows themselves.
_WAITS = {
    "reads": "whoever writes {}",
    "writes": "whoever reads or writes {}",
    "reads rows of": "whoever writes {} as a whole",
    "writes rows of": "whoever reads or writes {} as a whole",
}


def run(
    statement: Annotated[str, typer.Argument(metavar="SQL", help="It is not performed.")],
    values: Annotated[
        list[str] | None, typer.Argument(metavar="VALUE...", help="For each '?'; JSON, else a text as it stands.")
    ] = None,
    name: Name = None,
    timeout: Seconds = TIMEOUT,
    at: At = None,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
) -> None:
    """Say what a statement touches, and which others it would wait for.

    Example: obo sql explain "update accounts set balance = 0 where id = ?" 5
    """
    with database(name, at, config, credentials, "session", timeout) as found:
        runner = Runner(found.db, Shower())
        try:
            show(runner.shower.console, found.db.explain(statement, [_value(v) for v in values or ()]))
        except OboError as error:
            runner.say_why(error)
            raise typer.Exit(1) from None


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def show(console: Console, explained: "Explained") -> None:
    if explained.everything:
        console.print(Text.assemble((explained.kind, "bold"), " touches everything: ", explained.everything))
        console.print("It waits for all that is under way, and all that comes after waits for it.")
        return
    if not explained.keys:
        console.print(Text.assemble((explained.kind, "bold"), " touches no table: it waits for nobody"))
        return
    touched = Table.grid(padding=(0, 2))
    for what, how in sorted(explained.keys.items(), key=lambda each: each[1]):
        if how in ("reads", "writes"):
            colour = "yellow" if how == "writes" else "cyan"
            why = f"as a whole: {explained.whole[what]}" if what in explained.whole else ""
            touched.add_row(Text(f"  {how}", style=colour), Text(what), Text(why, style="dim"))
    console.print(Text(explained.kind, style="bold"))
    console.print(touched)
    console.print("waits for", style="bold")
    for who in waits(explained):
        console.print(f"  {who}", markup=False)
    console.print("Everything else goes on beside it.", style="dim")


def waits(explained: "Explained") -> Iterator[str]:
    """Whom a statement that touches this would wait for, and who waits for it."""
    for what, how in sorted(explained.keys.items(), key=lambda each: each[1]):
        yield _WAITS[how].format(f"anything in {what}" if what in explained.whole else what)
    yield "whoever changes the schema"
