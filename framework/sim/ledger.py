"""State of a random object: a digest that tells the order of conflicting requests and nothing else.

Each committed request that changes state adds a hash of itself and of the conflicting ones performed before it. Sums do
not see the order of compatible requests; the hash of each sees the order of conflicting ones.
"""

from hashlib import blake2b
from typing import Protocol

from framework.footprint import Footprint, Relation


class State(Protocol):
    """What the world needs of a replica's state."""

    performed: int

    def digest(self) -> str: ...


class Ledger:
    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self.performed = 0
        self._entries: list[tuple[Footprint, int]] = []
        self._sum = 0

    def commit(self, invocation: str, footprint: Footprint) -> None:
        self.performed += 1
        if footprint.readonly:
            return
        before = sum(h for f, h in self._entries if self.relation.conflict(f, footprint)) % (1 << 64)
        text = f"{invocation}|{footprint}|{before}".encode()
        value = int.from_bytes(blake2b(text, digest_size=8).digest())
        self._entries.append((footprint, value))
        self._sum = (self._sum + value) % (1 << 64)

    def copy(self) -> "Ledger":
        other = Ledger(self.relation)
        other.performed, other._entries, other._sum = self.performed, list(self._entries), self._sum
        return other

    def digest(self) -> str:
        return f"{self._sum:016x}"
