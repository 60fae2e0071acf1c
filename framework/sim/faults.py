"""What a network does to frames: composable wrappers around a wire, each with its own chance of the world's seed.

A wire takes bytes at a time and says when which bytes come out at the other end. Everything here happens *under* the
link layer (protocol.md §9.1), which has to make a FIFO stream of it.
"""

from random import Random
from typing import Protocol

Arrivals = list[tuple[float, bytes]]  # (time of arrival, bytes)


class Wire(Protocol):
    def carry(self, data: bytes, now: float) -> Arrivals: ...


class Delay:
    """Each frame takes its own time, so frames may overtake each other."""

    def __init__(self, chance: Random, least: float, most: float) -> None:
        self.chance, self.least, self.most = chance, least, most

    def carry(self, data: bytes, now: float) -> Arrivals:
        return [(now + self.chance.uniform(self.least, self.most), data)]


class Fifo:
    """Frames of one wire keep their order; only different wires overtake each other."""

    def __init__(self, wire: Wire) -> None:
        self.wire, self.last = wire, 0.0

    def carry(self, data: bytes, now: float) -> Arrivals:
        out = []
        for at, what in sorted(self.wire.carry(data, now)):
            self.last = max(at, self.last + 1e-6)
            out.append((self.last, what))
        return out


class Loss:
    def __init__(self, wire: Wire, chance: Random, share: float, until: float = float("inf")) -> None:
        self.wire, self.chance, self.share, self.until = wire, chance, share, until

    def carry(self, data: bytes, now: float) -> Arrivals:
        lost = self.chance.random() < self.share and now < self.until
        return [] if lost else self.wire.carry(data, now)


class Duplication:
    def __init__(self, wire: Wire, chance: Random, share: float) -> None:
        self.wire, self.chance, self.share = wire, chance, share

    def carry(self, data: bytes, now: float) -> Arrivals:
        out = self.wire.carry(data, now)
        if self.chance.random() < self.share:
            out += self.wire.carry(data, now)
        return out


class Slow:
    """Between two times every frame takes longer: what makes others suspect a healthy node."""

    def __init__(self, wire: Wire, start: float, end: float, extra: float) -> None:
        self.wire, self.start, self.end, self.extra = wire, start, end, extra

    def carry(self, data: bytes, now: float) -> Arrivals:
        late = self.extra if self.start <= now < self.end else 0.0
        return [(at + late, what) for at, what in self.wire.carry(data, now)]


class Cut:
    """Nothing gets through between two times: neither what is sent nor what is on its way. Then it heals."""

    def __init__(self, wire: Wire, start: float, end: float) -> None:
        self.wire, self.start, self.end = wire, start, end

    def carry(self, data: bytes, now: float) -> Arrivals:
        if self.start <= now < self.end:
            return []
        return [(at, what) for at, what in self.wire.carry(data, now) if not self.start <= at < self.end]
