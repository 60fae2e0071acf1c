"""A node in the process of the test, on the loop of its cluster. Quick to start, and a debugger reaches its methods."""

import asyncio
from pathlib import Path

from framework.com.events import AnyEvent
from framework.errors import BadRequest
from framework.orb.config import Config
from framework.orb.node import Node
from framework.testing.background import Background

DRAIN = 10.0
_PATIENCE = 10.0


class _Mortal(Node):
    """Can be stopped as SIGKILL does it: from then on nothing goes in or out, and the trace just ends."""

    dead = False

    def feed(self, event: AnyEvent) -> None:
        if not self.dead:
            super().feed(event)

    async def die(self) -> None:
        self.dead = True
        if self.tracing is not None:
            self.tracing.abandon()
            self.tracing = None
        await self.stop()


class NodeInside:
    def __init__(self, name: str, config: Config, trace: Path, background: Background) -> None:
        self.name = name
        self.alive = False
        self._background = background
        self._node = background.run(_made(config, name, trace), _PATIENCE)

    def wait_ready(self, until: float) -> None:
        self._background.run(self._node.start(), _PATIENCE)
        self.alive = True

    def crash(self) -> None:
        self.alive = False
        self._background.run(self._node.die(), _PATIENCE)

    def pause(self) -> None:
        raise BadRequest(f"{self.name} shares its process with the test: to pause it, use cluster(..., processes=True)")

    def resume(self) -> None:
        pass  # it was never paused

    def ask_to_stop(self) -> None:
        self._node.sessions.draining = True

    def wait_stopped(self) -> None:
        self.alive = False
        self._background.run(_stopped(self._node), DRAIN + _PATIENCE)

    def end(self) -> None:
        if self.alive:
            self.crash()


async def _made(config: Config, name: str, trace: Path) -> _Mortal:
    return _Mortal(config, name, trace)


async def _stopped(node: Node) -> None:
    """As SIGTERM does it."""
    try:
        async with asyncio.timeout(DRAIN):
            await node.drain()
    except TimeoutError:
        pass  # the trace says what was open
    await node.stop()
