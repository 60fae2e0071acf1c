"""What a replica says of the place of a request: its proposal, to every destination (protocol.md §5.2).

It also announces the request to those that may not have it yet: neither to its origin, nor to who has proposed for it,
nor from the origin itself, for links are FIFO. Most proposals are the origin stamp, of a request to one object, for
somebody who has it. Those take few bytes: the origin's go with the request, others as ranges.
"""

from typing import TYPE_CHECKING

from framework.com.convoy import calls_of
from framework.com.entry import Entry
from framework.com.events import Wake
from framework.com.messages import Announce, Known, Proposal, Request
from framework.com.telling import Proposed
from framework.ids import Node, Replica, Stamp, node_of

if TYPE_CHECKING:
    from framework.com.core import Com


class Proposing:
    def __init__(self, com: "Com", replica: Replica) -> None:
        self._com = com
        self._replica = replica
        self._peers_of: dict[tuple[Replica, ...], list[Node]] = {}

    def forget(self) -> None:
        """The view changes."""
        self._peers_of.clear()

    def tell(self, entry: Entry) -> None:
        """To every destination; with an announcement for those that may not have the request yet."""
        com, request = self._com, entry.request
        assert entry.proposal is not None and request is not None
        number = entry.proposal.number
        com.clock_at_least(number)
        if com.told:
            for group, _ in calls_of(request):
                com.tell(Proposed(self._replica, group, Stamp(number, group)))
        if len(request.parts) == 1 and number == request.number and not entry.gone:
            self._first(entry, request)
        else:
            self._any(entry, request, number)

    def _first(self, entry: Entry, request: Request) -> None:
        """The origin stamp, of a request to one object."""
        com, mine, group = self._com, self._replica, request.group
        origin, have = node_of(group.replica), entry.proposals or {}
        full: Proposal | None = None
        for at, seq in request.dests:
            link = com.links.get(node_of(at)) if at != mine else None
            if link is None or (origin == com.node and link.lead(group)):
                continue  # it has departed; or its request has not left
            if link.peer == origin or at in have:
                if link.propose(com.view, mine, at, origin, seq):
                    com.tell(Wake(link.peer))
                continue
            if full is None:
                announce = _announce(request) if origin != com.node else None
                full = Proposal(com.view, group, mine, request.number, announce)
            com.post(link.peer, full)

    def _any(self, entry: Entry, request: Request, number: int) -> None:
        com = self._com
        plain = Proposal(com.view, entry.group, self._replica, number)
        full: Proposal | None = None
        origin = node_of(entry.group.replica)
        have = [node_of(r) for r in entry.proposals or ()]
        for node in self._peers(entry):
            # links are FIFO: who gets the request from here has it before this; so has who sent it or proposed for it
            if node != com.node and (origin in (node, com.node) or node in have):
                com.post(node, plain)
                continue
            if full is None:
                full = Proposal(com.view, entry.group, self._replica, number, _announce(request))
            com.post(node, full)

    def spread(self, entry: Entry, message: Known) -> None:
        for node in self._peers(entry):
            self._com.post(node, message)

    def _peers(self, entry: Entry) -> list[Node]:
        """Nodes of the other destinations; this one, too, when it has several of them (pcast)."""
        if entry.gone:
            return sorted({node_of(d) for d in entry.dests if d != self._replica and d not in entry.gone})
        peers = self._peers_of.get(entry.dests)
        if peers is None:
            if len(self._peers_of) > 1024:
                self._peers_of.clear()
            peers = self._peers_of[entry.dests] = sorted({node_of(d) for d in entry.dests if d != self._replica})
        return peers


def _announce(request: Request) -> Announce:
    return Announce(request.number, request.dests, request.parts, request.view)
