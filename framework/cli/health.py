"""``obo health --node n1``: is this node well? For health checks of containers and service managers."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from framework.cli.where import CLUSTER, ConfigFile, nodes, security
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest
from framework.orb.config import split_address


def run(
    node: Annotated[str, typer.Option("--node", metavar="NAME", envvar="OBO_NODE", help="Which of the nodes.")],
    config: ConfigFile = CLUSTER,
    at: Annotated[
        str | None, typer.Option("--at", metavar="ADDRESS", help="Else its port on this machine: 127.0.0.1:PORT.")
    ] = None,
    calls: Annotated[
        bool, typer.Option("--calls", help="Enough if it takes calls; else its replicas must have their states, too.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=0.1, max=60, help="Seconds to wait for an answer.")] = 3.0,
) -> None:
    """Ask a node by gRPC health, with the node's own certificate and no token. Ends with 0 if it is well, else with 1.

    Example: obo health --node n1 --config examples/cluster.toml
    """
    from framework.orb.health import unwell

    known = nodes(config)
    if node not in known:
        raise BadRequest(f"{config}: no node {node!r}; {did_you_mean(node, known)}")
    where = at or f"127.0.0.1:{split_address(known[node], f'[nodes] {node}')[1]}"
    split_address(where, "--at")
    why = unwell(where, node, security(Path(config)).tls(node), not calls, timeout)
    if why:
        print(f"obo: {why}", file=sys.stderr)
        raise typer.Exit(1)
    print(f"{node} is well")
