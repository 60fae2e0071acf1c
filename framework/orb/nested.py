"""``self.orb``: calls that an instance makes to other objects.

Calls are numbered in the order in which the method makes them, so that every replica of the caller gives the same call
the same number. While an instance waits, others have its turn (turn.py).
"""

import time
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from framework.com.events import Cancel, Collect, Received, Submit
from framework.com.receipt import Receipt
from framework.errors import BadRequest, DeadlineExceeded, OboError
from framework.ids import TRAN, Replica
from framework.orb.durable.entries import seen
from framework.orb.messages import Act, Ask
from framework.orb.naming import usual_receipt
from framework.orb.outcome import Outcome, stopped
from framework.orb.proxy import Face, Finish, Options, Request, Sent, Settle
from framework.orb.waits import Latch, LoopFuture
from framework.orb.ways import AsyncWays, Ways

if TYPE_CHECKING:
    from framework.orb.performance import Performance


class Calls(Protocol):
    """What ``self.orb`` needs: numbers of calls, and what comes of them."""

    def begin(self, act: Act, settle: Settle) -> int: ...
    def send(self, act: Act) -> int: ...
    def collect(self, number: int, receipt: Receipt | None, timeout: float | None, settle: Settle) -> int: ...
    def give_up(self, number: int) -> None: ...
    def check_whole(self, asks: tuple[Ask, ...]) -> None: ...


class NestedCalls:
    """The engine. Everything but ``performance`` is used on the loop only."""

    def __init__(self, performance: "Performance") -> None:
        self.performance = performance
        self._next = 1  # number of the next call: the same at every replica
        self._waits: tuple[int, Settle] | None = None
        self._usual: dict[int, Receipt] = {}  # receipts of calls that were sent and not yet received

    def begin(self, act: Act, settle: Settle) -> int:
        with self._noting():
            number, submit = self._submit(act)
            submit.deadline = self._until(act.timeout)
            self._wait(number, submit, settle)
        return number

    def send(self, act: Act) -> int:
        with self._noting():
            number, submit = self._submit(act)
            self.performance.stage.feed(submit)
        if act.kind != "oneway":
            self._usual[number] = usual_receipt(submit.parts)
        self._note(_SENT)
        return number

    def collect(self, number: int, receipt: Receipt | None, timeout: float | None, settle: Settle) -> int:
        with self._noting():
            usual = self._usual.pop(number, None)
            if usual is None:
                raise BadRequest("this call has been received already, or was never sent")
            event = Collect(self.performance.effect.sid, number, receipt or usual, self._until(timeout))
            self._wait(number, event, settle)
        return number

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """What the method is told at once."""
        try:
            yield
        except OboError as error:
            self._note(error)
            raise

    def _note(self, outcome: Outcome | OboError) -> None:
        """For the journal: if the method is performed again from there, it is told the same."""
        if self.performance.resident.durable:
            self.performance.seen.append(seen(self._next, outcome))

    def _wait(self, number: int, event: Submit | Collect, settle: Settle) -> None:
        self.performance.check_wanted()
        if self._waits is not None:
            raise BadRequest("an instance waits for one call at a time: submit them, or send them by pcast")
        self._waits = number, settle
        try:
            self.performance.stage.feed(event)
        except BaseException:
            self._waits = None
            raise

    def received(self, effect: Received, why: str) -> None:
        if self._waits is not None and self._waits[0] == effect.call:
            settle, self._waits = self._waits[1], None
            outcome = Outcome(effect.responses, effect.complete, why)
            self._note(outcome)
            settle(outcome)
            if not effect.complete:  # nobody waits any more; the com layer is busy with this effect
                self.performance.stage.loop.call_soon(self.give_up, effect.call)

    def give_up(self, number: int) -> None:
        """The method does not wait for this call any more."""
        if self._waits is not None and self._waits[0] == number:
            self._waits = None
        if not self.performance.stage.stopped:
            self.performance.stage.feed(Cancel(self.performance.effect.sid, number))

    def abort(self) -> None:
        """Nobody waits for the method any more: nor does its thread wait for others."""
        if self._waits is not None:
            number, settle = self._waits
            self.give_up(number)
            error = stopped(self.performance.method.where)
            self._note(error)
            settle(error)

    def check_whole(self, asks: tuple[Ask, ...]) -> None:
        """The method asks that several calls are done whole: then they must be part of a transaction."""
        with self._noting():
            performance = self.performance
            if not performance.resident.takes_part:
                raise BadRequest(f"{performance.method.where}: its object takes no part in transactions")
            performance.stage.naming.check_undoable(Act("sync", asks, None, None, True, None))
        self._note(_SENT)

    def _submit(self, act: Act) -> tuple[int, Submit]:
        self.performance.check_wanted()
        if act.stale:
            raise BadRequest("stale=True is for clients: replicas of this object could read different states")
        number = self._next
        naming, envelope = self.performance.stage.naming, self.performance.envelope
        sid = self.performance.effect.sid
        whole = self.performance.resident.takes_part and act.kind != "oneway" and not act.independent
        chain = self.performance.effect.request.chain
        if whole and chain and chain[0].object == TRAN:  # a client began it
            naming.check_undoable(act)
        submit = naming.submit(sid, number, act, envelope.time, envelope.deadline, self._pick, whole=whole)
        if whole:
            self.performance.dependents = True
        self._next += len(act.parts)
        return number, submit

    def _until(self, timeout: float | None) -> float | None:
        """The deadline of a nested call in the loop's time: what is left of the caller's, or less."""
        deadline = self.performance.envelope.deadline
        if deadline is None:
            left = timeout
        else:
            left = deadline - time.time()
            left = left if timeout is None else min(left, timeout)
            if left <= 0:
                where = self.performance.method.where
                raise DeadlineExceeded(f"{where}: the caller's deadline has passed; nothing was sent")
        return None if left is None else self.performance.stage.loop.time() + left

    def _pick(self, replicas: Sequence[Replica]) -> Replica:
        """The same at every replica of this object: another one could have read another state."""
        request = self.performance.effect.request
        replicas = self.performance.stage.there(replicas, request.view)
        invocation = str(request.invocation)
        return replicas[zlib.crc32(invocation.encode()) % len(replicas)]


class Later:
    """The result of a call that an instance has submitted: ``result()`` in a thread, ``await`` on the loop."""

    def __init__(self, face: "Nested", sent: Sent, timeout: float | None) -> None:
        self._face, self._sent, self._timeout = face, sent, timeout

    def _value(self, outcome: Outcome) -> Any:
        return self._sent.one(outcome).value

    def result(self) -> Any:
        return self._face._receive(self._sent, None, self._timeout, self._value)

    def __await__(self) -> Generator[Any, Any, Any]:
        waiting: Generator[Any, Any, Any] = self.result().__await__()
        return waiting


class Nested(Face):
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._begin = calls.begin
        self._collect = calls.collect

    def _undoable(self, requests: Sequence[Request]) -> None:
        self._calls.check_whole(tuple(request.ask() for request in requests))

    def submit(self, request: Request, options: Options) -> Any:
        """Sent at once, whenever its result is asked for."""
        act = Act("async", (request.ask(options.to),), None, None, False, None, options.stale)
        if options.independent:
            act = msgspec.structs.replace(act, independent=True)
        return self._send_now(act, lambda number: Later(self, Sent(number, (request,)), options.timeout))

    def _send_now(self, act: Act, finish: Callable[[int], Any]) -> Any:
        raise NotImplementedError


class NestedOrb(Nested, Ways):
    """``self.orb`` of a method that is a plain def: it runs in a thread and waits there."""

    def __init__(self, calls: NestedCalls) -> None:
        super().__init__(calls)
        self._performance = calls.performance

    def _now(self, start: Callable[[Settle], int], finish: Finish) -> Any:
        performance = self._performance
        latch = Latch()
        performance.stage.on_loop(lambda: performance.when_safe(lambda: _started(start, latch.settle)))
        performance.give()
        try:
            outcome = latch.get()
        finally:
            performance.take()
        return finish(outcome)

    def _send_now(self, act: Act, finish: Callable[[int], Any]) -> Any:
        """The turn stays here: this waits for nobody else, at most for the disk."""
        performance = self._performance
        latch = Latch()
        numbers: list[int] = []

        def start(settle: Settle) -> int:
            numbers.append(self._calls.send(act))
            settle(_SENT)
            return numbers[0]

        performance.stage.on_loop(lambda: performance.when_safe(lambda: _started(start, latch.settle)))
        latch.get()
        return finish(numbers[0])

    def _send(self, act: Act, finish: Callable[[int], Any]) -> Any:
        return self._send_now(act, finish)


_SENT = Outcome((), True)


def _started(start: Callable[[Settle], int], settle: Settle) -> None:
    """On the loop: what cannot be started is told to the thread that waits."""
    try:
        start(settle)
    except OboError as error:
        settle(error)
    except Exception as error:
        settle(OboError(f"{type(error).__name__}: {error}"))
        raise


class NestedAsyncOrb(Nested, AsyncWays):
    """``self.orb`` of a method that is async: everything is awaited."""

    async def _now(self, start: Callable[[Settle], int], finish: Finish) -> Any:
        future = LoopFuture(finish, self._calls.give_up)
        future.number = start(future.settle)
        return await future

    def _send_now(self, act: Act, finish: Callable[[int], Any]) -> Any:
        return finish(self._calls.send(act))

    async def _send(self, act: Act, finish: Callable[[int], Any]) -> Any:
        return self._send_now(act, finish)
