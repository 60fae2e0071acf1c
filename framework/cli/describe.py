"""``obo describe NAME``: one object: its methods with their types, what conflicts, where it lives."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from framework import NoSuchObject, connect
from framework.cli import matrix
from framework.cli.where import CLUSTER, At, ConfigFile, addresses
from framework.declare.suggest import did_you_mean

_WIDTH = 100  # of what is no terminal


def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The object; obo ls lists them.")],
    at: At = None,
    config: ConfigFile = CLUSTER,
    as_json: Annotated[bool, typer.Option("--json", help="For programs; types also as JSON Schema.")] = False,
) -> None:
    """Show an object of a running cluster: methods and types, the conflict matrix, replicas.

    Example: obo describe bank --config examples/cluster.toml
    """
    with connect(addresses(at, config)) as orb:
        told = find(orb.look("objects"), name)
    if as_json:
        print(msgspec.json.encode(told).decode())
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    _show(console, told)


def find(objects: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for one in objects:
        if one["name"] == name:
            return one
    raise NoSuchObject(f"no object {name!r}; {did_you_mean(name, [one['name'] for one in objects])}")


def _show(console: Console, told: Mapping[str, Any]) -> None:
    console.print(f"{told['name']}: {told['class']}", style="bold", markup=False)
    if told["doc"]:
        console.print(told["doc"], markup=False)
    console.print()
    table = Table("method", "key", "kind", "what it does", title="Methods", title_justify="left")
    for m in told["signatures"]:
        kind = ", ".join(word for word in (m["async"] and "async", m["readonly"] and "readonly") if word)
        table.add_row(Text(_signature(m)), Text(m["key"]), kind or "sync", Text(m["doc"]))
    console.print(table)
    console.print()
    matrix.show(console, "Conflicts", told["signatures"], told["conflicts"])
    console.print()
    places = Table("replica", "node", "address", title="Replicas", title_justify="left")
    for replica, (node, address) in zip(told["replicas"], told["nodes"].items(), strict=True):
        places.add_row(replica, node, address)
    console.print(places)


def _signature(m: Mapping[str, Any]) -> str:
    shown = [f"{p['name']}: {p['type']}" + ("" if p["required"] else f" = {p['default']}") for p in m["parameters"]]
    return f"{m['name']}({', '.join(shown)}) -> {m['returns']}"
