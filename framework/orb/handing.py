"""States that go from one node to another when somebody has joined (docs/state.md): the side of a life that gives, and
the side that waits for them.

Who waits asks those of which it is known that they have a state, one after the other. If nobody has one, the view says
which replica begins, and with what: with a state that it, or another one, holds from an earlier life (held.py), or
with the initial state.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from itertools import chain
from random import Random
from typing import Any

import msgspec

from framework.com.convoy import split
from framework.com.core import Com
from framework.com.event import Doubt
from framework.com.events import Again, Give, Snapshot, Take
from framework.com.lasting import merged, told_in
from framework.com.messages import Request
from framework.com.view import NOBODY
from framework.declare.portable.classes import NotPortable
from framework.errors import OboError, Unavailable, Unreadable
from framework.ids import TRAN, Node, Replica, node_of, object_of, replica
from framework.net.peers import Empty, Peers
from framework.net.wire.com_pb2 import FetchChunk, FetchHeader, FetchWish
from framework.orb.auditing import SAME, Auditing, Refused
from framework.orb.backed.recalled import InStore
from framework.orb.backed.resident import BackedResident
from framework.orb.doubting import Doubting
from framework.orb.durable.journaling import Journaling
from framework.orb.held import Held, Luggage, Stored, packed, unpacked
from framework.orb.moving import Backoffs, Donor, Fetcher, capture
from framework.orb.moving.backoff import lacking
from framework.orb.moving.captures import Capture
from framework.orb.performance import Resident
from framework.orb.recent import Recent
from framework.orb.replaced import DIFFERS, REPLACED, UNREADABLE, Keep
from framework.orb.tracing import Tracing

log = logging.getLogger(__name__)

LOOK = 0.1  # seconds between two looks for somebody who has a state
COMPARED = 256 << 20  # bytes: a larger state is not compared with the one before, for calls wait meanwhile


class Handing:
    def __init__(
        self,
        com: Com,
        residents: Mapping[Replica, Resident],
        peers: Peers,
        feed: Callable[[Give | Take | Again | Doubt], None],
        tracing: Tracing | None,
        held: dict[Replica, Held],
        journaling: Journaling | None = None,
        fetched: Callable[[Replica], None] = lambda mine: None,
        keep: Keep | None = None,
        backoffs: Backoffs | None = None,
    ) -> None:
        self._com = com
        self._residents = residents
        self._feed = feed
        self._tracing = tracing
        self._held = held  # states of earlier lives
        self._journaling = journaling
        self._fetched = fetched  # hears of each state that came from another replica
        self._life = com.lives.mine
        self._donor = Donor(com.node, lambda at, to, life: self._feed(Give(at, to, life)))
        self._keeper = Donor(com.node, self._offer_held)
        self._backoffs = backoffs or Backoffs(Random(), asyncio.get_running_loop().time)
        self._fetcher = Fetcher(com.node, self._life, peers.fetch, backoffs=self._backoffs)
        self._sizes: dict[Replica, int] = {}  # bytes of the state that came last, and was not taken yet
        self._why: dict[Replica, str] = {}  # it was told last why there is no state
        self._tasks: dict[Replica, asyncio.Task[None]] = {}
        self._plans: dict[Replica, Replica | None] = {}  # what each of them is after: None is any donor
        self._adopting: set[Replica] = set()
        self.doubting = Doubting(held, feed, lambda mine, error: residents[mine].breaks(error))
        self._asking: set[asyncio.Task[None]] = set()
        self._keep = keep or Keep()
        self.auditing = Auditing(com, held, self._fetcher, self.doubting)

    def begin(self) -> None:
        """A life begins: its replicas get their states."""
        for mine in self._com.unready:
            self._start(mine)

    def _start(self, mine: Replica) -> None:
        task = self._tasks[mine] = asyncio.ensure_future(self._get(mine, self._tasks.get(mine)))
        task.add_done_callback(lambda done: _ended(mine, done))

    def changed(self, left: Iterable[Node]) -> None:
        """The view has changed. Who fetches from a node that has left, or what is not wanted any more, looks for
        another one at once."""
        gone, seeds = set(left), self._com.handover.seeds
        for job in self._fetcher.status():
            mine = Replica(job["replica"])
            if (job["from"] in gone or self._plans[mine] != seeds.get(mine)) and mine not in self._adopting:
                self._tasks[mine].cancel()
                self._start(mine)

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        for asking in self._asking:
            asking.cancel()
        self.doubting.close()
        self.auditing.close()
        self._donor.close()
        self._keeper.close()

    def status(self) -> dict[str, Any]:
        return {
            "unready": {mine: list(donors) for mine, donors in self._com.unready.items()},
            "fetching": self._fetcher.status(),
            "adopting": sorted(self._adopting),
            "giving": self._donor.status() + self._keeper.status(),
            "held": {mine: list(held.holding[1:]) for mine, held in self._held.items()},
            "pausing": {mine: each.told() for mine, each in self._backoffs.waiting().items()},
            "comparing": sorted(self.auditing.comparing),
            "refused": dict(self.auditing.refused),
            "found": dict(self.auditing.found),
        }

    # the side that gives

    def snapshot(self, effect: Snapshot) -> None:
        """The state as it is at this very moment. That of a durable object leaves when the outcomes of its transactions
        are on disk here: it will be on disk there, and somebody must know them when all have crashed."""
        ticket = self._tracing.ticket(effect.replica) if self._tracing is not None else ""
        life = self._com.lives.view.life(effect.to) or 0
        resident = self._residents[effect.replica]
        luggage = packed(effect.part, resident.changes, resident.history, position=resident.position)

        def offer(taken: Capture) -> None:
            self._donor.offer(effect.replica, effect.to, luggage, taken, ticket, life)
            log.info("%s gives its state to %s", effect.replica, effect.to)

        if isinstance(resident, BackedResident):
            resident.moment(offer)  # what was committed a moment ago is not in its store yet
        elif self._journaling is not None and effect.replica in self._journaling:
            self._journaling.after_outcomes(partial(offer, capture(resident.object)))
        else:
            offer(capture(resident.object))

    def _offer_held(self, mine: Replica, to: Node, life: int) -> None:
        held = self._held[mine]
        self._keeper.offer(mine, to, held.luggage, Stored(held.spool), held.ticket, life)
        log.info("%s gives what it held to %s", mine, to)

    async def give(self, peer: Node, wish: FetchWish) -> AsyncGenerator[FetchChunk, None]:
        """For ``Peers.give``."""
        mine = Replica(wish.replica)
        if wish.held and not wish.done and mine not in self._held:
            raise Empty(f"{mine} holds no state of an earlier life")
        if wish.audit:
            yield FetchChunk(header=FetchHeader(part=await self.auditing.answer(mine, wish.audit)))
            return
        if wish.held and not wish.done:
            self.doubting.check_whole(mine)
        if not wish.held and not wish.done and mine in self._com.unready:
            if mine in self._adopting or any(j["replica"] == mine and j["bytes"] for j in self._fetcher.status()):
                raise Unavailable(f"{mine} is about to get its own state")
            raise Empty(f"{mine} has no state itself")
        donor = self._keeper if wish.held else self._donor
        async with aclosing(donor.give(peer, wish)) as chunks:
            async for chunk in chunks:
                yield chunk

    # the side that waits

    async def _get(self, mine: Replica, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await asyncio.wait((before,))
        backoff = self._backoffs.of(mine)
        while mine in self._com.unready:
            if backoff.left:
                await backoff.pause()
                continue
            source = self._plans[mine] = self._com.handover.seeds.get(mine)
            donors = [n for n in self._com.unready[mine] if self._has_state(mine, n)]
            if self._com.handover.after_tran(mine) or (source is not None and not self._com.handover.may_take(mine)):
                await asyncio.sleep(LOOK)
            elif source == NOBODY:
                await self._try(mine, self._begin_anew(mine))
            elif source is not None:
                await self._try(mine, self._begin_with(mine, source))
            elif donors:
                await self._try(mine, self._fetch(mine, donors, None))
            else:
                await asyncio.sleep(LOOK)

    def _has_state(self, mine: Replica, node: Node) -> bool:
        return replica(object_of(mine), node) not in self._com.lives.pending

    async def _try(self, mine: Replica, way: Coroutine[Any, Any, None]) -> None:
        """One way to get a state. If it fails, the caller looks for another one."""
        try:
            await way
        except asyncio.CancelledError:
            raise
        except Refused:
            await asyncio.sleep(LOOK)  # until the view changes
        except Unavailable as error:
            if self._why.get(mine) != str(error):
                log.warning("%s has no state yet: %s", mine, error)
            self._why[mine] = str(error)
            await asyncio.sleep(LOOK)
        except Exception as error:  # of a class that reads states in its own way, too
            log.error("%s has no state yet: %s", mine, error, exc_info=not isinstance(error, OboError))
            backoff = self._backoffs.of(mine)
            backoff.failed(str(error), lacking(self._keep.directory(mine), self._sizes.pop(mine, 0)))
            log.warning("%s: %s", mine, backoff)
            resident = self._residents[mine]
            if isinstance(resident, BackedResident):
                await resident.check()  # a connection that broke stays broken: this life would try for ever

    async def _fetch(self, mine: Replica, donors: list[Node], source: Replica | None) -> None:
        """From those who have a state; or from one who holds one: ``source``."""
        began = asyncio.get_running_loop().time()
        fetched = await self._fetcher.fetch(mine, donors, held=source is not None)
        self._sizes[mine] = fetched.size
        try:
            luggage = unpacked(fetched.part, mine)
            if source is not None and object_of(mine) == TRAN:
                luggage = await self._with_others(mine, node_of(source), luggage)
            before = await self._digest_before(mine, luggage, fetched.size) if source is None else ""
            await self._adopt(mine, fetched.chunks(), source)
            if before:
                await self._compare_with(mine, before)
                self._check_wanted(mine, source)
            self._take(mine, fetched.ticket, luggage)
        finally:
            fetched.close()
        took = asyncio.get_running_loop().time() - began
        whose = f"what {source} held" if source is not None else f"the state of {fetched.donor}"
        log.info("%s has %s after %.2f s: %d bytes", mine, whose, took, fetched.size)
        self._fetched(mine)

    async def _begin_with(self, mine: Replica, source: Replica) -> None:
        """Nobody has a state of this life: this replica begins with one of those that are held. ``source``: the one
        that the view names; if the replicas differ, that of a majority."""
        counts = await self.auditing.source(mine, source)
        if counts == mine:
            await self._take_back(mine, source)
        else:
            await self._fetch(mine, [node_of(counts)], source)

    async def _take_back(self, mine: Replica, source: Replica) -> None:
        """No other state counts more than the one that this replica had before."""
        held = self._held.get(mine)
        if held is None:
            raise Unavailable(f"the group waits for what {mine} holds, but it holds nothing")
        self.doubting.check_whole(mine)
        luggage = Luggage(held.part, held.holding.performed, kept=held.kept, position=held.position or 0)
        if object_of(mine) == TRAN:
            luggage = await self._with_others(mine, self._com.node, luggage)
        if isinstance(held.spool, InStore):  # it is where it belongs
            held.spool.check()
            self._check_wanted(mine, source)
        else:
            held.verdict = SAME
            await self._adopt(mine, held.spool.chunks(), source)
        self._held.pop(mine)
        self._residents[mine].recent = Recent(held.done, asyncio.get_running_loop().time())
        self._take(mine, held.ticket, luggage, held.on_disk and luggage.part == held.part)
        held.spool.close()
        log.warning("%s goes on with the state that it had in view %d", mine, held.holding.version)

    async def _with_others(self, mine: Replica, source: Node, luggage: Luggage) -> Luggage:
        """The tran that begins knows all outcomes that any member has on disk (framework.com.lasting)."""
        parts = [luggage.part]
        for node in self._com.lives.view.members:
            if node == self._com.node and node != source and mine in self._held:
                parts.append(self._held[mine].part)
            elif node not in (source, self._com.node):
                found = await self._fetcher.luggage(mine, node)
                if found is not None:
                    parts.append(unpacked(found, mine).part)
        if len(parts) == 1:
            return luggage
        part = merged([p for p in parts if p])
        kept = tuple(sorted(str(i) for i in told_in(part) - told_in(luggage.part)))
        return msgspec.structs.replace(luggage, part=part, kept=kept)

    async def _adopt(self, mine: Replica, chunks: Iterable[bytes], source: Replica | None) -> None:
        resident = self._residents[mine]
        self._adopting.add(mine)
        try:
            if isinstance(resident, BackedResident) and mine in self._held:
                self._check_wanted(mine, source)  # it takes the place of what is held
                await asyncio.to_thread(self._held[mine].spool.close)  # it may be about to be settled
            await self._set_aside(mine)
            await asyncio.to_thread(resident.adopt, chunks)
        finally:
            self._adopting.discard(mine)
        if self._journaling is not None:
            await self._journaling.settled(mine)
        self._check_wanted(mine, source)

    async def _set_aside(self, mine: Replica) -> None:
        """What another state is about to take the place of, unless it is known to be the same."""
        held = self._held.get(mine)
        if held is None or held.damaged or held.verdict == SAME:
            return
        if not isinstance(self._residents[mine], BackedResident) and held.verdict != DIFFERS:
            return  # the store of journals compares all bytes
        await asyncio.to_thread(self._keep.set_aside, mine, held.verdict or REPLACED)
        held.verdict = SAME  # once

    async def _digest_before(self, mine: Replica, luggage: Luggage, size: int) -> str:
        """Of the state that this replica had before, if it has performed just what is in the one that has come."""
        held = self._held.get(mine)
        if held is None or held.damaged or held.verdict or held.digest is None or size > COMPARED:
            return ""
        if (held.position, held.holding.performed) != (luggage.position, luggage.changes):
            return ""
        try:
            return await asyncio.to_thread(held.digest, ()) or ""
        except Unreadable as error:
            log.error("%s: the state that it had before cannot be read: %s", mine, error)
            held.verdict = UNREADABLE
        except NotPortable:
            pass
        return ""

    async def _compare_with(self, mine: Replica, before: str) -> None:
        resident = self._residents[mine]
        if isinstance(resident, BackedResident):
            same = await asyncio.to_thread(resident.store.fingerprint) == before
            text = await asyncio.to_thread(self._keep.compared, mine, same)
            if text:
                self.auditing.found[mine] = text

    def _check_wanted(self, mine: Replica, source: Replica | None) -> None:
        if not self._com.handover.may_take(mine):  # others have been told that it has none
            raise Unavailable("the view is changing: it cannot be taken now")
        if self._com.handover.seeds.get(mine) != source:
            raise Unavailable("the view has changed: another state is wanted now")

    def _take(self, mine: Replica, ticket: str, luggage: Luggage, on_disk: bool = False) -> None:
        if self._tracing is not None:
            self._tracing.adopt(mine, ticket, luggage.kept)
        resident = self._residents[mine]
        resident.changes, resident.history = luggage.changes, luggage.history
        resident.position = luggage.position
        if isinstance(resident, BackedResident):
            resident.note_head(luggage.part, ticket, lambda: self._has(mine))
        elif self._journaling is not None and mine in self._journaling:
            if on_disk:
                self._journaling.has(mine)
            else:
                self._journaling.took(mine, resident, luggage.part, ticket)
        self._backoffs.of(mine).took()
        held = self._held.pop(mine, None)
        self._feed(Take(mine, luggage.part))
        if held is not None:
            held.spool.close()
            asyncio.get_running_loop().call_soon(self._send_again, mine, held.done)
            if held.doubt:
                asking = asyncio.ensure_future(self._send_committed(mine, held))
                self._asking.add(asking)
                asking.add_done_callback(self._asking.discard)

    def _has(self, mine: Replica) -> None:
        if self._journaling is not None:
            self._journaling.has(mine)

    def _send_again(self, mine: Replica, done: Iterable[Request]) -> None:
        """What was performed here in an earlier life, and is not in the state that it got from another one: it may
        have been acknowledged, and must not get lost."""
        try:
            for request in chain.from_iterable(map(split, done)):
                if request.invocation not in self._com.hosts[mine].replies:
                    self._feed(Again(request))
        except OboError as error:
            log.error("%s cannot send again what it had performed in an earlier life: %s", mine, error)

    async def _send_committed(self, mine: Replica, held: Held) -> None:
        """The same of what was in doubt: it counts if others have committed it."""
        keep = await self.doubting.ask(mine, held.doubt, False)
        self._send_again(mine, [request for request in held.doubtful if request.invocation in keep])

    async def _begin_anew(self, mine: Replica) -> None:
        if isinstance(self._residents[mine], BackedResident):
            await self._adopt(mine, (), NOBODY)
        if self._com.view > 1:
            log.error(
                "THE STATE OF %s IS LOST: no member of view %d has it. %s begins with the initial state",
                object_of(mine),
                self._com.view,
                mine,
            )
        self._take(mine, "", Luggage(b"", 0))


def _ended(mine: Replica, task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("%s gets no state: a fault of the framework", mine, exc_info=task.exception())
