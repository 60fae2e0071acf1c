"""What is written down of an instance that has been performed."""

from typing import TYPE_CHECKING

from framework.com.core import Com
from framework.com.events import Completed, Ended, Prepared
from framework.orb.durable.entries import Entry
from framework.orb.tracing import Tracing

if TYPE_CHECKING:
    from framework.orb.performance import Instance


def entry_of(com: Com, tracing: Tracing | None, performance: "Instance", completed: Completed) -> Entry:
    """On the loop, before the com layer hears of it."""
    request, replica = performance.effect.request, performance.effect.replica
    instance = com.instances[completed.sid]
    context = instance.base + request.context + instance.siblings
    if instance.acted:
        context = instance.leaves(com.known)
    ticket = ""
    if tracing is not None:
        tracing.early(_told(com, performance, completed))
        ticket = tracing.ticket(replica)
    seen = tuple(performance.seen) if completed.ok else ()
    body, output, joins = completed.body, completed.output, instance.joins.wire()
    tran = performance.effect.tran
    return Entry(request, completed.ok, body, output, seen, context, joins, com.view, com.clock, ticket, tran)


def _told(com: Com, performance: "Instance", completed: Completed) -> Ended | Prepared:
    """What the com layer will say of it."""
    sid, invocation, tran = completed.sid, performance.effect.request.invocation, performance.effect.tran
    if tran is None:
        return Ended(sid, performance.effect.replica, invocation, completed.ok)
    return Prepared(
        sid, performance.effect.replica, invocation, completed.ok and not com.trans.is_lost(invocation, tran)
    )
