"""A node in the process of the test, on the loop of its cluster. Quick to start, and a debugger reaches its methods."""

import asyncio
import time
from pathlib import Path

from framework.com.events import AnyEvent
from framework.errors import BadRequest, DeadlineExceeded, Unavailable
from framework.orb.config import Config
from framework.orb.node import Node
from framework.testing.background import Background

DRAIN = 10.0
_PATIENCE = 60.0


class _Mortal(Node):
    """Can be stopped as SIGKILL does it: from then on nothing goes in or out, and the trace just ends."""

    dead = False

    def feed(self, event: AnyEvent) -> None:
        if not self.dead:
            super().feed(event)

    async def die(self) -> None:
        self.dead = True
        if self.member is not None:
            self.member.abandon()
            self.member = None
        await self.stop()


class NodeInside:
    def __init__(self, name: str, config: Config, trace: Path, background: Background) -> None:
        self.name = name
        self.alive = True
        self._config, self._trace = config, trace
        self._background = background
        self._leave = False
        self._node = background.run(_started(config, name, trace), _PATIENCE)

    def wait_ready(self, until: float) -> None:
        try:
            self._background.run(_joined(self._node), max(until - time.monotonic(), 0.1))
        except DeadlineExceeded:
            raise Unavailable(f"node {self.name} is not ready: {self._node.refusal()}") from None

    def restart(self) -> None:
        self._node = self._background.run(_started(self._config, self.name, self._trace), _PATIENCE)
        self.alive = True

    def crash(self) -> None:
        self.alive = False
        self._background.run(self._node.die(), _PATIENCE)

    def pause(self) -> None:
        raise BadRequest(f"{self.name} shares its process with the test: to pause it, use cluster(..., processes=True)")

    def resume(self) -> None:
        pass  # it was never paused

    def ask_to_stop(self, leave: bool) -> None:
        self._leave = leave
        self._node.sessions.parting = True
        self._background.run(_alone(self._node), _PATIENCE)  # nodes stop one after the other: none asks those gone

    def wait_stopped(self) -> None:
        self.alive = False
        self._background.run(_stopped(self._node, self._leave), DRAIN + _PATIENCE)

    def end(self) -> None:
        if self.alive:
            self.crash()


async def _started(config: Config, name: str, trace: Path) -> _Mortal:
    node = _Mortal(config, name, trace)
    await node.start()
    return node


async def _alone(node: Node) -> None:
    node.comparing.stop()


async def _joined(node: Node) -> None:
    await node.joined.wait()


async def _stopped(node: Node, leave: bool) -> None:
    """As SIGTERM does it, or SIGINT."""
    try:
        async with asyncio.timeout(DRAIN):
            await node.drain()
            if leave:
                await node.leave()
    except TimeoutError:
        pass  # the trace says what was open
    await node.stop()
