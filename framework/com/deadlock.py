"""Who waits for whom, and which transaction gives way (protocol.md §7.6: the papers leave it to time-outs).

A transaction keeps its slots until it is over, so two of them may wait for each other, over several objects and nodes.
Each node looks from time to time at the requests that wait at its replicas. If some of them are parts of transactions,
and have been waiting for a while, it tells the first member of the view which transaction waits for which. That one
puts together what all have told, and aborts the youngest of a cycle that it has seen twice: what nodes tell is not of
one moment, and a cycle that was never one is gone at the next look.

One edge for each request is enough: the nearest one that it waits for. If that one is not part of the cycle, it goes on
some time, and then the next one is looked at.

A *report* of a node has every edge that was there when it began and is still there when it is sent. A long one leaves
in several messages, one at each look, and counts when it is whole: so the edges of a cycle are seen together, however
many others there are. A cycle is seen twice if it is found in two reports of each node that had told of anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from framework.com.caller import Call
from framework.com.entry import Entry
from framework.com.host import Host
from framework.com.messages import Edge, Turns, Waits
from framework.ids import TRAN, GroupId, Invocation, Node, ObjectName, Replica, Sid, Stamp

if TYPE_CHECKING:
    from framework.com.core import Com
    from framework.com.tran import Trans

MOST = 500  # edges in one message

Pair = tuple[Invocation, Invocation]  # a waiter and a holder


class Report:
    """What a node tells of, in one life of it."""

    __slots__ = ("coming", "life", "number", "whole")

    def __init__(self, life: int | None) -> None:
        self.life = life
        self.number = 0  # how many were whole
        self.whole: tuple[Edge, ...] = ()  # the last one that was
        self.coming: tuple[Edge, ...] = ()  # of the next one


class Deadlock:
    def __init__(self, com: "Com", trans: "Trans") -> None:
        self._com = com
        self._trans = trans
        self._next = 0.0  # look again
        self._waited: set[GroupId] = set()  # parts of transactions that were waiting at the last look
        self._told = False  # it has told of something
        self._left: list[Pair] = []  # of the report under way
        self._reports: dict[Node, Report] = {}
        self._seen: frozenset[Invocation] = frozenset()  # a cycle that was seen once
        self._seen_in: dict[Node, int] = {}  # in these reports
        self.victims = 0

    def tick(self, now: float) -> None:
        if now < self._next:
            return
        self._next = now + 2 * self._com.timing.delta
        edges = self._look()
        first = self._com.lives.view.members[0]
        if edges or self._told:
            self._tell(first, edges)
        if first != self._com.node:
            self._reports.clear()  # others are told to another member
        elif self._reports:
            self._judge()

    def _tell(self, first: Node, edges: Sequence[Edge]) -> None:
        """The next part of a report."""
        here = {(edge.waiter, edge.holder): edge for edge in edges}
        pairs = (self._left or list(here)) if here else []
        self._left = pairs[MOST:]
        self._told = bool(here)
        part = tuple([here[pair] for pair in pairs[:MOST] if pair in here])
        self._com.post(first, Waits(self._com.view, self._com.node, part, bool(self._left)))

    def heard(self, message: Waits) -> None:
        life, report = self._com.lives.view.life(message.node), self._reports.get(message.node)
        if report is None or report.life != life:
            report = self._reports[message.node] = Report(life)
        report.coming += message.edges
        if not message.more:
            report.number += 1
            report.whole, report.coming = report.coming, ()

    # who waits here

    def _look(self) -> list[Edge]:
        hosts = [h for h in self._com.hosts.values() if h.order.roots]
        parts = {
            entry.group
            for host in hosts
            for entry in host.order.entries.values()
            if entry.tran is not None and not entry.started and not entry.void
        }
        late, self._waited = parts & self._waited, parts
        return self.edges() if late else []

    def edges(self) -> list[Edge]:
        """What waits at the replicas of this node, for what."""
        found: dict[tuple[Invocation, Invocation], Edge] = {}
        for host in self._com.hosts.values():
            if host.name == TRAN:
                continue
            for entry in _without_copies(host.order.entries.values()):
                behind = self._behind(host, entry)
                if behind is None:
                    continue
                one, other = _name(entry), _name(behind)
                if one is None or other is None or one == other:
                    continue
                old = found.get((one, other))
                if old is None or not old.part:
                    part, born = entry.tran is not None, (entry.first.number, behind.first.number)
                    over = one in self._trans.outcomes or other in self._trans.outcomes
                    where = f"{host.replica} {entry.footprint}"
                    found[one, other] = Edge(one, other, *born, part, where, over, _turns(host, entry, behind))
        return list(found.values())

    def _behind(self, host: Host, entry: Entry) -> Entry | None:
        if entry.started or entry.void or entry.request is None:
            return None
        reason = host.order.blockers(entry)
        for mark in reason.after:
            before = host.order.known(mark)
            if before is not None:
                return _unsettled(host, before)
        behind = reason.behind
        if behind is not None and behind.stamp is None:
            return None  # it may come later: its place is being agreed, and that waits for nobody's end
        return behind

    # the first member: cycles

    def _judge(self) -> None:
        view = self._com.lives.view
        self._reports = {n: r for n, r in self._reports.items() if n in view.members and view.life(n) == r.life}
        after: dict[Invocation, dict[Invocation, Edge]] = {}
        for edge in settled([edge for node in sorted(self._reports) for edge in self._reports[node].whole]):
            if not edge.over and (edge.waiter in self._trans.outcomes or edge.holder in self._trans.outcomes):
                continue  # who tells will hear of it
            old = after.setdefault(edge.waiter, {}).get(edge.holder)
            if old is None or not old.part:
                after[edge.waiter][edge.holder] = edge
        cycle = self._cycle(after)
        seen = frozenset(e.waiter for e in cycle)
        if seen != self._seen:
            self._seen = seen
            self._seen_in = {node: report.number for node, report in self._reports.items() if report.whole}
        elif cycle and self._have_told_again():
            self._give_way(cycle)

    def _have_told_again(self) -> bool:
        """Has each node that had told of anything when a cycle was seen told again, or gone?"""
        reports = self._reports
        return all(reports[node].number > number for node, number in self._seen_in.items() if node in reports)

    def _cycle(self, after: dict[Invocation, dict[Invocation, Edge]]) -> list[Edge]:
        """One in which somebody can give way; the first one found from the lowest name on."""
        able = {w for w in after if any(map(self._is_able, after[w].values()))}
        left = leading(after) & leading(_reversed(after))
        return next((cycle for w in sorted(able & left) if any(map(self._is_able, cycle := find(after, w)))), [])

    def _is_able(self, edge: Edge) -> bool:
        """To give way. Others hold nothing, and only stand in line; or have been aborted."""
        return edge.part and edge.waiter not in self._trans.outcomes

    def _give_way(self, cycle: list[Edge]) -> None:
        born: dict[Invocation, int] = {}
        for edge in cycle:
            for name, number in ((edge.waiter, edge.waiter_born), (edge.holder, edge.holder_born)):
                born[name] = min(born.get(name, number), number)
        able = [e.waiter for e in cycle if self._is_able(e)]
        self.victims += 1
        told = "; ".join(f"{e.waiter} waits for {e.holder} at {e.text}" for e in cycle)
        self._trans.abort(max(able, key=lambda name: (born[name], name)), f"deadlock: {told}")


def _name(entry: Entry) -> Invocation | None:
    return entry.tran or entry.invocation


def _unsettled(host: Host, entry: Entry) -> Entry:
    """Return what a request waits for that names this one as its predecessor. One that was performed before its own
    predecessors is settled when they are, so a request that follows it waits for them: also when its transaction is
    over, and nobody waits for that any more."""
    while entry.started or entry.void:
        before = next((b for mark in reversed(entry.preds) if (b := host.order.known(mark)) is not None), None)
        if before is None:
            break
        entry = before
    return entry


def _turns(host: Host, entry: Entry, behind: Entry) -> Turns | None:
    if entry.invocation is None or behind.invocation is None:
        return None
    return Turns(host.name, entry.invocation, behind.invocation, behind.started)


def settled(edges: Sequence[Edge]) -> list[Edge]:
    """Without those of which other replicas say the contrary. Calls have one order at all replicas of an object; but
    of a call that several replicas make, a later copy may be there first, and wait until the first one comes."""
    after: dict[ObjectName, dict[Invocation, set[Invocation]]] = {}
    for turns in [e.turns for e in edges if e.turns is not None]:
        after.setdefault(turns.object, {}).setdefault(turns.late, set()).add(turns.early)
    odd = {at: leading(these) & leading(_reversed(these)) for at, these in after.items()}

    def is_odd(turns: Turns | None) -> bool:
        return turns is not None and not turns.begun and {turns.late, turns.early} <= odd[turns.object]

    return [e for e in edges if not is_odd(e.turns)]


def _without_copies(entries: Iterable[Entry]) -> Iterable[Entry]:
    """Of several copies of a call the first one is performed, and the others are over with it."""
    first: dict[Invocation, Entry] = {}
    for entry in entries:
        name = entry.invocation
        if name is not None and (name not in first or _turn(entry) < _turn(first[name])):
            first[name] = entry
    return first.values()


def _turn(entry: Entry) -> Stamp:
    return entry.stamp or entry.proposal or entry.first


def leading(after: Mapping[Invocation, Iterable[Invocation]]) -> set[Invocation]:
    """Those from which one gets into a circle. With a long line behind each slot, and no circle, it is nobody."""
    before = _reversed(after)
    open_ways = {name: len(list(following)) for name, following in after.items()}
    ends = [name for name in before if name not in after]
    while ends:
        for name in before.get(ends.pop(), ()):
            open_ways[name] -= 1
            if not open_ways[name]:
                ends.append(name)
    return {name for name, ways in open_ways.items() if ways}


def _reversed(after: Mapping[Invocation, Iterable[Invocation]]) -> dict[Invocation, list[Invocation]]:
    before: dict[Invocation, list[Invocation]] = {}
    for name, following in after.items():
        for other in following:
            before.setdefault(other, []).append(name)
    return before


def find(after: dict[Invocation, dict[Invocation, Edge]], start: Invocation) -> list[Edge]:
    """The edges of a shortest cycle through this one, if there is one."""
    came: dict[Invocation, Edge] = {}
    level = [start]
    while level and start not in came:
        following = [e for name in level for _, e in sorted(after.get(name, {}).items())]
        level = [e.holder for e in following if came.setdefault(e.holder, e) is e]
    path = [came[start]] if start in came else []
    while path and path[-1].waiter != start:
        path.append(came[path[-1].waiter])
    return path[::-1]


PATIENCE = 16  # times delta for which a transaction waits for a replica that has no state


class Stuck:
    """A transaction and a node that joins must not wait for each other.

    A replica that has no state gets one when nothing is held where it is given (framework.com.handover). So a
    transaction that holds something, and waits for the answer of such a replica, may wait for itself. Nobody else sees
    that: who holds does not know who is waited for. Where it is waited for the transaction is aborted, as in any other
    deadlock, if that does not pass soon.
    """

    def __init__(self, com: "Com", trans: "Trans") -> None:
        self._com = com
        self._trans = trans
        self._since: dict[tuple[Sid, int], float] = {}  # by call

    def tick(self, now: float) -> None:
        if not self._com.lives.pending:
            self._since.clear()
            return
        since: dict[tuple[Sid, int], float] = {}
        for caller in self._com.calls.callers.values():
            for call in caller.calls.values():
                missing = self._missing(call)
                if call.tran is None or not missing:
                    continue
                began = since[caller.sid, call.number] = self._since.get((caller.sid, call.number), now)
                if now - began > PATIENCE * self._com.timing.delta:
                    why = f"{', '.join(missing)} had no state, and might not have got one before its end"
                    self._trans.abort(call.tran, f"deadlock: {call.group} waits for an answer, but {why}")
        self._since = since

    def _missing(self, call: Call) -> list[Replica]:
        if call.received or (call.receipt is None and not call.silent):
            return []
        return [d for d in call.dests if d not in call.got and d in self._com.lives.pending]
