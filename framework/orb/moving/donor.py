"""The side that has a state to give.

A joiner asks with ``Fetch``. If nothing has been captured for it, ``wanted`` is called with the replica, the joiner and
its life: the com layer finds the moment, and what is captured then comes by ``offer``. It is kept until the joiner has
it, a newer one comes, or nobody has read from it for a while; until then a stream that broke goes on where it was.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from framework.errors import BadRequest, Unavailable
from framework.ids import Node, Replica, node_of
from framework.net.wire.com_pb2 import FetchChunk, FetchWish
from framework.orb.moving.breath import Breath
from framework.orb.moving.captures import Capture
from framework.orb.moving.offer import For, Offer

log = logging.getLogger(__name__)

WAIT = 20.0  # seconds for which a joiner waits for an offer before it asks somebody else
KEEP = 120.0  # seconds for which an offer is kept that nobody reads

Wanted = Callable[[Replica, Node, int], None]


class Donor:
    """All on the loop. ``give`` is for ``Peers.give``."""

    def __init__(
        self, node: Node, wanted: Wanted, directory: Path | None = None, wait: float = WAIT, keep: float = KEEP
    ) -> None:
        self._node = node
        self._wanted = wanted
        self._directory = directory
        self._wait = wait
        self._keep = keep
        self._offers: dict[For, Offer] = {}
        self._lives: dict[For, int] = {}  # of joiners, the newest that asked
        self._came: dict[For, asyncio.Event] = {}  # somebody waits for an offer
        self._timers: dict[For, asyncio.TimerHandle] = {}

    def offer(self, replica: Replica, to: Node, part: bytes, capture: Capture, ticket: str = "", life: int = 0) -> None:
        """A capture for ``to``, in place of an older one. ``ticket``: a name that no other offer ever has. ``life`` of
        the joiner: the newest that asked, unless given."""
        wish = For(replica, to)
        life = life or self._lives.get(wish, 0)
        self._drop(wish, "a newer one has been taken")
        ticket = ticket or f"{replica}#{secrets.token_hex(8)}"
        self._offers[wish] = Offer(wish, life, ticket, part, capture, self._directory)
        self._keep_for_a_while(wish)
        if wish in self._came:
            self._came.pop(wish).set()

    async def give(self, peer: Node, wish: FetchWish) -> AsyncGenerator[FetchChunk, None]:
        """Aborted if what is being given is dropped meanwhile, another OboError if there is nothing to give."""
        key = self._checked(peer, wish)
        if wish.done:
            if key in self._offers and self._offers[key].ticket == wish.ticket:
                self._drop(key, f"{peer} needs it no more")
            return
        offer = await self._offered(key, wish)
        at = wish.offset if wish.ticket == offer.ticket else 0
        if at > offer.size and offer.end is not None:
            raise BadRequest(f"{peer} asks for byte {at:,} of a state of {offer.size:,} bytes")
        offer.readers += 1
        breath = Breath()
        try:
            yield offer.header(at)
            while True:
                chunk = await offer.next(at)
                yield chunk
                if chunk.HasField("end"):
                    return
                at += len(chunk.piece.data)
                offer.sent = at
                await breath.take_on_loop(len(chunk.piece.data))
        finally:
            offer.readers -= 1
            if offer.failed:
                self._forget(offer)
            elif self._offers.get(key) is offer:
                self._keep_for_a_while(key)

    def _checked(self, peer: Node, wish: FetchWish) -> For:
        if wish.node != peer:
            raise BadRequest(f"{peer} asks in the name of {wish.node!r}")
        if node_of(Replica(wish.replica)) != self._node:
            raise BadRequest(f"{wish.replica!r} is not at {self._node}")
        key = For(Replica(wish.replica), peer)
        if wish.life < self._lives.get(key, 0):
            raise BadRequest(f"{peer} asks in its life {wish.life}, and has a later one by now")
        self._lives[key] = wish.life
        return key

    async def _offered(self, key: For, wish: FetchWish) -> Offer:
        offer = self._offers.get(key)
        if offer is not None and (offer.life < wish.life or offer.failed):
            self._drop(key, f"{key.to} has begun anew")
            offer = None
        if offer is not None:
            return offer
        came = self._came.setdefault(key, asyncio.Event())
        self._wanted(key.replica, key.to, wish.life)
        try:
            async with asyncio.timeout(self._wait):
                await came.wait()
            return self._offers[key]
        except (TimeoutError, KeyError):
            raise Unavailable(f"{self._node} has found no moment to take the state of {key.replica} so far") from None

    # what is kept

    def _keep_for_a_while(self, key: For) -> None:
        if key in self._timers:
            self._timers.pop(key).cancel()
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(self._keep, self._unread, key, self._offers[key])

    def _unread(self, key: For, offer: Offer) -> None:
        if offer.readers:
            self._keep_for_a_while(key)
        else:
            log.warning("%s has not fetched the state of %s for %.0f s: dropped", key.to, key.replica, self._keep)
            self._drop(key, "nobody read it")

    def _forget(self, offer: Offer) -> None:
        """It failed: who asks next gets another one."""
        if self._offers.get(offer.wish) is offer:
            self._drop(offer.wish, "it failed")

    def _drop(self, key: For, why: str) -> None:
        if key in self._timers:
            self._timers.pop(key).cancel()
        if key in self._offers:
            self._offers.pop(key).close(why)

    def close(self) -> None:
        for key in list(self._offers):
            self._drop(key, f"{self._node} stops")

    def status(self) -> list[dict[str, Any]]:
        """For ``obo status``: plain data."""
        return [
            {
                "replica": key.replica,
                "to": key.to,
                "ticket": offer.ticket,
                "bytes": offer.sent,
                "total": None if offer.end is None else offer.end.total,
            }
            for key, offer in self._offers.items()
        ]
