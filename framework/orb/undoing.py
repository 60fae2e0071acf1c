"""What was performed for a transaction that has been aborted is taken back, before anything else begins at its replica.

Taking back needs the turn of the replica: somebody who is compatible may be in the middle of a step. Whoever is
delivered meanwhile waits; also one that only reads, and needs no turn.
"""

from collections.abc import Callable

from framework.com.events import Deliver
from framework.ids import Replica
from framework.orb.performance import Performance
from framework.orb.stage import Stage


class Undoing:
    def __init__(self, stage: Stage, deliver: Callable[[Deliver], None]) -> None:
        self._stage = stage
        self._deliver = deliver
        self._waiting: dict[Replica, list[Deliver]] = {}  # where something is being undone
        self._count: dict[Replica, int] = {}

    def __contains__(self, at: Replica) -> bool:
        return at in self._count

    def delays(self, effect: Deliver) -> bool:
        """It waits until all is undone that has to be."""
        waiting = self._waiting.get(effect.replica)
        if waiting is None:
            return False
        waiting.append(effect)
        return True

    def begin(self, performance: Performance) -> None:
        """On the loop. One after the other, the last one first: that is how turns are given."""
        at, turn = performance.effect.replica, performance.resident.turn

        def mine() -> None:
            try:
                performance.settle(False)
            finally:
                turn.give()
                self._stage.on_loop(lambda: self._done(at))

        if turn.take(mine):
            performance.settle(False)
            turn.give()
            return
        self._waiting.setdefault(at, [])
        self._count[at] = self._count.get(at, 0) + 1
        self._stage.look_after(turn)

    def _done(self, at: Replica) -> None:
        self._count[at] -= 1
        if not self._count[at]:
            del self._count[at]
            for effect in self._waiting.pop(at):
                self._deliver(effect)
