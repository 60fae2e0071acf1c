"""``obo evict NODE``: the others go on without a node."""

from framework.cli.group import Group, NodeName, Yes, confirmed
from framework.cli.where import CLUSTER, ConfigFile, CredentialsDir
from framework.orb.messages import Change


def run(
    node: NodeName,
    yes: Yes = False,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
) -> None:
    """Take a node out of the group, whether it can be reached or not.

    A node that is alive comes back by itself, as a new life that gets its state from the others, unless its process is
    stopped: so this also repairs a node whose state is doubted. To stop one for good use obo leave. Refused, with the
    reason, when too few members would stay. Needs a token with the role admin.

    Example: obo evict n3 --config examples/cluster.toml
    """
    group = Group(config, credentials)
    group.check(node)
    at, told = group.member(but=node)
    confirmed(f"{node} is taken out of view {told['view']} ({', '.join(told['members'])}). Go on?", yes)
    group.change(at, Change(1, "evict", node))
    members = group.until_gone(node, told["group"]["members"].get(node), at)
    print(f"{node} was taken out of the group; members: {members}. If its process runs, it comes back by itself")
