"""Objects for tests: they call others, wait, raise, and ask for time and chance."""

import asyncio
import time

from framework import Object, conflict_matrix, method


@conflict_matrix(pay=("total",), pay_async=("total",), fail_after=("total",))
class Shop(Object):
    """Calls the bank. ``pay`` is compatible with itself: instances overlap while they wait."""

    def __init__(self) -> None:
        self.sold = 0
        self.by: dict[str, int] = {}
        self.tags: set[str] = set()

    @method
    def pay(self, account: str, amount: int) -> None:
        self.sold += amount
        self.orb.object("bank").withdraw(account, amount)
        self.by[account] = self.by.get(account, 0) + amount

    @method
    async def pay_async(self, account: str, amount: int) -> None:
        self.sold += amount
        await self.orb.object("bank").withdraw(account, amount)
        self.by[account] = self.by.get(account, 0) + amount

    @method
    def fail_after(self, account: str, amount: int) -> None:
        """Changes, waits, and raises."""
        self.sold += amount
        self.tags.add(account)
        self.by["failed"] = 1
        self.orb.object("bank").deposit(account, amount)
        self.sold += 1000
        raise RuntimeError("on purpose")

    @method(readonly=True)
    def total(self) -> int:
        return self.sold

    @method
    def spread(self, account: str) -> int:
        """Two calls at once, then a pcast."""
        bank, counter = self.orb.object("bank"), self.orb.object("counter")
        a = bank.deposit.submit(account, 1)
        b = bank.deposit.submit(account, 2)
        a.result()
        b.result()
        sent = self.orb.pcast(bank.deposit.request(account, 4), counter.increment.request(5))
        self.orb.crec(sent)
        return bank.balance(account)

    @method
    async def spread_async(self, account: str) -> int:
        bank, counter = self.orb.object("bank"), self.orb.object("counter")
        a = bank.deposit.submit(account, 1)
        b = bank.deposit.submit(account, 2)
        await a
        await b
        sent = await self.orb.pcast(bank.deposit.request(account, 4), counter.increment.request(5))
        await self.orb.crec(sent)
        return await bank.balance(account)


class Odd(Object):
    """Everything conflicts."""

    def __init__(self) -> None:
        self.log: list[str] = []

    @method
    def chance(self) -> list[str]:
        self.log += [str(self.now()), str(self.random()), str(self.uuid())]
        return self.log

    @method
    def wrong(self) -> int:
        self.log.append("wrong")
        secret = "hidden"
        return len(secret) // 0

    @method
    def leaves(self) -> None:
        self.log.append("leaves")
        raise SystemExit(3)

    @method
    async def gives_up(self) -> None:
        self.log.append("gives up")
        raise asyncio.CancelledError

    @method
    def lies(self) -> int:
        self.log.append("lies")
        return "text"  # type: ignore[return-value]

    @method
    async def slow(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @method
    def blocks(self, seconds: float) -> None:
        time.sleep(seconds)

    @method(readonly=True)
    def read(self) -> list[str]:
        return list(self.log)

    @method
    def keep(self, names: list[str], then_fail: bool) -> None:
        self._keep(names, then_fail)

    @method
    async def keep_async(self, names: list[str], then_fail: bool) -> None:
        self._keep(names, then_fail)

    def _keep(self, names: list[str], then_fail: bool) -> None:
        self.kept = {"names": names, "by length": {len(n): [n] for n in names}}
        self.log += names
        if then_fail:
            raise ValueError("on purpose")

    @method
    def back(self, depth: int) -> int:
        """Calls itself through the orb: the call joins."""
        self.log.append(f"back {depth}")
        return depth if depth == 0 else self.orb.object("odd").back(depth - 1) + 1
