"""``obo config check FILE``: is this cluster.toml one that nodes can start with?"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from framework.errors import BadRequest
from framework.orb.config import Config, read

app = typer.Typer(help="Look at a cluster.toml.", no_args_is_help=True)


@app.callback()
def _only() -> None:
    """Look at a cluster.toml."""


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster.toml.")] = Path("cluster.toml"),
    node: Annotated[
        str | None, typer.Option(metavar="NAME", help="Check the certificate of this node alone, as it has no other.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", envvar="OBO_INSECURE", help="As for obo serve.")] = False,
) -> None:
    """Show the objects and where they live; end with 2 and one line if something is wrong."""
    config = read(file)
    table = Table("object", "class", *config.addresses)
    for name, cls in config.classes.items():
        placement = config.directory.find(name)
        marks = ["x" if f"{name}@{node}" in placement.replicas else "" for node in config.addresses]
        table.add_row(name, f"{cls.__module__}:{cls.__name__}", *marks)
    Console(highlight=False).print(table)
    try:
        _check_security(config, [node] if node else list(config.addresses), insecure)
    except BadRequest as error:
        raise BadRequest(f"{file}: {error}") from None
    after, majority = config.group.suspect_after, len(config.addresses) // 2 + 1
    print(
        f"{file}: [group] suspect_after = {after:g}: a member that is silent for {after:g} s or longer is left out; "
        f"of {len(config.addresses)} members {majority} must stay"
    )
    print(f"{file}: {len(config.addresses)} nodes, {len(config.classes)} objects: fine")


def _check_security(config: Config, nodes: list[str], insecure: bool) -> None:
    """Certificates that a node would refuse to start with, tokens that cannot be read, addresses that need both."""
    from framework.net.tokens import read as read_tokens

    for node in nodes:
        config.address(node)
        config.security.tls(node)
        config.exposed(node, insecure)
    if config.security.tokens:
        read_tokens(Path(config.security.tokens))
