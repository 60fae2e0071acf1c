"""An object whose methods wait until a test lets them go on. Everything that changes it conflicts."""

import asyncio
import threading

from framework import Object, method

GATE = threading.Event()  # what waits goes on when it is set
SEEN: list[str] = []  # what began, and how it ended: also what is undone


def reset() -> None:
    GATE.clear()
    SEEN.clear()


async def gate() -> None:
    while not GATE.is_set():
        await asyncio.sleep(0.005)


class Held(Object):
    def __init__(self) -> None:
        self.log: list[str] = []

    @method
    async def hold(self, name: str) -> None:
        await self._hold(name)

    async def _hold(self, name: str) -> None:
        self.log.append(name)
        SEEN.append(f"{name} began")
        try:
            await gate()
        except asyncio.CancelledError:
            SEEN.append(f"{name} cancelled")
            raise

    @method(readonly=True)
    async def watch(self, name: str) -> list[str]:
        SEEN.append(f"{name} began")
        try:
            await gate()
        except asyncio.CancelledError:
            SEEN.append(f"{name} cancelled")
            raise
        return self.log

    @method
    def note(self, name: str) -> None:
        SEEN.append(f"{name} began")
        self.log.append(name)


class Outer(Object):
    """Calls objects of the other class."""

    def __init__(self) -> None:
        self.log: list[str] = []

    @method
    def call(self, name: str) -> None:
        self.log.append("call")
        self.orb.object(name).hold("inner")

    @method
    async def call_async(self, name: str) -> None:
        self.log.append("call")
        await self.orb.object(name).hold("inner")

    @method
    def call_all(self) -> None:
        self.log.append("call")
        self.orb.object("held").hold("inner")

    @method
    def work_then_call(self) -> None:
        self.log.append("work")
        SEEN.append("work began")
        GATE.wait(60)
        self.orb.object("held").note("inner")

    @method
    async def impatient(self, name: str) -> str:
        try:
            async with asyncio.timeout(0.05):
                await self.orb.object(name).hold("inner")
        except TimeoutError:
            self.log.append("late")
        return "late"
