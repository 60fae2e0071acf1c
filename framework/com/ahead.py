"""Who has to come first at a replica (PROTOCOL §5.4): requests known here and instances running, by slot.

A request is *known* here when it is waiting or only announced. It stands at its origin stamp while it is unsafe and at
its agreed stamp afterwards. "Nothing stands before m" then says both conditions of §5.4 in one: no conflicting request
has a smaller stamp, and none with a smaller origin stamp is unsafe.

Joining. A nested request whose ancestor is running here is part of it: it waits neither for this ancestor nor for
requests that wait for it. It joins only while the ancestor waits for the very call that it came from, so that at every
replica it is performed at the same point of the ancestor. Whether a request waits for the ancestor is judged on safe
stamps, which are the same everywhere: so all replicas let the same requests be passed.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping

from framework.com.entry import Entry
from framework.com.messages import Mark
from framework.ids import GroupId, Invocation, Stamp


class Ahead:
    def __init__(self, by_mark: Mapping[Mark, Entry]) -> None:
        self._by_mark = by_mark
        self._waiting: dict[str, list[tuple[Stamp, Entry]]] = {}
        self.running: dict[str, dict[GroupId, Entry]] = {}
        self.performing: dict[Invocation, Entry] = {}

    def stand(self, entry: Entry, key: Stamp) -> None:
        entry.key = key
        for slot in entry.places:
            insort(self._waiting.setdefault(slot, []), (key, entry))

    def leave(self, entry: Entry) -> None:
        if entry.key is None:
            return
        for slot in entry.places:
            line = self._waiting[slot]
            del line[bisect_left(line, (entry.key,))]
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

    def _busy(self, slot: str) -> Entry | None:
        """Some instance running in this slot (P3: a message is ready if no conflicting instance is running)."""
        running = self.running.get(slot)
        return next(iter(running.values())) if running else None

    def _next_before(self, slot: str, entry: Entry) -> Entry | None:
        line = self._waiting.get(slot)
        if not line:
            return None
        i = bisect_left(line, (entry.stamp,))
        return line[i - 1][1] if i else None

    # joining

    def inside(self, entry: Entry) -> list[Entry]:
        """Its ancestors that are running here."""
        return [a for i in entry.line if (a := self.performing.get(i)) is not None] if entry.line else []

    def joins(self, entry: Entry) -> bool:
        """Is an ancestor running here that it conflicts with?"""
        return any(not set(entry.meets).isdisjoint(a.places) for a in self.inside(entry))

    def within(self, entry: Entry, ancestor: Entry) -> bool:
        assert entry.invocation is not None and ancestor.invocation is not None
        length = len(ancestor.invocation.path)
        return entry.invocation.ancestor(length) == ancestor.invocation

    def _blocker_inside(self, entry: Entry, inside: list[Entry]) -> Entry | None:
        for slot in entry.meets:
            for other in self.running.get(slot, {}).values():
                if other not in inside or not self._joinable(other, entry):
                    return other
            for other in self._before(slot, entry):
                watch = other if not other.safe else self._outside(other, inside, set())
                if watch is not None:
                    return watch
        return None

    def _joinable(self, ancestor: Entry, entry: Entry) -> bool:
        assert ancestor.invocation is not None and entry.invocation is not None
        return entry.invocation.path[len(ancestor.invocation.path)] in ancestor.awaits

    def _outside(self, entry: Entry, inside: list[Entry], seen: set[GroupId]) -> Entry | None:
        """None if this safe request waits for one of ``inside``, itself or through others; else whom to watch."""
        if any(self._waits_for(entry, ancestor) for ancestor in inside):
            return None
        seen.add(entry.group)
        watch = entry
        own = [a for a in inside if a.invocation in entry.line]  # it joins these, and passes what waits for them
        for other in self._ahead(entry):
            if other.group in seen:
                continue
            if not other.safe:
                watch = other
            elif own and self._outside(other, own, set(seen)) is None:
                continue
            elif self._outside(other, inside, seen) is None:
                return None
        return watch

    def _waits_for(self, entry: Entry, ancestor: Entry) -> bool:
        if not any(slot in ancestor.places for slot in entry.meets):
            return False
        return ancestor.invocation not in entry.line or not self._joinable(ancestor, entry)

    def _ahead(self, entry: Entry) -> list[Entry]:
        preds = [self._by_mark[m] for m in entry.preds if m in self._by_mark]
        return preds + [other for slot in entry.meets for other in self._before(slot, entry)]

    def _before(self, slot: str, entry: Entry) -> list[Entry]:
        line = self._waiting.get(slot, [])
        return [other for _, other in line[: bisect_left(line, (entry.stamp,))]]
