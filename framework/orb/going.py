"""A node goes: clients find another home, it ends what it has begun, then it leaves the group in order."""

import asyncio
import logging
from typing import TYPE_CHECKING

from framework.com.events import Depart
from framework.errors import BadRequest, Unavailable

if TYPE_CHECKING:
    from framework.orb.node import Node

log = logging.getLogger(__name__)

LOOK = 0.02
MOVING = 0.3  # seconds that clients have to find another home
GRACE = 0.3  # seconds for what others do here, when a node is about to leave
LEAVING = 2.0  # seconds that others have to let it go
LINGER = 0.2  # seconds in which those who stay hear of what was decided


async def drain(node: "Node") -> None:
    """Take no more calls; return when those in flight are answered and nothing is running or waiting here. One that may
    leave does not wait for what others go on doing here."""
    node.comparing.stop()  # before all else: where everybody goes, others may be gone when they are asked
    if node.member is not None:
        node.member.dispatch.hurry()
    await _part(node)
    node.sessions.draining = True
    node.sessions.leave_first()
    node.gateway.drain()
    until: float | None = None
    loop = asyncio.get_running_loop()
    while node.failed is None and node.open():
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


def _may_go(node: "Node") -> bool:
    try:
        node.life.check_may_go()
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
