"""Cancelling a call: which requests need not be performed any more when nobody waits for them (docs/com.md).

Replicas must do the same, and each hears of a cancelling at another moment. So a request that several replicas of an
object perform is carried through; also one that only reads: a call back to it (joining) goes to all these replicas and
has to find it there. So is one that several replicas of its caller make: the others wait for its answer. What is left
goes to a single replica. It keeps its place in the queue: order, contexts and marks do not notice.
"""

from typing import TYPE_CHECKING

from framework.com.caller import Call
from framework.com.messages import Cancel, Request
from framework.ids import node_of

if TYPE_CHECKING:
    from framework.com.core import Com


def alone(what: Request | Call) -> bool:
    """Does each object get it at one replica only?"""
    return len(what.dests) == (what.objects if isinstance(what, Call) else len(what.parts))


def may_stop(request: Request) -> bool:
    """Judged by the callee, from the request alone."""
    if request.copies > 1 or not alone(request):
        return False
    return len(request.parts) == 1 or all(p.footprint.readonly for p in request.parts)  # a pcast: not half of a change


def recall(com: "Com", call: Call) -> None:
    """Tell those that have not answered. Links are FIFO: it comes after the request."""
    if not alone(call):
        return
    for at in call.dests:
        if at not in call.got:
            com.post(node_of(at), Cancel(com.view, call.group, at))
