"""Who of the destinations of a call is there, and who counts (protocol.md §10.11).

A quorum counts against the replicas that an object is declared to have, not against those that are left.

An instance whose request was sent in an earlier view waits for no life that began after it, as long as others of that
object can answer. Such a life has no state before this instance has ended (framework.com.handover), and would be waited
for in vain. It gets the requests of the instance like everybody else; only the receipt does without it.

Nor does it wait for a replica that is known to have no state yet, as long as others can answer: that one may wait for
the instance to end. And replicas of a caller must come to the same result, whichever view each of them is in: so an
instance takes what it can get, as long as one replica of each object answers.

For the same reason a call of an instance that several replicas perform is refused if it would have been refused in any
view since the request of this instance was sent: another replica of the caller may have been in that view when it came
to this call, and may have ended without it. A call back on account of the one made here would then join its ancestor
here, before requests that wait for it, and have an ordinary place there, behind them (protocol.md §6.2; A3).

What is sent to several destinations goes to all replicas of an object, or only to those that have a state: else the
state that the others will get may already have what comes after it. A call back goes wherever its ancestor went: a
state has both of them, or none, because it is given when nothing runs and nothing is held.
"""

from typing import TYPE_CHECKING

import msgspec

from framework.com.caller import Call, Caller
from framework.com.events import Outgoing, Submit
from framework.com.lives import Lives
from framework.errors import Unavailable
from framework.ids import Replica, node_of, object_of

if TYPE_CHECKING:
    from framework.com.core import Com


def present(com: "Com", event: Submit, since: int | None = None, caller: Caller | None = None) -> Submit:
    """The same call, to those replicas that are in the view. Unavailable if they are too few. ``since``: the view from
    which on other replicas may have made the same call."""
    waits = caller is not None and event.kind != "oneway" and not event.independent
    line = [a.object for a in caller.chain] if caller is not None and waits else []
    nested = not isinstance(event.caller, str) and event.kind != "oneway"
    many = sum(len(part.replicas) for part in event.parts) > 1
    parts = tuple([_there(com, part, many and part.object not in line) for part in event.parts])
    receipt = event.receipt
    least = receipt.r if receipt is not None and receipt.way == "quorum" and not nested else 1
    for part, asked in zip(parts, event.parts, strict=True):
        if len(part.replicas) < least:
            raise Unavailable(
                f"{part.object}: {len(part.replicas)} of its replicas {', '.join(asked.replicas)} can be reached and "
                f"have a state, {least} {'is' if least == 1 else 'are'} needed; {_view(com)}"
            )
    if nested and since is not None:
        _check_since(com, event, since)
    source = receipt.source if receipt is not None else None
    if source is not None and not nested and all(source not in part.replicas for part in parts):
        raise Unavailable(f"{source} cannot be reached, or has no state yet; {_view(com)}")
    left = [r for part in parts for r in part.replicas]
    absent = tuple([r for part in event.parts for r in part.replicas if r not in left])
    return msgspec.structs.replace(event, parts=parts, absent=(*event.absent, *absent)) if absent else event


def without_joiners(lives: Lives, caller: Caller, call: Call) -> None:
    """A call of an instance does not wait for who has no state, or began after it."""
    late = [d for d in call.dests if d in lives.pending or lives.gone(d, caller.version)]
    if late:
        ready = {object_of(d) for d in call.dests if d not in late}
        call.waive([d for d in late if object_of(d) in ready])


def _check_since(com: "Com", event: Submit, since: int) -> None:
    """Unavailable if it was in an earlier view. Not for one-way calls: what comes back from them joins nobody."""
    for part in event.parts:
        view = com.lives.without(part.replicas, since)
        if view is not None:
            raise Unavailable(
                f"{part.object}: none of {', '.join(part.replicas)} was there in view {view.version}, in which another "
                f"replica of the caller may have come to this call; {_view(com)}"
            )


def _there(com: "Com", part: Outgoing, many: bool) -> Outgoing:
    members, pending = com.lives.view.members, com.lives.pending
    there = [r for r in part.replicas if node_of(r) in members]
    if many and pending and not all(r in there for r in _all(com, part)):
        there = [r for r in there if r not in pending]
    return part if len(there) == len(part.replicas) else part._replace(replicas=tuple(there))


def _all(com: "Com", part: Outgoing) -> list[Replica]:
    """All replicas of the object that there are."""
    every = com.directory.find(part.object).replicas
    return [r for r in every if node_of(r) in com.lives.view.members]


def _view(com: "Com") -> str:
    return f"view {com.view} has the members {', '.join(com.lives.view.members)}"
