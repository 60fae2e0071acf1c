"""One instance: a method being performed, and the calls it makes to other objects."""

import asyncio
import time
import zlib
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import Executor
from contextvars import copy_context
from random import Random
from typing import Any
from uuid import UUID

from framework.com.events import Collect, Completed, Deliver, Received, Submit
from framework.com.receipt import Receipt
from framework.declare import Method, Object, performing
from framework.errors import BadRequest, DeadlineExceeded
from framework.ids import Invocation, Replica
from framework.orb.messages import Act, Envelope
from framework.orb.naming import Naming, usual_receipt
from framework.orb.outcome import Outcome, failure
from framework.orb.proxy import Face, Options, Request, Sent
from framework.orb.state.tracker import Tracker
from framework.orb.undo import Undo


class Resident:
    """A replica on this node: the object, and whose turn it is to change it."""

    def __init__(self, target: Object) -> None:
        self.object = target
        self.tracker = Tracker(vars(target), type(target).__name__)
        self.turn = asyncio.Lock()
        self.performed = 0


class Stage:
    """What instances of a node share: the way into the com layer, names, threads."""

    def __init__(self, feed: Callable[[Submit | Collect | Completed], None], naming: Naming, threads: Executor) -> None:
        self.feed = feed
        self.naming = naming
        self.threads = threads


class Performance:
    """Also the engine of ``self.orb``."""

    def __init__(self, stage: Stage, resident: Resident, effect: Deliver, method: Method, envelope: Envelope) -> None:
        self._stage = stage
        self._resident = resident
        self._sid = effect.sid
        self._invocation: Invocation = effect.request.invocation
        self._method = method
        self._envelope = envelope
        self._undo = None if method.readonly else Undo(resident.tracker)
        self._next = 1  # number of the next call: the same at every replica
        self._waits: dict[int, asyncio.Future[Outcome]] = {}
        self._usual: dict[int, Receipt] = {}  # receipts of calls that were sent and not yet received
        self._loop = asyncio.get_running_loop()

    async def perform(self) -> Completed:
        """Whole, or without a trace."""
        if self._undo is not None:
            await self._resident.turn.acquire()
        try:
            if self._method.is_async:
                ok, body = await self._in_loop()
            else:
                context = copy_context()
                ok, body = await self._loop.run_in_executor(self._stage.threads, context.run, self._in_thread)
        finally:
            if self._undo is not None:
                self._undo.end()
                self._resident.turn.release()
        if ok:
            self._resident.performed += 1
        return Completed(self._sid, ok, body, ok and self._method.returns_value)

    def _in_thread(self) -> tuple[bool, bytes]:
        try:
            values = self._begin()
            with performing(_Surroundings(self._invocation, self._envelope.time, NestedOrb(self, self._loop))):
                return True, self._method.pack_result(self._bound()(*values))
        except BaseException as error:  # also SystemExit: a method does not end the node
            return self._raised(error)

    async def _in_loop(self) -> tuple[bool, bytes]:
        try:
            values = self._begin()
            with performing(_Surroundings(self._invocation, self._envelope.time, NestedAsyncOrb(self))):
                return True, self._method.pack_result(await self._bound()(*values))
        except BaseException as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the node stops at once
                raise
            return self._raised(error)

    def _bound(self) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self._resident.object, self._method.name)
        return found

    def _begin(self) -> tuple[Any, ...]:
        values = self._method.unpack(self._envelope.args)
        if self._undo is not None:
            self._undo.begin()
        return values

    def _raised(self, error: BaseException) -> tuple[bool, bytes]:
        if self._undo is not None:
            self._undo.take_back()
        return False, failure(error)

    # calls to other objects; on the loop, while the method waits

    async def call(self, act: Act) -> Outcome:
        number, submit = self._submit(act, True)
        return await self._answer(number, submit)

    async def send(self, act: Act) -> int:
        return self.send_now(act)

    def send_now(self, act: Act) -> int:
        number, submit = self._submit(act, False)
        self._stage.feed(submit)
        if act.kind != "oneway":
            self._usual[number] = usual_receipt(submit.parts)
        return number

    async def collect(self, number: int, receipt: Receipt | None, timeout: float | None) -> Outcome:
        usual = self._usual.pop(number, None)
        if usual is None:
            raise BadRequest("this call has been received already, or was never sent")
        return await self._answer(number, Collect(self._sid, number, receipt or usual, self._until(timeout)))

    def _submit(self, act: Act, wait: bool) -> tuple[int, Submit]:
        number = self._next
        naming, envelope = self._stage.naming, self._envelope
        submit = naming.submit(self._sid, number, act, envelope.time, envelope.deadline, self._pick)
        self._next += len(act.parts)
        if wait:
            submit.deadline = self._until(act.timeout)
        return number, submit

    async def _answer(self, number: int, event: Submit | Collect) -> Outcome:
        """Others have their turn while this instance waits."""
        if self._waits:
            raise BadRequest("an instance waits for one call at a time: submit them, or send them by pcast")
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self._waits[number] = future
        try:
            self._stage.feed(event)
        except BaseException:
            del self._waits[number]
            raise
        if self._undo is None:
            return await future
        self._undo.pause()
        self._resident.turn.release()
        try:
            return await future
        finally:
            await self._resident.turn.acquire()
            self._undo.begin()

    def received(self, effect: Received) -> None:
        future = self._waits.pop(effect.call, None)
        if future is not None and not future.done():
            future.set_result(Outcome(effect.responses, effect.complete))

    def _until(self, timeout: float | None) -> float | None:
        """The deadline of a nested call in the loop's time: what is left of the caller's, or less."""
        if self._envelope.deadline is None:
            left = timeout
        else:
            left = self._envelope.deadline - time.time()
            left = left if timeout is None else min(left, timeout)
            if left <= 0:
                raise DeadlineExceeded(f"{self._method.where}: the caller's deadline has passed; nothing was sent")
        return None if left is None else self._loop.time() + left

    def _pick(self, replicas: Sequence[Replica]) -> Replica:
        """The same at every replica of this object: another one could have read another state."""
        return replicas[zlib.crc32(str(self._invocation).encode()) % len(replicas)]


class _Surroundings:
    """What a method sees beside its object: from the request alone, so the same on every replica."""

    def __init__(self, invocation: Invocation, when: float, orb: "NestedOrb | NestedAsyncOrb") -> None:
        self.orb = orb
        self._when = when
        self._seed = str(invocation)
        self._chance: Random | None = None

    def _random(self) -> Random:
        if self._chance is None:
            self._chance = Random(self._seed)
        return self._chance

    def now(self) -> float:
        return self._when

    def random(self) -> float:
        return self._random().random()

    def uuid(self) -> UUID:
        return UUID(int=self._random().getrandbits(128), version=4)


class Later:
    """The result of a call that an instance has submitted: ``result()`` in a thread, ``await`` on the loop."""

    def __init__(self, face: Face, sent: Sent, timeout: float | None) -> None:
        self._face, self._sent, self._timeout = face, sent, timeout

    async def _value(self) -> Any:
        return (await self._face._all(self._sent, None, self._timeout))[-1].value

    def result(self) -> Any:
        return self._face._run(self._value())

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._value().__await__()


class NestedOrb(Face):
    """``self.orb`` of a method that is a plain def: it runs in a thread and waits there."""

    def __init__(self, engine: Performance, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(engine)
        self._loop = loop

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def submit(self, request: Request, options: Options) -> Later:
        sent = self._run(self._sent("async", (request,), None, options))
        return Later(self, sent, options.timeout)


class NestedAsyncOrb(Face):
    """``self.orb`` of a method that is async: everything is awaited."""

    def __init__(self, engine: Performance) -> None:
        super().__init__(engine)
        self._performance = engine

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return work

    def submit(self, request: Request, options: Options) -> Later:
        """Sent at once, whenever it is awaited: calls are numbered in the order in which they are made."""
        number = self._performance.send_now(Act("async", (request.ask(options.to),), None, None, False, None))
        return Later(self, Sent(number, (request,)), options.timeout)
