"""The state of a replica goes to a node that has joined, while traffic goes on (protocol.md §11.1).

From its first view on a joiner is a destination like others: it proposes and agrees, but starts nothing. So any replica
of the object can give it the state of any later moment at which

- no request of a view before the joiner's is to come or under way there: these do not go to the joiner;
- nothing is being performed on the replica but what only reads, so that the state is that of whole requests, and all
  that was performed is safe: else the joiner could tell of what gets lost here.

With the state goes what has been performed in it: requests of the new view that are in it already are not performed
again at the joiner, but answered from the replies that came along. If the second condition does not come true by
itself, the replica is *closed* for a moment: requests wait until those that run have ended and are safe. Calls back to
a running instance go on, and it is opened again soon: two objects that call each other must not wait for each other.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from framework.com.events import Give, Snapshot, Take
from framework.com.handed import Part, read_part
from framework.com.host import Host
from framework.com.messages import Ready
from framework.com.view import NOBODY, Holding, View
from framework.com.words import NONE
from framework.errors import BadMessage, BadRequest, Unavailable
from framework.ids import Invocation, Node, ObjectName, Replica, node_of, object_of, replica

if TYPE_CHECKING:
    from framework.com.core import Com


class Handover:
    def __init__(self, com: "Com", holds: Sequence[Holding]) -> None:
        self.com = com
        self._held = {h.replica: h for h in holds}
        self._new = self._begun(com.lives.view)
        self.seeds: dict[Replica, Replica] = {}  # replicas here that begin with what another one, or they, hold
        self.unready: dict[
            Replica, tuple[Node, ...]
        ] = {}  # replicas here that wait for their state, and who may have it
        self._wishes: dict[Replica, set[tuple[Node, int]]] = {}  # nodes, and which life of them
        self._closed_at: dict[Replica, float] = {}
        self._open_until: dict[Replica, float] = {}
        self._told: dict[Node, int] = {}  # the frame that says last that a replica here has its state
        for host in com.hosts.values():
            if host.replica in com.lives.view.unready:
                host.order.closed = True
                self.unready[host.replica] = self.donors(host.replica)
        self._choose()

    def _begun(self, view: View) -> set[ObjectName]:
        """Objects that begin with nothing in the view in which this life begins. Of a group that it has joined it does
        not know that: then what is on disk counts as kept."""
        objects = self.com.directory.objects
        if not view.formed:
            return {name for name, placement in objects.items() if not placement.durable}
        return objects.keys() - {object_of(r) for r in view.unready}

    def is_new(self, name: ObjectName) -> bool:
        """May this object have begun with nothing since the group was formed, as far as it is known here?"""
        return name in self._new

    @property
    def holds(self) -> tuple[Holding, ...]:
        """States of earlier lives that replicas without a state have here."""
        return tuple(sorted(h for r, h in self._held.items() if r in self.unready))

    def _choose(self) -> None:
        self._new |= {object_of(r) for r, source in self.com.lives.view.seeds if source == NOBODY}
        mine = {r: self.seeds[r] for r in self.committed}
        self.seeds = mine | {r: source for r, source in self.com.lives.view.seeds if r in self.unready}

    @property
    def told(self) -> bool:
        """Do all other members know that the replicas here which have a state have one? So their calls go there."""
        links = self.com.links
        return all(links[n].has_brought(at) for n, at in self._told.items() if n in links)

    @property
    def committed(self) -> list[Replica]:
        """Replicas here that are sure to begin, for they need nothing from others: they count as having a state."""
        return sorted(r for r, source in self.seeds.items() if source in (r, NOBODY) and r in self.unready)

    def keep(self, replica: Replica) -> bytes:
        """What goes with the state of a replica into its next life, or to disk. What is running is not in it; what is
        over is, also if it is not safe yet: it is in that state, and is safe where the state is."""
        return self._part(self.com.hosts[replica], self.com.trans.held_at(replica))

    def donors(self, replica: Replica) -> tuple[Node, ...]:
        """Nodes in the view with another replica of this object, those that are there for longest first."""
        view = self.com.lives.view
        others = self.com.directory.find(replica.partition("@")[0]).replicas
        nodes = [n for n in map(node_of, others) if n in view.members and n != self.com.node]
        return tuple(sorted(nodes, key=lambda n: (view.life(n) or 0, n)))

    def refresh(self) -> None:
        """The view has changed. It says which replicas have a state."""
        self._told.clear()
        self._choose()
        for mine in self.unready:
            self.unready[mine] = self.donors(mine)
        for mine in tuple(self._wishes):
            left = {(n, life) for n, life in self._wishes[mine] if self._is_wanted(n, life)}
            self._wishes[mine] = left
            if not left:
                del self._wishes[mine]
        for mine in [r for r in self._closed_at if r not in self._wishes]:
            self._reopen(self.com.hosts[mine])

    # the one who gives

    def give(self, event: Give, now: float) -> None:
        if event.replica not in self.com.hosts:
            raise BadRequest(f"no replica {event.replica} at {self.com.node}")
        if event.to not in self.com.directory.nodes or event.to == self.com.node or event.life < 2:
            raise BadRequest(f"{event.to!r} in its life {event.life} is no node that can be given a state")
        theirs = replica(object_of(event.replica), event.to)
        if self.com.lives.view.life(event.to) == event.life and theirs not in self.com.lives.pending:
            return  # it has one by now
        self._wishes.setdefault(event.replica, set()).add((event.to, event.life))
        self.look(self.com.hosts[event.replica], now)

    def ready(self, replica: Replica) -> None:
        """That one has its state now, from here or from another one: nobody need wait for the moment to give it."""
        self.com.lives.pending.discard(replica)
        for host in self.com.hosts.values():
            wishes = self._wishes.get(host.replica)
            if wishes and host.name == object_of(replica):
                self._wishes[host.replica] = {w for w in wishes if w[0] != node_of(replica)}
                if not self._wishes[host.replica]:
                    del self._wishes[host.replica]
                    self._reopen(host)

    def tick(self, now: float) -> None:
        for mine in tuple(self._wishes):
            host = self.com.hosts[mine]
            if now - self._closed_at.get(mine, now) > 4 * self.com.timing.delta:
                self._reopen(host)
                self._open_until[mine] = now + 16 * self.com.timing.delta
            self.look(host, now)

    def look(self, host: Host, now: float | None = None) -> None:
        """Give the state if this is the moment; else see to it that the moment comes."""
        wishes = self._wishes.get(host.replica)
        if not wishes or host.replica in self.unready:
            return
        wanted = [(n, since) for n, since in sorted(wishes) if self._is_wanted(n, since)]
        ready = [(n, since) for n, since in wanted if self._no_earlier(host, since)]
        if not ready:
            return
        if self._is_still(host) and not host.answers.unsafe:
            part = self._part(host)
            for node, since in ready:
                wishes.remove((node, since))
                self.com.tell(Snapshot(host.replica, node, part))
            if not wishes:
                del self._wishes[host.replica]
            self._reopen(host)
        elif now is not None and not host.order.closed and now >= self._open_until.get(host.replica, now):
            host.order.closed = True
            self._closed_at[host.replica] = now

    def _is_still(self, host: Host) -> bool:
        """Is the state that of whole requests? Who only reads, and has called nobody so far, is not in it."""
        performing = host.order.ahead.performing
        if not performing:
            return True
        reads = {
            i.entry.group
            for i in self.com.instances.values()
            if i.sid.replica == host.replica and i.entry.footprint.readonly and not i.acted
        }
        return all(e.group in reads and e.tran is None for e in performing.values())

    def _is_wanted(self, node: Node, life: int) -> bool:
        """Not by a life that is over. While a view is installed, something may end here before ``refresh``."""
        view = self.com.lives.view
        return life > view.version or view.life(node) == life

    def _no_earlier(self, host: Host, since: int) -> bool:
        """Is no request of a view before this one, in which a node joined, to come or under way?"""
        if self.com.view < since:
            return False
        for link in self.com.links.values():
            if link.theirs < since and link.moved < since:
                return False
        if any(e.version < since for e in host.order.entries.values()):
            return False
        return not any(e.version < since for e in host.order.ahead.performing.values())

    def _reopen(self, host: Host) -> None:
        if self._closed_at.pop(host.replica, None) is not None:
            host.order.open()
            host.flush()

    def _part(self, host: Host, held: Collection[Invocation] = ()) -> bytes:
        part = Part(self.com.clock, host.epoch.inherited(), host.replies.export(held))
        return msgspec.msgpack.encode(part)

    # the one who takes

    def may_take(self, replica: Replica) -> bool:
        """Not while the next view is decided: it was told that this replica has no state, and may name another one that
        begins with what it holds. Nor before tran has its own state."""
        if self.after_tran(replica):
            return False
        return replica in self.unready and (replica in self.committed or self.com.member.promised == NONE)

    def after_tran(self, replica: Replica) -> bool:
        """Must it wait until tran here knows what became of transactions in its state (framework.com.lasting)?"""
        trans = self.com.trans
        return trans.lasts and trans.at in self.unready and replica != trans.at and self.com.hosts[replica].durable

    def take(self, event: Take, now: float) -> None:
        host = self.com.hosts.get(event.replica)
        if host is None or event.replica not in self.unready:
            raise BadRequest(f"{event.replica} does not wait for a state at {self.com.node}")
        if not self.may_take(event.replica):
            raise Unavailable(f"the view is changing: {event.replica} cannot take a state now; ask for it again")
        if event.part:
            try:
                part = read_part(event.part)
            except (msgspec.DecodeError, UnicodeDecodeError) as e:
                raise BadMessage(f"what came with the state of {event.replica} cannot be used: {e}") from None
            self.com.clock_at_least(part.clock)
            host.epoch.inherit(part.context)
            host.replies.adopt(part.replies)
        del self.unready[event.replica]
        self._held.pop(event.replica, None)
        self.seeds.pop(event.replica, None)
        self.com.lives.pending.discard(event.replica)
        for node, link in self.com.links.items():
            self.com.post(node, Ready(self.com.view, event.replica))
            self._told[node] = link.last
        host.adopted()
        self.look(host, now)
