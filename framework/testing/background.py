"""A loop in a thread of its own: forwarders live there, and nodes that share the process with the test."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from framework.errors import DeadlineExceeded
from framework.orb.loops import new_loop

R = TypeVar("R")


class Background:
    def __init__(self, name: str) -> None:
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, R], timeout: float) -> R:
        """Its result. A test must not hang: DeadlineExceeded after ``timeout`` seconds."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        except (TimeoutError, CancelledError):
            future.cancel()
            raise DeadlineExceeded(f"{work} did not end within {timeout:g} s") from None

    def close(self) -> None:
        """Cancel what still runs there, then end the thread. A second time does nothing."""
        if self._loop.is_closed():
            return
        try:
            self.run(_cancel_the_rest(), 5.0)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5.0)
            if not self._thread.is_alive():
                self._loop.close()


async def _cancel_the_rest() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=2.0)
