"""Who of the destinations of a call is there, and who counts (PROTOCOL §7).

A quorum counts against the replicas that an object is declared to have, not against those that are left.

An instance whose request was sent in an earlier view waits for no life that began after it. Such a life has no state
before this instance has ended (framework.com.handover), and would be waited for in vain. It gets the requests of the
instance like everybody else; only the receipt does without it. So all replicas of the caller judge alike, whichever
view each of them is in.

Nor does an instance wait for a replica that is known to have no state yet, as long as others of that object can answer:
that one may wait for the instance to end. And replicas of a caller must come to the same result whichever view they are in: so an instance takes what it can get,
as long as one replica of each object answers.
"""

from typing import TYPE_CHECKING

import msgspec

from framework.com.events import Outgoing, Submit
from framework.errors import Unavailable
from framework.ids import Replica, node_of

if TYPE_CHECKING:
    from framework.com.core import Com


def present(com: "Com", event: Submit, version: int) -> Submit:
    """The same call, to those replicas that are in the view. Unavailable if too few of them count, for one whose own
    request was sent in this version."""
    nested = not isinstance(event.caller, str) and event.kind != "oneway"
    parts = tuple([_there(com, part) for part in event.parts])
    receipt = event.receipt
    least = receipt.r if receipt is not None and receipt.way == "quorum" and not nested else 1
    for part, asked in zip(parts, event.parts, strict=True):
        count = [r for r in part.replicas if not com.lives.gone(r, version)]
        if len(count) < least:
            raise Unavailable(
                f"{part.object}: {len(count)} of its replicas {', '.join(asked.replicas)} can be reached, {least} "
                f"{'is' if least == 1 else 'are'} needed; {_view(com)}"
            )
    source = receipt.source if receipt is not None else None
    if source is not None and not nested and com.lives.gone(source, version):
        raise Unavailable(f"{source} cannot be reached; {_view(com)}")
    return msgspec.structs.replace(event, parts=parts)


def _there(com: "Com", part: Outgoing) -> Outgoing:
    members = com.lives.view.members
    there: tuple[Replica, ...] = tuple([r for r in part.replicas if node_of(r) in members])
    return part if len(there) == len(part.replicas) else part._replace(replicas=there)


def _view(com: "Com") -> str:
    return f"view {com.view} has the members {', '.join(com.lives.view.members)}"
