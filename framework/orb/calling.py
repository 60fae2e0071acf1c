"""The calls of a client that are not over, whoever its home node is: numbers, what is to be repeated, sessions.

Calls are begun in the caller's own thread and only put into a list there; the loop writes all that waits as one packet.
"""

import asyncio
import logging
import random
import threading
import time
from collections import deque
from contextvars import ContextVar

import msgspec

from framework.com.events import Session
from framework.com.receipt import Receipt
from framework.errors import BadRequest, DeadlineExceeded, OboError, ResourceExhausted, Unavailable
from framework.net.options import MAX_MESSAGE
from framework.orb.limits import check_size
from framework.orb.messages import Act, Call, Cancel, Collect, Stay, ToNode
from framework.orb.outcome import Outcome
from framework.orb.proxy import Settle
from framework.orb.waits import ThreadFuture

log = logging.getLogger(__name__)

AGAIN, AGAIN_MOST = 0.02, 0.3  # seconds before a call is repeated for which too few replicas were there
MOST_UNHEARD = 8192  # calls that the node has not taken yet: then callers of one-way methods wait
MOST_CALLS = 100_000  # that are not answered: then no more are begun
SMALL = 1 << 16  # bytes of arguments: less is never too much
LONG_LINE = 256  # messages that wait to be written: perhaps nobody waits for some of them any more


NOWHERE = Stay("")


class Joined:
    """A transaction that calls inside of a block belong to (transaction.py)."""

    def act(self, calling: "Calling", act: Act) -> Act:
        raise NotImplementedError

    def keeps(self, calling: "Calling", act: Act) -> bool:
        raise NotImplementedError

    def has(self, calling: "Calling") -> bool:
        raise NotImplementedError


joined: ContextVar[Joined | None] = ContextVar("obo_transaction", default=None)


#: By node: its session there, the newest that it was given, and in which life of the node.
Sessions = dict[str, tuple[Stay, Session]]


class Pending:
    """A call that is not answered, or a one-way call of which it is not known that it has left."""

    __slots__ = (
        *("act", "before", "deadline", "failed", "formation", "refused"),
        *("repeats", "sent", "settle", "time", "until"),
    )

    def __init__(self, act: Act, settle: Settle | None, limit: float) -> None:
        self.act = act  # what would be sent again
        self.settle = settle
        self.time = time.time()
        self.deadline = self.time + limit
        self.until = time.monotonic() + limit
        self.sent = False
        self.failed: OboError | None = None  # for whoever collects it
        self.refused: OboError | None = None  # for now: it is repeated until its deadline
        self.repeats = 0
        self.formation = b""  # of the group that it was first sent to
        self.before: Sessions = {}  # the sessions before it was first sent: brought when it is repeated


class Calling:
    """``begin``, ``send``, ``collect`` and ``cancel`` may be called from any thread; the rest belongs to the loop."""

    def __init__(self, timeout: float) -> None:
        self.client = ""  # its name
        self.node = ""  # the home node's name, while there is one
        self.stay = NOWHERE  # the life of the home node, or of the last one
        self.ready = False  # is there a home node?
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._mutex = threading.Lock()  # numbers, calls and what waits to be written
        self._max_message = MAX_MESSAGE  # until a node has said what it takes
        self._denied: OboError | None = None  # why no node will ever let us in
        self._next = 1
        self._calls: dict[int, Pending] = {}
        self._renamed: dict[int, int] = {}  # calls that were begun anew, and are not over
        self._unheard: deque[int] = deque()  # one-way calls among them
        self._out: list[ToNode] = []
        self._rung = False
        self._bell = asyncio.Event()
        self._sessions: Sessions = {}
        self._brought: set[str] = set()  # what this home has of those of other nodes
        self._why = "not tried yet"
        self._closed = False

    # the engine of a face; from any thread

    def send(self, act: Act) -> int:
        return self.begin(act, None)

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

    def number(self) -> int:
        """For a transaction: it stands where the number of a call would."""
        with self._mutex:
            self._next += 1
            return self._next - 1

    def cancel(self, number: int) -> None:
        """Nobody waits for this call any more."""
        with self._mutex:
            number = self._renamed.get(number, number)
            pending = self._calls.pop(number, None)
            if pending is not None and pending.sent and self.ready:
                self._say(Cancel(number))

    @property
    def full(self) -> bool:
        """So much is on its way to the node that one-way calls have to wait."""
        return len(self._unheard) >= MOST_UNHEARD or len(self._out) >= MOST_UNHEARD

    def begin(self, act: Act, settle: Settle | None) -> int:
        transaction = joined.get()
        if transaction is not None:
            act = transaction.act(self, act)
        if len(act.parts) != 1 or len(act.parts[0].args) > SMALL or act.parts[0].named:
            check_size(act, self._max_message)
        if self._closed:
            raise Unavailable("the client was closed")
        if self._denied is not None:
            raise self._denied
        if transaction is not None and transaction.keeps(self, act):
            return 0
        limit = act.timeout
        if limit is None:
            limit = self._timeout
            msgspec.structs.force_setattr(act, "timeout", limit)  # it was made for this call; to copy it takes longer
        pending = Pending(act, settle, limit)
        with self._mutex:
            if len(self._calls) >= MOST_CALLS:
                raise ResourceExhausted(f"{MOST_CALLS} calls of {self.client} are not answered; wait for some of them")
            number = self._next
            self._next += len(act.parts) or 1
            self._calls[number] = pending
            if act.kind == "oneway":
                self._unheard.append(number)
            if self.ready:
                self._send(number, pending)
        return number

    def _send(self, number: int, pending: Pending) -> None:
        """With the mutex. All calls below ``done`` are answered; it need not be said with each of a packet."""
        act, again = pending.act, pending.sent
        if again:
            left = max(pending.until - time.monotonic(), 0.0)
            act = msgspec.structs.replace(act, timeout=left) if act.wait else act
        else:
            pending.sent = True
            pending.before, pending.formation = self._sessions, self.stay.formation
        done = 0 if self._out else min(next(iter(self._calls)), number)
        sessions = self._bring(pending.before)
        formation = pending.formation if again else b""
        self._say(Call(number, act, pending.time, pending.deadline, done, sessions, again, formation))

    def _refused_for_now(self, number: int, error: OboError) -> None:
        """Too few replicas are there: the same call again after a moment, as long as there is time."""
        pending = self._calls.get(number)
        if pending is None:
            return
        if pending.refused is None or error.happened is not False:
            pending.refused = error  # once nobody knows whether it happened, that stays so
        pending.repeats += 1
        pause = min(AGAIN * 2 ** min(pending.repeats, 10), AGAIN_MOST) * random.uniform(0.5, 1.0)
        self._loop.call_later(pause, self._repeat, number, pending)

    def _repeat(self, number: int, pending: Pending) -> None:
        with self._mutex:
            if self.ready and self._calls.get(number) is pending and time.monotonic() < pending.until:
                self._send(number, pending)

    def _anew(self, number: int) -> bool:
        """What was said about the footprint of a call did not hold any more: it was not performed, anywhere. The same
        call again, as a new one. False: there is no time left; or it is one of several, which may have been performed;
        or its transaction is over with it."""
        with self._mutex:
            pending = self._calls.get(number)
            if pending is None or not self.ready or time.monotonic() > pending.until:
                return False
            if len(pending.act.parts) > 1 or (pending.act.tran is not None and pending.act.tran.votes):
                return False
            del self._calls[number]
            pending.sent = False
            new = self._next
            self._next += len(pending.act.parts)
            self._calls[new] = pending
            self._renamed = {**{n: new if now == number else now for n, now in self._renamed.items()}, number: new}
            self._send(new, pending)
        return True

    def _bring(self, sessions: Sessions) -> tuple[Session, ...]:
        """What this home does not have yet of the sessions at other nodes, and of its own earlier lives. Those of
        another formation of the group mean nothing to it."""
        mine = self.stay
        if not sessions or (len(sessions) == 1 and sessions.get(self.node, (None,))[0] == mine):
            return ()
        others = [s for stay, s in sessions.values() if stay != mine and stay.formation == mine.formation]
        new = tuple(s for s in others if s.after not in self._brought)
        self._brought.update(s.after for s in new)
        return new

    def _say(self, message: ToNode) -> None:
        """With the mutex, or before anybody else can say something."""
        self._out.append(message)
        if not self._rung:
            self._rung = True
            self._loop.call_soon_threadsafe(self._bell.set)

    def _wanted(self, waiting: list[ToNode]) -> list[ToNode]:
        """With the mutex. A node that holds this client back does not read: what nobody waits for any more need not be
        sent. But for what other calls need: a session that it brings, a transaction."""
        if len(waiting) < LONG_LINE:
            return waiting
        return [m for m in waiting if not isinstance(m, Call) or m.number in self._calls or m.sessions or m.act.tran]

    def forked(self, error: OboError) -> None:
        """End all calls in a child of this process: their answers come to the parent. A thread that does not exist
        here may have held the mutex."""
        self._mutex = threading.Lock()
        self.ready, self._denied = False, error
        calls, self._calls = self._calls, {}
        for number, pending in calls.items():
            if pending.settle is None:
                pending.failed = error
                self._calls[number] = pending
            elif isinstance(future := getattr(pending.settle, "__self__", None), ThreadFuture):
                future.forked(error)
            else:
                pending.settle(error)

    # the end of a call

    def _settle(self, number: int, outcome: Outcome | OboError) -> None:
        with self._mutex:
            pending = self._calls.pop(number, None)
            if self._renamed:
                self._renamed = {n: now for n, now in self._renamed.items() if now in self._calls}
            if pending is not None and pending.settle is None:
                self._unsettled(number, pending, outcome)
        if pending is not None and pending.settle is not None:
            pending.settle(outcome)

    def _unsettled(self, number: int, pending: Pending, outcome: Outcome | OboError) -> None:
        """With the mutex: nobody waits for it; not yet, or never."""
        if pending.act.kind == "oneway":
            self._unheard.remove(number)
            log.warning("one-way %s.%s: %s", pending.act.parts[0].object, pending.act.parts[0].method, outcome)
        elif isinstance(outcome, OboError):
            pending.failed = outcome
            self._calls[number] = pending

    def _left(self, number: int) -> None:
        """All calls without an answer have left, up to this one: one-way calls are over with that."""
        with self._mutex:
            while self._unheard and self._unheard[0] <= number:
                self._calls.pop(self._unheard.popleft(), None)

    def _late(self, pending: Pending | None) -> OboError:
        limit = pending.deadline - pending.time if pending is not None else 0.0
        if pending is None or not pending.sent:
            return Unavailable(f"no node could be reached within {limit:g} s: {self._why}")
        if pending.refused is not None:
            return type(pending.refused)(f"{pending.refused} (not within {limit:g} s)")
        return DeadlineExceeded(f"no answer from {self.node or 'any node'} within {limit:g} s")
