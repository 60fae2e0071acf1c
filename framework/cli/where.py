"""Which nodes a command talks to: ``--at``, or OBO_AT, or those of a cluster.toml."""

import tomllib
from pathlib import Path
from typing import Annotated

import typer

from framework import BadRequest

At = Annotated[
    str | None,
    typer.Option("--at", metavar="ADDRESSES", envvar="OBO_AT", help="host:port,host:port; else those of the config."),
]
ConfigFile = Annotated[Path, typer.Option("--config", metavar="FILE", envvar="OBO_CONFIG", help="The cluster.toml.")]
CLUSTER = Path("cluster.toml")


def addresses(at: str | None, config: Path) -> list[str]:
    """Only the addresses are read: a caller need not have the classes."""
    if at:
        return [a.strip() for a in at.split(",") if a.strip()]
    try:
        nodes = tomllib.loads(config.read_text(encoding="utf-8")).get("nodes")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadRequest(f"{config}: {error}; name the nodes with --at host:port, or the file with --config") from None
    if not isinstance(nodes, dict) or not nodes:
        raise BadRequest(f"{config}: [nodes] is missing or empty")
    return [str(a) for a in nodes.values()]
