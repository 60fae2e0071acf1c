"""Latencies by the count of each size: small enough to be sent by every process again and again, and to be added.

Sizes are classes of a geometric series, eight for each doubling: a percentile is right within 4.5 %. The records have
the exact values.
"""

from collections.abc import Mapping
from math import log2

PER_DOUBLING = 8
_LEAST = 1e-6


class Latencies:
    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: dict[int, int] = dict(counts or {})
        self.total = sum(self.counts.values())

    def add(self, seconds: float) -> None:
        size = round(log2(max(seconds, _LEAST) / _LEAST) * PER_DOUBLING)
        self.counts[size] = self.counts.get(size, 0) + 1
        self.total += 1

    def merge(self, counts: Mapping[int, int]) -> None:
        for size, number in counts.items():
            self.counts[size] = self.counts.get(size, 0) + number
            self.total += number

    def quantile(self, share: float) -> float:
        """In seconds; 0 if there are none."""
        wanted, seen = share * self.total, 0
        for size in sorted(self.counts):
            seen += self.counts[size]
            if seen >= wanted and seen:
                return float(_LEAST * 2 ** (size / PER_DOUBLING))
        return 0.0
