"""A client's connection to its home node: one stream, many calls in flight; and what happens when the node is lost.

Every call has a number, which is part of its invocation id. When the stream breaks, the client goes to the next node
it knows, brings its session context along (protocol.md §8.1), and repeats what was not answered, and what may not have
left, under the same numbers: replicas that have performed a call answer it again, the others perform it.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from itertools import cycle
from typing import Any, Literal
from uuid import uuid4

import grpc
import grpc.aio
import msgspec
from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from framework.errors import (
    Aborted,
    BadMessage,
    OutcomeUnknown,
    Unauthenticated,
    Unavailable,
)
from framework.net import forks
from framework.net.pace import Pace
from framework.net.security import OPEN, Credentials, distrust, hint, refusal
from framework.orb.calling import Calling
from framework.orb.messages import (
    Answer,
    Bye,
    Going,
    Left,
    Look,
    Ping,
    Refused,
    Stay,
    ToClient,
    Told,
    to_client,
)
from framework.orb.opening import Closer, NotOpened, Opened, detail, open_session
from framework.orb.outcome import Outcome, is_outdated, named
from framework.orb.packets import packets

log = logging.getLogger(__name__)

TIMEOUT = 10.0  # of a call that says nothing else: finite
GRACE = 1.0  # the node tells when a deadline has passed; without a word for this long the client does
FIRST_ANSWER = 3.0  # seconds in which a node must say Welcome
QUIET = 0.3  # seconds without a word, while calls wait, after which the node is asked whether it is there
SILENT = 0.75  # seconds without an answer to that: it hangs, and the next one is asked
SLOWEST = 4 << 20  # bytes a second: so much longer it may take where large calls are on their way
SWEEP = 0.1  # seconds between two looks for calls that nobody answers


class NotReached(Exception):
    """This node cannot be had; try the next."""


class Home(Calling):
    def __init__(self, addresses: Sequence[str], timeout: float = TIMEOUT, credentials: Credentials = OPEN) -> None:
        forks.uses_grpc(self)
        super().__init__(timeout)
        self.client = f"c-{uuid4().hex[:16]}"
        self._addresses = addresses
        self._credentials = credentials
        self._distrusted = 0  # nodes in a row that are not what they should be
        self._looks: dict[int, asyncio.Future[bytes]] = {}
        self._ready = asyncio.Event()
        self._move = asyncio.Event()
        self._heard_at = 0.0  # something came from the home node
        self._pinged_at: float | None = None  # it was asked whether it is there, and nothing came since
        self._pace = Pace()
        self._turn = cycle(addresses)
        self._preparing: asyncio.Task[Opened | None] | None = None  # the next home, while this one is about to stop
        self._closer = Closer()
        self._keeping = asyncio.ensure_future(self._keep())
        self._sweeping = asyncio.ensure_future(self._sweep())

    # for the faces, on the loop

    async def look(self, what: Literal["objects", "status"]) -> Any:
        """What the home node says about itself."""
        forks.check()  # a child that was forked inside of a coroutine has no running loop
        try:
            async with asyncio.timeout(self._timeout):
                await self.reached()
                future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
                with self._mutex:
                    number = self._next
                    self._next += 1
                    self._looks[number] = future
                    self._say(Look(number, what))
                return msgspec.msgpack.decode(await future)
        except TimeoutError:
            raise Unavailable(f"no node could be reached: {self._why}") from None

    async def room(self) -> None:
        """Until a one-way call can be taken; Unavailable if that takes longer than the time-out."""
        await self.reached()
        until = time.monotonic() + self._timeout
        while self.full:
            if time.monotonic() > until:
                raise Unavailable(f"{self.node or 'no node'} takes no more calls: {len(self._unheard)} are under way")
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        if self.ready:
            with self._mutex:
                self._say(Bye())
            try:
                async with asyncio.timeout(0.5):
                    await self._move.wait()
            except TimeoutError:
                pass
        self._closed = True
        self._keeping.cancel()
        self._sweeping.cancel()
        await asyncio.wait((self._keeping,), timeout=1.0)
        await self._closer.wait(self._preparing)
        with self._mutex:
            calls, self._calls = self._calls, {}
        for pending in calls.values():
            if pending.settle is not None:
                pending.settle(Unavailable("the client was closed"))

    async def reached(self) -> None:
        """Until there is a home node; Unavailable if none can be reached within the time-out."""
        if self.ready:
            return
        if self._denied is not None:
            raise self._denied
        try:
            async with asyncio.timeout(self._timeout):
                await self._ready.wait()
        except TimeoutError:
            raise Unavailable(f"no node could be reached: {self._why}") from None
        if self._denied is not None:
            raise self._denied

    async def _sweep(self) -> None:
        """Every call ends: also when no node says a word."""
        while True:
            await asyncio.sleep(SWEEP)
            now = time.monotonic()
            self._watch(now)
            with self._mutex:
                late = [n for n, p in self._calls.items() if p.act.wait and now > p.until + (GRACE if p.sent else 0.0)]
            for number in late:
                self._settle(number, self._late(self._calls.get(number)))

    def _watch(self, now: float) -> None:
        """A node that hangs breaks no stream: who waits for it asks, and goes to the next one if nothing comes."""
        if not self.ready or not any(p.sent and p.act.wait for p in list(self._calls.values())):
            self._pinged_at = None
        elif self._pinged_at is None:
            if now - self._heard_at > QUIET:
                self._pinged_at = now
                with self._mutex:
                    self._say(Ping(self._next))
        elif now - self._pinged_at > SILENT + self._on_the_way() / SLOWEST:
            self._pinged_at = None
            self._why = f"{self.node} does not answer for {now - self._heard_at:.1f} s"
            self._move.set()

    def _on_the_way(self) -> int:
        """Bytes of calls that are not answered: a question stands behind them, and the node is busy with them."""
        with self._mutex:
            return sum(len(ask.args) for p in self._calls.values() if p.sent for ask in p.act.parts)

    # the stream

    async def _keep(self) -> None:
        """One home after the other, for as long as the client lives."""
        wait = wait_random_exponential(multiplier=0.02, max=1.0)
        while not self._closed and self._denied is None:
            await AsyncRetrying(wait=wait, retry=retry_if_exception_type(NotReached))(self._one_home)
            await asyncio.sleep(0)

    async def _one_home(self) -> None:
        if self._closed:
            return
        opened = await self._prepared() or await self._opened()
        if opened is None:
            return
        self._max_message, self._distrusted = opened.max_message, 0
        try:
            if opened.why:
                self._why = f"{opened.address}: {opened.why}"
                await self._read_stale(opened.stream)
                raise NotReached(self._why)
            await self._live(opened.stream, opened.stay)
        finally:
            self._closer.close(opened.channel)  # the next home need not wait for that

    async def _opened(self) -> Opened | None:
        """None: no node will ever let us in."""
        address = next(self._turn)
        try:
            return await open_session(self._credentials, address, self.client, FIRST_ANSWER)
        except NotOpened as fault:
            self._why = f"{address}: {fault}{hint(str(fault), self._credentials.tls)}"
            if self._refused_by(address, fault.error):
                return None
            raise NotReached(self._why) from None

    # a home that is about to stop

    def _going(self, why: str) -> None:
        if self._preparing is None and len(self._addresses) > 1:
            self._preparing = asyncio.ensure_future(self._prepare(why))

    async def _prepare(self, why: str) -> Opened | None:
        """The next home is there before this one is left: so nobody waits. None: no other node takes calls now."""
        for _ in self._addresses[1:]:
            try:
                opened = await open_session(self._credentials, next(self._turn), self.client, FIRST_ANSWER)
            except NotOpened:
                continue
            if not opened.why:
                self._why = why
                self._move.set()
                return opened
            self._closer.close(opened.channel)
        return None

    async def _prepared(self) -> Opened | None:
        if self._preparing is None:
            return None
        opened = await self._preparing
        self._preparing = None
        return opened

    async def _read_stale(self, stream: Any) -> None:
        """A node that takes no calls now reads what may be stale. What it does not answer, another one may."""
        with self._mutex:
            wanted = {n: p for n, p in self._calls.items() if p.act.stale and p.failed is None}
            self._out.clear()
            for number, pending in wanted.items():
                self._send(number, pending)
            waiting, self._out, self._rung = self._out, [], False
        if not wanted:
            return
        try:
            async with asyncio.timeout(FIRST_ANSWER):
                for ready in packets(waiting, self._max_message):
                    await stream.write(ready)
                while wanted.keys() & self._calls.keys():
                    packet = await stream.read()
                    if packet is grpc.aio.EOF:
                        return
                    for data in packet.messages:
                        message = to_client(data)
                        if isinstance(message, Refused) and message.error == Unavailable.__name__:
                            wanted.pop(message.number, None)
                        else:
                            self._take(message)
        except (grpc.aio.AioRpcError, TimeoutError, BadMessage, asyncio.InvalidStateError) as error:
            log.info("no stale read: %s", detail(error))

    def _refused_by(self, address: str, error: BaseException) -> bool:
        """A node does not let us in, or none is what it should be: then it is no use to go on trying."""
        denied = refusal(error)
        distrusted = distrust(detail(error))
        self._distrusted = self._distrusted + 1 if distrusted else 0
        if denied is None and self._distrusted >= len(self._addresses):
            denied = Unauthenticated(f"{address}: {distrusted}")
        if denied is None:
            return False
        self._denied = denied
        for number, pending in tuple(self._calls.items()):
            self._settle(number, OutcomeUnknown(f"it was sent, but then: {denied}") if pending.sent else denied)
        self._ready.set()  # whoever waits for a home is told
        return True

    async def _live(self, stream: Any, stay: Stay) -> None:
        """Use the stream until it breaks or the node wants to be left."""
        self._move.clear()
        node = stay.node
        if self.stay.formation not in (b"", stay.formation):
            log.warning("the group of %s was formed anew: what was not on disk is lost", node)
        self._heard_at, self._pinged_at = time.monotonic(), None
        with self._mutex:
            self.node, self.stay = node, stay
            self._out.clear()
            self._brought.clear()
            lost = [n for n, p in self._calls.items() if p.sent and p.act.tran is not None and not p.act.tran.decide]
            for number, pending in self._calls.items():
                if pending.failed is None and number not in lost:
                    self._send(number, pending)
            self.ready = True
        for number in lost:  # a transaction is bound to the node where it began
            self._settle(number, Aborted(f"the home node of the transaction was lost: {self._why}"))
        self._ready.set()
        tasks = [asyncio.ensure_future(work) for work in (self._read(stream), self._write(stream), self._move.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            error = next((t.exception() for t in tasks if t in done and t.exception()), None)
            if error is not None or not self._move.is_set():
                self._why = f"{node}: {detail(error) if error else 'the stream was closed'}"
            log.info("home node %s is lost: %s", node, self._why)
            unreadable = await _unreadable(stream, error)
        finally:
            self._ready.clear()
            with self._mutex:
                self.ready = False
                self.node = ""
            self._move.set()
            for task in tasks:
                task.cancel()
            for future in self._looks.values():
                future.cancel()
            self._looks.clear()
        if unreadable:
            self._give_up()

    def _give_up(self) -> None:
        """One of the messages cannot be read, and it would be the same at the next node: nothing is repeated."""
        with self._mutex:
            sent = [number for number, pending in self._calls.items() if pending.sent]
        for number in sent:
            self._settle(
                number, OutcomeUnknown(f"a message on the stream could not be read, not repeated: {self._why}")
            )

    async def _read(self, stream: Any) -> None:
        while (packet := await stream.read()) is not grpc.aio.EOF:
            self._heard_at, self._pinged_at = time.monotonic(), None
            for data in packet.messages:
                self._take(to_client(data))

    async def _write(self, stream: Any) -> None:
        while True:
            with self._mutex:
                waiting, self._out = self._out, []
                self._rung = False
            if not waiting:
                await self._bell.wait()
                self._bell.clear()
                continue
            await self._pace.gather(len(self._calls))
            with self._mutex:
                waiting = self._wanted(waiting + self._out)
                self._out = []
            for packet in packets(waiting, self._max_message):
                await stream.write(packet)

    def _take(self, message: ToClient) -> None:
        if isinstance(message, Answer):
            if not (is_outdated(message.responses) and self._anew(message.number)):
                self._settle(message.number, Outcome(message.responses, message.complete, message.why))
        elif isinstance(message, Left):
            self._sessions = {**self._sessions, self.node: (self.stay, message.session)}
            self._left(message.number)
        elif isinstance(message, Refused):
            self._refused(message)
        elif isinstance(message, Going):
            self._going(message.why)
        elif isinstance(message, Told):
            future = self._looks.pop(message.number, None)
            if future is not None and not future.done():
                future.set_result(message.body)

    def _refused(self, message: Refused) -> None:
        error = named(message.error, message.text)
        if message.again:
            self._refused_for_now(message.number, error)
        elif type(error) is Unavailable and len(self._addresses) > 1:
            self._why = message.text
            self._move.set()  # it did not happen here: repeated at the next node
        else:
            self._settle(message.number, error)


async def _unreadable(stream: Any, error: BaseException | None) -> bool:
    """Was it neither the network nor the node, but what was said?"""
    if stream.done() and await stream.code() is grpc.StatusCode.INVALID_ARGUMENT:
        return True
    return error is not None and not isinstance(error, grpc.aio.AioRpcError | asyncio.InvalidStateError)
