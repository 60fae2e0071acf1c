"""``obo ls``: the objects of a cluster, where they live and what they can do."""

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from framework import connect
from framework.cli.where import CLUSTER, At, ConfigFile, addresses


def run(
    at: At = None,
    config: ConfigFile = CLUSTER,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per object and line.")] = False,
) -> None:
    """List the objects of a running cluster. `obo describe NAME` says more about one of them."""
    with connect(addresses(at, config)) as orb:
        found = orb.look("objects")
    if as_json:
        for one in found:
            print(msgspec.json.encode({k: one[k] for k in ("name", "class", "replicas", "methods")}).decode())
        return
    table = Table("object", "class", "on", "methods")
    for one in found:
        table.add_row(one["name"], one["class"], ", ".join(one["nodes"]), ", ".join(one["methods"]))
    Console(highlight=False).print(table)
