"""What is written down of an instance that has been performed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from framework.com import convoy
from framework.com.core import Com
from framework.com.event import Decided
from framework.com.events import Completed, Ride
from framework.com.telling import Duplicate, Ended, Prepared, Rode
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
        for told in _told(com, performance, completed):
            tracing.early(told)
        ticket = tracing.ticket(replica)
    seen = tuple(performance.seen) if completed.ok else ()
    body, output, joins = completed.body, completed.output, instance.joins.wire()
    if completed.rides:
        body = convoy.pack_rides([(_status(ride), ride.body if ride is not None else b"") for ride in completed.rides])
    tran = tran if completed.ok else None
    return Entry(request, completed.ok, body, output, seen, context, joins, com.view, com.clock, ticket, tran)


def _status(ride: Ride | None) -> str:
    return "" if ride is None else "ok" if ride.ok else "error"


def entries_of(entry: Entry) -> list[Entry]:
    """Of a convoy: one for each of its calls that was performed. Else itself."""
    request = entry.request
    if not request.riders:
        return [entry]
    rides = convoy.rides_of(entry.body, len(request.riders))
    return [
        msgspec.structs.replace(entry, request=each, ok=status == "ok", body=body, output=True)
        for each, (status, body) in zip(convoy.split(request), rides, strict=True)
        if status
    ]


def _told(com: Com, performance: "Instance", completed: Completed) -> Sequence[Ended | Prepared | Rode | Duplicate]:
    """What the com layer will say of it at once. The root of a transaction is over when that is."""
    sid, invocation, tran = completed.sid, performance.effect.request.invocation, performance.effect.tran
    if completed.rides:
        return convoy.told(com.instances[sid], completed)
    if tran is None:
        ended = Ended(sid, performance.effect.replica, invocation, completed.ok)
        return [] if com.instances[sid].dependents else [ended]
    good = completed.ok and not com.trans.is_lost(invocation, tran)
    return [Prepared(sid, performance.effect.replica, invocation, good)]


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
