"""What is written down of an instance that has been performed."""

from typing import TYPE_CHECKING

from framework.com.core import Com
from framework.com.event import Decided
from framework.com.events import Completed, Ended, Prepared
from framework.ids import Invocation
from framework.orb.durable.entries import Entry, Settled
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
    tran = instance.entry.tran or (instance.invocation if instance.dependents else None)
    ticket = ""
    if tracing is not None:
        told = _told(com, performance, completed)
        if told is not None:
            tracing.early(told)
        ticket = tracing.ticket(replica)
    seen = tuple(performance.seen) if completed.ok else ()
    body, output, joins = completed.body, completed.output, instance.joins.wire()
    tran = tran if completed.ok else None
    return Entry(request, completed.ok, body, output, seen, context, joins, com.view, com.clock, ticket, tran)


def _told(com: Com, performance: "Instance", completed: Completed) -> Ended | Prepared | None:
    """What the com layer will say of it at once. The root of a transaction is over when that is."""
    sid, invocation, tran = completed.sid, performance.effect.request.invocation, performance.effect.tran
    if tran is None:
        ended = Ended(sid, performance.effect.replica, invocation, completed.ok)
        return None if com.instances[sid].dependents else ended
    return Prepared(
        sid, performance.effect.replica, invocation, completed.ok and not com.trans.is_lost(invocation, tran)
    )


def outcome_of(com: Com, tracing: Tracing | None, effect: Decided) -> Entry:
    """What tran has been told."""
    request = effect.request
    ticket = ""
    if tracing is not None:
        tracing.early(Ended(effect.sid, effect.replica, request.invocation, True))
        ticket = tracing.ticket(effect.replica)
    return Entry(request, True, effect.body, True, (), effect.context, (), com.view, com.clock, ticket)


def settled_of(tracing: Tracing | None, performance: "Instance", name: Invocation, commit: bool) -> Settled:
    request, replica = performance.effect.request, performance.effect.replica
    ticket = ""
    if tracing is not None:
        tracing.early(Ended(performance.effect.sid, replica, request.invocation, commit))
        ticket = tracing.ticket(replica)
    return Settled(request.invocation, name, commit, ticket)
