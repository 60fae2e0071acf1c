"""The streams of a node: one bidirectional stream for each pair of nodes. The node with the smaller name dials.

Dialling never ends: a peer that cannot be reached is tried again with growing, random pauses. A node that starts knocks
at those who dial it, so that they do not wait for the end of a pause. A lost peer is told once, loudly, and so is its
return.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

import grpc
import grpc.aio
from tenacity import AsyncRetrying, RetryCallState, wait_random_exponential

from framework.errors import Aborted, BadMessage, OboError, Unavailable
from framework.ids import Node
from framework.net import options
from framework.net.line import Driver, Line
from framework.net.pieces import reader, writer
from framework.net.security import OPEN, Credentials, distrust, peer_fault
from framework.net.wire.com_pb2 import Explanation, FetchChunk, FetchWish, Question
from framework.net.wire.com_pb2_grpc import LinkServicer, LinkStub, add_LinkServicer_to_server

log = logging.getLogger(__name__)

NODE = "obo-node"  # metadata of the hello
KNOCK = "obo-knock"  # of an Exchange that only says: I am here now, dial me
FIRST_ANSWER = 3.0  # seconds in which a peer that was dialled must say who it is
STOOD = 5.0  # a stream that breaks sooner is a fault that comes again: pause longer each time
LONGEST_PAUSE = 5.0
_BACKOFF = wait_random_exponential(multiplier=0.05, max=1.0)


class NotReached(Exception):
    """No stream could be made; try again."""


class SaysNo(NotReached):
    """The peer was reached, and does not do what it was asked for."""


class HasNone(SaysNo):
    """The peer has no state of this replica itself, and none is on its way to it."""


_SAYS: dict[Any, type[NotReached]] = {
    grpc.StatusCode.NOT_FOUND: SaysNo,
    grpc.StatusCode.OUT_OF_RANGE: HasNone,
}


class Empty(Unavailable):
    """What a peer is told that asks for a state which this node does not have itself."""


class Peers:
    def __init__(
        self,
        node: Node,
        addresses: Mapping[Node, str],
        driver: Driver,
        max_message: int = options.MAX_MESSAGE,
        credentials: Credentials = OPEN,
    ) -> None:
        self.node = node
        self._addresses = addresses
        self._max_message = max_message
        self._credentials = credentials
        self.lines = {peer: Line(peer, driver) for peer in addresses if peer != node}
        self.explain: Callable[[bytes], bytes] = _explains_nothing  # answers a peer's question
        self.give: Callable[[Node, FetchWish], AsyncGenerator[FetchChunk, None]] = _gives_nothing  # a state, to a peer
        self._stopping = False
        self._knocked = {peer: asyncio.Event() for peer in self.lines}
        self._dialling: list[asyncio.Task[None]] = []

    def serve_on(self, server: Any) -> None:
        """Accept streams from the peers with smaller names."""
        add_LinkServicer_to_server(_Acceptor(self), server)

    def start(self) -> None:
        for peer, line in self.lines.items():
            work = self._dial(line) if self.node < peer else self._knock(peer)
            self._dialling.append(asyncio.ensure_future(work))

    async def stop(self) -> None:
        self._stopping = True
        for task in self._dialling:
            task.cancel()
        for line in self.lines.values():
            line.close()
        if self._dialling:
            done, _ = await asyncio.wait(self._dialling, timeout=1.0)
            for task in done:
                if not task.cancelled():
                    task.exception()  # the last attempt may have failed: nobody asks any more

    def up(self, peer: Node) -> bool:
        return self.lines[peer].up

    # dialling

    async def _dial(self, line: Line) -> None:
        """One stream after the other; the pauses begin anew after each that stood."""
        told, short = False, 0

        def not_reached(state: Any) -> None:
            nonlocal told
            if not told and state.attempt_number > 3:
                told = True
                log.warning("%s at %s cannot be reached: %s", line.peer, self._address(line), state.outcome.exception())

        while not self._stopping:
            pause = partial(self._pause, self._knocked[line.peer])
            attempts = AsyncRetrying(wait=_BACKOFF, retry=self._again, before_sleep=not_reached, sleep=pause)
            stream: tuple[str, float] = await attempts(self._one_stream, line)
            why, lasted = stream
            told = False
            log.warning("%s is lost: %s", line.peer, why)
            short = 0 if lasted > STOOD else min(short + 1, 10)
            await asyncio.sleep(random.uniform(0.5, 1.0) * min(0.02 * 2**short, LONGEST_PAUSE))

    async def _pause(self, knocked: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await knocked.wait()
        except TimeoutError:
            pass
        knocked.clear()

    async def _knock(self, peer: Node) -> None:
        """Once: who is not there now dials when it is."""
        try:
            async with asyncio.timeout(FIRST_ANSWER):
                async with self._credentials.channel(self._addresses[peer], self._max_message, peer) as channel:
                    await LinkStub(channel).Exchange(metadata=(*hello(self.node), (KNOCK, "1"))).read()
        except (grpc.aio.AioRpcError, TimeoutError):
            pass

    def _again(self, state: RetryCallState) -> bool:
        assert state.outcome is not None
        return isinstance(state.outcome.exception(), NotReached) and not self._stopping

    def _address(self, line: Line) -> str:
        return self._addresses[line.peer]

    async def _one_stream(self, line: Line) -> tuple[str, float]:
        """Why the stream broke, and how long it stood."""
        async with self._credentials.channel(self._address(line), self._max_message, line.peer) as channel:
            call = LinkStub(channel).Exchange(metadata=hello(self.node))
            try:
                async with asyncio.timeout(FIRST_ANSWER):  # wait_for can lose a cancellation (Python 3.11)
                    first = await call.initial_metadata()
                said = dict(first) if first else {}
                if said.get(NODE) != line.peer:  # an error comes without metadata of ours
                    raise NotReached(await call.details() if call.done() else f"{said.get(NODE)!r} answers there")
            except (grpc.aio.AioRpcError, TimeoutError) as error:
                raise NotReached(_detail(error)) from None

            began = asyncio.get_running_loop().time()
            why = await line.carry(reader(call, line.heard), writer(call, self._max_message))
            return why, asyncio.get_running_loop().time() - began

    # questions

    async def ask(self, peer: Node, question: bytes, timeout: float) -> bytes:
        """What ``explain`` of a peer says; NotReached if it says nothing. Questions are rare: a channel for each."""
        if not self.up(peer):
            raise NotReached("cannot be reached")
        said = hello(self.node)
        try:
            async with self._credentials.channel(self._addresses[peer], self._max_message, peer) as channel:
                asking = LinkStub(channel).Explain(
                    Question(data=question), metadata=said, timeout=timeout, wait_for_ready=True
                )
                return bytes((await asking).data)
        except grpc.aio.AioRpcError as error:
            raise NotReached(f"does not answer: {error.details()}") from None

    async def asked(self, question: Question, context: Any) -> Explanation:
        await self._admit(context, False)
        try:
            return Explanation(data=self.explain(question.data))
        except BadMessage as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise

    # states

    async def fetch(self, peer: Node, wish: FetchWish) -> AsyncGenerator[FetchChunk, None]:
        """What ``give`` of a peer yields. On a connection of its own: calls do not queue behind it."""
        if peer not in self._addresses:
            raise SaysNo(f"no node has the name {peer!r}")
        try:
            async with self._credentials.channel(self._addresses[peer], self._max_message, peer) as channel:
                async for chunk in LinkStub(channel).Fetch(wish, metadata=hello(self.node)):
                    yield chunk
        except grpc.aio.AioRpcError as error:
            raise _SAYS.get(error.code(), NotReached)(_detail(error)) from None

    async def given(self, wish: FetchWish, context: Any) -> AsyncGenerator[FetchChunk, None]:
        peer = await self._admit(context, False)
        try:
            async with aclosing(self.give(peer, wish)) as chunks:  # the peer may hang up half way
                async for chunk in chunks:
                    yield chunk
        except Aborted as error:  # ask again, and there is another one
            await context.abort(grpc.StatusCode.ABORTED, str(error))
        except Empty as error:
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, str(error))
        except OboError as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))

    # accepting

    async def accept(self, context: Any) -> None:
        peer = await self._admit(context, True)
        await context.send_initial_metadata(hello(self.node))
        why = "its connection broke"  # then gRPC cancels this
        try:
            line = self.lines[peer]
            why = await line.carry(reader(context, line.heard), writer(context, self._max_message))
        finally:
            if not self._stopping:
                log.warning("%s is lost: %s", peer, why)

    async def _admit(self, context: Any, dials: bool) -> Node:
        """Which peer makes this RPC; ends it if that is none of ours."""
        said = dict(context.invocation_metadata())
        peer = Node(str(said.get(NODE, "")))
        if KNOCK in said and peer > self.node and not peer_fault(context, peer, self._credentials.tls):
            if peer in self._knocked:
                self._knocked[peer].set()
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, f"{self.node} dials {peer}")
        fault = self._fault(peer, dials) or peer_fault(context, peer, self._credentials.tls)
        if fault:
            log.warning("a %s is refused: %s", "stream" if dials else "question", fault)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, fault)
        return peer

    def _fault(self, peer: Node, dials: bool) -> str:
        if peer not in self.lines:
            return f"{peer!r} is not a peer of {self.node}"
        if dials and peer > self.node:
            return f"{self.node} dials {peer}, not the other way round"
        return ""


class _Acceptor(LinkServicer):
    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    async def Exchange(self, request_iterator: Any, context: Any) -> None:  # noqa: N802  # the name is in com.proto
        await self._peers.accept(context)

    async def Explain(self, request: Question, context: Any) -> Explanation:  # noqa: N802
        return await self._peers.asked(request, context)

    async def Fetch(self, request: FetchWish, context: Any) -> AsyncGenerator[FetchChunk, None]:  # noqa: N802
        async with aclosing(self._peers.given(request, context)) as chunks:
            async for chunk in chunks:
                yield chunk


def _explains_nothing(question: bytes) -> bytes:
    raise BadMessage("nobody answers questions here")


async def _gives_nothing(peer: Node, wish: FetchWish) -> AsyncGenerator[FetchChunk, None]:
    raise BadMessage("nobody gives states here")
    yield


def hello(node: Node) -> tuple[tuple[str, str], ...]:
    return ((NODE, node),)


def _detail(error: BaseException) -> str:
    details = getattr(error, "details", None)
    said = str(details() if callable(details) else "")
    return distrust(said) or said or f"no answer within {FIRST_ANSWER:.0f} s"
