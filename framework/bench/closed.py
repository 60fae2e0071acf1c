"""A closed loop in coroutines: each client has one call under way, and makes the next when it is answered."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from framework.bench.load import Measured, summary

Call = Callable[[], Awaitable[Any]]


async def closed(clients: Sequence[Call], seconds: float) -> Measured:
    """``calls`` are those that were answered well, also where one failed and the figures mean nothing."""
    took: list[float] = []
    errors: list[Exception] = []
    start = time.perf_counter()
    end = start + seconds

    async def client(call: Call) -> None:
        now = time.perf_counter()
        while now < end and not errors:
            began = now
            try:
                await call()
            except Exception as error:
                errors.append(error)
                return
            now = time.perf_counter()
            took.append(now - began)

    await asyncio.gather(*map(client, clients))
    found = summary(took, time.perf_counter() - start)
    if errors:
        found.error = f"{len(errors)} calls failed after {len(took)} good ones, the first with {errors[0]!r}"
    return found
