"""State of a random object: a digest that tells the order of conflicting requests and nothing else.

Each committed request that changes state adds a hash of itself and of the conflicting ones performed before it. Sums do
not see the order of compatible requests; the hash of each sees the order of conflicting ones.
"""

from collections.abc import Callable
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
        self._committed: list[tuple[str, Footprint]] = []
        self._sum = 0

    def commit(self, invocation: str, footprint: Footprint) -> None:
        self.performed += 1
        self._committed.append((invocation, footprint))
        if footprint.readonly:
            return
        before = sum(h for f, h in self._entries if self.relation.conflict(f, footprint)) % (1 << 64)
        text = f"{invocation}|{footprint}|{before}".encode()
        value = int.from_bytes(blake2b(text, digest_size=8).digest())
        self._entries.append((footprint, value))
        self._sum = (self._sum + value) % (1 << 64)

    def copy(self) -> "Ledger":
        return self.without(lambda invocation: False)

    def without(self, undone: Callable[[str], bool]) -> "Ledger":
        """The state without what these invocations have done to it."""
        other = Ledger(self.relation)
        for invocation, footprint in self._committed:
            if not undone(invocation):
                other.commit(invocation, footprint)
        return other

    def beyond(self, other: "Ledger") -> list[tuple[str, Footprint]]:
        """What is in it and not in the other one."""
        there = {invocation for invocation, _ in other._committed}
        return [(invocation, footprint) for invocation, footprint in self._committed if invocation not in there]

    def digest(self) -> str:
        return f"{self._sum:016x}"
