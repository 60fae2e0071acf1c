"""A client's connection to its home node: one stream, many calls in flight; and what happens when the node is lost.

Every call has a number, which is part of its invocation id. When the stream breaks, the client goes to the next node
it knows, brings its session context along (PROTOCOL §4), and repeats what was not answered, and what may not have
left, under the same numbers: replicas that have performed a call answer it again, the others perform it.

Calls are begun in the caller's own thread and only put into a list there; the loop writes all that waits as one packet.
"""

import asyncio
import logging
import threading
import time
from collections import deque
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
from framework.orb.limits import check_size
from framework.orb.messages import (
    Act,
    Answer,
    Bye,
    Call,
    Cancel,
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
from framework.orb.packets import packets
from framework.orb.proxy import Settle

log = logging.getLogger(__name__)

TIMEOUT = 10.0  # of a call that says nothing else: finite
GRACE = 1.0  # the node tells when a deadline has passed; without a word for this long the client does
FIRST_ANSWER = 3.0  # seconds in which a node must say Welcome
SWEEP = 0.1  # seconds between two looks for calls that nobody answers
MOST_UNHEARD = 8192  # calls that the node has not taken yet: then callers of one-way methods wait


class NotReached(Exception):
    """This node cannot be had; try the next."""


class _Pending:
    """A call that is not answered, or a one-way call of which it is not known that it has left."""

    __slots__ = ("act", "before", "deadline", "failed", "sent", "settle", "time", "until")

    def __init__(self, act: Act, settle: Settle | None, limit: float) -> None:
        self.act = act  # what would be sent again
        self.settle = settle
        self.time = time.time()
        self.deadline = self.time + limit
        self.until = time.monotonic() + limit
        self.sent = False
        self.failed: OboError | None = None  # for whoever collects it
        self.before: dict[str, Session] = {}  # the sessions before it was first sent: brought when it is repeated


class Home:
    """``begin``, ``send``, ``collect`` and ``cancel`` may be called from any thread; the rest belongs to the loop."""

    def __init__(self, addresses: Sequence[str], timeout: float = TIMEOUT, credentials: Credentials = OPEN) -> None:
        self.client = f"c-{uuid4().hex[:16]}"
        self.node = ""  # the home node's name, while there is one
        self._addresses = addresses
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._mutex = threading.Lock()  # numbers, calls and what waits to be written
        self._credentials = credentials
        self._max_message = MAX_MESSAGE  # until a node has said what it takes
        self._denied: OboError | None = None  # why no node will ever let us in
        self._distrusted = 0  # nodes in a row that are not what they should be
        self._next = 1
        self._calls: dict[int, _Pending] = {}
        self._unheard: deque[int] = deque()  # one-way calls among them
        self._looks: dict[int, asyncio.Future[bytes]] = {}
        self._out: list[ToNode] = []
        self._rung = False
        self._bell = asyncio.Event()
        self.ready = False  # is there a home node?
        self._ready = asyncio.Event()  # the same, to wait for
        self._sessions: dict[str, Session] = {}  # by node: its session there, the newest that it was given
        self._brought: set[str] = set()  # what this home has of those of other nodes
        self._why = "not tried yet"
        self._closed = False
        self._move = asyncio.Event()
        self._keeping = asyncio.ensure_future(self._keep())
        self._sweeping = asyncio.ensure_future(self._sweep())

    # the engine of a face; from any thread

    def begin(self, act: Act, settle: Settle) -> int:
        return self._start(act, settle)

    def send(self, act: Act) -> int:
        return self._start(act, None)

    def collect(self, number: int, receipt: Receipt | None, timeout: float | None, settle: Settle) -> int:
        limit = self._timeout if timeout is None else timeout
        with self._mutex:
            pending = self._calls.get(number)
            if pending is None or pending.act.wait or pending.act.kind == "oneway":
                raise BadRequest("this call has been received already, or was never sent")
            pending.act = msgspec.structs.replace(pending.act, receipt=receipt, wait=True, timeout=limit)
            pending.settle = settle
            pending.until = time.monotonic() + limit
            if pending.sent and self.ready and pending.failed is None:
                self._say(Collect(number, receipt, limit))
        if pending.failed is not None:
            self._settle(number, pending.failed)
        return number

    def cancel(self, number: int) -> None:
        """Nobody waits for this call any more."""
        with self._mutex:
            pending = self._calls.pop(number, None)
            if pending is not None and pending.sent and self.ready:
                self._say(Cancel(number))

    @property
    def full(self) -> bool:
        """So much is on its way to the node that one-way calls have to wait."""
        return len(self._unheard) >= MOST_UNHEARD or len(self._out) >= MOST_UNHEARD

    def _start(self, act: Act, settle: Settle | None) -> int:
        check_size(act, self._max_message)
        if self._closed:
            raise Unavailable("the client was closed")
        if self._denied is not None:
            raise self._denied
        limit = act.timeout
        if limit is None:
            limit = self._timeout
            act = Act(act.kind, act.parts, act.transmission, act.receipt, act.wait, limit)
        pending = _Pending(act, settle, limit)
        with self._mutex:
            number = self._next
            self._next += len(act.parts)
            self._calls[number] = pending
            if act.kind == "oneway":
                self._unheard.append(number)
            if self.ready:
                self._send(number, pending)
        return number

    def _send(self, number: int, pending: _Pending) -> None:
        """With the mutex. All calls below ``done`` are answered; it need not be said with each of a packet."""
        act = pending.act
        if pending.sent:
            left = max(pending.until - time.monotonic(), 0.0)
            act = msgspec.structs.replace(act, timeout=left) if act.wait else act
        else:
            pending.sent = True
            pending.before = self._sessions
        done = 0 if self._out else min(next(iter(self._calls)), number)
        sessions = self._bring(pending.before)
        self._say(Call(number, act, pending.time, pending.deadline, done, sessions))

    def _bring(self, sessions: dict[str, Session]) -> tuple[Session, ...]:
        """What this home does not have yet of the sessions at other nodes."""
        if not sessions or (len(sessions) == 1 and self.node in sessions):
            return ()
        new = tuple(s for node, s in sessions.items() if node != self.node and s.after not in self._brought)
        self._brought.update(s.after for s in new)
        return new

    def _say(self, message: ToNode) -> None:
        """With the mutex, or before anybody else can say something."""
        self._out.append(message)
        if not self._rung:
            self._rung = True
            self._loop.call_soon_threadsafe(self._bell.set)

    # for the faces, on the loop

    async def look(self, what: Literal["objects", "status"]) -> Any:
        """What the home node says about itself."""
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
        with self._mutex:
            calls, self._calls = self._calls, {}
        for pending in calls.values():
            if pending.settle is not None:
                pending.settle(Unavailable("the client was closed"))

    async def reached(self) -> None:
        """Until there is a home node; Unavailable if none can be reached within the time-out."""
        if self.ready:
            return
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
            with self._mutex:
                late = [n for n, p in self._calls.items() if p.act.wait and now > p.until + (GRACE if p.sent else 0.0)]
            for number in late:
                self._settle(number, self._late(self._calls.get(number)))

    def _late(self, pending: _Pending | None) -> OboError:
        limit = pending.deadline - pending.time if pending is not None else 0.0
        if pending is None or not pending.sent:
            return Unavailable(f"no node could be reached within {limit:g} s: {self._why}")
        return DeadlineExceeded(f"no answer from {self.node or 'any node'} within {limit:g} s")

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
        for number, pending in tuple(self._calls.items()):
            self._settle(number, OutcomeUnknown(f"it was sent, but then: {denied}") if pending.sent else denied)
        self._ready.set()  # whoever waits for a home is told
        return True

    async def _live(self, stream: Any, node: str) -> None:
        """Use the stream until it breaks or the node wants to be left."""
        self._move.clear()
        with self._mutex:
            self.node = node
            self._out.clear()
            self._brought.clear()
            for number, pending in self._calls.items():
                self._send(number, pending)
            self.ready = True
        self._ready.set()
        tasks = [asyncio.ensure_future(work) for work in (self._read(stream), self._write(stream), self._move.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            error = next((t.exception() for t in tasks if t in done and t.exception()), None)
            self._why = f"{node}: {_detail(error) if error else 'the stream was closed'}"
            log.info("home node %s is lost: %s", node, self._why)
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

    async def _read(self, stream: Any) -> None:
        while (packet := await stream.read()) is not grpc.aio.EOF:
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
            for packet in packets(waiting, self._max_message):
                await stream.write(packet)

    def _take(self, message: ToClient) -> None:
        if isinstance(message, Answer):
            self._settle(message.number, Outcome(message.responses, message.complete, message.why))
        elif isinstance(message, Left):
            self._sessions = {**self._sessions, self.node: message.session}
            self._left(message.number)
        elif isinstance(message, Refused):
            self._refused(message)
        elif isinstance(message, Told):
            future = self._looks.pop(message.number, None)
            if future is not None and not future.done():
                future.set_result(message.body)

    def _left(self, number: int) -> None:
        """All calls without an answer have left, up to this one: one-way calls are over with that."""
        with self._mutex:
            while self._unheard and self._unheard[0] <= number:
                self._calls.pop(self._unheard.popleft(), None)

    def _refused(self, message: Refused) -> None:
        error = named(message.error, message.text)
        if type(error) is Unavailable and len(self._addresses) > 1:
            self._why = message.text
            self._move.set()  # it did not happen here: repeated at the next node
        else:
            self._settle(message.number, error)

    def _settle(self, number: int, outcome: Outcome | OboError) -> None:
        with self._mutex:
            pending = self._calls.pop(number, None)
            if pending is not None and pending.settle is None:
                self._unsettled(number, pending, outcome)
        if pending is not None and pending.settle is not None:
            pending.settle(outcome)

    def _unsettled(self, number: int, pending: _Pending, outcome: Outcome | OboError) -> None:
        """With the mutex: nobody waits for it; not yet, or never."""
        if pending.act.kind == "oneway":
            self._unheard.remove(number)
            log.warning("one-way %s.%s: %s", pending.act.parts[0].object, pending.act.parts[0].method, outcome)
        elif isinstance(outcome, OboError):
            pending.failed = outcome
            self._calls[number] = pending


def _detail(error: BaseException) -> str:
    details = getattr(error, "details", None)
    return str(details() if callable(details) else "") or str(error) or type(error).__name__
