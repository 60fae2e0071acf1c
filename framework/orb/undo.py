"""What one instance has changed in its object, so that one that raises leaves no trace (A4).

It costs time in proportion to what the method changes, not to the size of the state. When a node hosts an object, the
dicts, lists, sets and deques in its attributes become tracked ones (state/), which note each change in the log of the
instance that has the turn. Attributes are few: they are compared with what they were when the turn began.

Taking back goes through the log backwards and in place. Where a compatible instance has changed the same place
meanwhile, state/changes.py says what becomes of it.

Limits:

- A value that a compatible instance has *computed* from one that is taken back (a maximum, for example) is not
  computed again. If two have written the very same (an element that was in the set already, an equal value), it goes
  with the one that raises.
- A dict compares without order, and so it is restored: a key that was deleted comes back at the end. Use an OrderedDict
  where order counts.
- Values of types that are not known (the user's own classes, arrays) are not tracked: then the whole state is copied
  before each call and compared afterwards, as state/copies.py says. The log of the node names the type.
- A readonly method has no turn and no log: what it writes, against its word, is not taken back.
- ``default_factory`` of a defaultdict is not part of the state.
"""

from typing import Any

from framework.orb.state import changes
from framework.orb.state.changes import MISSING, Change
from framework.orb.state.copies import Part, compared, copied
from framework.orb.state.tracker import Tracker


class Undo:
    """The changes of one instance."""

    __slots__ = ("_attributes", "_copies", "_log", "_noted", "_tracker")

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._log: list[Change] = []
        self._noted = 0  # so many of them the tracker knows
        self._attributes: dict[str, Any] | None = None  # as the turn began
        self._copies: list[Part] | None = None  # what is not tracked, and how it was

    def begin(self) -> None:
        """From here on this instance alone changes the state."""
        tracker = self._tracker
        if tracker.copying:
            self._copies = copied([tracker.state], through=True)
            return
        if tracker.pending:
            self._copies = copied([plain for _, _, plain in tracker.pending], through=False)
        self._attributes = tracker.state.copy()
        tracker.log = self._log

    def pause(self) -> None:
        """Others may change it from here on."""
        tracker = self._tracker
        tracker.log = None
        if self._attributes is not None:
            self._compare_attributes(self._attributes, tracker.state)
            self._attributes = None
        if self._copies is not None:
            self._log += compared(self._copies)
            self._copies = None
        if len(self._log) > self._noted:
            tracker.note(self._log, self._noted)
            self._noted = len(self._log)

    def take_back(self) -> None:
        self.pause()
        while self._log:
            changes.take_back(self._log.pop())
        self._noted = 0

    def rest(self) -> None:
        """The instance is over, but it may still have to be taken back."""
        self.pause()
        if self._tracker.pending:
            self._tracker.settle()

    def end(self) -> None:
        """The instance is over. Nothing that it had in its variables counts any more, so call this from outside."""
        self.pause()
        self._log.clear()
        self._noted = 0
        if self._tracker.pending:
            self._tracker.settle()

    def _compare_attributes(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        left = len(before)
        for name, value in now.items():
            old = before.get(name, MISSING)
            if old is not value:
                self._log.append((changes.key, now, name, old, value))
            if old is not MISSING:
                left -= 1
        if left:
            gone = [(changes.key, now, name, old, MISSING) for name, old in before.items() if name not in now]
            self._log += reversed(gone)
