"""States that go from one node to another when somebody has joined (docs/state.md): the side of a life that gives, and
the side that waits for them.

Who waits asks those of which it is known that they have a state, one after the other. If nobody has one, the oldest
life begins with the initial state, but only when all others have said that they have none: what is known here of
others may be late.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any

from framework.com.core import Com
from framework.com.events import Give, Snapshot, Take
from framework.errors import OboError, Unavailable
from framework.ids import Node, Replica, object_of, replica
from framework.net.peers import Empty, HasNone, NotReached, Peers
from framework.net.wire.com_pb2 import FetchChunk, FetchWish
from framework.orb.moving import Donor, Fetcher, capture
from framework.orb.performance import Resident
from framework.orb.tracing import Tracing

log = logging.getLogger(__name__)

LOOK = 0.1  # seconds between two looks for somebody who has a state
AGAIN = 2.0  # seconds after a state that could not be used
ANSWER = 2.0  # seconds in which a node must say that it has none


class Handing:
    def __init__(
        self,
        com: Com,
        residents: Mapping[Replica, Resident],
        peers: Peers,
        feed: Callable[[Give | Take], None],
        tracing: Tracing | None,
    ) -> None:
        self._com = com
        self._residents = residents
        self._peers = peers
        self._feed = feed
        self._tracing = tracing
        self._life = com.lives.mine
        self._donor = Donor(com.node, lambda at, to, life: self._feed(Give(at, to, life)))
        self._fetcher = Fetcher(com.node, self._life, peers.fetch)
        self._tasks: dict[Replica, asyncio.Task[None]] = {}
        self._adopting: set[Replica] = set()

    def begin(self) -> None:
        """A life begins: its replicas get their states."""
        for mine in self._com.unready:
            self._start(mine)

    def _start(self, mine: Replica) -> None:
        task = self._tasks[mine] = asyncio.ensure_future(self._get(mine, self._tasks.get(mine)))
        task.add_done_callback(lambda done: _ended(mine, done))

    def changed(self, left: Iterable[Node]) -> None:
        """The view has changed. Who fetches from a node that has left looks for another one at once."""
        gone = set(left)
        for job in self._fetcher.status():
            mine = Replica(job["replica"])
            if job["from"] in gone and mine not in self._adopting:
                self._tasks[mine].cancel()
                self._start(mine)

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self._donor.close()

    def status(self) -> dict[str, Any]:
        return {
            "unready": {mine: list(donors) for mine, donors in self._com.unready.items()},
            "fetching": self._fetcher.status(),
            "adopting": sorted(self._adopting),
            "giving": self._donor.status(),
        }

    # the side that gives

    def snapshot(self, effect: Snapshot) -> None:
        """The state as it is at this very moment."""
        ticket = self._tracing.ticket(effect.replica) if self._tracing is not None else ""
        life = self._com.lives.view.life(effect.to) or 0
        taken = capture(self._residents[effect.replica].object)
        self._donor.offer(effect.replica, effect.to, effect.part, taken, ticket, life)
        log.info("%s gives its state to %s", effect.replica, effect.to)

    async def give(self, peer: Node, wish: FetchWish) -> AsyncGenerator[FetchChunk, None]:
        """For ``Peers.give``."""
        mine = Replica(wish.replica)
        if mine in self._com.unready and not wish.done:
            if mine in self._adopting or any(j["replica"] == mine and j["bytes"] for j in self._fetcher.status()):
                raise Unavailable(f"{mine} is about to get its own state")
            raise Empty(f"{mine} has no state itself")
        async with aclosing(self._donor.give(peer, wish)) as chunks:
            async for chunk in chunks:
                yield chunk

    # the side that waits

    async def _get(self, mine: Replica, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await asyncio.wait((before,))
        while mine in self._com.unready:
            donors = [n for n in self._com.unready[mine] if self._has_state(mine, n)]
            if donors:
                await self._fetch(mine, donors)
            elif self._oldest(mine) and await self._nobody_has(mine):
                self._begin_anew(mine)
            else:
                await asyncio.sleep(LOOK)

    def _has_state(self, mine: Replica, node: Node) -> bool:
        return replica(object_of(mine), node) not in self._com.lives.pending

    async def _fetch(self, mine: Replica, donors: list[Node]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            fetched = await self._fetcher.fetch(mine, donors)
            self._adopting.add(mine)
            try:
                await asyncio.to_thread(self._residents[mine].adopt, fetched.chunks())
                if not self._com.handover.may_take(mine):  # others have been told that it has none
                    raise Unavailable("the view is changing: it cannot be taken now")
                self._take(mine, fetched.ticket, fetched.part)
            finally:
                self._adopting.discard(mine)
                fetched.close()
        except asyncio.CancelledError:
            raise
        except Unavailable as error:
            log.warning("%s has no state yet: %s", mine, error)
            await asyncio.sleep(LOOK)
        except Exception as error:  # of a class that reads states in its own way, too
            log.error("%s has no state yet: %s", mine, error, exc_info=not isinstance(error, OboError))
            await asyncio.sleep(AGAIN)
        else:
            log.info(
                "%s has the state of %s after %.2f s: %d bytes", mine, fetched.donor, loop.time() - began, fetched.size
            )

    def _take(self, mine: Replica, ticket: str, part: bytes) -> None:
        if self._tracing is not None:
            self._tracing.adopt(mine, ticket)
        self._feed(Take(mine, part))

    # nobody has a state

    def _others(self, mine: Replica) -> list[Node]:
        return list(self._com.unready[mine])

    def _oldest(self, mine: Replica) -> bool:
        """Of those who have none: the first one by life and name."""
        view = self._com.lives.view
        return all((self._life, self._com.node) < (view.life(n) or 0, n) for n in self._others(mine))

    async def _nobody_has(self, mine: Replica) -> bool:
        """Have all others in the view said so, and is the view still the same?"""
        version = self._com.view
        said = await asyncio.gather(*(self._says_none(mine, node) for node in self._others(mine)))
        if not all(said):
            await asyncio.sleep(LOOK)
        return all(said) and self._com.view == version and self._com.handover.may_take(mine)

    async def _says_none(self, mine: Replica, node: Node) -> bool:
        theirs = replica(object_of(mine), node)
        wish = FetchWish(node=self._com.node, life=self._life, replica=theirs)
        try:
            async with asyncio.timeout(ANSWER), aclosing(self._peers.fetch(node, wish)) as chunks:
                async for _ in chunks:
                    return False
        except HasNone:
            return True
        except (NotReached, TimeoutError):
            pass
        return False

    def _begin_anew(self, mine: Replica) -> None:
        if self._com.view > 1:
            log.error(
                "THE STATE OF %s IS LOST: no member of view %d has it. %s begins with the initial state",
                object_of(mine),
                self._com.view,
                mine,
            )
        self._take(mine, "", b"")


def _ended(mine: Replica, task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("%s gets no state: a fault of the framework", mine, exc_info=task.exception())
