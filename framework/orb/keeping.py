"""A life is over, but the node goes on: it keeps the states of its replicas (held.py).

A state is kept as of whole requests. What had been performed when the life ended is in it, also if the com layer had
not been told yet; what was still running is undone when it ends: it is told that nobody waits for it any more. If that
takes too long, the state of that replica is of no use.
"""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from framework.com.caller import Instance
from framework.com.convoy import told
from framework.com.events import Completed
from framework.com.telling import Ended
from framework.com.view import Holding
from framework.ids import Replica
from framework.orb.backed.resident import BackedResident
from framework.orb.durable.restore import digest_with, doubtful
from framework.orb.held import Held, spooled
from framework.orb.moving import capture

if TYPE_CHECKING:
    from framework.orb.life import Life

log = logging.getLogger(__name__)

PATIENCE = 2.0  # seconds in which what is running must have ended
LOOK = 0.01


class Remains(NamedTuple):
    """Of one replica, as of the end of the life."""

    holding: Holding
    part: bytes
    ticket: str
    position: int


def close(life: "Life") -> dict[Replica, Remains]:
    """At the very end of a life, before its trace says so. From here on nothing changes its states but what is undone.
    Replicas that had none are left out, and those with a state that nobody can make whole."""
    com, tracing = life.com, life.tracing
    for done in life.dispatch.last():
        _complete(life, done)
    if life.node.leaving:
        return {}  # the process ends, and what it has in memory with it
    undone = life.dispatch.undone
    spoiled = {i.sid.replica for i in com.instances.values() if _changed(i) and i.sid not in undone}
    spoiled |= {r for r in life.residents if _half_done(life, r)}
    for replica in spoiled:
        log.warning("the state of %s is not kept: a call was open that would be half in it", replica)
    remains = {}
    for replica, resident in life.residents.items():
        if isinstance(resident, BackedResident):
            continue  # its store knows
        if replica not in com.unready and replica not in spoiled:
            holding = Holding(replica, com.view, resident.changes)
            ticket = tracing.ticket(replica) if tracing is not None else ""
            remains[replica] = Remains(holding, com.handover.keep(replica), ticket, resident.position)
    return remains


def _complete(life: "Life", done: Completed) -> None:
    """An instance that was performed before the end, and of which the com layer had not heard: its reply is kept with
    the state. If it still waits for calls of its own it cannot be over."""
    com, replica = life.com, done.sid.replica
    instance = com.instances.get(done.sid)
    if instance is None:
        return
    com.hosts[replica].complete(instance, done)
    if life.tracing is not None and done.sid not in com.instances:
        ended = [Ended(done.sid, replica, instance.invocation, done.ok)]
        for effect in told(instance, done) if done.rides else ended:
            life.tracing.effect(effect)


def _changed(instance: Instance) -> bool:
    """Is it in the state, though it is not over?"""
    return instance.finished is not None and instance.finished.ok and not instance.entry.footprint.readonly


def _half_done(life: "Life", at: Replica) -> bool:
    """Has a call ended that came back to an instance which is still running? That one is undone, the call cannot be."""
    running = {i.invocation for i in life.com.instances.values() if i.sid.replica == at}
    done = (request.invocation for request in life.residents[at].recent.requests())
    return any(i.ancestor(n) in running for i in done for n in range(1, len(i.path))) if running else False


async def keep(life: "Life", remains: dict[Replica, Remains]) -> dict[Replica, Held]:
    """When the life has been abandoned: the states themselves. Those of backed replicas are in their stores."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    held = {}
    for replica, left in remains.items():
        resident = life.residents[replica]
        while life.dispatch.changing(replica) and loop.time() < until:
            await asyncio.sleep(LOOK)
        if life.dispatch.changing(replica):
            log.warning("the state of %s is not kept: a method is still being performed", replica)
            continue
        try:
            spool = await asyncio.to_thread(spooled, capture(resident.object))
        except Exception as error:  # of a class that writes states in its own way, too
            log.error("the state of %s is not kept: %s", replica, error)
            continue
        whole = Held(left.holding, left.part, left.ticket, spool, resident.recent.requests())
        whole.position = left.position
        whole.digest = partial(digest_with, replica, type(resident.object), spool)
        held[replica] = doubtful(replica, type(resident.object), whole, life.dispatch.doubtful.get(replica, ()))
    return held
