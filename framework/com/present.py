"""Who of the destinations of a call is there (PROTOCOL §7). A quorum counts against the replicas that an object is
declared to have, not against those that are left."""

from typing import TYPE_CHECKING

import msgspec

from framework.com.events import Outgoing, Submit
from framework.errors import Unavailable
from framework.ids import node_of

if TYPE_CHECKING:
    from framework.com.core import Com


def present(com: "Com", event: Submit) -> Submit:
    """The same call, to those replicas that are in the view. Unavailable if they are too few for it."""
    members = com.lives.view.members
    if all(node_of(r) in members for part in event.parts for r in part.replicas):
        return event
    parts = tuple(_there(com, part) for part in event.parts)
    if event.receipt is not None:
        least = event.receipt.r if event.receipt.way == "quorum" else 1
        for part, asked in zip(parts, event.parts, strict=True):
            if len(part.replicas) < least:
                raise Unavailable(
                    f"{part.object}: {len(part.replicas)} of its replicas {asked.replicas} can be reached, and the "
                    f"call waits for {least} of them; view {com.view} has the members {', '.join(members)}"
                )
        source = event.receipt.source
        if source is not None and node_of(source) not in members:
            raise Unavailable(f"{source} is not in view {com.view}; call another replica, or wait for another one")
    return msgspec.structs.replace(event, parts=parts)


def _there(com: "Com", part: Outgoing) -> Outgoing:
    members = com.lives.view.members
    there = tuple([r for r in part.replicas if node_of(r) in members])
    if not there:
        raise Unavailable(
            f"{part.object}: none of {', '.join(part.replicas)} can be reached; view {com.view} has the members "
            f"{', '.join(members)}"
        )
    return part._replace(replicas=there)
