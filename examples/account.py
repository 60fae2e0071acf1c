"""A replicated class in its smallest form: an ordinary class, and which of its methods conflict.

Look at its matrix:  obo conflicts examples.account:Account
"""

from framework import Object, conflict_matrix, method


@conflict_matrix(
    deposit=("withdraw", "balance"),  # a deposit shows in a balance, and decides whether a withdrawal is refused
    withdraw=("withdraw", "balance"),
)
class Account(Object):
    def __init__(self) -> None:
        self.accounts: dict[str, int] = {}  # ordinary attributes are the state

    @method(key="account")  # conflicts only where the keys meet
    def deposit(self, account: str, amount: int) -> None:
        self.accounts[account] = self.accounts.get(account, 0) + amount

    @method(key="account")
    def withdraw(self, account: str, amount: int) -> None:
        if self.accounts.get(account, 0) < amount:
            raise ValueError(f"{account} has less than {amount}")
        self.accounts[account] -= amount

    @method(key="account", readonly=True)
    def balance(self, account: str) -> int:
        return self.accounts.get(account, 0)


if __name__ == "__main__":
    account = Account()  # without the framework it is just a Python object
    account.deposit("ann", 5)
    account.withdraw("ann", 2)
    print(account.balance("ann"))
