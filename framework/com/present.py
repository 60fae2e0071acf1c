"""Who of the destinations of a call is there, and who counts (PROTOCOL §7).

A quorum counts against the replicas that an object is declared to have, not against those that are left.

An instance whose request was sent in an earlier view waits for no life that began after it, as long as others of that
object can answer. Such a life has no state before this instance has ended (framework.com.handover), and would be waited
for in vain. It gets the requests of the instance like everybody else; only the receipt does without it.

Nor does it wait for a replica that is known to have no state yet, as long as others can answer: that one may wait for
the instance to end. And replicas of a caller must come to the same result, whichever view each of them is in: so an
instance takes what it can get, as long as one replica of each object answers.

What is sent to several destinations goes to one replica of each object at least that has a state: else the state that
the others will get may already have what comes after it.
"""

from typing import TYPE_CHECKING

import msgspec

from framework.com.events import Outgoing, Submit
from framework.errors import Unavailable
from framework.ids import Replica, node_of

if TYPE_CHECKING:
    from framework.com.core import Com


def present(com: "Com", event: Submit) -> Submit:
    """The same call, to those replicas that are in the view. Unavailable if they are too few."""
    nested = not isinstance(event.caller, str) and event.kind != "oneway"
    parts = tuple([_there(com, part) for part in event.parts])
    many = sum(len(part.replicas) for part in parts) > 1
    receipt = event.receipt
    least = receipt.r if receipt is not None and receipt.way == "quorum" and not nested else 1
    for part, asked in zip(parts, event.parts, strict=True):
        if len(part.replicas) < least:
            raise Unavailable(
                f"{part.object}: {len(part.replicas)} of its replicas {', '.join(asked.replicas)} can be reached, "
                f"{least} {'is' if least == 1 else 'are'} needed; {_view(com)}"
            )
        if many and all(r in com.lives.pending for r in part.replicas):
            raise Unavailable(f"{part.object}: {', '.join(part.replicas)} has no state yet; call more of its replicas")
    source = receipt.source if receipt is not None else None
    if source is not None and not nested and node_of(source) not in com.lives.view.members:
        raise Unavailable(f"{source} cannot be reached; {_view(com)}")
    return msgspec.structs.replace(event, parts=parts)


def _there(com: "Com", part: Outgoing) -> Outgoing:
    members = com.lives.view.members
    there: tuple[Replica, ...] = tuple([r for r in part.replicas if node_of(r) in members])
    return part if len(there) == len(part.replicas) else part._replace(replicas=there)


def _view(com: "Com") -> str:
    return f"view {com.view} has the members {', '.join(com.lives.view.members)}"
