"""The bank of P0 §2 and P1 §2.3: deposit, withdraw, transfer; with balance and audit to look at it.

P0 calls deposit and withdraw compatible. That holds where an account may go below zero. Here a withdrawal is
refused for lack of money, so a deposit before it can turn a refusal into money: the order shows, and the two
conflict. ``framework.testing.check_conflicts(Bank)`` finds just that when the entry is left out. Deposits
among themselves are compatible, and nothing on one account conflicts with anything on another: that is where
order is saved.
"""

from framework import Object, conflict_matrix, method


class RefusedError(ValueError):
    """The bank does not do this: not enough money, or no sensible amount."""


@conflict_matrix(
    deposit=("withdraw", "balance", "audit"),
    withdraw=("withdraw", "balance", "audit"),
    transfer="*",
)
class Bank(Object):
    """Accounts come into being with the first money on them."""

    def __init__(self) -> None:
        self.accounts: dict[str, int] = {}

    @method(key="account")
    def deposit(self, account: str, amount: int) -> None:
        _check(amount)
        self.accounts[account] = self.accounts.get(account, 0) + amount

    @method(key="account")
    def withdraw(self, account: str, amount: int) -> None:
        _check(amount)
        self.accounts[account] = self._left(account, amount)

    @method(key=("source", "target"))
    def transfer(self, source: str, target: str, amount: int) -> None:
        _check(amount)
        self.accounts[source] = self._left(source, amount)
        self.accounts[target] = self.accounts.get(target, 0) + amount

    @method(key="account", readonly=True)
    def balance(self, account: str) -> int:
        return self.accounts.get(account, 0)

    @method(readonly=True)
    def audit(self) -> dict[str, int]:
        """Every account; without a key, so it meets every key."""
        return dict(sorted(self.accounts.items()))

    def _left(self, account: str, amount: int) -> int:
        """What is left after taking ``amount``. Refuses before any change: a refusal leaves no trace."""
        has = self.accounts.get(account, 0)
        if amount > has:
            raise RefusedError(f"{account} has {has}, not {amount}")
        return has - amount


def _check(amount: int) -> None:
    if amount <= 0:
        raise RefusedError(f"an amount is more than 0, not {amount}")
