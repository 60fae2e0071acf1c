"""The object of ``obo bench membership`` and ``obo soak``: accounts whose sum can be watched, tallies that show whether
a call was lost or done twice, and ballast that makes a state large."""

from framework import Object, conflict_matrix, method

BLOCK = 1 << 16  # bytes of ballast in one piece
START = 1000  # on each account


@conflict_matrix(
    open=("open", "audit", "transfer"),
    transfer=("transfer", "audit", "open"),
    add=("tally", "audit"),
    load=("load",),
)
class Vault(Object):
    """Transfers keep the sum. ``add`` counts, and is compatible with itself."""

    def __init__(self) -> None:
        self.accounts: dict[str, int] = {}
        self.tallies: dict[str, int] = {}
        self.ballast: list[bytes] = []

    @method(key="account")
    def open(self, account: str) -> None:
        self.accounts[account] = START

    @method(key=("source", "target"))
    def transfer(self, source: str, target: str, amount: int) -> bool:
        """False if there is not enough to take."""
        if self.accounts.get(source, 0) < amount:
            return False
        self.accounts[source] -= amount
        self.accounts[target] = self.accounts.get(target, 0) + amount
        return True

    @method(key="name")
    def add(self, name: str) -> None:
        self.tallies[name] = self.tallies.get(name, 0) + 1

    @method(key="name", readonly=True)
    def tally(self, name: str) -> int:
        return self.tallies.get(name, 0)

    @method(readonly=True)
    def audit(self) -> dict[str, dict[str, int]]:
        """All accounts and tallies."""
        return {"accounts": dict(sorted(self.accounts.items())), "tallies": dict(sorted(self.tallies.items()))}

    @method
    def load(self, blocks: int) -> None:
        """More ballast: the state becomes so many blocks larger."""
        first = len(self.ballast)
        self.ballast += [(first + i).to_bytes(4, "big") * (BLOCK // 4) for i in range(blocks)]
