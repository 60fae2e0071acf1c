"""Whose log is open, and which containers of a state are not tracked yet.

A container that a method makes and stores is plain, and stays so as long as somebody else holds on to it: writes to
``entry`` after ``self.entries[n] = entry`` must not go to a copy. It needs no log of its own while only the instance
that made it knows it: taking back that it was stored is enough. While it is plain, others copy and compare it
(copies.py). When an instance ends, plain containers that nobody holds but the state itself are replaced by tracked
ones. Python's reference counts tell who holds what: a count above what the state explains is a variable of a method
that waits, a log, another object, a global. Then the container stays plain, and the next end tries again.

A value of a type that is not known to stay as it is (kinds.py) cannot be tracked, nor what it holds: from then on
the whole state is copied and compared for each call.
"""

import logging
from itertools import islice
from typing import Any

from framework.orb.state.adoption import Place, adopt
from framework.orb.state.base import Tracked
from framework.orb.state.changes import Change, key, stored
from framework.orb.state.kinds import ATOMS, PLAIN_TYPES, never_changes

logger = logging.getLogger(__name__)


class Tracker:
    """Of one object; ``state``: its attributes."""

    def __init__(self, state: dict[str, Any], name: str = "an object") -> None:
        self.state = state
        self.name = name
        self.log: list[Change] | None = None  # of the instance that has the turn
        self.copying = False
        self.pending: list[Place] = []
        self.look_again()

    def look_again(self) -> None:
        """The attributes are others than before. While no instance has the turn."""
        self.copying = False
        self.pending.clear()
        self._look_at_all()
        self.settle()

    def note(self, log: list[Change], start: int) -> None:
        """What an instance has put into the state since ``start``, and others will meet there."""
        for change in islice(log, start, None):
            kind, holder, place, _, came, *_ = change
            if kind is key:
                if type(came) in ATOMS and type(place) in ATOMS:
                    continue  # the usual case, quickly
            elif ATOMS.issuperset(map(type, came)):
                continue
            if holder is self.state or isinstance(holder, Tracked):
                for place, value in stored(change):
                    self._look_at(holder, place, value)

    def settle(self) -> None:
        """Track what was plain until now, as far as nobody else holds it. Between instances, in their turn."""
        if self.pending and not self.copying:
            odd = adopt(self.pending, self)
            if odd is not None:
                self._copy_from_now_on(odd)

    def _look_at_all(self) -> None:
        for name, value in self.state.items():
            self._look_at(self.state, name, value)

    def _look_at(self, holder: Any, place: Any, value: Any) -> None:
        if self.copying:
            return  # and nothing is left to find out
        if type(value) in PLAIN_TYPES:
            self.pending.append((holder, place, value))
        elif isinstance(value, Tracked):
            if value.keeper is not self:
                self._copy_from_now_on(value)
        elif not never_changes(value):
            self._copy_from_now_on(value)
        if type(place) not in ATOMS and not never_changes(place):
            self._copy_from_now_on(place)

    def _copy_from_now_on(self, odd: Any) -> None:
        self.copying = True
        self.pending.clear()
        logger.info(
            "the state of %s holds a %s, which may change unseen: it is copied for each call that changes state",
            self.name,
            type(odd).__qualname__,
        )
