"""A set of positive numbers that is mostly 1..n: which requests of an origin have been delivered."""

from collections.abc import Iterable


class Ranges:
    __slots__ = ("above", "low")

    def __init__(self) -> None:
        self.low = 0  # 1..low are in
        self.above: set[int] = set()  # and these, all > low + 1

    def __contains__(self, n: int) -> bool:
        return n <= self.low or n in self.above

    def add(self, n: int) -> None:
        if n == self.low + 1:
            self._raise_to(n)
        elif n > self.low:
            self.above.add(n)

    def add_all(self, ranges: Iterable[tuple[int, int]]) -> None:
        for first, last in ranges:
            if first <= self.low + 1:
                self._raise_to(last)
            else:
                self.above.update(range(first, last + 1))

    def _raise_to(self, low: int) -> None:
        if low > self.low:
            self.low = low
        if self.above:
            self.above = {n for n in self.above if n > self.low} if low > min(self.above) else self.above
            while self.low + 1 in self.above:
                self.low += 1
                self.above.remove(self.low)


def as_ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    out: list[tuple[int, int]] = []
    for n in sorted(numbers):
        if out and n <= out[-1][1] + 1:
            out[-1] = (out[-1][0], n)
        else:
            out.append((n, n))
    return tuple(out)
