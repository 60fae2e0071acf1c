"""An attempt of a node to decide the next view: who has promised and accepted, and what it would decide."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from framework.com import flush
from framework.com.view import Holding, View
from framework.com.words import Ballot, Decision, Promise
from framework.ids import Node

if TYPE_CHECKING:
    from framework.com.core import Com


class Outside(NamedTuple):
    """A node that wants to join."""

    incarnation: int
    heard_at: float
    holds: tuple[Holding, ...]


class Attempt:
    """An attempt of this node to decide the next view."""

    def __init__(self, ballot: Ballot, leaving: frozenset[Node]) -> None:
        self.ballot = ballot
        self.leaving = leaving
        self.promises: dict[Node, Promise] = {}
        self.decision: Decision | None = None
        self.accepted: set[Node] = set()

    def next(self, com: "Com", stay: Sequence[Node], outsiders: Mapping[Node, Outside]) -> Decision:
        """The next view, when all who stay have promised."""
        view = com.lives.view
        version = view.version + 1
        outside = {n: (o.incarnation, o.holds) for n, o in outsiders.items()}
        for promise in self.promises.values():
            outside.update({n: (i, holds) for n, i, holds in promise.outsiders})
        shunned = {n for promise in self.promises.values() for n in promise.shuns}
        joined = sorted(n for n in outside if n not in stay and n not in shunned)
        refused = tuple(sorted(n for n in outside if n in shunned))
        lives = {n: (view.life(n) or 1, view.incarnation(n) or 1) for n in stay}
        lives |= {n: (version, outside[n][0]) for n in joined}
        members = tuple(sorted(lives))
        unready = {r for n in stay for r in self.promises[n].unready}
        unready |= {r for n in joined for _, r in com.directory.on(n)}
        held = [h for n in stay for h in self.promises[n].holds if h.replica in unready]
        held += [h for n in joined for h in outside[n][1]]
        following = View(
            version,
            members,
            tuple(lives[n][0] for n in members),
            tuple(lives[n][1] for n in members),
            tuple(sorted(unready)),
            tuple(sorted(com.directory.seeds({n: lives[n][0] for n in members}, unready, held))),
            view.formation,
        )
        left = tuple(sorted(self.leaving))
        reports = flush.union([self.promises[n].report for n in stay])
        return Decision(following, left, tuple(joined), reports, refused)
