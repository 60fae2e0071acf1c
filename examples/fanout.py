"""Hundreds of calls at the same time, from a program of threads and from coroutines.

python -m examples.fanout [--at host:port,...]
"""

import asyncio
import time

from examples.nodes import running
from framework import AsyncOrb, RemoteError, connect
from objects.bank import Bank
from objects.counter import Counter

CALLS = 300


def with_futures(addresses: str) -> None:
    with connect(addresses) as orb:
        counter, bank = orb.object(Counter, "counter"), orb.object(Bank, "bank")
        before = counter.show()
        start = time.perf_counter()
        for _ in range(CALLS):
            counter.increment()
        print(f"{CALLS} calls one by one: {_ms(start)}")

        start = time.perf_counter()
        later = [counter.increment.submit() for _ in range(CALLS)]  # all are sent, none is waited for
        for future in later:
            future.result()  # raises what the method raised
        print(f"{CALLS} calls at once: {_ms(start)}")
        print("the counter has grown by", counter.show() - before)

        asked = {name: bank.balance.submit(name) for name in ("fay", "gil", "hal")}  # results of each
        print("balances:", {name: future.result() for name, future in asked.items()})


async def with_coroutines(addresses: str) -> None:
    """The same names, each to be awaited."""
    async with AsyncOrb(addresses) as orb:
        counter, bank = orb.object(Counter, "counter"), orb.object(Bank, "bank")
        before = await counter.show()
        start = time.perf_counter()
        await asyncio.gather(*(counter.increment() for _ in range(CALLS)))
        print(f"{CALLS} calls at once, by coroutines: {_ms(start)}")
        print("the counter has grown by", await counter.show() - before)

        # One that raises does not stop the others.
        results = await asyncio.gather(
            *(bank.withdraw("nobody", amount) for amount in (1, 2, 3)), return_exceptions=True
        )
        print("refused:", sum(isinstance(result, RemoteError) for result in results), "of 3:", results[0])


def _ms(start: float) -> str:
    return f"{1000 * (time.perf_counter() - start):.0f} ms"


if __name__ == "__main__":
    with running() as addresses:
        with_futures(addresses)
        asyncio.run(with_coroutines(addresses))
