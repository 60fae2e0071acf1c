"""How a node that has joined gets the state of its replicas, as far as it is not the com layer's: asking and carrying.

It asks one donor after the other until it has what it needs. What is asked and what is given takes its time, and is
lost where two nodes do not reach each other, or one of them crashes.
"""

from collections import deque
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import msgspec

from framework.com.core import Com
from framework.com.event import Resolved
from framework.com.events import Again, Give, Snapshot, Take
from framework.com.lasting import merged, told_in
from framework.com.messages import Request
from framework.com.view import NOBODY
from framework.ids import TRAN, Node, Replica, node_of, object_of, replica
from framework.sim.node import Held, SimNode
from framework.sim.performer import State

if TYPE_CHECKING:
    from framework.sim.world import World


class Parcel(msgspec.Struct):
    """A state on its way. Without a ticket it is the initial one."""

    state: State = None
    ticket: str = ""
    kept: tuple[str, ...] = ()  # in the state, beside that of the ticket


class Transfers:
    def __init__(self, world: "World") -> None:
        self.world = world
        self._arrived: dict[Replica, deque[Parcel]] = {}  # in the order of their Take
        self._doubtful: dict[Replica, Held] = {}  # another state was taken, and this one may have to be sent again

    def begin(self, node: SimNode) -> None:
        """A life begins: it asks for the state of its replicas."""
        assert node.com is not None
        self._arrived = {r: parcels for r, parcels in self._arrived.items() if node_of(r) != node.name}
        self._doubtful = {r: held for r, held in self._doubtful.items() if node_of(r) != node.name}
        for mine in node.com.unready:
            self._ask(node, node.life, mine, Random(f"{self.world.seed}/transfer/{mine}/{node.life}"), 0)

    def sow(self, node: SimNode) -> None:
        """Nobody in the view has the state of an object: it was decided who begins with what somebody holds."""
        assert node.com is not None
        for mine, source in sorted(node.com.handover.seeds.items()):
            if source == NOBODY:
                self._bring(node, mine, Parcel(), b"")
            elif mine == source:
                self._bring_held(node, node.life, mine, source)
            else:
                chance = Random(f"{self.world.seed}/seed/{mine}/{source}/{node.view.version}")
                self.world.after(chance.uniform(1.0, 40.0), partial(self._bring_held, node, node.life, mine, source))

    def _bring_held(self, node: SimNode, life: int, mine: Replica, source: Replica) -> None:
        holder = self.world.nodes[node_of(source)]
        held = holder.held.get(source)
        if held is None or node.com is None or node.life != life or node.com.handover.seeds.get(mine) != source:
            return
        there = holder.com is not None and self.world.reaches(node.name, holder.name)
        whole = held if object_of(mine) != TRAN else self._with_others(node, held)
        if there and held.doubt:
            holder.ask_for(held, True)
        elif there and whole is not None and node.com.handover.may_take(mine):
            self._bring(node, mine, Parcel(whole.state, whole.ticket, whole.kept), whole.part)
            return
        self.world.after(20.0, lambda: self._bring_held(node, life, mine, source))

    def _with_others(self, node: SimNode, held: Held) -> Held | None:
        """Outcomes that any member has on disk are known to the tran that begins. None: one cannot be asked now."""
        state, kept, parts = held.state, [], [held.part]
        for name in node.view.members:
            other = self.world.nodes[name]
            theirs = other.held.get(replica(TRAN, name))
            if other is not node and (other.com is None or not self.world.reaches(node.name, name)):
                return None
            if theirs is None or theirs is held:
                continue
            more = self.world.performer.more(state, theirs.state)
            state = self.world.performer.again(held.holding.replica, state, more)
            kept += [invocation for invocation, _ in more]
            parts.append(theirs.part)
        part = merged(parts) if len(parts) > 1 else held.part
        return msgspec.structs.replace(held, state=state, part=part, kept=tuple(kept))

    def _ask(self, node: SimNode, life: int, mine: Replica, chance: Random, turn: int) -> None:
        """The next donor, until somebody has given."""
        if node.com is None or node.life != life or mine not in node.com.unready:
            return
        donors = node.com.unready[mine]
        if donors:
            theirs = replica(object_of(mine), donors[turn % len(donors)])
            self.world.after(chance.uniform(1.0, 10.0), lambda: self._give(theirs, node.name, life))
        self.world.after(chance.uniform(40.0, 200.0), lambda: self._ask(node, life, mine, chance, turn + 1))

    def _give(self, theirs: Replica, to: Node, life: int) -> None:
        donor = self.world.nodes[node_of(theirs)]
        if donor.com is not None and self.world.reaches(to, donor.name) and theirs not in donor.com.unready:
            donor.step(Give(theirs, to, life))

    def send(self, donor: SimNode, effect: Snapshot) -> None:
        """The state as it is at this very moment. It leaves when the disk here has every outcome that it knows."""
        parcel = Parcel(self.world.performer.copy(effect.replica), donor.recorder.ticket(effect.replica))
        starts, life = self.world.nodes[effect.to].starts, donor.view.life(effect.to)

        def arrive() -> None:
            node = self.world.nodes[effect.to]
            mine = replica(object_of(effect.replica), effect.to)
            if node.starts == starts and node.life == life and self.world.reaches(donor.name, node.name):
                self._bring(node, mine, parcel, effect.part)

        chance = Random(f"{self.world.seed}/parcel/{parcel.ticket}/{effect.to}")
        away = partial(self.world.after, chance.uniform(1.0, 80.0), arrive)
        if donor.disk.keeps(effect.replica):
            donor.disk.when_written(replica(TRAN, donor.name), away)
        else:
            away()

    def _bring(self, node: SimNode, mine: Replica, parcel: Parcel, part: bytes) -> None:
        if node.com is not None:
            self._arrived.setdefault(mine, deque()).append(parcel)
            node.step(Take(mine, part))

    def adopt(self, node: SimNode, com: Com, event: Take) -> bool:
        """The moment in which the node takes it. False if it has a state already: it was asked for twice."""
        parcel = self._arrived[event.replica].popleft()
        if not com.handover.may_take(event.replica):
            return False
        if parcel.ticket:
            self.world.performer.adopt(event.replica, parcel.state)
        node.recorder.adopt(round(self.world.now, 3), event.replica, parcel.ticket, parcel.kept)
        node.disk.begin(event.replica, node.recorder.ticket(event.replica), told_in(event.part))
        held = node.held.pop(event.replica, None)
        if held is not None and held.ticket != parcel.ticket:
            self.world.after(0.0, lambda: self._send_again(node, node.life, event.replica, held.done))
            if held.doubt:
                self._doubtful[event.replica] = held
                self.world.after(0.0, lambda: node.ask_for(held, False))
        return True

    def resolved(self, node: SimNode, effect: Resolved) -> None:
        """What is in doubt and not in the state that it got: it was committed, or not."""
        held = self._doubtful.pop(effect.replica, None)
        if held is not None:
            kept = [p.request for p in held.doubt if p.invocation in effect.keep]
            self.world.after(0.0, lambda: self._send_again(node, node.life, effect.replica, kept))

    def _send_again(self, node: SimNode, life: int, mine: Replica, done: list[Request]) -> None:
        """What was performed here in an earlier life, and is not in the state that it got."""
        if node.com is not None and node.life == life:
            for request in done:
                part = next(p for p in request.parts if p.object == object_of(mine))
                if request.invocation not in node.com.hosts[mine].replies and not part.footprint.readonly:
                    node.step(Again(request))
