"""Who is a member now, since when, and which sequence numbers that leaves in use (protocol.md §10.7).

Requests from an origin to a replica are numbered (protocol.md §3.3), and contexts name them by these numbers. A new
life of either node must not be taken for an old one. So its numbers begin above all that an earlier life can have used:
at ``since`` times 2^32. Whatever is below is over: delivered, part of a state that was handed over, or void; but for
the requests of a departed origin that the flush has brought.
"""

from collections.abc import Iterable

from framework.com.messages import Frame
from framework.com.view import View
from framework.com.words import AnyWord, Decided, Excluded, OfGroup
from framework.ids import Node, Replica, node_of

_SPAN = 32  # bits: requests of one life to one replica


def first_of(version: int) -> int:
    """Below the first sequence number, or the first clock, of a life that begins with this version."""
    return (version - 1) << _SPAN


def life_of(number: int) -> int:
    """Below the first number of the life that has used this one."""
    return number >> _SPAN << _SPAN


class Lives:
    __slots__ = ("_moved", "_seen", "_views", "node", "pending", "view")

    def __init__(self, node: Node, view: View) -> None:
        self.node = node
        self.view = view
        self.pending: set[Replica] = set()  # replicas that have no state yet, as far as is known here
        self._moved: dict[Node, int] = {}  # last version in which a node came or left
        self._seen: dict[Node, int] = {}  # the same, as far as this node was there
        #: The last view with these members, in the order of their versions. One is left out if a later one has no other
        #: members: a replica that was absent in it was absent in that. So they are few, however long the group lasts
        self._views: dict[tuple[Node, ...], View] = {}
        self.install(view, (), view.members)
        self._seen.clear()

    def install(self, view: View, left: Iterable[Node], joined: Iterable[Node]) -> None:
        self.view = view
        members = set(view.members)
        self._views = {names: old for names, old in self._views.items() if not members.issubset(names)}
        self._views[view.members] = view
        self.pending = set(view.unready)
        for node in left:
            self._moved[node] = self._seen[node] = view.version
        for node in joined:
            self._moved[node] = view.life(node) or view.version
            self._seen[node] = self._moved[node]

    def is_foreign(self, said: Frame | AnyWord) -> bool:
        """Does it come from another formation? Its sender is not there any more: a group is formed when all nodes have
        left the one before."""
        if isinstance(said, Frame | OfGroup):
            return said.formation != self.view.formation
        if isinstance(said, Decided):
            return said.decision.view.formation != self.view.formation
        return isinstance(said, Excluded) and said.view.formation != self.view.formation

    @property
    def mine(self) -> int:
        since = self.view.life(self.node)
        assert since is not None, f"{self.node} is not a member of {self.view}"
        return since

    def base(self, origin: Node, at: Replica) -> int:
        """Numbers up to this one of requests from ``origin`` to this replica are over."""
        return first_of(max(self._moved.get(origin, 1), self._moved.get(node_of(at), 1)))

    def known(self, origin: Node, at: Replica) -> int:
        """Numbers up to this one are known to be over. What an earlier life of the origin sent may be alive: those who
        were there when it ended know, others hear of it by the marks."""
        return first_of(max(self._seen.get(origin, 1), self._moved.get(node_of(at), 1)))

    def gone(self, at: Replica, version: int) -> bool:
        """Is the life that a request of this version went to, at this replica, not a member any more?"""
        since = self.view.life(node_of(at))
        return since is None or since > version

    def without(self, replicas: Iterable[Replica], since: int) -> View | None:
        """A view, of this version or a later one, in which none of these replicas was there."""
        nodes = {node_of(r) for r in replicas}
        for view in reversed(self._views.values()):
            if view.version < since:
                break
            if nodes.isdisjoint(view.members):
                return view
        return None
