"""``obo status``: each node, its links, what it has performed, and what waits there and why."""

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from framework import Unavailable
from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir, addresses, reach

PATIENCE = 2.0


def run(
    at: At = None,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per node and line.")] = False,
) -> None:
    """Ask every node how it is. Ends with 1 if one cannot be reached."""
    told: list[dict[str, Any]] = []
    for address in addresses(at, config):
        try:
            with reach(address, config, credentials, PATIENCE) as orb:
                told.append({"address": address, **orb.look("status")})
        except Unavailable as error:
            told.append({"address": address, "error": str(error)})
    if as_json:
        for one in told:
            print(msgspec.json.encode(one).decode())
    else:
        _show(told)
    raise typer.Exit(1 if any("error" in one for one in told) else 0)


def _show(told: list[dict[str, Any]]) -> None:
    console = Console(highlight=False)
    table = Table("address", "node", "clock", "links", "performed", "clients", "open")
    for one in told:
        if "error" in one:
            table.add_row(one["address"], "[red]not reached[/red]")
            continue
        links = ", ".join(_link(peer, link) for peer, link in one["links"].items())
        performed = ", ".join(f"{replica} {count}" for replica, count in one["performed"].items())
        row = (one["node"], one["clock"], links, performed, len(one["clients"]), len(one["open"]))
        table.add_row(one["address"], *map(str, row))
    console.print(table)
    for one in told:
        for what in one.get("open", ()):
            console.print(f"{one['node']}: {what}", markup=False, soft_wrap=True)


def _link(peer: str, link: dict[str, Any]) -> str:
    waiting = link["queued"] + link["unacked"]
    return f"{peer} {'up' if link['up'] else 'DOWN'}" + (f" ({waiting} waiting)" if waiting else "")
