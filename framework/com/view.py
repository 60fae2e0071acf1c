"""The members of the group, with a version number, and which object lives where.

The view is fixed here; detection, flush and the majority decision of PROTOCOL §7 have their room in this module.
"""

from collections.abc import Mapping, Sequence

import msgspec

from framework.com.messages import Dest, Part
from framework.errors import BadRequest, NoSuchObject
from framework.footprint import Relation
from framework.ids import Node, ObjectName, Replica, check_name, replica


class View(msgspec.Struct, frozen=True):
    version: int
    members: tuple[Node, ...]


class Placement:
    """An object: its conflict relation, and its replicas in the order of the nodes."""

    __slots__ = ("name", "relation", "replicas")

    def __init__(self, name: str, relation: Relation, nodes: Sequence[str]) -> None:
        self.name = ObjectName(check_name(name, "object name"))
        self.relation = relation
        self.replicas: tuple[Replica, ...] = tuple(replica(name, n) for n in sorted(nodes))


class Directory:
    """Every object of the group. The same at all nodes."""

    def __init__(self, view: View, placements: Sequence[Placement]) -> None:
        self.view = view
        for node in view.members:
            check_name(node, "node name")
        self.objects: Mapping[ObjectName, Placement] = {p.name: p for p in placements}
        for placement in placements:
            for r in placement.replicas:
                if r.partition("@")[2] not in view.members:
                    raise BadRequest(f"replica {r} is on a node that is not a member of the view")

    def find(self, name: str) -> Placement:
        found = self.objects.get(ObjectName(name))
        if found is None:
            raise NoSuchObject(f"no object {name!r}; there are: {', '.join(sorted(self.objects)) or 'none'}")
        return found

    def needs_agreement(self, dests: Sequence[Dest], parts: Sequence[Part]) -> bool:
        """Not with one destination, nor if its methods conflict with nothing (PROTOCOL §5). The same at every node."""
        return len(dests) > 1 and not all(self.objects[p.object].relation.free(p.footprint.method) for p in parts)

    def on(self, node: Node) -> list[tuple[Placement, Replica]]:
        return [(p, r) for p in self.objects.values() for r in p.replicas if r.partition("@")[2] == node]
