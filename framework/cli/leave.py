"""``obo leave NODE``: a node leaves the group in order, and its process ends."""

from framework.cli.group import Group, NodeName, Yes, confirmed
from framework.cli.where import CLUSTER, ConfigFile, CredentialsDir
from framework.orb.messages import Change


def run(
    node: NodeName,
    yes: Yes = False,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
) -> None:
    """Let a node leave the group in order: it takes no more calls, answers those in flight, and its process ends.

    The same as SIGTERM. Refused, with the reason, when too few members would stay. Needs a token with the role admin.
    When it is started again it joins by itself.

    Example: obo leave n3 --config examples/cluster.toml
    """
    group = Group(config, credentials)
    group.check(node)
    at, told = group.member(but=node)
    confirmed(f"{node} leaves view {told['view']} ({', '.join(told['members'])}), and its process ends. Go on?", yes)
    group.change(node, Change(1, "leave", node))
    print(f"{node} has left the group; members: {group.until_gone(node, told['group']['members'].get(node), at)}")
