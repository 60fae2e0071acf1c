"""``obo token new``, ``obo token list``: the tokens by which clients are known, and what they may do."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from framework.cli.where import CLUSTER, ConfigFile, security
from framework.errors import BadRequest

app = typer.Typer(help="The tokens of clients: read-only, call or admin.", no_args_is_help=True)

TokensFile = Annotated[
    Path | None, typer.Option("--tokens", metavar="FILE", help="Where nodes keep the digests; else that of the config.")
]


@app.command()
def new(
    name: Annotated[str, typer.Option(metavar="NAME", help="For logs and errors; each token has its own.")],
    role: Annotated[str, typer.Option(metavar="ROLE", help="read-only, call or admin.")] = "call",
    tokens: TokensFile = None,
    config: ConfigFile = CLUSTER,
) -> None:
    """Print a new token, once; the file gets its digest. Nodes take it at once; remove its entry to take it back."""
    from framework.net.tokens import add

    print(add(_file(tokens, config), name, role))


@app.command("list")
def show(tokens: TokensFile = None, config: ConfigFile = CLUSTER) -> None:
    """Names and roles."""
    from framework.net.tokens import read

    table = Table("name", "role")
    for known in read(_file(tokens, config)):
        table.add_row(known.name, known.role)
    Console(highlight=False).print(table)


def _file(tokens: Path | None, config: Path) -> Path:
    if tokens is not None:
        return tokens
    found = security(config).tokens
    if found is None:
        raise BadRequest(f"{config}: [security] tokens is missing: name the file there, or with --tokens FILE")
    return Path(found)
