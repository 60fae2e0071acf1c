"""Who has been silent for too long (protocol.md §10.2).

A member that has nothing to say sends an empty frame every delta, so silence means something. How long it may last is
learned from each peer: the mean of the times between what was heard, and several times their deviation, but never less
than a floor. Who was not listening himself, because his machine stood still, has no right to suspect others for that
time.
"""

from framework.ids import Node

_WEIGHT = 0.1  # of the newest gap in mean and deviation
_DEVIATIONS = 8.0


class _Peer:
    __slots__ = ("deviation", "heard_at", "mean")

    def __init__(self, now: float) -> None:
        self.heard_at = now
        self.mean = 0.0
        self.deviation = 0.0

    def heard(self, at: float) -> None:
        gap = at - self.heard_at
        self.heard_at = at
        self.deviation += _WEIGHT * (abs(gap - self.mean) - self.deviation)
        self.mean += _WEIGHT * (gap - self.mean)


class Detector:
    def __init__(self, floor: float) -> None:
        self.floor = floor
        self._peers: dict[Node, _Peer] = {}
        self._looked_at: float | None = None
        self.stood_still = False  # before the last look, for so long that others may have suspected this node

    def watch(self, peer: Node, now: float) -> None:
        """From now on; it counts as heard."""
        self._peers[peer] = _Peer(now)

    def forget(self, peer: Node) -> None:
        self._peers.pop(peer, None)

    def heard(self, peer: Node, at: float) -> None:
        """Something came from it at this time."""
        known = self._peers.get(peer)
        if known is not None and at > known.heard_at:
            known.heard(at)

    def patience(self, peer: Node) -> float:
        """How long it may be silent."""
        known = self._peers[peer]
        return max(self.floor, known.mean + _DEVIATIONS * known.deviation)

    def silence(self, peer: Node, now: float) -> float:
        return now - self._peers[peer].heard_at

    def look(self, now: float) -> set[Node]:
        """Whom to suspect. To be called often: a long time between two looks was lost here, not there."""
        lost = now - self._looked_at if self._looked_at is not None else 0.0
        self._looked_at = now
        self.stood_still = lost > self.floor / 3
        if self.stood_still:
            for peer in self._peers.values():
                peer.heard_at = min(now, peer.heard_at + lost)
        return {p for p in self._peers if self.silence(p, now) > self.patience(p)}
