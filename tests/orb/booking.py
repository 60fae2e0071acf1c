"""Objects for transactions: a ledger that can be told to fail, and an agency that calls others."""

import threading

from framework import Object, conflict_matrix, method
from framework.errors import RemoteError

pause = threading.Event()
pause.set()


@conflict_matrix(add=("get",), put="*")
class Ledger(Object):
    """``add`` is compatible with itself, ``put`` with nothing on the same key."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    @method(key="key")
    def add(self, key: str, amount: int) -> int:
        if amount > 100:
            raise ValueError(f"{amount} is too much")
        self.rows[key] = self.rows.get(key, 0) + amount
        return self.rows[key]

    @method(key="key")
    def put(self, key: str, amount: int) -> None:
        self.rows[key] = amount

    @method(key="key", readonly=True)
    def get(self, key: str) -> int:
        return self.rows.get(key, 0)


class Agency(Object):
    """Its methods are the transactions."""

    def __init__(self) -> None:
        self.booked = 0

    @method
    def both(self, key: str, one: int, two: int) -> None:
        """If the second fails, the first is undone."""
        self.booked += 1
        self.orb.object("a").add(key, one)
        self.orb.object("b").add(key, two)

    @method
    async def both_async(self, key: str, one: int, two: int) -> None:
        self.booked += 1
        await self.orb.object("a").add(key, one)
        await self.orb.object("b").add(key, two)

    @method
    def one_of(self, key: str, one: int, two: int) -> str:
        """Goes on if the first fails."""
        try:
            self.orb.object("inner").both(key, one, two)
        except RemoteError as error:
            self.orb.object("a").add(key, 1)
            return str(error)
        return ""

    @method
    def fails(self, key: str, amount: int) -> None:
        self.orb.object("a").add(key, amount)
        self.orb.object("b").add.with_(independent=True)(key, amount)
        raise RuntimeError("on purpose")

    @method
    def announced(self, key: str, fails: bool) -> int:
        """The one-way call conflicts with what was called before it, and what is called after it with that."""
        ledger = self.orb.object("a")
        ledger.add(key, 5)
        ledger.put.oneway(key, 99)
        seen: int = ledger.add(key, 1)
        if fails:
            raise RuntimeError("on purpose")
        return seen

    @method
    def slow(self, key: str, amount: int) -> None:
        self.orb.object("a").add(key, amount)
        pause.wait(60)

    @method
    def crosswise(self, first: str, second: str, key: str, amount: int) -> None:
        self.orb.object(first).put(key, amount)
        self.orb.object(second).put(key, amount)


class Kept(Ledger):
    durable = True


class Chooser(Object):
    """Several at once, in the ways of P1 §2.4, as a part of its own methods."""

    def __init__(self) -> None:
        self.asked = 0

    @method
    def choose(self, way: str, key: str, one: int, two: int) -> list[str]:
        self.asked += 1
        a, b = (self.orb.object(name).add.request(key, amount) for name, amount in (("a", one), ("b", two)))
        if way in ("atomic", "distributed"):
            control = "distributed" if way == "distributed" else "centralized"
            return [str(value) for value in self.orb.atomic(a, b, control=control)]
        if way == "alternative":
            return [self.orb.alternative(a, b).object]
        return [one.object for one in self.orb.some(1, a, b)]

    @method
    async def choose_async(self, way: str, key: str, one: int, two: int) -> list[str]:
        self.asked += 1
        a, b = (self.orb.object(name).add.request(key, amount) for name, amount in (("a", one), ("b", two)))
        if way == "atomic":
            return [str(value) for value in await self.orb.atomic(a, b)]
        if way == "alternative":
            return [(await self.orb.alternative(a, b)).object]
        return [one.object for one in await self.orb.some(1, a, b)]


class KeptChooser(Chooser):
    durable = True
