"""A node goes: clients find another home, it ends what it has begun, then it leaves the group in order."""

import asyncio
import logging
from typing import TYPE_CHECKING

from framework.com.events import Depart
from framework.errors import BadRequest, Unavailable
from framework.ids import ObjectName, node_of

if TYPE_CHECKING:
    from framework.orb.life import Life
    from framework.orb.node import Node

log = logging.getLogger(__name__)

LOOK = 0.02
MOVING = 0.3  # seconds that clients have to find another home
GRACE = 0.3  # seconds for what others do here, when a node is about to leave
LEAVING = 2.0  # seconds that others have to let it go
LINGER = 0.2  # seconds in which those who stay hear of what was decided


async def drain(node: "Node") -> None:
    """Take no more calls; return when those in flight are answered, nothing is running or waiting here, and no state is
    here alone while others wait for it. One that may leave does not wait for what others go on doing here."""
    node.comparing.stop()  # before all else: where everybody goes, others may be gone when they are asked
    if node.member is not None:
        node.member.dispatch.hurry()
    await _part(node)
    node.sessions.draining = True
    node.sessions.leave_first()
    node.gateway.drain()
    until: float | None = None
    loop = asyncio.get_running_loop()
    while node.failed is None and (node.open() or (node.member is not None and only_here(node.member))):
        node.sessions.forget_gone()
        if node.member is None or node.member.waiting() or node.gateway.in_flight or not _may_go(node):
            until = None
        elif until is None:
            until = loop.time() + GRACE
        elif loop.time() > until:
            return
        await asyncio.sleep(LOOK)


async def _part(node: "Node") -> None:
    """Calls are taken until their clients have gone elsewhere: no call waits for that. Who has nowhere to go stays."""
    node.gateway.part()
    loop = asyncio.get_running_loop()
    until = loop.time() + MOVING
    while node.failed is None and node.sessions.part() and len(node.config.addresses) > 1 and loop.time() < until:
        await asyncio.sleep(LOOK / 4)


def check_may_go(life: "Life") -> None:
    """BadRequest that says why its node cannot leave in order."""
    view, name = life.com.lives.view, life.node.name
    stay = [n for n in view.members if n != name and n not in life.com.member.suspects]
    if len(stay) < view.majority:
        raise BadRequest(
            f"{name} cannot leave in order: without it {len(stay)} of the {len(view.members)} members of "
            f"view {view.version} would be left, {view.majority} are needed"
        )
    if lost := only_here(life):
        raise BadRequest(
            f"{name} cannot leave in order: no other member has the state of {', '.join(lost)} yet; try again when "
            "obo health says that they are well"
        )


def only_here(life: "Life") -> list[ObjectName]:
    """Objects of which other members have replicas, but none with its state."""
    lives, found = life.com.lives, []
    for placement, mine in life.com.directory.on(life.node.name):
        heirs = [r for r in placement.replicas if r != mine and node_of(r) in lives.view.members]
        if heirs and mine not in life.com.unready and all(r in lives.pending for r in heirs):
            found.append(placement.name)
    return found


def _may_go(node: "Node") -> bool:
    try:
        check_may_go(node.life)
    except (BadRequest, Unavailable):
        return False
    return True


async def leave(node: "Node") -> bool:
    """Leave the group in order, if enough stay: those need not find out by themselves. To be called when it is
    drained."""
    if not _may_go(node) or node.failed is not None:
        return False
    node.leaving = True
    log.info("%s leaves the group", node.name)
    node.life.feed(Depart())
    try:
        async with asyncio.timeout(LEAVING):
            while node.member is not None and _may_go(node):
                await asyncio.sleep(LOOK)
    except TimeoutError:
        log.warning("%s could not leave the group within %g s: the others will find out", node.name, LEAVING)
    await asyncio.sleep(LINGER)
    return node.member is None
