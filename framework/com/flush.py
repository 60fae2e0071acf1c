"""The flush: what survivors have from the departed, its union, and how all of them use it (protocol.md §10.5).

- A proposal of a departed destination counts if it is in the union, else nobody waits for it.
- A request of a departed origin that some survivor has is completed: every surviving destination gets it, from any
  replica of the same object. One that no survivor has is void, and so are the entries of contexts that name it. So is
  an act on several objects (pcast) that needs agreement, if nobody has the part of one of them: it cannot have been
  agreed, so nobody has delivered it.

A replica keeps what it has delivered until all other destinations are known to have delivered it, too: what it has used
from a departed member, others may still need.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from framework.com.events import Installed
from framework.com.lives import Lives
from framework.com.messages import Dest, Moved, Request
from framework.com.words import Decision, Placed, Report
from framework.ids import GroupId, Node, ObjectName, Replica, node_of, object_of

if TYPE_CHECKING:
    from framework.com.core import Com


def report(com: "Com", leaving: Sequence[Node]) -> Report:
    """What this node has from those who leave."""
    proposals: dict[tuple[GroupId, Replica], int] = {}
    requests: dict[tuple[GroupId, ObjectName], Request] = {}
    for host in com.hosts.values():
        for entry in (*host.order.entries.values(), *host.kept):
            for at, number in (entry.proposals or {}).items():
                if node_of(at) in leaving:
                    proposals[entry.group, at] = number
            if entry.request is not None and node_of(entry.group.replica) in leaving:
                requests[entry.group, host.name] = entry.request
    return Report(
        tuple([Placed(group, at, number) for (group, at), number in sorted(proposals.items())]),
        tuple([requests[key] for key in sorted(requests)]),
    )


def union(reports: Iterable[Report]) -> Report:
    proposals: dict[tuple[GroupId, Replica], int] = {}
    requests: dict[tuple[GroupId, ObjectName], Request] = {}
    for one in reports:
        proposals.update({(p.group, p.replica): p.number for p in one.proposals})
        requests.update({(r.group, object_of(r.target)): r for r in one.requests})
    return Report(
        tuple([Placed(group, at, number) for (group, at), number in sorted(proposals.items())]),
        tuple([requests[key] for key in sorted(requests)]),
    )


def install(com: "Com", decision: Decision) -> None:
    """The next view begins here. Requests among those who stay go on as they were."""
    moved = {*decision.left, *decision.joined}
    com.lives.install(decision.view, decision.left, decision.joined)
    com.view = decision.view.version
    completed = _completed(com.lives, decision)
    alive = _alive(com.lives, completed)
    com.known.close(moved, alive)
    for node in decision.left:
        com.links.pop(node, None)
        com.marks.forget(node)
    for node in decision.joined:
        com.links[node] = com.link(node)
        com.marks.begin(node)
    com.tell(Installed(decision.view, decision.left, decision.joined))
    for node in com.links:
        com.post(node, Moved(com.view))
    com.calls.renumber(decision.left)  # what is delivered now may make transactions end, and that is told
    _depart(com, decision, completed, alive)
    com.calls.depart(decision.left)
    com.handover.refresh()


def _completed(lives: Lives, decision: Decision) -> list[Request]:
    """The requests of departed origins that go on, one for each object."""
    have: dict[GroupId, set[ObjectName]] = {}
    for request in decision.report.requests:
        have.setdefault(request.group, set()).add(object_of(request.target))
    return [
        r
        for r in decision.report.requests
        if not r.ordered or have[r.group] >= {object_of(d.replica) for d in _there(lives, r)}
    ]


def _there(lives: Lives, request: Request) -> list[Dest]:
    """Its destinations, as far as the lives that it was sent to go on."""
    return [d for d in request.dests if not lives.gone(d.replica, request.view)]


def _alive(lives: Lives, completed: list[Request]) -> dict[tuple[Replica, Node], set[int]]:
    """Their sequence numbers, by destination and origin."""
    alive: dict[tuple[Replica, Node], set[int]] = {}
    for request in completed:
        name = object_of(request.target)
        for dest in _there(lives, request):
            if object_of(dest.replica) == name:
                alive.setdefault((dest.replica, node_of(request.group.replica)), set()).add(dest.seq)
    return alive


def _depart(
    com: "Com", decision: Decision, completed: list[Request], alive: dict[tuple[Replica, Node], set[int]]
) -> None:
    proposals: dict[GroupId, dict[Replica, int]] = {}
    for placed in decision.report.proposals:
        proposals.setdefault(placed.group, {})[placed.replica] = placed.number
    for host in com.hosts.values():
        mine = {r.group for r in completed if object_of(r.target) == host.name}
        host.depart(decision, proposals, mine, {n: alive.get((host.replica, n), set()) for n in decision.left})
    for host in com.hosts.values():
        here = [
            msgspec.structs.replace(r, target=host.replica)
            for r in completed
            if object_of(r.target) == host.name and any(d.replica == host.replica for d in _there(com.lives, r))
        ]
        for request in sorted(here, key=lambda r: [d.seq for d in r.dests if d.replica == host.replica]):
            host.bring(request)
        host.go_on()
