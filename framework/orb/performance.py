"""One instance: a method being performed, and what it sees beside its object (``self.orb``, ``now``, ``random``)."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from framework.com.events import Completed, Deliver, Received
from framework.declare import Method, Object, performing
from framework.declare.environment import CURRENT
from framework.ids import Invocation, Replica, Sid
from framework.orb.blocked import Watched
from framework.orb.durable.entries import Entry, Seen
from framework.orb.given import Given
from framework.orb.messages import Envelope
from framework.orb.nested import NestedAsyncOrb, NestedCalls, NestedOrb
from framework.orb.outcome import failure, stopped
from framework.orb.own import Which
from framework.orb.position import with_one
from framework.orb.recent import Recent
from framework.orb.short import MOST_BYTES, Elsewhere
from framework.orb.stage import Stage
from framework.orb.state.tracker import Tracker
from framework.orb.turn import Lane, Turn
from framework.orb.undo import Undo
from framework.orb.workers import Workers


class Instance(Protocol):
    """A method being performed, as the dispatch sees it."""

    effect: Deliver
    method: Method
    began: float
    cancelled: bool
    noted: Entry | None  # what is on disk of it, if its transaction has to be over first

    @property
    def resident(self) -> "Resident": ...
    @property
    def seen(self) -> Sequence[Seen]: ...
    @property
    def changes(self) -> bool: ...
    def start(self) -> "asyncio.Task[None] | None": ...
    def cancel(self) -> None: ...
    def received(self, effect: Received, why: str) -> None: ...


class Written(Protocol):
    """What durable replicas have done goes to disk."""

    def position(self, replica: Replica) -> int: ...
    def on_disk(self, replica: Replica, position: int) -> "asyncio.Future[None]": ...


class Resident:
    """A replica on this node: the object, and whose turn it is to change it."""

    def __init__(self, target: Object, workers: Workers, durable: bool = False, tracked: bool = True) -> None:
        self.object = target
        self.durable = durable
        self.tracker = Tracker(vars(target) if tracked else {}, type(target).__name__)
        self.turn = Turn(workers)
        self.lane = Lane(workers)
        self.lending = threading.Lock()
        self.ending = threading.Lock()  # held while an instance ends that has changed the state
        self.over = False  # the life is: what ends from now on is undone
        self.performed = 0  # in this life
        self.convoys = 0  # the same, of requests with calls of several clients, or several of one
        self.changes = 0  # requests in the state, also from before this life, without those that only read
        self.history = 0  # which they are, and those that failed: equal numbers, the same requests (in any order)
        self.position = 0  # which those are: equal numbers, the same requests in the state (position.py)
        self.recent = Recent()
        self.takes_part = False  # what is called here is part of a transaction
        self.held: dict[Sid, Performance] = {}  # performed for transactions that are not over, in this order

    def saw(self, invocation: Invocation) -> None:
        """A request that may change the state has been performed."""
        self.history = with_one(self.history, invocation)

    def took(self, invocation: Invocation) -> None:
        """It is in the state, for good."""
        self.changes += 1
        self.position = with_one(self.position, invocation)

    @property
    def waits(self) -> bool:
        """Is something performed, and not in its store?"""
        return False

    def performance(self, stage: "Stage", effect: Deliver, method: Method, envelope: Envelope) -> "Instance":
        return Performance(stage, self, effect, method, envelope)

    def breaks(self, error: BaseException) -> bool:
        """Return whether this error says that the store of the replica does not work. Then its node leaves the group,
        and an instance that has met the error is not answered. From any thread."""
        return False

    async def undecided(self, which: Which, how: str) -> tuple[str, str]:
        """See backed/verdicts.py: of other objects nothing is decided so."""
        return "unknown", ""

    async def verdict(self, which: Which, part: int, keep: bool, why: str) -> bool:
        return False

    def beside(self, envelope: Envelope, wanted: Callable[[], bool]) -> AbstractContextManager[None]:
        """Around a read in a thread that has no order."""
        return nullcontext()

    @property
    def readers(self) -> Turn | Lane:
        """In which line a read stands that has no order: in the turn, it sees nothing in the middle of a step."""
        return self.turn

    def close(self) -> None:
        """The life is over: what ends from now on is undone."""
        with self.ending:
            self.over = True

    def adopt(self, chunks: Iterable[bytes]) -> None:
        """Take over the state of another replica, or raise and stay as it was. While nothing is performed here; it
        takes time in proportion to the state, so call it in a thread."""
        fresh = type(self.object)()
        fresh.set_state(chunks)
        state = vars(self.object)
        state.clear()
        state.update(vars(fresh))
        vars(fresh).clear()  # what nobody else holds can be tracked
        self.tracker.look_again()


class Performance(Given):
    """Performed whole, or without a trace."""

    def __init__(self, stage: Stage, resident: Resident, effect: Deliver, method: Method, envelope: Envelope) -> None:
        super().__init__(effect.request.invocation, envelope)
        self.stage = stage
        self.resident = resident
        self.effect = effect
        self.method = method
        self.seen: list[Seen] = []  # if it is durable: what its calls brought
        self.began = stage.loop.time()
        self.watched: Watched | None = None
        self._short = stage.shorts[type(resident.object), method]
        self.brief = self._short.ok and len(envelope.args) <= MOST_BYTES
        self.cancelled = False  # nobody waits for it any more
        self.ended = False  # nothing of it goes on
        self.dependents = False  # it has called somebody who is
        self.noted: Entry | None = None
        self._task: asyncio.Task[Any] | None = None  # from its first step on
        self._follows = stage.journal.position(effect.replica) if stage.journal and resident.durable else 0
        self._undo = None if method.readonly else Undo(resident.tracker)
        self._calls: NestedCalls | None = None
        self._orb: NestedOrb | NestedAsyncOrb | None = None

    def start(self) -> "asyncio.Task[None] | None":
        """On the loop."""
        if self.method.is_async:
            return asyncio.ensure_future(self._in_loop())
        self._enter()
        return None

    def _enter(self) -> None:
        self.stage.enter(self.resident.lane if self._undo is None else self.resident.turn, self)

    def cancel(self) -> None:
        """On the loop. An ``async def`` gets CancelledError where it waits, a ``def`` Aborted where it calls others."""
        if self._task is not None:
            self._task.cancel()
        elif self._calls is not None and not self.method.is_async:
            self._calls.abort()

    def check_wanted(self) -> None:
        if self.cancelled:
            raise stopped(self.method.where)

    def when_safe(self, act: Callable[[], None]) -> None:
        """On the loop. What it sends to others tells them of what it follows: not before that is on disk."""
        if self._follows:
            self._safe().add_done_callback(lambda done: act())
        else:
            act()

    def _safe(self) -> "asyncio.Future[None]":
        assert self.stage.journal is not None
        follows, self._follows = self._follows, 0
        return self.stage.journal.on_disk(self.effect.replica, follows)

    # a plain def: in a thread, which has the turn; if it is brief, perhaps on the loop

    def perform(self) -> None:
        if not self.brief:
            self._end(*self._in_thread())
            return
        began = time.perf_counter()
        try:
            self._end(*self._in_thread())
        except Elsewhere:
            self.brief = self._short.ok = False
            self.stage.on_loop(self._enter)
        else:
            self._short.took(time.perf_counter() - began)

    def _in_thread(self) -> tuple[bool, bytes]:
        try:
            self.check_wanted()
            method, undo = self.method, self._undo
            values = method.decode(self.envelope.args)  # a node has read them before
            body = getattr(self.resident.object, method.name)
            if undo is not None:
                undo.begin()
            token = CURRENT.set(self)
            watched: Watched | None = None
            try:
                if undo is not None and not self.brief:
                    watched = self.watched = Watched(self.give, self.take, self.resident.lending)
                    watched.begin()
                result = body(*values)
            finally:
                if watched is not None:
                    watched.end()
                CURRENT.reset(token)
            return True, method.pack_result(result)
        except Elsewhere:
            if self._undo is not None:
                self._undo.take_back()
            raise
        except BaseException as error:  # also SystemExit: a method does not end the node
            return self._raised(error)

    def give(self) -> None:
        """Others have their turn while this instance waits."""
        if self._undo is not None:
            self._undo.pause()
            self.resident.turn.give()

    def take(self) -> None:
        if self._undo is not None:
            self.resident.turn.wait(self)
            self._undo.begin()

    # async def: on the loop

    async def _in_loop(self) -> None:
        if self._follows:  # it could send something at any moment
            await asyncio.wait((self._safe(),))
        self._task = asyncio.current_task()
        if self._undo is not None:
            await _InTurns(self._my_turn)
        try:
            self._end(*await self._awaited())
        finally:
            if self._undo is not None:
                self.resident.turn.give()

    async def _awaited(self) -> tuple[bool, bytes]:
        try:
            self.check_wanted()
            values = self.method.unpack(self.envelope.args)
            body = getattr(self.resident.object, self.method.name)(*values)
            with performing(self):
                result = await (body if self._undo is None else _InTurns(lambda: self._steps(body)))
            return True, self.method.pack_result(result)
        except BaseException as error:
            return self._raised(error)

    def _steps(self, body: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Drive a coroutine: it has the turn from one await to the next."""
        assert self._undo is not None
        go_on: Callable[[Any], Any] = body.send
        value: Any = None
        while True:
            self._undo.begin()
            try:
                awaited = go_on(value)
            except StopIteration as end:
                return end.value
            self._undo.pause()
            self.resident.turn.give()
            try:
                go_on, value = body.send, (yield awaited)
            except BaseException as error:
                go_on, value = body.throw, error
            cancelled = yield from self._my_turn()
            if cancelled is not None:
                go_on, value = body.throw, cancelled

    def _my_turn(self) -> Generator[Any, Any, asyncio.CancelledError | None]:
        """Cancelled or not, it goes on only in its turn."""
        cancelled = None
        while True:
            try:
                yield from self._turn_comes()
                return cancelled
            except asyncio.CancelledError as error:
                cancelled = error

    def _turn_comes(self) -> "asyncio.Future[None]":
        stage, turn = self.stage, self.resident.turn
        came: asyncio.Future[None] = stage.loop.create_future()

        def here() -> None:
            if came.done():  # nobody waits for it any more
                turn.give()
            else:
                came.set_result(None)

        if turn.take(lambda: stage.on_loop(here)):
            came.set_result(None)
        else:
            stage.look_after(turn)
        return came

    # both

    def _raised(self, error: BaseException) -> tuple[bool, bytes]:
        if self._undo is not None:
            self._undo.take_back()
        return False, failure(error, self.resident.takes_part and self.effect.tran is None)

    def _end(self, ok: bool, packed: bytes) -> None:
        """In its turn. When the life is over, it is known which instances are in the state: this one is not."""
        if self._undo is None:
            self._over(ok, packed)
            return
        with self.resident.ending:
            if self.resident.over:
                self._undo.take_back()
            if ok and not self.resident.over and (self.effect.tran is not None or self.dependents):
                self._undo.rest()
                self.resident.held[self.effect.sid] = self
            else:
                self._undo.end()
            self._over(ok, packed)

    def settle(self, commit: bool) -> None:
        """In its turn, or by whoever sees to it that nothing else changes the state."""
        assert self._undo is not None
        if not commit:
            self._undo.take_back()
        self._undo.end()

    @property
    def changes(self) -> bool:
        """Is it still going on, and may change the state?"""
        return self._undo is not None and not self.ended

    def _over(self, ok: bool, packed: bytes) -> None:
        self.ended = True
        self.watched = self._calls = self._orb = None  # they know this instance: the collector would have to free it
        self.stage.done(self, Completed(self.effect.sid, ok, packed, ok and self.method.returns_value))

    # what the method sees

    @property
    def orb(self) -> "NestedOrb | NestedAsyncOrb":
        if self.brief:
            raise Elsewhere
        if self._orb is None:
            self._calls = NestedCalls(self)
            self._orb = NestedAsyncOrb(self._calls) if self.method.is_async else NestedOrb(self._calls)
        return self._orb

    def received(self, effect: Received, why: str) -> None:
        if self._calls is not None:
            self._calls.received(effect, why)


class _InTurns:
    """Awaits what a generator yields."""

    def __init__(self, generator: Callable[[], Generator[Any, Any, Any]]) -> None:
        self._generator = generator

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._generator()
