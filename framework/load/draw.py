"""What a workload is asked and what it answers: the next call.

``Draw`` has what a workload needs to choose: chance, keys by their skew, whether this call is to be one that conflicts.
All of it comes from the seed: the same seed gives the same calls, whatever the nodes answer.
"""

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Any

import msgspec


class Call(msgspec.Struct, frozen=True):
    """One call, or several in one act: then ``also`` has the others, and it goes by pcast."""

    object: str
    method: str
    args: tuple[Any, ...] = ()
    keys: tuple[Any, ...] = ()  # of the arguments, for the records alone: nodes find the keys themselves
    silent: bool = False  # it returns nothing: it may be sent one-way
    also: tuple["Call", ...] = ()
    payload: int = 0  # bytes of filling in the arguments
    way: str = ""  # ucast, mcast or pcast; empty: what the framework chooses
    receipt: str = ""  # majority, all, first or a number; empty: what the run says


class Skew:
    """Keys 0..n-1 by Zipf's law: key k is drawn with weight 1/(k+1)^s. s = 0: all alike."""

    def __init__(self, n: int, s: float) -> None:
        self._n = n
        self._sums = list(accumulate(1 / (k + 1) ** s for k in range(n))) if s else []

    def draw(self, chance: Random) -> int:
        if not self._sums:
            return chance.randrange(self._n)
        return bisect(self._sums, chance.random() * self._sums[-1], hi=self._n - 1)


class Draw:
    """For one call of one client."""

    __slots__ = ("_skew", "chance", "client", "conflicts", "filling", "number", "reads", "way")

    def __init__(self, chance: Random, client: str, skew: Skew, payload: int) -> None:
        self.chance = chance
        self.client = client  # a name that no other client has
        self.number = 0  # of the call, per client, from 1
        self.conflicts = False  # shall it be one that conflicts with the others?
        self.reads = False  # shall it be one that only reads?
        self.way = ""  # ucast, mcast, pcast, if the run says how many go which way
        self.filling = "x" * payload
        self._skew = skew

    def key(self) -> str:
        """``k0`` is the one drawn most often, if keys are skewed."""
        return f"k{self._skew.draw(self.chance)}"

    def index(self) -> int:
        """The same as a number."""
        return self._skew.draw(self.chance)

    def one_of(self, names: Sequence[str]) -> str:
        return names[0] if len(names) == 1 else self.chance.choice(names)
