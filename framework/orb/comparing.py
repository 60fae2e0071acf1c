"""Now and then the replicas of an object say what they are (``Backed.compares``), at one point of the order.

If one differs from what the majority says, something is broken there that the order cannot mend: a fault of the disk,
somebody who wrote past the framework, a method that is not deterministic. It leaves, and gets a fresh state.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from framework.com.events import Evict, Response
from framework.com.receipt import CREC
from framework.declare import Backed, Method
from framework.errors import BadMessage, Broken, DeadlineExceeded, OboError
from framework.ids import ObjectName, Replica, node_of, replica
from framework.net.wire.orb_pb2 import InvokeRequest
from framework.orb.guard import ANYONE
from framework.orb.messages import Act, Ask

if TYPE_CHECKING:
    from framework.orb.node import Node

log = logging.getLogger(__name__)

LIMIT = 60.0  # seconds for one comparison
_NOTHING = b"\x90"  # no arguments


class Comparing:
    def __init__(self, node: "Node") -> None:
        self._node = node
        classes = node.config.classes
        self._what = {n: c.compares for n, c in classes.items() if issubclass(c, Backed) and c.compares}

    async def go_on(self, every: float) -> None:
        """For as long as the node lives."""
        while every and self._what:
            await asyncio.sleep(every)
            for name in self._what:
                if self._is_first(name):
                    await self._try(name)

    def _is_first(self, name: ObjectName) -> bool:
        """One of those with a state asks all others."""
        life = self._node.member
        if life is None or life.isolated:
            return False
        view, pending = life.com.lives.view, life.com.lives.pending
        there = [r for r in life.com.directory.find(name).replicas if node_of(r) in view.members and r not in pending]
        return len(there) > 1 and there[0] == replica(name, self._node.name) and there[0] not in life.com.unready

    async def _try(self, name: ObjectName) -> None:
        try:
            await self.compare(name)
        except DeadlineExceeded:
            log.info("the replicas of %s were not compared: not all have answered", name)
        except OboError as error:
            log.info("the replicas of %s were not compared: %s", name, error)

    async def compare(self, name: ObjectName) -> list[Replica]:
        """Who differs from the majority. They are on their way out when this returns."""
        naming, what = self._node.naming, self._what[name]
        act = Act("sync", (Ask(name, what, _NOTHING),), "mcast", CREC, True, LIMIT)
        answer = await self._node.gateway.call(ANYONE, act, InvokeRequest(), LIMIT)
        if not answer.outcome.complete:
            raise DeadlineExceeded(f"{name}.{what}: not all replicas have answered")
        said = {r.replica: r for r in answer.outcome.responses if r.status == "ok"}
        odd = minority({at: r.body for at, r in said.items()})
        if odd is None:
            log.error("the replicas of %s differ, and no majority agrees: %s", name, ", ".join(sorted(said)))
            return []
        usual = next((r for at, r in said.items() if at not in odd), None)
        for at in odd:
            assert usual is not None
            where = differs(naming.method(name, what), said[at], usual)
            log.error("%s DIFFERS from the majority of its replicas%s: it leaves, and gets a fresh state", at, where)
            self._out(at)
        return odd

    def _out(self, at: Replica) -> None:
        life = self._node.life
        if node_of(at) == self._node.name:
            life.broken(at, Broken("it differs from the majority of the replicas"))
        else:
            life.feed(Evict(node_of(at)))


def minority(said: Mapping[Replica, bytes]) -> list[Replica] | None:
    """Those that do not say what more than half say; None if there is no such half."""
    counts = Counter(said.values()).most_common(1)
    if not counts or 2 * counts[0][1] <= len(said):
        return None if len(set(said.values())) > 1 else []
    return sorted(at for at, body in said.items() if body != counts[0][0])


def differs(method: Method, one: Response, other: Response) -> str:
    """In what: if they say it by name, as ``Database.digest`` does by table."""
    try:
        mine, theirs = _named(method.unpack_result(one.body)), _named(method.unpack_result(other.body))
    except BadMessage:
        return ""
    names = sorted(n for n in mine.keys() | theirs.keys() if mine.get(n) != theirs.get(n))
    return f" in {', '.join(names)}" if names else ""


def _named(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
