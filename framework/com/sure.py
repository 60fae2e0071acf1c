"""Is this node a member of the current view, as far as it can know?

Not while it hears too few. And after that, or after its machine stood still, it is not sure: the others may have gone
on without it, and what they had sent before that may come only now. So it says ``Moved`` to all, once more, and is sure
when a majority has acknowledged a frame that was sent since. Who goes on in a later view acknowledges nothing to a node
that is not in it.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from framework.com.messages import Moved
from framework.ids import Node

if TYPE_CHECKING:
    from framework.com.core import Com
    from framework.com.member import Membership


class Sureness:
    __slots__ = ("_com", "_doubts", "_member")

    def __init__(self, com: "Com", member: "Membership") -> None:
        self._com, self._member = com, member
        self._doubts: dict[Node, int] = {}  # the frame that each has to acknowledge

    @property
    def few(self) -> bool:
        """Are fewer than a majority heard?"""
        return not self._enough(self._member.suspects)

    @property
    def whole(self) -> bool:
        """It is sure."""
        links = self._com.links
        return self._enough(self._member.suspects | {n for n, f in self._doubts.items() if not links[n].has_brought(f)})

    def _enough(self, silent: Collection[Node]) -> bool:
        view = self._member.view
        return len(view.members) - len(silent) >= view.majority

    def doubt(self) -> None:
        for peer, link in self._com.links.items():
            if not link.queued:  # else what waits will do
                self._com.post(peer, Moved(self._com.view))
            self._doubts[peer] = link.last

    def keep(self, stay: Collection[Node]) -> None:
        """The view has changed; links to these are as they were. It may have been decided before there was a doubt."""
        self._doubts = {n: frame for n, frame in self._doubts.items() if n in stay}
