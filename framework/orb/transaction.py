"""A client's transaction: ``with orb.transaction():``, or ``async with``. Calls inside are done whole, or not at all.

    with orb.transaction(timeout=5.0):
        bank.withdraw("ann", 10)
        hotel.book("fri")

It begins with the first call, at the home node of that moment, and is bound to it. Leaving the block commits; an
exception aborts, and goes on. Three things are told apart:

- ``Aborted``: somebody else had to abort it (a deadlock, its time, a node that was lost, no node to begin at). Nothing
  has happened, and the same again is right: ``run_transaction`` does that;
- what a method or the block itself raised: nothing has happened either, and the same would happen again;
- ``OutcomeUnknown``: no answer came in time. ``error.transaction.outcome()`` asks again, later.
"""

import time
from collections.abc import Awaitable, Callable
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import msgspec
from tenacity import AsyncRetrying, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from framework.com.outcome import read
from framework.errors import (
    Aborted,
    BadRequest,
    DeadlineExceeded,
    OboError,
    OutcomeUnknown,
    RemoteError,
    ResourceExhausted,
    Unavailable,
)
from framework.orb import inputs
from framework.orb.calling import MOST_CALLS, NOWHERE, Calling, Joined, joined
from framework.orb.messages import Act, Part
from framework.orb.outcome import Outcome
from framework.orb.proxy import Face, Settle

if TYPE_CHECKING:
    from framework.orb.client import AsyncOrb, Orb

R = TypeVar("R")
Fate = Literal["commit", "abort"]

LIMIT = 10.0  # seconds: of one that says nothing else
ENDING = 10.0  # seconds in which it must be known what becomes of it
ATTEMPTS = 5
_PAUSE = wait_random_exponential(multiplier=0.02, max=1.0)


class _Transaction(Joined):
    def __init__(self, face: Face, calling: Calling, timeout: float, votes: bool = False) -> None:
        self._face = face
        self._votes = votes  # its only call is decided on by the objects that it goes to
        self._calling = calling
        self._until = time.monotonic() + inputs.seconds(timeout, "transaction: timeout")
        self._number = 0  # none before its first call
        self._home = NOWHERE
        self._over = False
        self._token: Token[Joined | None] | None = None
        self._outbox: list[Act] = []  # one-way calls, which leave when it is committed

    def __repr__(self) -> str:
        return f"<transaction {self._calling.client}/{self._number or '-'}>"

    def act(self, calling: Calling, act: Act) -> Act:
        """For ``Calling``: a call inside the block."""
        if calling is not self._calling or act.kind == "oneway" or act.independent or act.tran is not None:
            return act
        if act.stale:
            return act  # it has no order, so it is no part of anything
        left = self._until - time.monotonic()
        if self._over:
            raise BadRequest("the transaction is over: this call would not be part of it")
        if left <= 0:
            raise Aborted("the time of the transaction is up")
        if not self._number:
            if not calling.node:
                raise Aborted("there is no home node now to begin a transaction at")
            self._number, self._home = calling.number(), calling.stay
        elif not calling.node or calling.stay != self._home:
            raise Aborted(f"{self._home.node}, where the transaction began, was lost")
        timeout = left if act.timeout is None else min(act.timeout, left)
        return msgspec.structs.replace(act, tran=Part(self._number, left, votes=self._votes), timeout=timeout)

    def keeps(self, calling: Calling, act: Act) -> bool:
        """For ``Calling``: keep a one-way call of the block until the transaction is committed."""
        if act.kind != "oneway" or act.independent or not self.has(calling):
            return False
        if len(self._outbox) >= MOST_CALLS:
            raise ResourceExhausted(f"{MOST_CALLS} one-way calls wait for the end of {self!r}: make fewer in one block")
        self._outbox.append(act)
        return True

    def _dispatch(self) -> None:
        """Send the one-way calls: the transaction is committed."""
        outbox, self._outbox = self._outbox, []
        for act in outbox:
            self._calling.send(act)

    def has(self, calling: Calling) -> bool:
        """Do calls of this client belong to it?"""
        return calling is self._calling and not self._over

    def _enter(self) -> None:
        if self._token is not None or self._over:
            raise BadRequest("a transaction is used once")
        if joined.get() is not None:
            raise BadRequest("a transaction inside of another one: a client has one at a time")
        self._token = joined.set(self)

    def _leave(self) -> bool:
        """Is there anything to be decided?"""
        assert self._token is not None
        joined.reset(self._token)
        self._over = True
        return bool(self._number)

    def _ask(self, decide: Fate, limit: float) -> Any:
        act = Act("sync", (), None, None, True, limit, tran=Part(self._number, 0.0, decide))

        def begin(settle: Settle) -> int:
            return self._calling.begin(act, settle)

        return self._face._now(begin, lambda outcome: outcome)

    def _told(self, outcome: Outcome) -> tuple[Fate, str]:
        if not outcome.complete or not outcome.responses or outcome.responses[0].status != "ok":
            raise self._unknown(f"no answer: {outcome.why or outcome.responses}")
        told = read(outcome.responses[0].body)
        return ("commit" if told.commit else "abort"), told.why

    def _unknown(self, why: object) -> OutcomeUnknown:
        error = OutcomeUnknown(f"nobody knows what became of {self!r}: {why}; ask later: error.transaction.outcome()")
        error.transaction = self
        return error

    def _committed(self, outcome: Outcome) -> None:
        fate, why = self._told(outcome)
        if fate == "abort":
            raise Aborted(why or "it was aborted")
        self._dispatch()

    def _fate(self, outcome: Outcome) -> Fate:
        """Return what was told later; if it was committed, its one-way calls leave now."""
        fate, _ = self._told(outcome)
        if fate == "commit":
            self._dispatch()
        return fate

    def _left(self, error: BaseException, late: OboError) -> None:
        """The block has raised, and nobody can be asked. Its time ends it, if its objects have not decided before."""
        if self._votes and not isinstance(error, RemoteError):
            raise self._unknown(late) from error

    def _aborted(self, outcome: Outcome, error: BaseException) -> None:
        """The block has raised. If somebody else had aborted it before, that is why."""
        try:
            fate, why = self._told(outcome)
        except OutcomeUnknown as late:
            self._left(error, late)
            return
        if fate == "commit":  # its objects had decided before
            raise self._unknown(f"it was committed, but its results are lost: {error}") from error
        if why and isinstance(error, Exception):
            raise Aborted(why) from error


class Transaction(_Transaction):
    """Of ``Orb``: for threads."""

    def __enter__(self) -> Self:
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._leave():
            if error is None:
                self._dispatch()
            return
        if error is None:
            try:
                self._committed(self._ask("commit", ENDING))
            except (DeadlineExceeded, Unavailable) as late:
                raise self._unknown(late) from late
            return
        try:
            outcome = self._ask("abort", ENDING)
        except (DeadlineExceeded, Unavailable, OutcomeUnknown) as late:
            self._left(error, late)
        else:
            self._aborted(outcome, error)

    def outcome(self, timeout: float = ENDING) -> Fate:
        """What became of it. What nobody has decided is aborted by asking."""
        return self._fate(self._ask("abort", inputs.seconds(timeout, "outcome: timeout")))


class AsyncTransaction(_Transaction):
    """Of ``AsyncOrb``: for coroutines."""

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._leave():
            if error is None:
                self._dispatch()
            return
        if error is None:
            try:
                self._committed(await self._ask("commit", ENDING))
            except (DeadlineExceeded, Unavailable) as late:
                raise self._unknown(late) from late
            return
        try:
            outcome = await self._ask("abort", ENDING)
        except (DeadlineExceeded, Unavailable, OutcomeUnknown) as late:
            self._left(error, late)
        else:
            self._aborted(outcome, error)

    async def outcome(self, timeout: float = ENDING) -> Fate:
        return self._fate(await self._ask("abort", inputs.seconds(timeout, "outcome: timeout")))


def _check_attempts(attempts: int) -> None:
    if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:
        raise BadRequest(f"run_transaction: attempts={attempts!r:.40}: give a whole number, 1 or more")


def run(orb: "Orb", fn: "Callable[[Orb], R]", attempts: int, timeout: float, votes: bool = False) -> R:
    """``fn`` in a transaction, again when that was aborted by others; anything else is raised at once."""
    _check_attempts(attempts)
    retry = retry_if_exception_type(Aborted)
    for attempt in Retrying(stop=stop_after_attempt(attempts), wait=_PAUSE, retry=retry, reraise=True):
        with attempt, orb._voted(timeout) if votes else orb.transaction(timeout):
            result = fn(orb)
        if attempt.retry_state.outcome is None or not attempt.retry_state.outcome.failed:
            return result
    raise OboError("unreachable: the last attempt raises")


async def run_async(
    orb: "AsyncOrb", fn: "Callable[[AsyncOrb], Awaitable[R]]", attempts: int, timeout: float, votes: bool = False
) -> R:
    _check_attempts(attempts)
    retry = retry_if_exception_type(Aborted)
    async for attempt in AsyncRetrying(stop=stop_after_attempt(attempts), wait=_PAUSE, retry=retry, reraise=True):
        with attempt:
            async with orb._voted(timeout) if votes else orb.transaction(timeout):
                result = await fn(orb)
        if attempt.retry_state.outcome is None or not attempt.retry_state.outcome.failed:
            return result
    raise OboError("unreachable: the last attempt raises")
