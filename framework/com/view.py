"""The members of the group, with a version number, and which object lives where.

A *life* of a node is one stay in the group. It is told from other lives of the same name by ``since``, the version of
the view in which it began: a node that crashed or was excluded comes back as a new life, with nothing of the old one.

A *formation* is one group: it begins when its members begin together, and lasts as long as each view follows the one
before. Where every node has lost the number of its last view, versions begin anew, and with them all numbers of
requests: those of two formations look alike. So whatever names such numbers also names its formation, by random bits
that the node which made the first view got from its driver. Nobody can guess them.

How the next view is decided is in framework.com.member.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from framework.com.messages import Dest, Part
from framework.errors import BadRequest, NoSuchObject
from framework.footprint import Relation
from framework.ids import TRAN, Node, ObjectName, Replica, check_name, node_of, replica

COMMIT: Final = "commit"  # methods of tran
ABORT: Final = "abort"
VOTE: Final = "vote"  # of a part (framework.com.tran)


class View(msgspec.Struct, frozen=True, array_like=True):
    """``since`` and ``incarnations`` are parallel to ``members``; left out, they are 1 for all."""

    version: int
    members: tuple[Node, ...]
    since: tuple[int, ...] = ()
    incarnations: tuple[int, ...] = ()  # of a process: how a node that asks to join knows itself
    unready: tuple[Replica, ...] = ()  # those that have no state yet as it begins
    seeds: tuple[tuple[Replica, Replica], ...] = ()  # of these, those that begin with what the second one holds
    formation: bytes = b""  # the same in all views of a group

    def life(self, node: Node) -> int | None:
        """Since which version it is a member; None if it is not."""
        if node not in self.members:
            return None
        return self.since[self.members.index(node)] if self.since else 1

    def incarnation(self, node: Node) -> int | None:
        if node not in self.members:
            return None
        return self.incarnations[self.members.index(node)] if self.incarnations else 1

    @property
    def majority(self) -> int:
        return len(self.members) // 2 + 1

    @property
    def formed(self) -> bool:
        """Did its members begin together, without a view before it?"""
        return all(self.life(n) == self.version for n in self.members)


#: In the place of a replica that holds a state: there is none.
NOBODY = Replica("")


class Holding(NamedTuple):
    """A state that a replica without a state still has, from an earlier life: in memory, or on disk."""

    replica: Replica
    version: int  # of the last view of that life
    performed: int  # requests that are in it


class Placement:
    """An object: its conflict relation, and its replicas in the order of the nodes."""

    __slots__ = ("durable", "loose", "name", "relation", "replicas")

    def __init__(
        self, name: str, relation: Relation, nodes: Sequence[str], durable: bool = False, loose: bool = False
    ) -> None:
        self.durable = durable
        self.loose = loose  # it takes no part in transactions: what it has done stays done
        self.name = ObjectName(check_name(name, "object name"))
        self.relation = relation
        self.replicas: tuple[Replica, ...] = tuple(replica(name, n) for n in sorted(nodes))


#: Two outcomes of one transaction conflict, and each with itself: the first one delivered is the outcome. A vote of a
#: part conflicts with them, and with no other vote.
OUTCOMES = Relation([(COMMIT, COMMIT), (COMMIT, ABORT), (ABORT, ABORT), (VOTE, COMMIT), (VOTE, ABORT)])


def tran(nodes: Sequence[str], durable: bool = False) -> Placement:
    """The object whose instances are transactions (P0 §2). A group has transactions if its directory has this. It has
    to be durable if an object is that takes part in them."""
    return Placement(TRAN, OUTCOMES, nodes, durable)


class Directory:
    """Every node and object that may be in the group, the same everywhere; and the view that a node begins with."""

    def __init__(self, view: View, placements: Sequence[Placement], nodes: Sequence[Node] = ()) -> None:
        self.view = view
        self.nodes: tuple[Node, ...] = tuple(nodes) or view.members
        for node in (*self.nodes, *view.members):
            check_name(node, "node name")
        if strange := [n for n in view.members if n not in self.nodes]:
            raise BadRequest(f"members {strange} of view {view.version} are not among the nodes {list(self.nodes)}")
        self.objects: Mapping[ObjectName, Placement] = {p.name: p for p in placements}
        takes_part = frozenset(p.name for p in placements if not p.loose)
        self.roots = takes_part if TRAN in self.objects else frozenset()  # whose calls are transactions
        for placement in placements:
            for r in placement.replicas:
                if r.partition("@")[2] not in self.nodes:
                    raise BadRequest(f"replica {r} is on a node that is not a member of the view")

    def at(self, view: View) -> "Directory":
        """The same, for a node that begins with another view."""
        return Directory(view, tuple(self.objects.values()), self.nodes)

    def find(self, name: str) -> Placement:
        found = self.objects.get(ObjectName(name))
        if found is None:
            raise NoSuchObject(f"no object {name!r}; there are: {', '.join(sorted(self.objects)) or 'none'}")
        return found

    def seeds(
        self, lives: Mapping[Node, int], unready: Collection[Replica], held: Iterable[Holding]
    ) -> list[tuple[Replica, Replica]]:
        """Which replicas begin with a state that somebody still holds, as none of their object in this view has one.

        The state is that of the holder whose life lasted longest, then that of the one who performed most; the initial
        one if nobody holds any (no source). What is acknowledged is at a majority of the replicas, as declared: so a
        majority must be there to know who that is. The state goes to the replica that is in the group for longest: all
        that was sent since then is there, and only there; the others get it from this one."""
        out = []
        for placement in self.objects.values():
            here = [r for r in placement.replicas if node_of(r) in lives]
            if any(r not in unready for r in here) or 2 * len(here) <= len(placement.replicas):
                continue
            if placement.name == TRAN and placement.durable and len(here) < len(placement.replicas):
                continue  # who is missing may have an outcome on disk, and a state with it (framework.com.lasting)
            holders = [h for h in held if h.replica in here]
            best = max(holders, key=lambda h: (h.version, h.performed, h.replica)).replica if holders else NOBODY
            out.append((min(here, key=lambda r: (lives[node_of(r)], r != best, r)), best))
        return out

    def needs_agreement(self, dests: Sequence[Dest], parts: Sequence[Part]) -> bool:
        """Not with one destination, nor if its methods conflict with nothing (protocol.md §5.3). The same at every
        node."""
        return len(dests) > 1 and not all(self.objects[p.object].relation.free(p.footprint.method) for p in parts)

    def on(self, node: Node) -> list[tuple[Placement, Replica]]:
        return [(p, r) for p in self.objects.values() for r in p.replicas if r.partition("@")[2] == node]
