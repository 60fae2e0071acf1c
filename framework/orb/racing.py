"""Alternatives that are asked at the same time (P1 §2.4): the first that succeeds wins, the others are undone.

Each is a transaction of its own, and commits only if it is the first one that was answered well. So no two are ever
committed; and if the winner cannot commit, nothing has happened.
"""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any

from framework.errors import OboError, RemoteError
from framework.orb.proxy import USUAL, Request
from framework.orb.ways import Success, Tally

if TYPE_CHECKING:
    from framework.orb.client import AsyncOrb


class _Second(Exception):  # it is no error: it aborts a transaction
    """Another one was first."""


class Race:
    def __init__(self, orb: "AsyncOrb", requests: Sequence[Request], timeout: float) -> None:
        self._orb = orb
        self._requests = requests
        self._timeout = timeout
        self._tasks: list[asyncio.Task[Any]] = []
        self._first: int | None = None

    async def run(self) -> Success:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._one(n), context=Context()) for n in range(len(self._requests))]
        try:
            ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        except asyncio.CancelledError:  # each undoes what it did
            await asyncio.gather(*self._tasks, return_exceptions=True)
            raise
        if self._first is None:
            raise self._failure(ended)
        won = ended[self._first]
        if isinstance(won, BaseException):
            raise won
        return Success(self._requests[self._first].object, won)

    async def _one(self, n: int) -> Any:
        async with self._orb.transaction(self._timeout):
            value = await self._orb.call(self._requests[n], USUAL)
            if self._first is not None:
                raise _Second
            self._first = n
            for task in self._tasks:
                if task is not self._tasks[n]:
                    task.cancel()
        return value

    def _failure(self, ended: Sequence[Any]) -> BaseException:
        """None has won. What is not a failure of a method comes first: with that one it might have been otherwise."""
        failures = Tally(1, len(ended))
        try:
            for error in sorted(ended, key=lambda e: isinstance(e, RemoteError)):
                if not isinstance(error, RemoteError):
                    return error if isinstance(error, BaseException) else OboError(f"unreachable: {error!r}")
                failures.failed(error)
        except RemoteError as last:
            return last
        return OboError("unreachable: an alternative wins, or all fail")
