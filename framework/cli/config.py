"""``obo config check FILE``: is this cluster.toml one that nodes can start with?"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from framework.orb.config import read

app = typer.Typer(help="Look at a cluster.toml.", no_args_is_help=True)


@app.callback()
def _only() -> None:
    """Look at a cluster.toml."""


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster.toml.")] = Path("cluster.toml"),
) -> None:
    """Show the objects and where they live; end with 2 and one line if something is wrong."""
    config = read(file)
    table = Table("object", "class", *config.addresses)
    for name, placement in config.directory.objects.items():
        cls = config.classes[name]
        marks = ["x" if f"{name}@{node}" in placement.replicas else "" for node in config.addresses]
        table.add_row(name, f"{cls.__module__}:{cls.__name__}", *marks)
    Console(highlight=False).print(table)
    print(f"{file}: {len(config.addresses)} nodes, {len(config.classes)} objects: fine")
