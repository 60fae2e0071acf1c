"""Load, as a user writes it: one call after the other, many in flight, at a given rate. Times are in seconds.

Every system is driven by the same code; what differs is how a call is made.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec


class Order(msgspec.Struct):
    """What a client process is asked to do."""

    row: str
    payload: int  # bytes
    seconds: float
    rate: float = 0.0  # calls in a second; 0: as many as it can
    clients: int = 1


class Measured(msgspec.Struct):
    """What it answers."""

    calls: int = 0
    seconds: float = 0.0  # until the last was answered or, for one-way calls, performed
    p50: float = 0.0
    p99: float = 0.0
    lost: int = 0  # calls that were sent and not performed
    error: str = ""  # not empty: the figures mean nothing
    changed: dict[str, int] = {}  # acknowledged calls that changed something, by kind


def summary(took: list[float], seconds: float) -> Measured:
    took.sort()
    return Measured(len(took), seconds, quantile(took, 0.50), quantile(took, 0.99))


def quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def lone(call: Callable[[], Any], seconds: float) -> Measured:
    """One call after the other."""
    took: list[float] = []
    start = now = time.perf_counter()
    while now - start < seconds:
        began = now
        call()
        now = time.perf_counter()
        took.append(now - began)
    return summary(took, now - start)


def window(submit: Callable[[], Any], in_flight: int, seconds: float, rate: float = 0.0) -> Measured:
    """A sliding window: when a call is answered, the next may go. ``submit`` gives a future."""
    free = threading.Semaphore(in_flight)
    took: list[float] = []
    errors: list[BaseException] = []

    def one() -> None:
        began = time.perf_counter()

        def done(future: Any) -> None:
            took.append(time.perf_counter() - began)
            error = future.exception()
            if error is not None:
                errors.append(error)
            free.release()

        submit().add_done_callback(done)

    start = time.perf_counter()
    count = 0
    while (since := time.perf_counter() - start) < seconds and not errors:
        if rate and count > rate * since:
            time.sleep(0.005)
            continue
        free.acquire()
        one()
        count += 1
    for _ in range(in_flight):
        free.acquire()
    if errors:
        return Measured(error=f"{len(errors)} of {count} calls failed, the first with {errors[0]!r}")
    return summary(took, time.perf_counter() - start)


def threads(calls: list[Callable[[], Any]], seconds: float) -> Measured:
    """One call after the other in as many threads."""
    results: list[Measured | None] = [None] * len(calls)
    took: list[list[float]] = [[] for _ in calls]

    def loop(i: int, call: Callable[[], Any]) -> None:
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            call()
            took[i].append(time.perf_counter() - began)
        results[i] = Measured()

    start = time.perf_counter()
    running = [threading.Thread(target=loop, args=pair) for pair in enumerate(calls)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if None in results:
        return Measured(error="a call in a thread failed; its traceback is in the client's log")
    return summary([t for each in took for t in each], time.perf_counter() - start)


def oneway(send: Callable[[], Any], count: Callable[[], int], seconds: float, patience: float = 10.0) -> Measured:
    """Send for a while, then wait until all are performed. ``count`` says how many were performed so far.

    p50 and p99 are what the sender waits."""
    before = count()
    took: list[float] = []
    start = now = time.perf_counter()
    while now - start < seconds:
        began = now
        send()
        now = time.perf_counter()
        took.append(now - began)
    done, moved = count() - before, time.perf_counter()
    while done < len(took) and time.perf_counter() - moved < patience:
        time.sleep(0.001)
        last, done = done, count() - before
        if done > last:
            moved = time.perf_counter()
    result = summary(took, time.perf_counter() - start)
    result.lost = result.calls - done
    if result.lost:
        result.error = f"{result.calls} sent one-way, {done} performed"
    return result
