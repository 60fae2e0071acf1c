"""Who waits for whom, and which transaction gives way (PROTOCOL §9: the papers leave it to time-outs).

A transaction keeps its slots until it is over, so two of them may wait for each other, over several objects and nodes.
Each node looks from time to time at the requests that wait at its replicas. If some of them are parts of transactions,
and have been waiting for a while, it tells the first member of the view which transaction waits for which. That one
puts together what all have told, and aborts the youngest of a cycle that it has seen twice: what nodes tell is not of
one moment, and a cycle that was never one is gone at the next look.

One edge for each request is enough: the nearest one that it waits for. If that one is not part of the cycle, it goes on
some time, and then the next one is looked at.
"""

from typing import TYPE_CHECKING

from framework.com.entry import Entry
from framework.com.host import Host
from framework.com.messages import Edge, Waits
from framework.ids import TRAN, GroupId, Invocation, Node

if TYPE_CHECKING:
    from framework.com.core import Com
    from framework.com.tran import Trans

MOST = 500  # edges that a node tells of


class Deadlock:
    def __init__(self, com: "Com", trans: "Trans") -> None:
        self._com = com
        self._trans = trans
        self._next = 0.0  # look again
        self._waited: set[GroupId] = set()  # parts of transactions that were waiting at the last look
        self._told = False  # it has told of something
        self._edges: dict[Node, tuple[Edge, ...]] = {}  # what others have told
        self._seen: frozenset[Invocation] = frozenset()  # a cycle, at the last look
        self.victims = 0

    def tick(self, now: float) -> None:
        if now < self._next:
            return
        self._next = now + 2 * self._com.timing.delta
        edges = self._look()
        first = self._com.lives.view.members[0]
        if edges or self._told:
            self._told = bool(edges)
            self._com.post(first, Waits(self._com.view, self._com.node, edges))
        if first == self._com.node and self._edges:
            self._judge()

    def heard(self, message: Waits) -> None:
        if message.edges:
            self._edges[message.node] = message.edges
        else:
            self._edges.pop(message.node, None)

    # who waits here

    def _look(self) -> tuple[Edge, ...]:
        hosts = [h for h in self._com.hosts.values() if h.order.roots]
        parts = {
            entry.group
            for host in hosts
            for entry in host.order.entries.values()
            if entry.tran is not None and not entry.started and not entry.void
        }
        late, self._waited = parts & self._waited, parts
        if not late:
            return ()
        return tuple(self.edges()[:MOST])

    def edges(self) -> list[Edge]:
        """What waits at the replicas of this node, for what."""
        found: dict[tuple[Invocation, Invocation], Edge] = {}
        for host in self._com.hosts.values():
            if host.name == TRAN:
                continue
            for entry in host.order.entries.values():
                behind = self._behind(host, entry)
                if behind is None:
                    continue
                one, other = _name(entry), _name(behind)
                if one is None or other is None or one == other or one in self._trans.outcomes:
                    continue
                old = found.get((one, other))
                if old is None or not old.part:
                    part = entry.tran is not None
                    text = f"{host.replica} {entry.footprint}"
                    found[one, other] = Edge(one, other, entry.first.number, behind.first.number, part, text)
        return list(found.values())

    def _behind(self, host: Host, entry: Entry) -> Entry | None:
        if entry.started or entry.void or entry.request is None:
            return None
        reason = host.order.blockers(entry)
        for mark in reason.after:
            before = host.order.known(mark)
            if before is not None:
                return before
        return reason.behind

    # the first member: cycles

    def _judge(self) -> None:
        members = self._com.lives.view.members
        self._edges = {node: edges for node, edges in self._edges.items() if node in members}
        after: dict[Invocation, dict[Invocation, Edge]] = {}
        for node in sorted(self._edges):
            for edge in self._edges[node]:
                if edge.waiter in self._trans.outcomes or edge.holder in self._trans.outcomes:
                    continue
                old = after.setdefault(edge.waiter, {}).get(edge.holder)
                if old is None or not old.part:
                    after[edge.waiter][edge.holder] = edge
        cycle = find(after)
        seen = frozenset(e.waiter for e in cycle)
        if cycle and seen == self._seen:
            self._give_way(cycle)
        self._seen = seen

    def _give_way(self, cycle: list[Edge]) -> None:
        born: dict[Invocation, int] = {}
        for edge in cycle:
            for name, number in ((edge.waiter, edge.waiter_born), (edge.holder, edge.holder_born)):
                born[name] = min(born.get(name, number), number)
        able = [e.waiter for e in cycle if e.part]  # others hold nothing, and only stand in line
        if able:
            self.victims += 1
            told = "; ".join(f"{e.waiter} waits for {e.holder} at {e.text}" for e in cycle)
            self._trans.abort(max(able, key=lambda name: (born[name], name)), f"deadlock: {told}")


def _name(entry: Entry) -> Invocation | None:
    return entry.tran or entry.invocation


def find(after: dict[Invocation, dict[Invocation, Edge]]) -> list[Edge]:
    """The edges of some cycle; the first one found from the lowest name on."""
    over: set[Invocation] = set()
    for start in sorted(after):
        path: list[Invocation] = []
        stack: list[tuple[Invocation, list[Invocation]]] = [(start, sorted(after[start]))] if start not in over else []
        while stack:
            name, rest = stack[-1]
            if len(path) < len(stack):
                path.append(name)
            if not rest:
                over.add(name)
                stack.pop()
                path.pop()
                continue
            step = rest.pop(0)
            if step in path:
                names = path[path.index(step) :]
                return [after[a][b] for a, b in zip(names, [*names[1:], names[0]], strict=True)]
            if step not in over:
                stack.append((step, sorted(after.get(step, {}))))
    return []
