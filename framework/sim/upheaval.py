"""What happens to the group itself: crashes, restarts, joins, leaves, evictions, partitions, false suspicions.

Each has a source of chance of its own and comes at its own time, so they happen during each other. A node crashes only
if a majority of the view stays alive, but for worlds with ``havoc``. Where a majority is lost nevertheless, nobody can
decide anything any more: then, once all faults are over, every node is started anew, as people would do it.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from framework.com.events import Depart, Evict
from framework.com.view import View
from framework.ids import Node
from framework.sim.faults import Slow
from framework.sim.node import SimNode, Stay
from framework.trace.still_open import open_calls

if TYPE_CHECKING:
    from framework.sim.world import World

_LOOK = 5.0  # how often a node that wants to leave looks whether it can
_PATIENCE = 300.0  # how long it tries
_DEAD = 0.15  # share of crashed nodes that stay dead


class Upheaval:
    def __init__(self, world: "World") -> None:
        self.world = world
        self.absent: set[Node] = set()  # stay away for good
        self._strikes = 0  # so many blackouts come when a transaction has just been decided
        self._striking = self._chance("strikes")
        self._rejoins = 0  # so many nodes crash when an outcome has just been applied, and are soon back
        self._rejoining = self._chance("rejoins")
        faults = world.faults
        names = world.drawn
        if len(names) < 2:
            return
        self._each("crash", faults.crashes, self._crash)
        for i in range(faults.blackouts):
            chance = self._chance("blackout", i)
            self._at(f"blackout {i}", chance.uniform(20.0, world.horizon * 0.7), partial(self._blackout, chance))
        for i in range(faults.wipes):
            chance = self._chance("wipe", i)
            self._at(f"wipe {i}", chance.uniform(20.0, world.horizon * 0.7), partial(self._wipe, chance))
        self._strikes = 2 if faults.members else 0
        self._rejoins = 2 if faults.members and faults.horizon else 0
        self._each("leave", faults.leaves, self._leave)
        self._each("evict", faults.evicts, self._evict)
        for i in range(faults.partitions):
            self._partition(f"partition {i}", names, self._chance("partition", i))
        for i in range(faults.freezes):
            chance = self._chance("freeze", i)
            name = chance.choice(names)
            start, end = self._window(chance, 80.0, 400.0)
            if world.happens(f"freeze {i}", name):
                world.pause(name, start, end)
        for i in range(faults.lags):
            self._lag(f"lag {i}", names, self._chance("lag", i))
        for name in world.nodes:
            if name not in world.directory.view.members:
                self._start_at(world.nodes[name], self._chance("late", name).uniform(5.0, world.horizon / 2))
        if faults.members:
            world.at(world.horizon, self._rescue)

    def _chance(self, *what: object) -> Random:
        return Random("/".join([self.world.seed, *map(str, what)]))

    def _each(self, what: str, count: int, do: Callable[[Random], None]) -> None:
        """In a world of havoc they come close together."""
        middle = self._chance(what, "middle").uniform(50.0, self.world.horizon * 0.6)
        for i in range(count):
            chance = self._chance(what, i)
            when = chance.uniform(5.0, self.world.horizon * 0.7)
            if self.world.faults.havoc:
                when = middle + chance.uniform(0.0, 60.0)
            self._at(f"{what} {i}", when, partial(do, chance))

    def _at(self, fault: str, when: float, do: Callable[[], None]) -> None:
        if self.world.left.has(f"fault {fault}", f"at {when:.0f}"):
            self.world.at(when, do)

    def _window(self, chance: Random, least: float, most: float) -> tuple[float, float]:
        start = chance.uniform(5.0, self.world.horizon * 0.7)
        return start, min(start + chance.uniform(least, most), self.world.horizon)

    # the network

    def _partition(self, fault: str, names: list[Node], chance: Random) -> None:
        """Two sides, also of equal size, that do not reach each other for a while."""
        side = sorted(chance.sample(names, chance.randint(1, len(names) - 1)))
        rest = [n for n in names if n not in side]
        start, end = self._window(chance, 40.0, 500.0)
        side, rest = ([n for n in half if n in self.world.nodes] for half in (side, rest))
        if not side or not rest or not self.world.happens(fault):
            return
        for a in side:
            for b in rest:
                self.world.sever(a, b, start, end)
        self.world.story.append((start, end, f"{', '.join(side)} cut from {', '.join(rest)}"))

    def _lag(self, fault: str, names: list[Node], chance: Random) -> None:
        """Everything from a node is so late that others think it is dead."""
        a = chance.choice(names)
        start, end = self._window(chance, 40.0, 300.0)
        extra = chance.uniform(80.0, 300.0)
        if not self.world.happens(fault, a):
            return
        for b in self.world.nodes:
            if a != b:
                self.world.wrap(a, b, lambda wire: Slow(wire, start, end, extra))
        self.world.story.append((start, end + extra, f"frames from {a} are very late"))

    # the nodes

    def newest(self) -> View | None:
        """The last view that a living member is in."""
        return max((n.view for n in self.world.nodes.values() if n.com is not None), key=_version, default=None)

    def living(self, view: View) -> list[SimNode]:
        """The lives of this view that are still there."""
        nodes = [self.world.nodes[name] for name in view.members]
        return [n for n in nodes if n.com is not None and n.life == view.life(n.name)]

    def _may_go(self, node: SimNode) -> bool:
        view = self.newest()
        if view is None or self.world.faults.havoc:
            return True
        return len([n for n in self.living(view) if n is not node]) >= view.majority

    def _crash(self, chance: Random) -> None:
        nodes = [n for n in self.world.nodes.values() if n.up and self._may_go(n)]
        if not nodes:
            return
        node, now = chance.choice(nodes), self.world.now
        down = chance.choice([chance.uniform(1.0, 60.0), chance.uniform(60.0, 400.0)])
        node.crash()
        # if its state is lost, a majority of the replicas of an object must come back
        needed = any(len(p.replicas) < 3 or p.durable for p, _ in self.world.directory.on(node.name))
        if chance.random() < _DEAD and not self.absent and not needed:
            self.absent.add(node.name)
            self.world.story.append((now, now + 1.0, f"{node.name} crashes and stays away"))
        else:
            self._start_at(node, now + down)
            self.world.story.append((now, now + down, f"{node.name} crashes"))

    def _blackout(self, chance: Random) -> None:
        """Only what is on disk is left. All are started again: who is missing might have gone on."""
        now = self.world.now
        self.world.story.append((now, now + 60.0, "the power fails"))
        self.absent.clear()
        for node in self.world.nodes.values():
            node.crash()
            self._start_at(node, now + chance.uniform(1.0, 60.0))

    def _wipe(self, chance: Random) -> None:
        """Nothing is left, not even on disk; only clients know that there was a group."""
        now = self.world.now
        self.world.story.append((now, now + 60.0, "all nodes lose all they have"))
        self.absent.clear()
        self.world.lose_all()
        for node in self.world.nodes.values():
            self._start_at(node, now + chance.uniform(1.0, 60.0))

    def decided(self) -> None:
        """A node that has to remember it has heard of an outcome: that is the moment for a crash of all."""
        if self._strikes and self._striking.random() < 0.1:
            self._strikes -= 1
            self._at(
                f"strike {self._strikes}",
                self.world.now + self._striking.uniform(0.0, 15.0),
                partial(self._blackout, self._striking),
            )

    def applied(self) -> None:
        """A transaction is over at a replica, and others may not have heard of it: that is the moment for a crash."""
        if self._rejoins and self.world.now < self.world.horizon and self._rejoining.random() < 0.1:
            self._rejoins -= 1
            when = self.world.now + self._rejoining.uniform(0.0, 15.0)
            self._at(f"rejoin {self._rejoins}", when, self._rejoin)

    def _rejoin(self) -> None:
        nodes = [n for n in self.world.nodes.values() if n.com is not None and self._may_go(n)]
        if not nodes:
            return
        node, now = self._rejoining.choice(nodes), self.world.now
        down = self._rejoining.uniform(1.0, 20.0)
        node.crash()
        self._start_at(node, now + down)
        self.world.story.append((now, now + down, f"{node.name} crashes as a transaction is over"))

    def _start_at(self, node: SimNode, when: float) -> None:
        starts = node.starts

        def start() -> None:
            if node.starts == starts and not node.up:
                node.ask()

        self.world.at(when, start)

    def excluded(self, node: SimNode) -> None:
        """It knows that it is not a member any more: it comes back at once, or after a while."""
        chance = self._chance("back", node.name, node.life)
        wait = chance.choice([0.0, chance.uniform(0.0, 50.0), chance.uniform(50.0, 300.0)])
        self._start_at(node, self.world.now + wait)
        self.world.story.append((self.world.now, self.world.now + wait, f"{node.name} is not a member any more"))

    def _leave(self, chance: Random) -> None:
        nodes = [n for n in self.world.nodes.values() if n.serves and len(n.view.members) > 2 and self._may_go(n)]
        if not nodes:
            return
        node = chance.choice(nodes)
        node.leaving = True
        self.world.performer.lost(node)
        self.world.story.append((self.world.now, self.world.now + 1.0, f"{node.name} wants to leave"))
        self._try_leave(node, node.stay, self.world.now + _PATIENCE)

    def _try_leave(self, node: SimNode, stay: Stay, until: float) -> None:
        """When nothing is open there. Too few may be left without it: then it stays."""
        if node.com is None or node.stay != stay:
            return
        if self.world.now > until:
            node.leaving = False
            return
        if not open_calls(node.com):
            node.step(Depart())
        self.world.after(_LOOK, lambda: self._try_leave(node, stay, until))

    def _evict(self, chance: Random) -> None:
        nodes = [n for n in self.world.nodes.values() if n.serves]
        if len(nodes) < 3:
            return
        one, other = chance.sample(nodes, 2)
        if self._may_go(other):
            self.world.story.append((self.world.now, self.world.now + 1.0, f"{one.name} evicts {other.name}"))
            one.step(Evict(other.name))

    # the end

    def _rescue(self) -> None:
        """If a majority of the view is lost, nobody can go on: all are started anew."""
        view = self.newest()
        if view is None:
            self._start_all(self.absent)
        elif len(self.living(view)) < view.majority:
            text = f"started anew, for a majority of view {view.version} is lost: {', '.join(self.world.nodes)}"
            self.world.story.append((self.world.now, self.world.now + 20.0, text))
            for node in self.world.nodes.values():
                node.crash()
            self._start_all(set(self.world.nodes))
        self.world.after(150.0, self._rescue)

    def _start_all(self, names: set[Node]) -> None:
        for i, name in enumerate(sorted(names)):
            self._start_at(self.world.nodes[name], self.world.now + i)
        self.absent.clear()

    def settled(self) -> bool:
        """Every node that is to come back is a member of the one view, with the state of all its replicas."""
        nodes = [n for n in self.world.nodes.values() if n.name not in self.absent]
        view = self.newest()
        return (
            view is not None
            and all(n.com is not None and n.view == view and not n.com.unready and not n.leaving for n in nodes)
            and sorted(view.members) == sorted(n.name for n in nodes)
        )


def _version(view: View) -> int:
    return view.version
