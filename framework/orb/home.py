"""A client's connection to its home node: one stream, many calls in flight; and what happens when the node is lost.

Every call has a number, which is part of its invocation id. When the stream breaks, the client goes to the next node
it knows, brings its session context along (PROTOCOL §4), and repeats what was not answered under the same numbers:
replicas that have performed a call answer it again, the others perform it. One-way calls are not repeated.
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

from framework.com.events import Session
from framework.com.receipt import Receipt
from framework.errors import (
    BadMessage,
    BadRequest,
    DeadlineExceeded,
    OboError,
    OutcomeUnknown,
    Unauthenticated,
    Unavailable,
)
from framework.net.options import MAX_MESSAGE
from framework.net.security import OPEN, Credentials, distrust, hint, refusal
from framework.net.wire.orb_pb2 import Packet
from framework.net.wire.orb_pb2_grpc import SessionStub
from framework.orb.limits import Outbox, check_size
from framework.orb.messages import (
    Act,
    Answer,
    Bye,
    Call,
    Collect,
    Hello,
    Left,
    Look,
    Refused,
    ToClient,
    Told,
    ToNode,
    Welcome,
    encode,
    to_client,
)
from framework.orb.outcome import Outcome, named

log = logging.getLogger(__name__)

TIMEOUT = 10.0  # of a call that says nothing else: finite
GRACE = 1.0  # the node tells when a deadline has passed; without a word for this long the client does
FIRST_ANSWER = 3.0  # seconds in which a node must say Welcome


class NotReached(Exception):
    """This node cannot be had; try the next."""


class _Pending:
    """A call that is not answered. ``act`` is what would be sent again."""

    def __init__(self, act: Act, deadline: float) -> None:
        self.act = act
        self.time = time.time()
        self.deadline = deadline
        self.sent = False
        self.before: dict[str, Session] | None = None  # the sessions before it was first sent: brought when repeated
        self.answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()


class Home:
    def __init__(self, addresses: Sequence[str], timeout: float = TIMEOUT, credentials: Credentials = OPEN) -> None:
        self.client = f"c-{uuid4().hex[:16]}"
        self.node = ""  # the home node's name, while there is one
        self._addresses = addresses
        self._timeout = timeout
        self._credentials = credentials
        self._max_message = MAX_MESSAGE  # until a node has said what it takes
        self._denied: OboError | None = None  # why no node will ever let us in
        self._distrusted = 0  # nodes in a row that are not what they should be
        self._next = 1
        self._calls: dict[int, _Pending] = {}
        self._looks: dict[int, asyncio.Future[bytes]] = {}
        self._out = Outbox()
        self._bell = asyncio.Event()
        self._ready = asyncio.Event()
        self._sessions: dict[str, Session] = {}  # by node: its session there, the newest that it was given
        self._brought: set[str] = set()  # what this home has of those of other nodes
        self._why = "not tried yet"
        self._closed = False
        self._move = asyncio.Event()
        self._keeping = asyncio.ensure_future(self._keep())

    # the engine of a face

    async def call(self, act: Act) -> Outcome:
        number = self._begin(act)
        return await self._answer(number)

    async def send(self, act: Act) -> int:
        if act.kind == "oneway":
            return await self._oneway(act)
        return self._begin(act)

    async def collect(self, number: int, receipt: Receipt | None, timeout: float | None) -> Outcome:
        pending = self._calls.get(number)
        if pending is None or pending.act.wait:
            raise BadRequest("this call has been received already, or was never sent")
        limit = self._limit(timeout)
        pending.act = msgspec.structs.replace(pending.act, receipt=receipt, wait=True, timeout=limit)
        if pending.sent and self._ready.is_set():
            self._say(Collect(number, receipt, limit))
        return await self._answer(number)

    async def look(self, what: Literal["objects", "status"]) -> Any:
        """What the home node says about itself."""
        try:
            async with asyncio.timeout(self._timeout):
                await self.reached()
                self._next += 1
                future = self._looks[self._next - 1] = asyncio.get_running_loop().create_future()
                self._say(Look(self._next - 1, what))
                return msgspec.msgpack.decode(await future)
        except TimeoutError:
            raise Unavailable(f"no node could be reached: {self._why}") from None

    async def close(self) -> None:
        if self._ready.is_set() and self._denied is None:
            self._say(Bye())
            try:
                async with asyncio.timeout(0.5):
                    await self._move.wait()
            except TimeoutError:
                pass
        self._closed = True
        self._keeping.cancel()
        await asyncio.wait((self._keeping,), timeout=1.0)
        for pending in self._calls.values():
            if not pending.answer.done():
                pending.answer.set_exception(Unavailable("the client was closed"))
                pending.answer.exception()

    async def reached(self) -> None:
        """Until there is a home node; Unavailable if none can be reached within the time-out."""
        try:
            async with asyncio.timeout(self._timeout):
                await self._ready.wait()
        except TimeoutError:
            raise Unavailable(f"no node could be reached: {self._why}") from None
        if self._denied is not None:
            raise self._denied

    # calls

    def _limit(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    def _begin(self, act: Act) -> int:
        check_size(act, self._max_message)
        if self._denied is not None:
            raise self._denied
        number = self._number(act)
        limit = self._limit(act.timeout)
        pending = _Pending(msgspec.structs.replace(act, timeout=limit), time.time() + limit)
        self._calls[number] = pending
        if self._ready.is_set():
            self._send(number, pending)
        return number

    def _number(self, act: Act) -> int:
        number = self._next
        self._next += len(act.parts)
        return number

    async def _oneway(self, act: Act) -> int:
        check_size(act, self._max_message)
        await self.reached()
        done = self._done()
        number = self._number(act)
        limit = self._limit(act.timeout)
        now = time.time()
        self._say(Call(number, act, now, now + limit, done, self._bring(self._sessions)))
        return number

    def _send(self, number: int, pending: _Pending) -> None:
        pending.sent = True
        if pending.before is None:
            pending.before = dict(self._sessions)
        left = pending.deadline - time.time()
        act = msgspec.structs.replace(pending.act, timeout=max(left, 0.0)) if pending.act.wait else pending.act
        self._say(Call(number, act, pending.time, pending.deadline, self._done(), self._bring(pending.before)))

    def _done(self) -> int:
        """All calls below this number are answered."""
        return next(iter(self._calls), self._next)

    def _bring(self, sessions: dict[str, Session]) -> tuple[Session, ...]:
        """What this home does not have yet of the sessions at other nodes."""
        new = tuple(s for node, s in sessions.items() if node != self.node and s.after not in self._brought)
        self._brought.update(s.after for s in new)
        return new

    async def _answer(self, number: int) -> Outcome:
        pending = self._calls[number]
        limit = pending.act.timeout
        assert limit is not None
        try:
            async with asyncio.timeout(limit + GRACE):
                return await pending.answer
        except TimeoutError:
            if not pending.sent:
                raise Unavailable(f"no node could be reached within {limit:g} s: {self._why}") from None
            raise DeadlineExceeded(f"no answer from {self.node or 'any node'} within {limit:g} s") from None
        finally:
            self._calls.pop(number, None)

    # the stream

    async def _keep(self) -> None:
        """One home after the other, for as long as the client lives."""
        addresses = cycle(self._addresses)

        async def one() -> None:
            if not self._closed:
                await self._one_home(next(addresses))

        wait = wait_random_exponential(multiplier=0.02, max=1.0)
        while not self._closed and self._denied is None:
            await AsyncRetrying(wait=wait, retry=retry_if_exception_type(NotReached))(one)
            await asyncio.sleep(0)

    async def _one_home(self, address: str) -> None:
        async with self._credentials.channel(address) as channel:
            stream = SessionStub(channel).Open(metadata=self._credentials.metadata)
            try:
                async with asyncio.timeout(FIRST_ANSWER):
                    await stream.write(Packet(messages=[encode(Hello(self.client))]))
                    packet = await stream.read()
                welcome = to_client(packet.messages[0]) if packet is not grpc.aio.EOF else None
                if not isinstance(welcome, Welcome):
                    raise NotReached(f"{address} does not say Welcome")
            except (grpc.aio.AioRpcError, TimeoutError, BadMessage, asyncio.InvalidStateError, NotReached) as error:
                self._why = f"{address}: {_detail(error)}{hint(_detail(error), self._credentials.tls)}"
                if self._refused_by(address, error):
                    return
                raise NotReached(self._why) from None
            self._max_message, self._distrusted = welcome.max_message, 0
            await self._live(stream, welcome.node)

    def _refused_by(self, address: str, error: BaseException) -> bool:
        """A node does not let us in, or none is what it should be: then it is no use to go on trying."""
        denied = refusal(error)
        distrusted = distrust(_detail(error))
        self._distrusted = self._distrusted + 1 if distrusted else 0
        if denied is None and self._distrusted >= len(self._addresses):
            denied = Unauthenticated(f"{address}: {distrusted}")
        if denied is None:
            return False
        self._denied = denied
        for number, pending in self._calls.items():
            self._settle(number, OutcomeUnknown(f"it was sent, but then: {denied}") if pending.sent else denied)
        self._ready.set()  # whoever waits for a home is told
        return True

    async def _live(self, stream: Any, node: str) -> None:
        """Use the stream until it breaks or the node wants to be left."""
        self.node = node
        self._out.clear()
        self._move.clear()
        self._brought.clear()
        for number, pending in self._calls.items():
            self._send(number, pending)
        self._ready.set()
        tasks = [asyncio.ensure_future(work) for work in (self._read(stream), self._write(stream), self._move.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            error = next((t.exception() for t in tasks if t in done and t.exception()), None)
            self._why = f"{node}: {_detail(error) if error else 'the stream was closed'}"
            log.info("home node %s is lost: %s", node, self._why)
        finally:
            self._ready.clear()
            self._move.set()
            self.node = ""
            for task in tasks:
                task.cancel()
            for future in self._looks.values():
                future.cancel()
            self._looks.clear()

    async def _read(self, stream: Any) -> None:
        while (packet := await stream.read()) is not grpc.aio.EOF:
            for data in packet.messages:
                self._take(to_client(data))

    async def _write(self, stream: Any) -> None:
        while True:
            if not self._out:
                self._bell.clear()
                await self._bell.wait()
                continue
            await stream.write(Packet(messages=self._out.take(self._max_message)))

    def _say(self, message: ToNode) -> None:
        self._out.append(encode(message))
        self._bell.set()

    def _take(self, message: ToClient) -> None:
        if isinstance(message, Answer):
            if message.session is not None:
                self._sessions[self.node] = message.session
            self._settle(message.number, Outcome(message.responses, message.complete))
        elif isinstance(message, Left):
            self._sessions[self.node] = message.session
        elif isinstance(message, Refused):
            self._refused(message)
        elif isinstance(message, Told):
            future = self._looks.pop(message.number, None)
            if future is not None and not future.done():
                future.set_result(message.body)

    def _refused(self, message: Refused) -> None:
        error = named(message.error, message.text)
        if type(error) is Unavailable and len(self._addresses) > 1:
            self._why = message.text
            self._move.set()  # it did not happen here: repeated at the next node
        else:
            self._settle(message.number, error)

    def _settle(self, number: int, outcome: Outcome | OboError) -> None:
        pending = self._calls.get(number)
        if pending is None or pending.answer.done():
            return
        if isinstance(outcome, OboError):
            pending.answer.set_exception(outcome)
            pending.answer.exception()  # a one-way or forgotten call: nobody may ask
        else:
            pending.answer.set_result(outcome)


def _detail(error: BaseException) -> str:
    details = getattr(error, "details", None)
    return str(details() if callable(details) else "") or str(error) or type(error).__name__
