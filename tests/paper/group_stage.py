"""A stage whose group changes (P2): nodes join, leave, crash and come back, and a test decides what reaches whom.

To what ``Stage`` does it adds words (what nodes say about the next view), nodes that are outside the group, crashes,
and the state that a joiner gets from a donor. Time passes in small steps, as silence is what members go by::

    stage = GroupStage("o1 o2 o3 o4 o5 o6", members="o1 o2 o3 o4 o5")
    stage.object("f", "o1 o2 o3 o4 o5 o6", "w/w")
    stage.join("o6")
    stage.leave("o3")
    stage.until(lambda: stage.members("o6") == "o1 o2 o4 o5 o6")

All is judged by the definitions in the end, like every stage.
"""

from collections.abc import Callable
from typing import Any

from framework.com.events import (
    AnyEffect,
    AnyEvent,
    Arrived,
    Depart,
    Evict,
    Give,
    Installed,
    Isolated,
    Out,
    Snapshot,
    Take,
    Tick,
    Transmit,
)
from framework.com.limits import Limits
from framework.com.link import Timing
from framework.com.messages import Frame
from framework.com.outsider import Admitted, Outsider
from framework.com.view import Directory, View
from framework.com.words import AnyWord, decode
from framework.ids import Node, Replica, object_of, replica
from framework.sim.ledger import Ledger
from framework.sim.verdict import Verdict
from framework.trace.files import Trace
from framework.trace.still_open import still_open
from tests.paper.stage import Listening, Pair, Player, Stage

TIMING = Timing(delta=10.0, ask_after=5.0, resend_after=20.0, suspect_after=100.0)
STEP = 5.0  # between two ticks; members look at each other's silence much more often than it may last


class GroupStage(Stage):
    def __init__(self, nodes: str, members: str = "", timing: Timing = TIMING, limits: Limits | None = None) -> None:
        super().__init__(nodes, timing, limits)
        self.first = tuple(Node(n) for n in (members or nodes).split())
        self.words: list[tuple[Node, Node, AnyWord]] = []  # source, target, in the order in which they arrived
        self.outsiders: dict[Node, Outsider] = {}
        self.carry_state = True  # joiners ask for state by themselves
        self._past: list[Trace] = []  # of lives that are over
        self._stopped: dict[Pair, set[type[Any]]] = {}  # kinds of words that stay on their way
        self._late: list[tuple[Pair, bytes]] = []
        self._starts: dict[Node, int] = {}

    # who is there

    def _player(self, node: Node) -> Player:
        self._begin()
        return self._players[node]

    def _begin(self) -> None:
        if not self._players and not self._past:
            for name in self.first:
                self._live(name, View(1, self.first))

    def _live(self, node: Node, view: View) -> None:
        player = self._players[node] = Player(node, self._directory(view), self.timing, self.limits)
        player.recorder.life = view.life(node) or 1
        self._woken -= {(node, n) for n in self.nodes}
        for at in player.com.hosts if view.version > 1 else ():
            self.ledgers[at] = Ledger(self.placements[object_of(at)].relation)
            if at not in player.com.unready:  # a group that is formed anew has nothing to wait for
                player.recorder.adopt(self.now, at, "")

    def _directory(self, view: View) -> Directory:
        return Directory(view, list(self.placements.values()), self.nodes)

    def is_member(self, node: str) -> bool:
        self._begin()
        return node in self._players

    def join(self, node: str) -> None:
        """A process starts and wants to be a member; it remembers nothing."""
        name = Node(node)
        self._begin()
        assert name not in self._players and name not in self.outsiders, f"{node} is there already"
        start = self._starts[name] = self._starts.get(name, 1) + 1
        self.outsiders[name] = Outsider(name, start, self._directory(View(1, self.first)), self.timing)

    def crash(self, node: str) -> None:
        """Nothing is left of it; what it has sent is still on its way."""
        name = Node(node)
        self._begin()
        self.outsiders.pop(name, None)
        self._end(name)

    def _end(self, node: Node) -> None:
        player = self._players.pop(node, None)
        if player is not None:
            self._past.append(player.trace)
            for instance in self.instances.values():
                instance.over = instance.over or instance.node == node

    def leave(self, node: str) -> None:
        self.do(node, Depart())

    def evict(self, by: str, node: str) -> None:
        self.do(by, Evict(Node(node)))

    # events and effects

    def _step(self, node: Node, event: AnyEvent) -> None:
        if self.is_member(node):
            super()._step(node, event)
        elif node in self.outsiders and isinstance(event, Arrived | Tick):
            for effect in self.outsiders[node].step(event, self.now):
                if isinstance(effect, Admitted):
                    del self.outsiders[node]
                    self._live(node, effect.view)
                elif isinstance(effect, Transmit):
                    self._transmit((node, effect.peer), effect.data)

    def _carry_out(self, node: Node, effect: AnyEffect) -> None:
        if isinstance(effect, Out):
            self._end(node)
        elif isinstance(effect, Snapshot):
            self._bring(node, effect)
        else:
            super()._carry_out(node, effect)

    def _writable(self, pair: Pair) -> None:
        if pair[0] in self._players:
            super()._writable(pair)

    def _transmit(self, pair: Pair, data: bytes) -> None:
        if pair in self._held:
            self._held[pair].append(data)
        elif type(decode(data, pair[0])) in self._stopped.get(pair, ()):
            self._late.append((pair, data))
        else:
            self._agenda.append(lambda: self._arrive(pair, data))

    def _arrive(self, pair: Pair, data: bytes) -> None:
        what = decode(data, pair[0])
        if not isinstance(what, Frame):
            self.words.append((*pair, what))
        self._last[pair] = data
        self._step(pair[1], Arrived(pair[0], data))

    # state

    def _ask(self) -> None:
        for node in list(self._players):
            for mine in list(self.com(node).unready):
                there = [n for n in self._players if replica(object_of(mine), n) in self.com(n).hosts]
                ready = [n for n in there if self._has_state(object_of(mine), n)]
                if ready:
                    theirs = replica(object_of(mine), ready[0])
                    self._step(ready[0], Give(theirs, node, self.com(node).lives.mine))
                elif node == min(there, key=self._age) and self.com(node).handover.may_take(mine):
                    self._take(node, mine, "", b"")  # nobody has one: the oldest begins with the initial state
        self._run()

    def _age(self, node: Node) -> tuple[int, Node]:
        return self.com(node).lives.mine, node

    def _has_state(self, name: str, node: Node) -> bool:
        return replica(name, node) not in self.com(node).unready

    def _bring(self, donor: Node, effect: Snapshot) -> None:
        """The state as it is now; it arrives at once, with what the com layer of the donor gave along."""
        state = self.ledgers[effect.replica].copy()
        ticket = self._players[donor].recorder.ticket(effect.replica)
        mine = replica(object_of(effect.replica), effect.to)

        def arrive() -> None:
            if effect.to in self._players and self.com(effect.to).handover.may_take(mine):
                self.ledgers[mine] = state
                self._take(effect.to, mine, ticket, effect.part)

        self._agenda.append(arrive)

    def _take(self, node: Node, mine: Replica, ticket: str, part: bytes) -> None:
        self._players[node].recorder.adopt(self.now, mine, ticket)
        self._step(node, Take(mine, part))

    # time

    def tick(self, time: float, *nodes: str) -> None:
        self.now += time
        for node in nodes or tuple(self.nodes):
            self._step(Node(node), Tick())
        self._run()
        if self.carry_state:
            self._ask()

    def wait(self, time: float) -> None:
        """Time passes in steps in which everybody looks."""
        for _ in range(int(time / STEP)):
            self.tick(STEP)

    def until(self, what: Callable[[], bool], most: float = 1500.0) -> None:
        for _ in range(int(most / STEP)):
            if what():
                return
            self.tick(STEP)
        raise AssertionError(f"not reached in {most}: {self.story()}")

    def hold_words(self, kind: type[Any], *links: str) -> None:
        """Words of this kind (or frames) on these links stay on their way."""
        for pair in self._pairs(links):
            self._stopped.setdefault(pair, set()).add(kind)

    def release_words(self) -> None:
        """They go on, in the order in which they were said."""
        self._stopped, late, self._late = {}, self._late, []
        for pair, data in late:
            self._transmit(pair, data)
        self._run()

    def lose_words(self) -> None:
        self._stopped, self._late = {}, []

    def hold_all(self, *nodes: str) -> None:
        """These nodes and the others do not reach each other."""
        for node in nodes:
            for other in self.nodes:
                if other not in nodes:
                    self.hold(f"{node}<->{other}")

    def lose_all(self) -> None:
        """What was held back is lost; from now on all goes through."""
        self._held.clear()

    # what happened

    def com(self, node: str) -> Listening:
        return self._player(Node(node)).com

    def view(self, node: str) -> View:
        return self.com(node).lives.view

    def members(self, node: str) -> str:
        """As this node sees them; empty if it is no member itself."""
        return " ".join(self.view(node).members) if self.is_member(node) else ""

    def version(self, node: str) -> int:
        return self.view(node).version if self.is_member(node) else 0

    def complete(self, nodes: str) -> bool:
        """Are these a complete group (P2 §3.1): each sees exactly these, in the same version?"""
        names = " ".join(sorted(nodes.split()))
        return all(self.members(n) == names for n in nodes.split()) and len({*map(self.version, nodes.split())}) == 1

    def installed(self, node: str) -> list[str]:
        """The members of each view that this node has installed."""
        return [" ".join(e.view.members) for n, e in self.heard if n == node and isinstance(e, Installed)]

    def told(self, node: str, kind: type[Any]) -> list[Any]:
        """The effects of one kind of a node."""
        return [e for n, e in self.heard if n == node and isinstance(e, kind)]

    def isolated(self, node: str) -> bool:
        return bool([e.yes for e in self.told(node, Isolated)][-1:] == [True])

    def said(self, kind: type[Any], source: str = "") -> list[Any]:
        """The words of one kind that have arrived (from one node)."""
        return [w for s, _, w in self.words if isinstance(w, kind) and source in ("", s)]

    def story(self) -> dict[str, str]:
        there = {
            str(n): f"{self.version(n)}: {self.members(n)} ({p.com.member.state})" for n, p in self._players.items()
        }
        return {**there, **dict.fromkeys(map(str, self.outsiders), "outside")}

    # the end

    def finish(self) -> Verdict:
        self.release_words()
        self.settle()
        for name, player in self._players.items():
            for at in player.com.hosts:
                if at not in player.com.unready:
                    player.recorder.state(self.now, at, self.ledgers[at].digest(), self.ledgers[at].performed)
            player.recorder.stop(self.now, tuple(still_open(self.com(name))))
        return self.oracle().verdict

    def settle(self) -> None:
        self.release()
        for _ in range(100):
            for instance in list(self.instances.values()):
                if not instance.over and not self._waits(instance):
                    instance.commit()
            self.tick(STEP)
            if not any(still_open(p.com) or p.com.unready for p in self._players.values()) and not self.outsiders:
                break

    def traces(self) -> list[Trace]:
        return [*self._past, *(p.trace for p in self._players.values())]
