"""Who has to come first at a replica (protocol.md §5.4): requests known here and instances running, by slot.

A request is *known* here when it is waiting or only announced. It stands at its origin stamp while it is unsafe and at
its agreed stamp afterwards. "Nothing stands before m" then says both conditions of protocol.md §5.4 in one: no
conflicting request has a smaller stamp, and none with a smaller origin stamp is unsafe.

Joining. A nested request whose ancestor is running here is part of it: it waits neither for this ancestor nor for
requests that wait for it. It joins only while the ancestor waits for the very call that it came from, so that at every
replica it is performed at the same point of the ancestor. Whether a request waits for the ancestor is judged on safe
stamps, which are the same everywhere: so all replicas let the same requests be passed.

Transactions. What has been performed for a transaction keeps its slots until that is over: it is *held*. Further
requests of the same transaction, its *kin*, join what is held: they pass requests with smaller stamps that wait for it,
and no predecessor (framework.com.order). All destinations of a request must pass the same ones. So only work that is
held at each of them counts, and a request waits "through others" only if these go to each of them, too. A request that
has not started vanishes when its own transaction is aborted, and replicas hear of that at different moments: nobody
waits through such a one.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping

from framework.com.entry import Entry
from framework.com.messages import Mark
from framework.ids import GroupId, Invocation, Replica, Stamp, node_of, object_of


class Ahead:
    def __init__(self, by_mark: Mapping[Mark, Entry], at: Replica) -> None:
        self._by_mark = by_mark
        self._at = at
        self._waiting: dict[str, list[tuple[Stamp, Entry]]] = {}
        self.running: dict[str, dict[GroupId, Entry]] = {}
        self.performing: dict[Invocation, Entry] = {}
        self.held: dict[Invocation, list[Entry]] = {}  # by transaction

    def stand(self, entry: Entry, key: Stamp) -> None:
        entry.key = key
        place = (key, entry)
        for slot in entry.places:
            line = self._waiting.get(slot)
            if line is None:
                self._waiting[slot] = [place]
            elif line[-1][0] < key:  # stamps grow: most come at the end
                line.append(place)
            else:
                insort(line, place)

    def leave(self, entry: Entry) -> None:
        if entry.key is None:
            return
        for slot in entry.places:
            line = self._waiting[slot]
            del line[0 if line[0][1] is entry else bisect_left(line, (entry.key,))]
            if not line:
                del self._waiting[slot]
        entry.key = None

    def start(self, entry: Entry) -> None:
        self.leave(entry)
        for slot in entry.places:
            self.running.setdefault(slot, {})[entry.group] = entry
        assert entry.invocation is not None
        self.performing[entry.invocation] = entry

    def end(self, entry: Entry) -> None:
        for slot in entry.places:
            busy = self.running[slot]
            del busy[entry.group]
            if not busy:
                del self.running[slot]
        assert entry.invocation is not None
        del self.performing[entry.invocation]
        if entry.held and entry.tran is not None:
            kin = self.held[entry.tran]
            kin.remove(entry)
            if not kin:
                del self.held[entry.tran]

    def hold(self, entry: Entry) -> None:
        """It has been performed, and stays in its slots until its transaction is over."""
        assert entry.tran is not None
        entry.held = True
        self.held.setdefault(entry.tran, []).append(entry)

    def is_running(self, invocation: Invocation) -> bool:
        entry = self.performing.get(invocation)
        return entry is not None and not entry.held

    def blocker(self, entry: Entry) -> Entry | None:
        """A conflicting request that is running or has to come first. The nearest one before it, not the first
        in line: then a line of n conflicting requests costs n looks, not n²."""
        inside = self.inside(entry)
        if inside:
            return self._blocker_inside(entry, inside)
        for slot in entry.meets:
            blocker = self._busy(slot) or self._next_before(slot, entry)
            if blocker is not None:
                return blocker
        return None

    def busy(self, slot: str) -> bool:
        """Does somebody run or wait in this slot?"""
        return slot in self.running or slot in self._waiting

    def _busy(self, slot: str) -> Entry | None:
        """Some instance running in this slot (P3: a message is ready if no conflicting instance is running)."""
        running = self.running.get(slot)
        return next(iter(running.values())) if running else None

    def _next_before(self, slot: str, entry: Entry) -> Entry | None:
        line = self._waiting.get(slot)
        if not line:
            return None
        i = bisect_left(line, (entry.stamp,))
        while i and _is_overtaken(line[i - 1][1], entry):
            i -= 1
        return line[i - 1][1] if i else None

    # joining

    def inside(self, entry: Entry) -> list[Entry]:
        """Its ancestors that are running here, and what is held here of its transaction."""
        line = [a for i in entry.line if (a := self.performing.get(i)) is not None] if entry.line else []
        if entry.tran is not None and entry.tran in self.held:
            line += [k for k in self.held[entry.tran] if k not in line]
        return line

    def _is_kin(self, entry: Entry, held: Entry) -> bool:
        return held.held and entry.tran == held.tran

    def joins(self, entry: Entry) -> bool:
        """Is an ancestor running here that it conflicts with?"""
        return any(not set(entry.meets).isdisjoint(a.places) for a in self.inside(entry))

    def within(self, entry: Entry, ancestor: Entry) -> bool:
        assert entry.invocation is not None and ancestor.invocation is not None
        length = len(ancestor.invocation.path)
        return self._is_kin(entry, ancestor) or entry.invocation.ancestor(length) == ancestor.invocation

    def _blocker_inside(self, entry: Entry, inside: list[Entry]) -> Entry | None:
        for slot in entry.meets:
            for other in self.running.get(slot, {}).values():
                if other not in inside or not self._joinable(other, entry):
                    return other
        assert entry.stamp is not None
        reach = self._reach(entry)
        firm = [a for a in inside if not a.held or reach <= set(a.dests)]
        waits = self._waits(firm, entry.stamp, reach)
        for slot in entry.meets:
            for other in self._before(slot, entry):
                watch = waits[other.group]
                if watch is not None:
                    return watch
        return None

    def _reach(self, entry: Entry) -> set[Replica]:
        """Return its destinations at this object: all of them must pass the same requests."""
        name = object_of(self._at)
        return {d for d in entry.dests if object_of(d) == name}

    def _joinable(self, ancestor: Entry, entry: Entry) -> bool:
        if self._is_kin(entry, ancestor):
            return True
        assert ancestor.invocation is not None and entry.invocation is not None
        return entry.invocation.path[len(ancestor.invocation.path)] in ancestor.awaits

    def _waits(self, inside: list[Entry], before: Stamp, reach: set[Replica]) -> dict[GroupId, Entry | None]:
        """Of all requests that stand before a stamp: None if it waits for one of ``inside``, itself or through others;
        else whom to watch, because that may change. One pass in the order of their stamps: whatever a request waits
        for stands before it. All of ``reach`` must come to the same answer: so a request waits through others only if
        those are at each of these replicas, too."""
        out: dict[GroupId, Entry | None] = {}
        waiting: set[str] = set()  # slots in which somebody waits for one of inside
        unsafe: dict[str, Entry] = {}
        passes: dict[tuple[GroupId, ...], dict[GroupId, Entry | None]] = {}
        for entry in self._standing(before):
            if not entry.safe:
                out[entry.group] = entry
                unsafe.update(dict.fromkeys(entry.places, entry))
                continue
            # it joins these, and passes who waits for them
            own = [a for a in inside if a.invocation in entry.line or self._is_kin(entry, a)]
            if own and len(own) < len(inside):
                key = tuple(a.group for a in own)
                if key not in passes:
                    passes[key] = self._waits(own, before, reach)
            passed = out if len(own) == len(inside) else passes.get(tuple(a.group for a in own), {})
            result = out[entry.group] = self._watch(entry, inside, waiting, unsafe, out, passed if own else {})
            if result is None and entry.key is not None and entry.tran is None and reach <= set(entry.dests):
                waiting.update(entry.places)  # a part of a transaction may be gone tomorrow, at one replica sooner
        return out

    def _watch(
        self,
        entry: Entry,
        inside: list[Entry],
        waiting: set[str],
        unsafe: dict[str, Entry],
        out: dict[GroupId, Entry | None],
        passed: dict[GroupId, Entry | None],
    ) -> Entry | None:
        """None if this safe request waits for one of ``inside``; it passes those for whom ``passed`` has None."""
        watch = entry
        if entry.key is not None:  # it stands in line, and is neither started nor void
            if any(self._waits_for(entry, ancestor) for ancestor in inside):
                return None
            for slot in entry.meets:
                watch = unsafe.get(slot, watch)
                if slot in waiting and self._meets_one(slot, entry, out, passed):
                    return None
        for mark in entry.preds if any(not a.held for a in inside) else ():
            before = self._by_mark.get(mark)
            if before is not None and before.group in out:
                gone = before.tran is not None and not before.started  # perhaps, elsewhere
                if out[before.group] is None and not gone and passed.get(before.group, before) is not None:
                    if _everywhere(entry, before):
                        return None
                watch = watch if before.safe else before
        return watch

    def _meets_one(
        self, slot: str, entry: Entry, out: dict[GroupId, Entry | None], passed: dict[GroupId, Entry | None]
    ) -> bool:
        """Is there one in this slot that waits, and that it does not pass?"""
        if not passed:
            return True
        return any(
            out[other.group] is None and passed.get(other.group, other) is not None
            for other in self._before(slot, entry)
        )

    def _standing(self, before: Stamp) -> list[Entry]:
        """All that is known here and not settled, with a place before this stamp, in the order of places."""
        known = {e.group: e for line in self._waiting.values() for _, e in line} | {
            e.group: e for e in self._by_mark.values()
        }
        places = [(e.key or e.stamp or e.proposal or e.first, e) for e in known.values()]
        return [e for place, e in sorted(places, key=lambda p: p[0]) if place < before]

    def _waits_for(self, entry: Entry, ancestor: Entry) -> bool:
        if not any(slot in ancestor.places for slot in entry.meets):
            return False
        if self._is_kin(entry, ancestor):
            return False
        return ancestor.invocation not in entry.line or not self._joinable(ancestor, entry)

    def _before(self, slot: str, entry: Entry) -> list[Entry]:
        line = self._waiting.get(slot, [])
        before = line[: bisect_left(line, (entry.stamp,))]
        return [other for _, other in before if not _is_overtaken(other, entry)]


def _is_overtaken(other: Entry, entry: Entry) -> bool:
    """Return whether a request with several destinations goes before one that came to this replica only. No other
    replica knows of that one, so a place behind it would be a place here and nowhere else."""
    return len(other.dests) == 1 and len(entry.dests) > 1


def _everywhere(entry: Entry, before: Entry) -> bool:
    """Does it name this predecessor at each of its destinations here? Contexts may differ: by reads at one replica, and
    where somebody departed and marks were put in the place of what was lost with it."""
    if entry.request is None or before.request is None:
        return False
    name, origin = object_of(entry.request.target), node_of(before.group.replica)
    named = {(at, mark) for at, marks in entry.request.context for mark in marks}
    theirs = dict(before.request.dests)
    mine = [d for d in entry.dests if object_of(d) == name and d not in entry.gone]
    return all(d in theirs and (d, (origin, theirs[d])) in named for d in mine)
