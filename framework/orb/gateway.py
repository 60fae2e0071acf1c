"""The way in for everybody (proto/orb.proto): unary ``Invoke`` with JSON, ``List``, ``Describe``; health, reflection.

Each Invoke is a session of its own in the com layer: it has no order against other Invokes but the one that conflicts
give. Who needs more hands the ``session`` of one answer to the next call.

Replicas remember every client name for ever, so names are used again: an Invoke takes an idle name and that name's next
number. One with an id of its caller gets its name and number from there; so a repeat, at any node, is the same call.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Collection, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import uuid4

import msgspec
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from framework.com.events import Accepted, Cancel, Leave, Received, Session, Submit
from framework.com.messages import Transmission
from framework.declare import Method
from framework.errors import Aborted, BadRequest, OboError, OutcomeUnknown, ResourceExhausted, Unavailable
from framework.ids import Node, ObjectName, Replica, check_name
from framework.net.wire import orb_pb2_grpc
from framework.net.wire.orb_pb2 import (
    DescribeRequest,
    DescribeResponse,
    InvokeReply,
    InvokeRequest,
    InvokeResponse,
    ListRequest,
    ListResponse,
)
from framework.orb import looking
from framework.orb.as_json import read_arguments, receipt_named, write_result
from framework.orb.config import Config
from framework.orb.guard import Guard
from framework.orb.health import SERVICES, HealthServicer
from framework.orb.inputs import LONGEST
from framework.orb.messages import Act, Ask, encode
from framework.orb.naming import Naming
from framework.orb.outcome import Outcome, Reply, is_outdated, replies
from framework.orb.status import detail_of, shown, status_of, trailing
from framework.orb.told import describe_response, object_info
from framework.orb.who import Caller

log = logging.getLogger(__name__)

TIMEOUT = 10.0
MOST_IN_FLIGHT = 10_000
HOLD = 0.005  # seconds between two looks whether there is room for more

R = TypeVar("R")
_sessions = msgspec.msgpack.Decoder(tuple[Session, ...])


class Answer(NamedTuple):
    outcome: Outcome
    session: Session | None


class _Wait(NamedTuple):
    answer: "asyncio.Future[Answer]"
    oneway: bool
    due: float


class _Name:
    """A client name of the com layer, and its calls that are not answered."""

    def __init__(self, name: str, given: bool) -> None:
        self.name = name
        self.given = given  # by a caller; else ours, to be used again
        self.next = 1
        self.waits: dict[int, _Wait] = {}


class Host(Protocol):
    """The node, as callers see it."""

    name: Node
    config: Config
    naming: Naming

    @property
    def crowded(self) -> bool: ...
    def feed(self, event: Submit | Cancel | Leave) -> None: ...
    def session(self, client: str) -> Session | None: ...
    def pick(self, replicas: Sequence[Replica]) -> Replica: ...
    def lost(self, formation: bytes, names: Collection[ObjectName]) -> list[ObjectName]: ...
    def refusal(self) -> str: ...
    def unwell(self) -> str: ...


class Gateway:
    def __init__(self, host: Host, guard: Guard) -> None:
        self.node = host.name
        self.guard = guard
        self.config = host.config
        self.naming = host.naming
        self.draining = False
        self.in_flight = 0
        self._host = host
        self._session = host.session
        self._feed = host.feed
        self._health = HealthServicer(host)
        self._closed = False
        self._busy: dict[str, _Name] = {}
        self.names: Mapping[str, object] = self._busy  # its clients, for the com layer
        self._idle: list[_Name] = []
        self._prefix = f"g-{uuid4().hex[:16]}"
        self._made = 0
        self._closing: asyncio.Task[None] | None = None
        self._telling: set[asyncio.Task[None]] = set()

    async def serve_on(self, server: Any) -> None:
        orb_pb2_grpc.add_GatewayServicer_to_server(_Acceptor(self), server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        await self._health.refresh()
        names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)

    def tell_health(self) -> None:
        """To those who watch it, if something has changed."""
        if self._health.changed:
            task = asyncio.ensure_future(self._health.refresh())
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    @property
    def parting(self) -> bool:
        return self._closing is not None

    def part(self) -> None:
        """Say that it stops soon. Who watches the health may be slow to hear of it: nobody waits for that."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._health.part())

    def drain(self) -> None:
        """No more Invokes."""
        self.part()
        self.draining = True

    def close(self) -> None:
        self._closed = True
        for task in (self._closing, *self._telling):
            if task is not None:
                task.cancel()
        self.drop(f"{self.node} has stopped")

    def drop(self, why: str) -> None:
        """The com layer that had these calls is over."""
        for name in self._busy.values():
            for number in tuple(name.waits):
                self._end(name, number, OutcomeUnknown(f"{why}; repeat it with the same id elsewhere"))

    # effects of the com layer

    def early(self, effect: Received) -> bool:
        """Did the com layer give up before the deadline? Then replicas have departed that are needed."""
        wait = self._busy[effect.client].waits.get(effect.call)
        return not effect.complete and wait is not None and asyncio.get_running_loop().time() < wait.due

    def received(self, effect: Received, why: str) -> None:
        if self.early(effect):
            text = f"too few of the replicas that were asked are left for {effect.receipt}; repeat it with the same id"
            self._end(self._busy[effect.client], effect.call, OutcomeUnknown(text))
            return
        self._end(
            self._busy[effect.client],
            effect.call,
            Answer(Outcome(effect.responses, effect.complete, why), self._session(effect.client)),
        )

    def accepted(self, effect: Accepted) -> None:
        """A one-way call has left: that is all there is to wait for."""
        name = self._busy[effect.client]
        wait = name.waits.get(effect.call)
        if wait is not None and wait.oneway:
            self._end(name, effect.call, Answer(Outcome((), True), self._session(effect.client)))

    def _end(self, name: _Name, number: int, what: Answer | OboError) -> None:
        wait = name.waits.pop(number, None)
        if wait is None or wait.answer.done():
            return
        if isinstance(what, OboError):
            wait.answer.set_exception(what)
        else:
            wait.answer.set_result(what)

    # a call

    async def room(self, limit: float) -> float:
        """Until the node takes more calls; the seconds that are left then."""
        until = time.monotonic() + limit
        while self._host.crowded:
            if time.monotonic() > until:
                raise ResourceExhausted(f"{self.node} has too much to do, for {limit:g} s; try again later")
            await asyncio.sleep(HOLD)
        return max(until - time.monotonic(), 0.0)

    async def call(self, caller: Caller, act: Act, request: InvokeRequest, limit: float) -> Answer:
        """One call, in a session that is over when this returns, whatever happens. If what was said about its footprint
        did not hold any more, it was not performed, and is judged again."""
        until = time.monotonic() + limit
        while True:
            answer = await self._once(caller, act, request, max(until - time.monotonic(), 0.0))
            if not is_outdated(answer.outcome.responses) or time.monotonic() > until:
                return answer

    async def _once(self, caller: Caller, act: Act, request: InvokeRequest, limit: float) -> Answer:
        caller.check(act, self.naming)
        if self.draining:
            raise Unavailable(f"{self.node} is stopping")
        if why := self._host.refusal():
            raise Unavailable(why)
        if self.in_flight >= MOST_IN_FLIGHT:
            raise ResourceExhausted(f"{MOST_IN_FLIGHT} Invokes are in flight at {self.node}; wait for some of them")
        sessions = _read_sessions(request.session)
        name, number = self._given(caller, request) if request.HasField("id") else self._own()
        self.in_flight += 1
        now = time.time()
        loop = asyncio.get_running_loop()
        wait = _Wait(loop.create_future(), act.kind == "oneway", loop.time() + limit)
        try:
            made_at = request.id.made_at or now
            again = name.given  # perhaps: who gives an id may have called another node before
            submit = self.naming.submit(name.name, number, act, made_at, now + limit, self._host.pick, again)
            self._check_sessions(sessions, submit)
            submit.sessions = sessions
            submit.done = 0 if name.given else number
            submit.deadline = wait.due if submit.receipt is not None else None
            self._end(name, number, Aborted("the same request came again: it gets the answer"))
            name.waits[number] = wait
            self._feed(submit)
            if not wait.oneway:
                return await self._answer(name, number, wait)
            try:
                async with asyncio.timeout(limit):
                    return await wait.answer
            except TimeoutError:
                raise Unavailable(f"{self.node} could not send it within {limit:g} s; it was taken back") from None
        finally:
            self.in_flight -= 1
            self._give_back(name, number, wait)

    async def _answer(self, name: _Name, number: int, wait: _Wait) -> Answer:
        """Once the RPC is cancelled or its deadline has passed, nobody waits any more. One with an id goes on: its
        caller may repeat it, and wants the answer then."""
        wanted = False
        try:
            answer = await wait.answer
            wanted = answer.outcome.complete
            return answer
        except OboError:
            wanted = True  # by another, or by nobody: the node has stopped
            raise
        finally:
            if not wanted and not name.given:
                self._feed(Cancel(name.name, number))

    def _check_sessions(self, sessions: Sequence[Session], submit: Submit) -> None:
        """BadRequest if this call cannot come after all that they include."""
        for session in sessions:
            if lost := self._host.lost(session.formation, [part.object for part in submit.parts]):
                raise BadRequest(
                    f"session: the group was formed anew after it, and {', '.join(lost)} lost what was done before; "
                    "call without it"
                )

    def _given(self, caller: Caller, request: InvokeRequest) -> tuple[_Name, int]:
        client = f"i-{request.id.client}"
        try:
            check_name(client, "client")
        except BadRequest:
            raise BadRequest(
                f"id.client {request.id.client!r:.80} is no name: use 1 to 60 letters, digits, '_', '.', '-'"
            ) from None
        if not request.id.client or not isfinite(request.id.made_at) or request.id.made_at < 0:
            raise BadRequest(f"id needs a client, and made_at in seconds since 1970, not {request.id.made_at}")
        client = caller.client(client)
        name = self._busy.get(client)
        if name is None:
            name = self._busy[client] = _Name(client, True)
        return name, request.id.number

    def _own(self) -> tuple[_Name, int]:
        if self._idle:
            name = self._idle.pop()
        else:
            self._made += 1
            name = _Name(f"{self._prefix}-{self._made}", False)
        self._busy[name.name] = name
        name.next += 1
        return name, name.next - 1

    def _give_back(self, name: _Name, number: int, wait: _Wait) -> None:
        if name.waits.get(number) is wait:
            del name.waits[number]
        if name.waits or self._busy.get(name.name) is not name:
            return
        del self._busy[name.name]
        if not name.given:
            self._idle.append(name)
        if not self._closed:
            try:
                self._feed(Leave(name.name))
            except BadRequest:
                pass  # its call was refused


class _Acceptor(orb_pb2_grpc.GatewayServicer):
    """The names are those of orb.proto."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def Invoke(self, request: InvokeRequest, context: Any) -> InvokeResponse:  # noqa: N802
        caller = await self._gateway.guard.admit(context)
        return await _answered(context, self._invoke(caller, request, context.time_remaining()))

    async def List(self, request: ListRequest, context: Any) -> ListResponse:  # noqa: N802
        return ListResponse(objects=[object_info(o) for o in looking.objects(self._gateway.config)])

    async def Describe(self, request: DescribeRequest, context: Any) -> DescribeResponse:  # noqa: N802
        return await _answered(context, self._describe(request.object))

    async def _describe(self, name: str) -> DescribeResponse:
        self._gateway.naming.find(name)
        return describe_response(looking.described(self._gateway.config, name))

    async def _invoke(self, caller: Caller, request: InvokeRequest, left: float | None) -> InvokeResponse:
        method = self._gateway.naming.method(request.object, request.method)
        limit = await self._gateway.room(_limit(request.timeout_s, left))
        answer = await self._gateway.call(caller, _act(request, method, limit), request, limit)
        session = encode((answer.session,)) if answer.session is not None else b""
        response = InvokeResponse(session=session, node=self._gateway.node)
        if request.oneway:
            return response
        what = f"{request.object}.{request.method}"
        for reply in replies(answer.outcome, {request.object: method}, what):
            response.replies.append(_reply(method, reply))
        response.result_json = write_result(method, reply.value)
        return response


async def _answered(context: Any, work: Awaitable[R]) -> R:
    try:
        return await work
    except OboError as error:
        fault = error
    except Exception as error:
        log.exception("an RPC failed: this is a fault of the framework")
        fault = OboError(f"{type(error).__name__}: {error}")
    await context.abort(status_of(fault), shown(fault), trailing(fault))
    raise AssertionError("abort raises")


def _act(request: InvokeRequest, method: Method, limit: float) -> Act:
    if request.oneway and request.receipt:
        raise BadRequest(f"oneway has no receipt: leave out {request.receipt!r}")
    ask = Ask(request.object, request.method, read_arguments(method, request.args_json))
    # a read at one replica may miss what another has answered before; a session says what it must have seen
    way: Transmission | None = "mcast" if method.readonly and not request.session else None
    return Act("oneway" if request.oneway else "sync", (ask,), way, receipt_named(request.receipt), True, limit)


def _limit(wanted: float, left: float | None) -> float:
    if not 0 <= wanted <= LONGEST:
        raise BadRequest(f"timeout_s {wanted:g}: from 0 (which is {TIMEOUT:g}) to {LONGEST:g} seconds")
    limit = wanted or TIMEOUT
    return limit if left is None else max(0.0, min(limit, left))


def _reply(method: Method, reply: Reply) -> InvokeReply:
    try:
        return InvokeReply(replica=reply.replica, result_json=write_result(method, reply.value))
    except OboError as error:
        return InvokeReply(replica=reply.replica, error=detail_of(error))


def _read_sessions(data: bytes) -> tuple[Session, ...]:
    try:
        return _sessions.decode(data) if data else ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise BadRequest(f"session: give back the bytes of an answer, unchanged: {error}") from None
