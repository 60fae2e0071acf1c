"""A steady load for a group that changes: calls leave at their times, whether earlier ones were answered or not (open
loop), so that a pause is not hidden by clients that wait. Times are in seconds.

All clients are in one process and share its clock. A latency counts from the time at which the call was due. A pause is
a time in which a client waited and got no answer: the time until its next call is due is none. While the load lasts
Python collects no garbage here: it would stop all clients at once.
"""

import gc
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from math import inf
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

from framework.bench.load import window

WIDTH = 0.5  # seconds over which throughput is looked at
STEP = 0.05
BACK = 0.9  # of the rate before: it has recovered
DRAIN = 60.0
LATE = 0.001  # a call that left so much after it was due

#: Begins a call and gives its future.
Submit = Callable[[], Any]


class Ack(NamedTuple):
    at: float
    client: int
    took: float


class Steady:
    """The load of several clients; use it in a ``with``. ``acks`` grows in the order of time."""

    def __init__(self, submits: Sequence[Submit], rate: float) -> None:
        self.acks: list[Ack] = []
        self.errors: list[tuple[float, str]] = []
        self.sent = 0
        self.late: list[tuple[float, float]] = []  # calls that left late: when they were due, and how late
        self._open: dict[int, tuple[int, float]] = {}  # calls that are not answered: client, and when it was due
        self._submits = submits
        self._rate = rate
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def __enter__(self) -> "Steady":
        gc.collect()
        gc.freeze()
        gc.disable()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        until = time.monotonic() + DRAIN
        while self.sent > len(self.acks) + len(self.errors) and time.monotonic() < until:
            time.sleep(0.01)
        gc.enable()
        gc.unfreeze()

    def _run(self) -> None:
        start = time.monotonic()
        while not self._over.is_set():
            due = start + self.sent / self._rate
            wait = due - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            late = time.monotonic() - due
            if late > LATE:
                self.late.append((due, late))
            self._one(self.sent % len(self._submits), due)
            self.sent += 1

    def _one(self, client: int, due: float) -> None:
        number = self.sent
        self._open[number] = client, due

        def done(future: Any) -> None:
            now = time.monotonic()
            self._open.pop(number, None)
            error = future.exception()
            if error is None:
                self.acks.append(Ack(now, client, now - due))
            else:
                self.errors.append((now, f"client {client + 1}: {type(error).__name__}: {error}"))

        self._submits[client]().add_done_callback(done)

    def waiting(self) -> dict[int, float]:
        """Clients with calls that are not answered, and since when the first of them waits."""
        since: dict[int, float] = {}
        for client, due in list(self._open.values()):
            since[client] = min(due, since.get(client, due))
        return since

    def latest(self, start: float, end: float) -> float:
        """How late the latest call left, of those due in this time: this process itself had no core, or not its lock.
        What clients wait for includes that."""
        return max((late for due, late in self.late if start <= due < end), default=0.0)

    def between(self, start: float, end: float = inf) -> list[Ack]:
        """Those in this time, and the last one before it of each client."""
        acks = self.acks[:]
        first = bisect_left(acks, start, key=lambda a: a.at)
        last = bisect_left(acks, end, key=lambda a: a.at)
        earlier: dict[int, Ack] = {}
        for ack in reversed(acks[:first]):
            if len(earlier) == len(self._submits):
                break
            earlier.setdefault(ack.client, ack)
        return [*sorted(earlier.values()), *acks[first:last]]


def capacity(submits: Sequence[Submit], in_flight: int, seconds: float) -> float:
    """Calls in a second that the nodes can take, from all clients in turn."""
    turn = iter(range(10**9))
    measured = window(lambda: submits[next(turn) % len(submits)](), in_flight, seconds)
    return 0.0 if measured.error else measured.calls / measured.seconds


class Gap(NamedTuple):
    seconds: float
    began: float


def pause(acks: Sequence[Ack], start: float, end: float, still: float = inf) -> Gap:
    """The longest time without an answer in which a call waited, from the last answer before ``start`` up to ``end``.
    Answers that came later tell who waited then; ``still``: since when one waits that has not been answered at all."""
    longest, then, waits = Gap(0.0, start), end, still
    for ack in reversed(acks):
        if ack.at < end:
            longest = max(longest, _gap(max(ack.at, waits), then))
            then = ack.at
            if ack.at <= start:
                return longest
        waits = min(waits, ack.at - ack.took)
    return max(longest, _gap(max(start, waits), then))


def _gap(began: float, ended: float) -> Gap:
    return Gap(ended - began, began)


def pauses(
    acks: Sequence[Ack], clients: int, start: float, end: float, still: Mapping[int, float] = MappingProxyType({})
) -> list[Gap]:
    """For each client by itself."""
    return [pause([a for a in acks if a.client == c], start, end, still.get(c, inf)) for c in range(clients)]


def middle(acks: Sequence[Ack]) -> float:
    """The median latency."""
    return median(a.took for a in acks) if acks else 0.0


def recovered(times: Sequence[float], start: float, end: float, rate: float, width: float = WIDTH) -> float | None:
    """So many seconds after ``start`` two windows one after the other have nine tenths of the rate; None: never."""
    wanted = BACK * rate * width
    at = start
    while at + 2 * width <= end:
        if all(_count(times, at + i * width, width) >= wanted for i in range(2)):
            return at - start
        at += STEP
    return None


def _count(times: Sequence[float], start: float, width: float) -> int:
    return bisect_left(times, start + width) - bisect_left(times, start)
