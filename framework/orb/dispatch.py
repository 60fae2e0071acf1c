"""Performs instances: ``def`` in threads, ``async def`` on the node's loop.

The com layer delivers a request only when no conflicting instance is running, so whatever runs here together is
compatible. That alone does not make it safe to run two bodies at once: ``self.value += 1`` in two threads loses one,
and what a method that raises has changed must be told from what its neighbours change. So each replica has a *turn*:

- A method that changes state runs in its turn, and gives the turn away while it waits for a call to another object.
  So instances overlap where they wait, and methods of different replicas and objects overlap everywhere.
- A ``readonly`` method needs no turn and runs beside everything that is compatible with it.
- One that raises takes back its own changes, also those from before it waited (undo.py).

The price: the bodies of two compatible methods of *one* replica do not run in parallel threads. In Python they would
gain from it only where they block on something other than an object; such work belongs into ``async def`` or a call.
"""

import asyncio
import logging
from collections.abc import Mapping

from framework.com.events import Completed, Deliver, Received
from framework.errors import OboError
from framework.ids import Replica, Sid, object_of
from framework.orb.messages import open_envelope
from framework.orb.outcome import failure
from framework.orb.performance import Performance, Resident, Stage

log = logging.getLogger(__name__)


class Dispatch:
    def __init__(self, stage: Stage, residents: Mapping[Replica, Resident]) -> None:
        self._stage = stage
        self.residents = residents
        self._running: dict[Sid, Performance] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def deliver(self, effect: Deliver) -> None:
        """Start an instance; it answers with Completed."""
        try:
            method = self._stage.naming.method(object_of(effect.replica), effect.footprint.method)
            envelope = open_envelope(effect.request.args)
        except OboError as error:
            asyncio.get_running_loop().call_soon(self._stage.feed, Completed(effect.sid, False, failure(error)))
            return
        performance = Performance(self._stage, self.residents[effect.replica], effect, method, envelope)
        self._running[effect.sid] = performance
        task = asyncio.ensure_future(self._perform(effect.sid, performance))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _perform(self, sid: Sid, performance: Performance) -> None:
        try:
            completed = await performance.perform()
            del self._running[sid]
            self._stage.feed(completed)
        except Exception:
            log.exception("instance %s could not be completed: this is a fault of the framework", sid)

    def received(self, effect: Received) -> None:
        self._running[effect.caller].received(effect)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)
