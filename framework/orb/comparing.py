"""Replicas of an object say what they are, and one that differs from the majority (A7) leaves and gets a fresh state.

Something is broken there that the order cannot mend: a fault of memory or disk, somebody who wrote past the framework,
a method that is not deterministic. A plain object is compared when a replica has got its state from another one, and
every ``[group] compare_every`` seconds: by fingerprints of moments at which replicas had performed the same
(sampling.py). A ``Backed`` one is asked by the method that it names (``compares``), at one point of the order.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from framework.com.events import Depart, Evict, Response
from framework.com.receipt import CREC, SREC, Receipt
from framework.declare import Backed, Method
from framework.errors import BadMessage, Broken, DeadlineExceeded, OboError
from framework.ids import ObjectName, Replica, node_of, object_of, replica
from framework.net.wire.orb_pb2 import InvokeRequest
from framework.orb import short
from framework.orb.messages import Act, Ask
from framework.orb.moving.captures import prepare
from framework.orb.own import DIFFERS, TELL, Sample
from framework.orb.sampling import comparable
from framework.orb.who import FRAMEWORK

if TYPE_CHECKING:
    from framework.orb.node import Node

log = logging.getLogger(__name__)

LIMIT = 60.0  # seconds for one comparison
SETTLE = 5.0  # seconds after a state has come: traffic goes first
APART = 2.0  # seconds between nodes that got their states at the same time
SAMPLE = 1.0  # seconds in which each replica looks at itself
TRIES = 3
BETWEEN = 2.0
HEARS = 5.0  # seconds for one that differs to go by itself
ASKS = 15.0  # seconds for a method of the framework that each replica answers in some seconds
AGAIN = 300.0  # seconds in which a replica does not leave twice: a fresh state has not helped

_pack = msgspec.msgpack.Encoder().encode


class Comparing:
    def __init__(self, node: "Node") -> None:
        self._node = node
        classes = node.config.classes
        self._backed = {n: c.compares for n, c in classes.items() if issubclass(c, Backed) and c.compares}
        self._plain = [n for n, c in classes.items() if not issubclass(c, Backed) and comparable(c)]
        prepare(classes.values())
        short.prepare(classes.values())
        self._left: dict[Replica, float] = {}  # when it left because it differed
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = False

    def start(self, every: float) -> None:
        if every:
            self._run(self._go_on(every))

    def stop(self) -> None:
        """For good."""
        self._over = True
        for task in self._tasks:
            task.cancel()

    def _run(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def has_state(self, mine: Replica) -> None:
        """A replica of this node has got its state from another one."""
        if object_of(mine) in self._plain and not self._over:
            self._run(self._after(mine))

    async def _after(self, mine: Replica) -> None:
        life, name = self._node.member, object_of(mine)
        rank = self._node.config.directory.find(name).replicas.index(mine)
        await asyncio.sleep(SETTLE + rank * APART)
        if life is not None and self._node.member is life and len(self._there(name)) > 1:
            await self._try(name)

    async def _go_on(self, every: float) -> None:
        """For as long as the node lives."""
        while True:
            await asyncio.sleep(every)
            for name in (*self._backed, *self._plain):
                there = self._there(name)
                if len(there) > 1 and there[0] == replica(name, self._node.name):  # one of them asks all others
                    await self._try(name)

    def _there(self, name: ObjectName) -> list[Replica]:
        """The replicas that have a state; none if this node cannot ask them."""
        life = self._node.member
        if life is None or life.isolated:
            return []
        lives, unready = life.com.lives, life.com.unready
        every = life.com.directory.find(name).replicas
        return [r for r in every if node_of(r) in lives.view.members and r not in lives.pending and r not in unready]

    async def _try(self, name: ObjectName) -> None:
        try:
            await self.compare(name)
        except DeadlineExceeded:
            log.info("the replicas of %s were not compared: not all have answered", name)
        except OboError as error:
            log.info("the replicas of %s were not compared: %s", name, error)

    async def compare(self, name: ObjectName) -> list[Replica]:
        """Who differs from the majority. They are on their way out when this returns."""
        if name in self._backed:
            return await self._compare_backed(name, self._backed[name])
        found: dict[int, dict[Replica, str]] = {}
        for attempt in range(TRIES):
            await asyncio.sleep(BETWEEN if attempt else 0.0)
            everyone = []
            for said in await self._ask(name, TELL, SAMPLE):
                everyone.append(said.replica)
                samples: list[Sample] = self._node.naming.method(name, TELL).unpack_result(said.body)
                for history, word in samples:
                    found.setdefault(history, {})[said.replica] = word
            odd, alike, unclear = judged(found.values(), len(everyone))
            if odd or unclear or len(alike) == len(everyone):
                break
        if unclear:
            self._no_majority(name, unclear)
        for at in odd:
            await self._tell(at, "its state is not that of the majority, though it has performed the same")
        if not (odd or unclear):
            log.info("%s: %d of %d replicas are known to be alike", name, len(alike), len(everyone))
        return sorted(odd)

    def _no_majority(self, name: ObjectName, said: Iterable[Replica]) -> None:
        log.error("the replicas of %s differ, and no majority agrees: %s", name, ", ".join(sorted(said)))

    async def _ask(self, name: ObjectName, what: str, *values: object, to: tuple[Replica, ...] = ()) -> list[Response]:
        ask = Ask(name, what, _pack(values), to=to)
        act = Act("sync", (ask,), "ucast", SREC, True, LIMIT) if to else Act("sync", (ask,), "mcast", CREC, True, LIMIT)
        answer = await self._node.gateway.call(FRAMEWORK, act, InvokeRequest(), LIMIT if not to else HEARS)
        if not answer.outcome.complete:
            raise DeadlineExceeded(f"{name}.{what}: not all replicas have answered")
        return [r for r in answer.outcome.responses if r.status == "ok"]

    async def ask_all(
        self, name: ObjectName, to: tuple[Replica, ...], receipt: Receipt, what: str, *values: object
    ) -> list[Response]:
        """A method of the framework at those of these replicas that are there; DeadlineExceeded if too few answer."""
        act = Act("sync", (Ask(name, what, _pack(values), to=to),), "mcast", receipt, True, ASKS)
        answer = await self._node.gateway.call(FRAMEWORK, act, InvokeRequest(), ASKS)
        if not answer.outcome.complete:
            raise DeadlineExceeded(f"{name}.{what}: too few replicas have answered")
        return [r for r in answer.outcome.responses if r.status == "ok"]

    async def _tell(self, at: Replica, why: str) -> None:
        log.error("%s DIFFERS from the majority of its replicas: %s", at, why)
        try:
            await self._ask(object_of(at), DIFFERS, why, to=(at,))
        except OboError as error:
            log.warning("%s does not leave by itself (%s): the others go on without it", at, error)
            self._node.life.feed(Evict(node_of(at)))

    def differs(self, mine: Replica, why: str) -> bool:
        """Others say so of a replica of this node."""
        now = asyncio.get_running_loop().time()
        if now - self._left.get(mine, float("-inf")) < AGAIN:
            log.error("%s DIFFERS AGAIN: %s. A fresh state has not helped: are its methods deterministic?", mine, why)
            return False
        log.error("%s DIFFERS: %s. This node leaves, and comes back with a fresh state", mine, why)
        self._left[mine] = now
        asyncio.get_running_loop().call_later(0.1, self._leave)  # what it says of this goes first
        return True

    def _leave(self) -> None:
        try:
            self._node.life.feed(Depart())
        except OboError as error:
            log.error("this node cannot leave, though a replica of it differs: %s", error)

    # objects whose state lies in a store

    async def _compare_backed(self, name: ObjectName, what: str) -> list[Replica]:
        said = {r.replica: r for r in await self._ask(name, what)}
        odd = minority({at: r.body for at, r in said.items()})
        if odd is None:
            self._no_majority(name, said)
            return []
        usual = next((r for at, r in said.items() if at not in odd), None)
        for at in odd:
            assert usual is not None
            where = differs(self._node.naming.method(name, what), said[at], usual)
            log.error("%s DIFFERS from the majority of its replicas%s: it leaves, and gets a fresh state", at, where)
            if node_of(at) == self._node.name:
                self._node.life.broken(at, Broken("it differs from the majority of the replicas"))
            else:
                self._node.life.feed(Evict(node_of(at)))
        return odd


def judged(groups: Iterable[Mapping[Replica, str]], count: int) -> tuple[set[Replica], set[Replica], set[Replica]]:
    """(those that differ from a majority, those that are alike, those that differ without one) of so many replicas.
    Each group are fingerprints of replicas that had performed the same."""
    odd: set[Replica] = set()
    alike: set[Replica] = set()
    unclear: set[Replica] = set()
    for said in groups:
        word, number = Counter(said.values()).most_common(1)[0]
        usual = {at for at, other in said.items() if other == word}
        if 2 * number > count:
            alike |= usual
            odd |= said.keys() - usual
        elif number < len(said):
            unclear |= said.keys()
    return odd, alike - odd, unclear if not odd else set()


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
