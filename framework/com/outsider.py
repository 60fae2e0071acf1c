"""A node that is not a member: it asks to be one (protocol.md §10.9).

It says Hello to every node of the configuration until one of them tells it a view that it is in. A group that exists
admits it by a change of view. Where there is none, the nodes form one together when all of them have heard each other:
who is missing might be in a group that goes on. The first of them by name makes the view; it can do so only once in its
incarnation, and the others take it only if it names them as they are.
"""

from collections.abc import Sequence

from framework.com.event import Effect
from framework.com.events import AnyEffect, AnyEvent, Arrived, Tick, Transmit
from framework.com.link import Timing
from framework.com.messages import Frame, encode
from framework.com.view import Directory, Holding, View
from framework.com.words import Decided, Decision, Hello, decode
from framework.errors import BadMessage
from framework.ids import Node, object_of


class Admitted(Effect, frozen=True):
    """It is a member: the com layer begins with this view. ``decision`` is to be its ``member.last``: others may have
    to hear of it from this node."""

    view: View
    decision: Decision | None = None


class Outsider:
    def __init__(
        self,
        node: Node,
        incarnation: int,
        directory: Directory,
        timing: Timing | None = None,
        version: int = 0,
        holds: Sequence[Holding] = (),
        joins: bool = False,
        formation: bytes = b"",
    ) -> None:
        self.node = node
        self.incarnation = incarnation
        self.directory = directory
        self.nodes = directory.nodes
        self.timing = timing or Timing()
        self.version = version  # of the last view it remembers
        self.holds = tuple(holds)
        self.formation = formation  # of the group that this node may form: random, and used by no other
        self.joins = joins  # a group that exists, and forms none: it hears nobody, so nobody forms one with it
        self.others: dict[Node, Hello] = {}  # outsiders, as they were heard last
        self.admitted = False
        self._said_at = float("-inf")
        self._heard_at: dict[Node, float] = {}

    def step(self, event: AnyEvent, now: float) -> list[AnyEffect | Admitted]:
        if self.admitted:
            return []
        if isinstance(event, Arrived):
            return self._arrived(event, now)
        if isinstance(event, Tick):
            return self._tick(now)
        return []

    def missing(self) -> list[Node]:
        """Who has not been heard, as an outsider: for people who ask why no group comes up."""
        return [n for n in self.nodes if n != self.node and n not in self.others]

    def _tick(self, now: float) -> list[AnyEffect | Admitted]:
        late = [n for n, at in self._heard_at.items() if now - at > 20 * self.timing.delta]
        for node in late:  # it may have become a member, or have crashed
            del self._heard_at[node]
            self.others.pop(node, None)
        view = self._form()
        if view is not None:
            return [self._admit(view)]
        if now - self._said_at < self.timing.delta:
            return []
        self._said_at = now
        heard = tuple(sorted((n, h.incarnation) for n, h in self.others.items()))
        hello = encode(Hello(self.node, self.incarnation, heard, self.version, self.holds))
        return [Transmit(n, hello) for n in self.nodes if n != self.node]

    def _arrived(self, event: Arrived, now: float) -> list[AnyEffect | Admitted]:
        word = decode(event.data, event.peer)
        if isinstance(word, Frame):
            return []  # for an earlier life
        if word.source != event.peer or event.peer not in self.nodes:
            raise BadMessage(f"a word from {event.peer} says it comes from {word.source!r}, or that is no node here")
        if isinstance(word, Hello):
            if self.joins:
                return []
            self.others[event.peer] = word
            self._heard_at[event.peer] = now
        elif isinstance(word, Decided) and self._meant(word.decision.view):
            return [self._admit(word.decision.view, word.decision)]
        return []

    def _meant(self, view: View) -> bool:
        """Does this view have this very node, as it is now, and no other as it was before?"""
        if view.life(self.node) != view.version or view.incarnation(self.node) != self.incarnation:
            return False
        return not view.formed or all(h.incarnation <= (view.incarnation(n) or 0) for n, h in self.others.items())

    def _form(self) -> View | None:
        """All nodes are outsiders and have heard each other: the first one makes a view of all."""
        if self.node != min(self.nodes) or self.missing() or self.joins:
            return None
        now = {self.node: self.incarnation, **{n: h.incarnation for n, h in self.others.items()}}
        for node, hello in self.others.items():
            if dict(hello.heard) != {n: i for n, i in now.items() if n != node}:
                return None
        version = max([self.version, *(h.version for h in self.others.values())]) + 1
        members = tuple(sorted(now))
        held = [*self.holds, *(h for hello in self.others.values() for h in hello.holds)]
        names = {object_of(h.replica) for h in held}  # the others begin with the initial state, all of them
        unready = [r for p in self.directory.objects.values() if p.name in names for r in p.replicas]
        return View(
            version,
            members,
            (version,) * len(members),
            tuple(now[n] for n in members),
            tuple(sorted(unready)),
            tuple(sorted(self.directory.seeds(dict.fromkeys(members, version), unready, held))),
            self.formation,
        )

    def _admit(self, view: View, decision: Decision | None = None) -> Admitted:
        self.admitted = True
        return Admitted(view, decision)
