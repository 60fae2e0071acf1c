"""``obo tran``: transactions that are not over: what they hold, for whom they wait; and an end to them."""

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from framework import BadRequest
from framework.cli.group import Group, Yes, confirmed
from framework.cli.transactions import merged, table
from framework.cli.where import CLUSTER, ConfigFile, CredentialsDir
from framework.errors import Unavailable
from framework.orb.messages import Change

app = typer.Typer(help="Transactions that are not over: show them, abort one.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As obo tran ls shows it, such as c-1a2b/3.")]
Json = Annotated[bool, typer.Option("--json", help="JSON, one object per line.")]


@app.command("ls")
def ls(config: ConfigFile = CLUSTER, credentials: CredentialsDir = None, as_json: Json = False) -> None:
    """List the transactions that are not over. Nodes that cannot be reached are left out, and told.

    Example: obo tran ls --config examples/cluster.toml
    """
    every = _every(Group(config, credentials))
    if as_json:
        for one in every:
            print(msgspec.json.encode(one).decode())
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 140
    for part in table(every) or ["no transaction is open"]:
        console.print(part)


@app.command("show")
def show(name: Name, config: ConfigFile = CLUSTER, credentials: CredentialsDir = None, as_json: Json = False) -> None:
    """Show one transaction: what it holds on each node, and for whom it waits.

    Example: obo tran show c-1a2b/3 --config examples/cluster.toml
    """
    one = _find(_every(Group(config, credentials)), name)
    if as_json:
        print(msgspec.json.encode(one).decode())
        return
    print(f"{name}: {one['state']}; known at {', '.join(one['nodes'])}; something is held for {one['held_for']:.1f} s")
    for holds in one["holds"]:
        print(f"  holds      {holds}")
    for waits in one["waits_for"]:
        print(f"  waits for  {waits}")


@app.command("abort")
def abort(name: Name, yes: Yes = False, config: ConfigFile = CLUSTER, credentials: CredentialsDir = None) -> None:
    """Abort a transaction: all that it did is undone, and its client is told Aborted.

    If it is decided otherwise at the same moment, the first decision counts. Needs a token with the role admin.

    Example: obo tran abort c-1a2b/3 --config examples/cluster.toml
    """
    group = Group(config, credentials)
    one = _find(_every(group), name)
    confirmed(f"{name} holds {len(one['holds'])} slots at {', '.join(one['nodes'])}. Abort it?", yes)
    group.change(one["nodes"][0], Change(1, "abort", name))
    print(f"{one['nodes'][0]} asks for {name} to be aborted")


def _every(group: Group) -> list[dict[str, Any]]:
    up = []
    for node in group.nodes:
        try:
            up.append(group.look(node))
        except Unavailable as error:
            typer.echo(f"{node} is left out: {error}", err=True)
    if not up:
        raise Unavailable("no node can be reached")
    return merged(up)


def _find(every: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for one in every:
        if one["name"] == name:
            return one
    raise BadRequest(f"no transaction {name!r} is open; obo tran ls shows those that are")
