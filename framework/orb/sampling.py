"""What a replica is at some moments: what has been performed on it, in one number, and a fingerprint of its state.

A7 says that replicas which have performed the same have the same state. Compatible calls are performed in any order, so
there is no moment at which all replicas of a busy object have performed the same; but each is at many moments where
another one was, or will be. So a replica looks at itself when something has just ended and nothing that changes it is
under way: as often as that costs next to nothing. A large state is looked at once: by a thread that has time, or, if
it has many values, by a copy of the process.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from framework.com.events import Deliver
from framework.declare import Method, Object
from framework.declare.portable.classes import classes_of
from framework.declare.portable.encode import state_of
from framework.declare.portable.fingerprint import fingerprint, fingerprint_of
from framework.declare.portable.still import still
from framework.errors import OboError
from framework.ids import Replica
from framework.orb.messages import Envelope
from framework.orb.moving.breath import Breath
from framework.orb.moving.captures import ITEMS, is_much
from framework.orb.moving.forked import VERY_NICE, Forked, can_fork
from framework.orb.own import DIFFERS, TELL, UNDECIDED, VERDICT, Sample
from framework.orb.performance import Performance, Resident
from framework.orb.stage import Stage

if TYPE_CHECKING:
    from framework.orb.dispatch import Dispatch

log = logging.getLogger(__name__)

LONGEST = 5.0  # seconds that a replica looks at itself
MOST = 64  # looks
BUDGET = 0.01  # seconds of the loop for all of them

#: A replica hears that it differs: does it leave?
Heard = Callable[[Replica, str], bool]


def comparable(cls: type[Object]) -> bool:
    """Is its state in its attributes?"""
    return cls.get_state is Object.get_state


class Own(Performance):
    """One of the methods that every object has for the framework itself."""

    def __init__(
        self,
        stage: Stage,
        resident: Resident,
        effect: Deliver,
        method: Method,
        envelope: Envelope,
        dispatch: "Dispatch",
        heard: Heard,
    ) -> None:
        super().__init__(stage, resident, effect, method, envelope)
        self._acts: dict[str, Callable[..., Awaitable[Any]]] = {
            TELL: lambda seconds: Sampler(dispatch, effect.replica).take(min(seconds, LONGEST)),
            DIFFERS: lambda why: _given(heard(effect.replica, why)),
            UNDECIDED: resident.undecided,
            VERDICT: resident.verdict,
        }

    async def _awaited(self) -> tuple[bool, bytes]:
        try:
            values = self.method.unpack(self.envelope.args)
            return True, self.method.pack_result(await self._acts[self.method.name](*values))
        except BaseException as error:
            return self._raised(error)


async def _given(value: bool) -> bool:
    return value


class Sampler:
    def __init__(self, dispatch: "Dispatch", at: Replica) -> None:
        self._dispatch = dispatch
        self._at = at
        self._resident = dispatch.residents[at]
        self._seen: dict[int, str] = {}
        self._spent = 0.0
        self._later: tuple[int, Callable[[], str]] | None = None  # the fingerprint of what it was then, for a thread
        self._enough = asyncio.Event()

    async def take(self, seconds: float) -> list[Sample]:
        """Nothing, if its state is not one that can be compared."""
        if not comparable(type(self._resident.object)) or self._dispatch.hasty:
            return []
        watchers = self._dispatch.watchers.setdefault(self._at, [])
        watchers.append(self.look)
        self.look()
        try:
            async with asyncio.timeout(seconds):
                await self._enough.wait()
        except TimeoutError:
            pass
        finally:
            watchers.remove(self.look)
            if not watchers:
                self._dispatch.watchers.pop(self._at, None)
        if self._later is not None:
            await self._read(*self._later)
        return list(self._seen.items())

    def look(self) -> None:
        """On the loop: something has ended here, or this node is to end."""
        if self._dispatch.hasty:
            self._enough.set()
        resident, began = self._resident, time.perf_counter()
        if self._enough.is_set() or resident.history in self._seen or self._dispatch.busy(self._at):
            return
        try:
            self._look(resident)
        except (OboError, OSError, RuntimeError) as error:  # RuntimeError: a method that only reads has changed a dict
            log.debug("%s cannot be compared: %s", self._at, error)
        self._spent += time.perf_counter() - began
        if self._spent > BUDGET or len(self._seen) >= MOST:
            self._enough.set()

    def _look(self, resident: Resident) -> None:
        target = resident.object
        if not is_much(vars(target)):
            self._seen[resident.history] = fingerprint(target)
            return
        self._enough.set()
        kind: Any = type(target)
        classes_of(kind)  # now: a child imports nothing
        taken = still(kind, state_of(target), ITEMS)
        if taken is not None:
            self._later = resident.history, lambda: fingerprint_of(kind, taken, Breath().take)
        elif can_fork():
            copy = Forked(kind.__qualname__, lambda: [fingerprint(target).encode()], nice=VERY_NICE)
            self._later = resident.history, lambda: _said(copy)

    async def _read(self, history: int, later: Callable[[], str]) -> None:
        try:
            self._seen[history] = await asyncio.to_thread(later)
        except OboError as error:
            log.info("%s cannot be compared: %s", self._at, error)


def _said(copy: Forked) -> str:
    try:
        return b"".join(copy.chunks()).decode()
    finally:
        copy.close()
