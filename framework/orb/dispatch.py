"""Performs what the com layer delivers: ``def`` in threads, ``async def`` on the node's loop."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from framework.com.events import Completed, Deliver, Received, Stop
from framework.errors import Aborted, OboError
from framework.footprint import Footprint
from framework.ids import Replica, Sid, object_of
from framework.orb.messages import open_envelope
from framework.orb.outcome import failure
from framework.orb.performance import Performance, Resident, Stage
from framework.orb.reading import Reading

log = logging.getLogger(__name__)

CROWDED = 2048  # instances delivered and not performed: then clients are read no further


class Dispatch:
    def __init__(self, stage: Stage, residents: Mapping[Replica, Resident]) -> None:
        self._stage = stage
        stage.over = self._over
        self.residents = residents
        self._running: dict[Sid, Performance] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """On the loop that all is performed on, or comes back to."""
        self._stage.loop = asyncio.get_running_loop()

    @property
    def crowded(self) -> bool:
        return len(self._running) > CROWDED

    def deliver(self, effect: Deliver) -> None:
        """Start an instance; it answers with Completed."""
        try:
            if effect.cancelled:
                raise Aborted("cancelled before it was performed")
            method = self._stage.naming.method(object_of(effect.replica), effect.footprint.method)
            envelope = open_envelope(effect.request.args)
        except OboError as error:
            self._stage.loop.call_soon(self._stage.feed, Completed(effect.sid, False, failure(error)))
            return
        performance = Performance(self._stage, self.residents[effect.replica], effect, method, envelope)
        self._running[effect.sid] = performance
        task = performance.start()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def read(self, at: Replica, footprint: Footprint, args: bytes, told: Callable[[bool, bytes], None]) -> None:
        """Perform a readonly method now, without order: between the steps of instances, not between instances.
        ``told`` hears in a later turn of the loop what came of it."""
        method, envelope = self._stage.naming.method(object_of(at), footprint.method), open_envelope(args)
        Reading(self._stage, self.residents[at], method, envelope, told).start()

    def cancel(self, effect: Stop) -> None:
        """Nobody waits for an instance any more. It hears of that in a later turn of the loop: what it does then goes
        to the com layer."""
        performance = self._running.get(effect.sid)
        if performance is not None and not performance.cancelled:
            performance.cancelled = True
            self._stage.loop.call_soon(performance.cancel)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("an instance could not be completed: a fault of the framework", exc_info=task.exception())

    def _over(self, performance: Performance, completed: Completed) -> None:
        del self._running[completed.sid]
        _count(performance, completed, self._stage.loop.time())
        self._stage.feed(completed)

    def received(self, effect: Received, why: str) -> None:
        performance = self._running.get(effect.caller)
        if performance is not None:  # it may have ended while somebody found out why its call is late
            performance.received(effect, why)

    def since(self, sid: Sid) -> float:
        """Seconds for which an instance has been performed."""
        performance = self._running.get(sid)
        return self._stage.loop.time() - performance.began if performance is not None else 0.0

    def changing(self, at: Replica) -> bool:
        """Is something still going on that may change the state of this replica?"""
        return any(p.changes for p in self._running.values() if p.effect.replica == at)

    def last(self) -> list[Completed]:
        """The life is over: what has been performed, and the com layer has not heard of. What ends from now on is
        undone."""
        for resident in self.residents.values():
            with resident.ending:
                resident.over = True
        done = self._stage.close()
        for performance, completed in done:
            del self._running[completed.sid]
            _count(performance, completed, self._stage.loop.time())
        return [completed for _, completed in done]

    def abandon(self) -> None:
        """At once: what is still being performed has no end, neither here nor for others. Who waits is woken."""
        self._stage.stopped = True
        for performance in self._running.values():
            performance.cancelled = True
            self._stage.loop.call_soon(performance.cancel)

    async def stop(self) -> None:
        """The same, and wait a moment for coroutines."""
        self._stage.stopped = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)


def _count(performance: Performance, completed: Completed, now: float) -> None:
    resident = performance.resident
    resident.performed += completed.ok
    if completed.ok and not performance.method.readonly:
        resident.changes += 1
        resident.recent.add(performance.effect.request, now)
