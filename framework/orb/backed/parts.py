"""What a backed replica does for transactions.

A store cannot keep many transactions open beside each other. So a call of one is performed, its result is taken, and
its effect is taken back at once: it is *prepared*. Nobody sees it, whatever the level of reading, and what others do
meanwhile is compatible with it, for its conflict slots are held. When the transaction is committed, it is performed
again, to the same end, and stays. Each call of a transaction finds what the same transaction has done here before:
that is performed again for it, too.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from framework.com.events import Completed
from framework.declare import Backed
from framework.ids import Invocation
from framework.orb.backed.writing import Writing

if TYPE_CHECKING:
    from framework.orb.backed.resident import BackedResident


class Settling:
    """A transaction is over for these parts of it, in the order in which they were performed."""

    calls = 1

    def __init__(self, resident: "BackedResident", parts: Sequence[Writing], commit: bool) -> None:
        self.resident = resident
        self.parts = parts
        self.commit = commit
        self.allowed = not commit  # may that be in the store?
        self.order = 0  # the committer's

    @property
    def name(self) -> Invocation:
        found = self.parts[0].effect.tran
        assert found is not None
        return found


class Parts:
    """In the thread of the committer, in its open batch."""

    def __init__(self, target: Backed) -> None:
        self._target = target
        self._prepared: dict[Invocation, list[Writing]] = {}  # by transaction

    def perform(self, work: Writing | Settling) -> Completed:
        if isinstance(work, Settling):
            return self._settle(work)
        name = work.effect.tran
        if name is None:
            return work.perform()
        with self._target.provisional():
            for part in self._prepared.get(name, ()):
                part.again()
            completed = work.perform()
        if completed.ok and work.changes:
            self._prepared.setdefault(name, []).append(work)
        return completed

    def redo(self, work: Writing | Settling, completed: Completed) -> None:
        """What was performed in this batch, once more: the batch was lost."""
        if isinstance(work, Writing):
            work.redo(completed)
        else:
            for part in work.parts if work.commit else ():
                part.again()

    def _settle(self, work: Settling) -> Completed:
        left = [part for part in self._prepared.pop(work.name) if part not in work.parts]
        if left:
            self._prepared[work.name] = left
        for part in work.parts if work.commit else ():
            part.again()
        return Completed(work.parts[0].effect.sid, True, safe=False)
