"""Is a node that was hit a member again, with its state?"""

import time
from collections.abc import Collection
from typing import Any

from framework.errors import BadRequest, Unavailable
from framework.testing.clusters import Cluster

LOOK = 2.0  # seconds in which a node must say how it is
AGAIN = 0.1
SHARE = 9  # times as long as a look has taken: a node with much before it takes long for one, and does nothing else


def wait_back(c: Cluster, node: str, away: Collection[str], seconds: float) -> None:
    """Until it is back among those that are not ``away``, which may change meanwhile; Unavailable after ``seconds``."""
    until = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if is_back(c, node, away):
            return
        took = time.monotonic() - began
        if began > until:
            told = {n: _short(look(c, n)) for n in c.nodes}
            raise Unavailable(f"{node} is not a member with its state after {seconds:g} s. The nodes say: {told}")
        time.sleep(max(AGAIN, SHARE * took))


def is_back(c: Cluster, node: str, away: Collection[str]) -> bool:
    """Has it its state, and do all that are there know this very life of it?"""
    mine = look(c, node)
    if not mine or mine["transfers"]["unready"] or mine["group"]["state"] != "steady":
        return False
    life = mine["group"]["members"].get(node)
    told = [look(c, n) for n in c.nodes if n not in away]
    return life is not None and all(not t or t["group"]["members"].get(node) == life for t in told)


def look(c: Cluster, node: str) -> dict[str, Any]:
    """What it says of itself; nothing if it does not answer."""
    try:
        return c.look(node, LOOK)
    except (Unavailable, BadRequest):
        return {}


def _short(told: dict[str, Any]) -> object:
    return (told["view"], told["group"], told["transfers"]) if told else "nothing"
