"""Durable objects for tests of real nodes."""

from framework import Object, conflict_matrix, method
from objects.bank import Bank


class Vault(Bank):
    """A bank on disk."""

    durable = True


@conflict_matrix(add="*", twice="*", chance="*", back="*", all="*")
class Notes(Object):
    """Calls others, and is called back; what it writes comes from the framework."""

    durable = True

    def __init__(self) -> None:
        self.lines: list[str] = []

    @method
    def add(self, text: str) -> int:
        self.lines.append(text)
        return len(self.lines)

    @method
    def chance(self) -> None:
        self.lines.append(f"{self.now()} {self.random()} {self.uuid()}")

    @method
    def back(self, account: str) -> None:
        """A call that comes back here while this one waits."""
        self.lines.append("before")
        self.orb.object(Caller, "caller").call(account)
        self.lines.append(f"after {self.lines[-1]}")

    @method
    async def twice(self, account: str, amount: int) -> int:
        vault = self.orb.object(Vault, "vault")
        await vault.deposit(account, amount)
        await vault.deposit(account, amount)
        has = int(await vault.balance(account))
        self.lines.append(f"{account} has {has}")
        return has

    @method(readonly=True)
    def all(self) -> list[str]:
        return list(self.lines)


@conflict_matrix(call="*")
class Caller(Object):
    @method
    def call(self, text: str) -> None:
        self.orb.object(Notes, "notes").add(text)


@conflict_matrix(move="*")
class Office(Object):
    """Moves money from one vault to another; durable itself."""

    durable = True

    def __init__(self) -> None:
        self.moved: dict[str, int] = {}

    @method(key="account")
    def move(self, account: str, amount: int) -> int:
        self.orb.object(Vault, "one").withdraw(account, amount)
        self.orb.object(Vault, "two").deposit(account, amount)
        self.moved[account] = self.moved.get(account, 0) + amount
        return self.moved[account]
