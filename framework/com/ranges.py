"""A set of positive numbers that is mostly 1..n: which requests of an origin have been delivered."""

from collections.abc import Iterable

#: Nobody sends so many requests that are neither delivered nor followed by a delivered one.
LONG = 1 << 20


class Ranges:
    __slots__ = ("above", "holes", "low")

    def __init__(self, low: int = 0) -> None:
        self.low = low  # 1..low are in
        self.above: set[int] = set()  # and these, all > low + 1
        self.holes: set[int] | None = None  # but not these, all <= low

    def __contains__(self, n: int) -> bool:
        if n <= self.low:
            return self.holes is None or n not in self.holes
        return n in self.above

    def add(self, n: int) -> None:
        if n == self.low + 1:
            self._raise_to(n)
        elif n > self.low:
            self.above.add(n)
        elif self.holes is not None:
            self.holes.discard(n)

    def add_all(self, ranges: Iterable[tuple[int, int]]) -> None:
        for first, last in ranges:
            if self.holes:
                self.holes = {n for n in self.holes if not first <= n <= last}
            if first <= self.low + 1:
                self._raise_to(last)
            elif last - first < LONG:
                self.above.update(range(first, last + 1))
            elif first - self.low < LONG:  # all that a life has used is over, but for a few
                missing = {n for n in range(self.low + 1, first) if n not in self.above}
                self._raise_to(last)
                self.holes = missing | (self.holes or set())

    def close(self, low: int, holes: Iterable[int]) -> None:
        """All up to ``low`` are in, but for these and the holes that are there already."""
        left = {n for n in holes if n not in self} | (self.holes or set())
        self._raise_to(low)
        self.holes = {n for n in left if n <= self.low} or None

    def remove(self, n: int) -> None:
        if n > self.low:
            self.above.discard(n)
        elif n > 0:
            self.holes = {n, *(self.holes or ())}

    def below(self, n: int) -> list[int]:
        """What is alive of a life that has ended, and was sent before ``n``. If ``n`` is void, it stood for these."""
        return [hole for hole in sorted(self.holes) if hole < n] if self.holes else []

    def _raise_to(self, low: int) -> None:
        if low > self.low:
            self.low = low
        if not self.holes:
            self.holes = None
        if self.above:
            self.above = {n for n in self.above if n > self.low} if low > min(self.above) else self.above
            while self.low + 1 in self.above:
                self.low += 1
                self.above.remove(self.low)

    def wire(self) -> tuple[tuple[int, int], ...]:
        """As ranges (first, last)."""
        out: list[tuple[int, int]] = []
        first = 1
        for hole in sorted(self.holes or ()):
            if first < hole:
                out.append((first, hole - 1))
            first = hole + 1
        if first <= self.low:
            out.append((first, self.low))
        return (*out, *as_ranges(self.above))


def as_ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    out: list[tuple[int, int]] = []
    for n in sorted(numbers):
        if out and n <= out[-1][1] + 1:
            out[-1] = (out[-1][0], n)
        else:
            out.append((n, n))
    return tuple(out)
