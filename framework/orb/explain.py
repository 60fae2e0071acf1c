"""Why a call was not answered in time: the nodes are asked, one after the other, along the chain of those who wait.

The caller is answered when that is known, or after ``LIMIT``. Nobody else waits for it, and calls that are answered in
time come by here not at all.

A deadlock dissolves at the deadline: those who took part give up, one a moment before the other, and what they waited
for goes on. So a node remembers for a moment who waited here, and tells that to those who ask late.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from framework.com.caller import Instance
from framework.com.core import Com
from framework.com.events import Received
from framework.errors import BadMessage
from framework.ids import Invocation, Node, Sid, node_of, object_of
from framework.net.peers import NotReached, Peers
from framework.orb import chain
from framework.orb.chain import Key
from framework.orb.facts import Fact, Facts, Spot, missing_ride, still_missing

log = logging.getLogger(__name__)

LIMIT = 0.5  # seconds that an answer waits for its explanation; clients wait 1 s for it (home.py)
MOST_AT_ONCE = 32  # explanations; when more calls are late together, the others are answered without one
MOST_FACTS = 64  # in one explanation
REMEMBER = 1.0  # seconds for which it is known who waited
MOST_REMEMBERED = 1024

_question = msgspec.msgpack.Decoder(tuple[Spot, ...])
_explanation = msgspec.msgpack.Decoder(tuple[Fact, ...])
_encode = msgspec.msgpack.Encoder().encode
_FAULTS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)

#: Takes what was received, and why it is not complete.
Answer = Callable[[Received, str], None]


class Explainer:
    def __init__(self, com: Com, peers: Peers, since: Callable[[Sid], float]) -> None:
        self._com = com
        self._peers = peers
        self._facts = Facts(com, peers.up, since)
        self._waited: dict[Key, tuple[float, Fact]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def explain(self, effect: Received, answer: Answer) -> None:
        """``answer`` is called once: at once, or soon."""
        caller = self._com.calls.callers.get(effect.caller)
        call = caller.calls.get(effect.call) if caller is not None and effect.group is not None else None
        if isinstance(caller, Instance) and call is not None:
            self._remember(self._facts.gave_up(caller, call, effect.receipt))
        if effect.group is not None and len(self._tasks) >= MOST_AT_ONCE:
            answer(effect, "")
            return
        roots: tuple[Spot, ...] | None = None
        if caller is not None and call is not None:
            roots, _ = still_missing(caller.invocation, call, effect.receipt)
        elif effect.group is not None:
            roots = missing_ride(self._com, effect.group, Invocation(effect.client, (effect.call,)), effect.receipt)
        if roots is None:
            answer(effect, f"It has not left {self._com.node}: a peer does not keep up")
            return
        task = asyncio.ensure_future(self._explained(effect, roots, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _explained(self, effect: Received, roots: tuple[Spot, ...], answer: Answer) -> None:
        why = ""
        try:
            walk = _Walk(self, asyncio.get_running_loop().time() + LIMIT)
            await walk.follow(roots)
            why = chain.told(roots, walk.facts)
        except Exception:
            log.exception("a late call could not be explained: this is a fault of the framework")
        answer(effect, why)

    def open(self) -> list[str]:
        return [f"{len(self._tasks)} late calls are being explained"] if self._tasks else []

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    # what this node knows

    def here(self, spots: Sequence[Spot]) -> list[Fact]:
        """Of these, and of those at this node that they wait for."""
        facts: dict[Key, Fact] = {}
        todo = list(spots)
        for spot in todo:
            if spot.key in facts or len(facts) >= MOST_FACTS:
                continue
            fact = facts[spot.key] = self._fact(spot)
            todo += [s for s in fact.waits if node_of(s.replica) == self._com.node]
        return list(facts.values())

    def _fact(self, spot: Spot) -> Fact:
        fact = self._facts.of(spot)
        if fact.waits:
            self._remember(fact)
            return fact
        at, waited = self._waited.get(spot.key, (0.0, fact))
        return waited if asyncio.get_running_loop().time() - at < REMEMBER else fact

    def _remember(self, fact: Fact) -> None:
        if len(self._waited) >= MOST_REMEMBERED:
            self._waited.clear()
        self._waited[fact.spot.key] = asyncio.get_running_loop().time(), fact

    # questions of peers, and to them

    def asked(self, question: bytes) -> bytes:
        try:
            spots = _question.decode(question)
        except _FAULTS as error:
            raise BadMessage(f"a question of {len(question)} bytes: {error}") from None
        return _encode(self.here(spots))

    async def ask(self, node: Node, spots: Sequence[Spot], until: float) -> Sequence[Fact]:
        if node == self._com.node:
            return self.here(spots)
        left = until - asyncio.get_running_loop().time()
        try:
            if left <= 0:
                raise NotReached("was not asked: there was no time left")
            return _explanation.decode(await self._peers.ask(node, _encode(spots), left))
        except NotReached as error:
            return [Fact(spot, object_of(spot.replica), f"waits for {node}, which {error}") for spot in spots]
        except _FAULTS as error:
            log.warning("%s explains what cannot be read: %s", node, error)
            return []


class _Walk:
    """One explanation. All nodes are asked at the same time; one that is silent does not keep the others waiting."""

    def __init__(self, explainer: Explainer, until: float) -> None:
        self.facts: dict[Key, Fact] = {}
        self._explainer = explainer
        self._until = until
        self._asked: set[Key] = set()

    async def follow(self, spots: Sequence[Spot]) -> None:
        nodes: dict[Node, list[Spot]] = {}
        for spot in spots:
            if spot.key not in self._asked and len(self._asked) < MOST_FACTS:
                self._asked.add(spot.key)
                nodes.setdefault(node_of(spot.replica), []).append(spot)
        await asyncio.gather(*(self._at(node, some) for node, some in nodes.items()))

    async def _at(self, node: Node, spots: Sequence[Spot]) -> None:
        facts = await self._explainer.ask(node, spots, self._until)
        for fact in facts:
            self._asked.add(fact.spot.key)
            self.facts.setdefault(fact.spot.key, fact)
        await self.follow([spot for fact in facts for spot in fact.waits])
