"""``obo certs init``, ``renew``, ``show``: the certificates of a cluster."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from framework.cli.where import CLUSTER, ConfigFile, nodes
from framework.errors import BadRequest
from framework.ids import check_name
from framework.orb.config import split_address

app = typer.Typer(help="Make the CA and the certificates of a cluster, and look at them.", no_args_is_help=True)

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the files go.")]
Days = Annotated[int, typer.Option("--days", min=1, max=36500, help="How long certificates are good for.")]


@app.command()
def init(
    config: ConfigFile = CLUSTER,
    out: Out = Path("certs"),
    days: Days = 365,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there, also the CA and all tokens.")] = False,
) -> None:
    """Make a CA, a certificate for each node, and a directory for clients: certificate and token."""
    from framework.net.issue import issue

    hosts = _hosts(config)
    files = [out / n for n in ("ca.pem", "ca.key", "tokens.toml", *(f"{h}.{e}" for h in hosts for e in ("pem", "key")))]
    there = [f for f in (*files, out / "client") if f.exists()]
    if there and not force:
        raise BadRequest(f"{there[0]} is there already: obo certs renew keeps the CA, --force replaces everything")
    issue(hosts, out, days)
    _tell(config, out, hosts)


@app.command()
def renew(config: ConfigFile = CLUSTER, out: Out = Path("certs"), days: Days = 365) -> None:
    """New certificates for all nodes and for clients, by the CA that is there; also for nodes that are new."""
    from framework.net.issue import reissue

    hosts = _hosts(config)
    reissue(hosts, out, days)
    print(f"{out}: new certificates for {', '.join(hosts)} and for clients; restart the nodes one by one")


@app.command()
def show(out: Annotated[Path, typer.Argument(metavar="DIR", help="What init has made.")] = Path("certs")) -> None:
    """Names and days left of each certificate. Ends with 1 if one has expired."""
    from framework.net.certs import facts

    found = {path: facts(path) for path in (*sorted(out.glob("*.pem")), *sorted(out.glob("client/cert.pem")))}
    if not found:
        raise BadRequest(f"{out}: no certificates in it; obo certs init makes them")
    table = Table("file", "of", "names", "expires", "days left")
    for path, one in found.items():
        left = f"{one.days_left:.0f}" if one.days_left > 0 else "[red]expired[/red]"
        table.add_row(str(path.relative_to(out)), one.subject, ", ".join(one.names), f"{one.expires:%Y-%m-%d}", left)
    Console(highlight=False).print(table)
    raise typer.Exit(1 if any(one.days_left <= 0 for one in found.values()) else 0)


def _hosts(config: Path) -> dict[str, str]:
    """By node, the host at which it is dialled."""
    found = nodes(config)
    return {check_name(name, "node name"): split_address(found[name], f"[nodes] {name}")[0] for name in found}


def _tell(config: Path, out: Path, hosts: dict[str, str]) -> None:
    try:
        shown = out.resolve().relative_to(config.resolve().parent)
    except ValueError:
        shown = out.resolve()
    print(f"""{out}: a CA, certificates for {", ".join(hosts)}, and credentials for clients.

1. Say so in {config}:

[security]
ca = "{shown}/ca.pem"
cert = "{shown}/{{node}}.pem"
key = "{shown}/{{node}}.key"
tokens = "{shown}/tokens.toml"
client = "{shown}/client"

2. Give each node ca.pem, tokens.toml, and its own .pem and .key, and nobody else's.
3. Give clients {out}/client: connect(..., credentials="{out}/client"). Its token may call; obo token new makes others.
4. Keep ca.key away from the nodes: whoever has it can make itself a node.
5. obo config check {config}""")
