"""A stale read: a ``readonly`` method on the replica that is here, without order, and without the com layer.

It sees what this replica has performed so far, which may be less than others have. It runs in a turn (turn.py), so
never in the middle of what another method does between two waits; but one that waits may be half done.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from framework.declare import Method, performing
from framework.errors import BadRequest
from framework.orb.blocked import Watched
from framework.orb.messages import Envelope
from framework.orb.outcome import failure
from framework.orb.performance import Resident
from framework.orb.stage import Stage


class Reading:
    watched: Watched | None = None
    brief = False

    def __init__(
        self,
        stage: Stage,
        resident: Resident,
        method: Method,
        envelope: Envelope,
        told: Callable[[bool, bytes], None],
    ) -> None:
        self._stage = stage
        self._resident = resident
        self._method = method
        self._envelope = envelope
        self._told = told
        self._chance = Random(envelope.time)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """On the loop."""
        if self._method.is_async:
            self._task = asyncio.ensure_future(self._in_loop())
        else:
            self._stage.enter(self._resident.readers, self)

    def perform(self) -> None:
        try:
            with self._resident.beside(self._envelope, lambda: True), performing(self):
                result = self._body()
            done = True, self._method.pack_result(result)
        except BaseException as error:  # also SystemExit: a method does not end the node
            if self._resident.breaks(error):
                return
            done = False, failure(error)
        self._stage.on_loop(lambda: self._tell(*done))

    async def _in_loop(self) -> None:
        try:
            with performing(self):
                result = await self._body()
            done = True, self._method.pack_result(result)
        except BaseException as error:
            if self._resident.breaks(error):
                return
            done = False, failure(error)
        self._tell(*done)

    def _tell(self, ok: bool, packed: bytes) -> None:
        """A life that is over answers nobody: its clients have been sent away, and ask another node."""
        if not self._stage.stopped:
            self._told(ok, packed)

    def _body(self) -> Any:
        return getattr(self._resident.object, self._method.name)(*self._method.unpack(self._envelope.args))

    # what the method sees

    @property
    def orb(self) -> Any:
        raise BadRequest(f"{self._method.where}: a stale read calls no other objects")

    def now(self) -> float:
        return self._envelope.time

    def random(self) -> float:
        return self._chance.random()

    def uuid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)
