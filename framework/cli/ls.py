"""``obo ls``: the objects of a cluster, where they live and what they can do."""

from rich.console import Console
from rich.table import Table

from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir, addresses, reach


def run(at: At = None, config: ConfigFile = CLUSTER, credentials: CredentialsDir = None) -> None:
    """List the objects of a running cluster."""
    with reach(addresses(at, config), config, credentials) as orb:
        found = orb.look("objects")
    table = Table("object", "class", "replicas", "methods")
    for one in found:
        nodes = ", ".join(r.partition("@")[2] for r in one["replicas"])
        table.add_row(one["name"], one["class"], nodes, ", ".join(one["methods"]))
    Console(highlight=False).print(table)
