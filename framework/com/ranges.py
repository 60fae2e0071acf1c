"""A set of positive numbers that is mostly 1..n: which requests of an origin have been delivered.

Or mostly 1..n of a client that calls several objects: then each has gaps for good, and whatever is above the first of
them must not cost much. So the last few are a set, and older ones bits of large numbers.
"""

from collections.abc import Iterable

#: Nobody sends so many requests that are neither delivered nor followed by a delivered one.
LONG = 1 << 20
FEW = 4096  # in a set; more than in one large number
BITS = 10  # 1 << BITS of them in one large number


class Ranges:
    __slots__ = ("above", "holes", "low", "packed")

    def __init__(self, low: int = 0) -> None:
        self.low = low  # 1..low are in
        self.above: set[int] = set()  # and these, all > low + 1
        self.packed: dict[int, int] | None = None  # and those whose bits are set; key: n >> BITS
        self.holes: set[int] | None = None  # but not these, all <= low

    def __contains__(self, n: int) -> bool:
        if n <= self.low:
            return self.holes is None or n not in self.holes
        return n in self.above or (self.packed is not None and self._is_packed(n))

    def _is_packed(self, n: int) -> bool:
        packed = self.packed or {}
        return bool(packed.get(n >> BITS, 0) >> (n & (1 << BITS) - 1) & 1)

    def add(self, n: int) -> None:
        if n == self.low + 1:
            self._raise_to(n)
        elif n > self.low:
            self.above.add(n)
            if len(self.above) > FEW:
                self._pack()
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
                if len(self.above) > FEW:
                    self._pack()
            elif first - self.low < LONG:  # all that a life has used is over, but for a few
                missing = {n for n in range(self.low + 1, first) if n not in self}
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
            if self.packed is not None and self._is_packed(n):
                self.packed[n >> BITS] &= ~(1 << (n & (1 << BITS) - 1))
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
            self.above = {n for n in self.above if n > self.low} if low >= min(self.above) else self.above
        while self.low + 1 in self.above or (self.packed is not None and self._is_packed(self.low + 1)):
            self.low += 1
            self.above.discard(self.low)
        if self.packed is not None:
            self._unpack()

    def _pack(self) -> None:
        """All but those that share a large number with the last one: others may come there."""
        last = max(self.above) >> BITS
        packed = self.packed if self.packed is not None else {}
        for n in self.above:
            if n >> BITS < last:
                packed[n >> BITS] = packed.get(n >> BITS, 0) | 1 << (n & (1 << BITS) - 1)
        self.above = {n for n in self.above if n >> BITS >= last}
        self.packed = packed

    def _unpack(self) -> None:
        """What is not above ``low`` any more is forgotten."""
        packed, first = self.packed or {}, self.low + 1
        for key in [k for k in packed if k < first >> BITS]:
            del packed[key]
        if first >> BITS in packed:
            packed[first >> BITS] &= -1 << (first & (1 << BITS) - 1)
        self.packed = packed or None

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
        if self.packed is None:
            return (*out, *as_ranges(self.above))
        above = [r for key in sorted(self.packed) for r in _runs(self.packed[key], key << BITS)]
        return (*out, *_joined(sorted([*above, *as_ranges(self.above)])))


def _runs(bits: int, base: int) -> list[tuple[int, int]]:
    """Of ones that follow each other."""
    out: list[tuple[int, int]] = []
    while bits:
        skip = (bits & -bits).bit_length() - 1
        bits >>= skip
        base += skip
        ones = (~bits & bits + 1).bit_length() - 1
        out.append((base, base + ones - 1))
        bits >>= ones
        base += ones
    return out


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for first, last in ranges:
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return out


def as_ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    return tuple(_joined([(n, n) for n in sorted(numbers)]))
