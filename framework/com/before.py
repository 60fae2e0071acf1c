"""What comes before a request at a replica: its predecessors (protocol.md §5.1), and the stamps it must pass (§5.2)."""

from collections.abc import Collection, Iterable

from framework.com.ahead import Ahead
from framework.com.convoy import calls_of
from framework.com.entry import LOWEST, Entry
from framework.com.messages import Mark
from framework.com.past import Past
from framework.ids import Invocation, Replica, Stamp


def _invocations(entry: Entry) -> list[Invocation]:
    assert entry.request is not None
    return [invocation for _, invocation in calls_of(entry.request)]


class Before:
    def __init__(self, past: Past, at: Replica) -> None:
        self.past = past
        self._by_mark: dict[Mark, Entry] = {}
        self.ahead = Ahead(self._by_mark, at)
        self.awaited: dict[Mark, list[Entry]] = {}
        self._riding: dict[Invocation, Entry] = {}  # calls of serial convoys that are performed: which one

    def _lend(self, entry: Entry, void: Mark) -> None:
        """What a void request stood for takes its place. That went to other destinations, perhaps, so only this one may
        have them: none of them counts as alike."""
        lent = [m for m in self.past.instead(void) if m not in entry.preds]
        self._precede(entry, lent)
        entry.lent += tuple(lent)

    def _precede(self, entry: Entry, preds: Iterable[Mark]) -> None:
        for mark in preds:
            if self.past.is_delivered(mark):
                entry.floor = max(entry.floor, self.past.stamp_of(mark))
                if mark not in entry.preds:
                    self._lend(entry, mark)
                continue
            entry.preds.append(mark)
            before = self._by_mark.get(mark)
            if before is None:
                self.awaited.setdefault(mark, []).append(entry)
            elif before.followers is None:
                before.followers = [entry]
            else:
                before.followers.append(entry)

    def _begin_convoy(self, entry: Entry) -> None:
        """Its calls are delivered one after the other from now on."""
        entry.serial = True
        self._riding.update(dict.fromkeys(_invocations(entry), entry))

    def _behind_convoys(self, copy: Entry) -> None:
        """Of a call in a serial convoy nobody here can say whether it has been delivered, before all of them have: so
        its copy is not either, for those that follow that."""
        for invocation in _invocations(copy):
            before = self._riding.get(invocation)
            if before is None or before is copy:
                continue
            assert before.mark is not None
            if before.mark not in copy.preds:
                self._precede(copy, (before.mark,))

    def _end_of_convoy(self, entry: Entry) -> None:
        entry.serial = False
        for invocation in _invocations(entry):
            if self._riding.get(invocation) is entry:
                del self._riding[invocation]

    def _watch(self, blocker: Entry, entry: Entry) -> None:
        if blocker.watchers is None:
            blocker.watchers = [entry]
        else:
            blocker.watchers.append(entry)

    def bequeath(self, void: Collection[Entry]) -> None:
        """Who has a place behind a void request already, for it has the same destinations, follows what that one
        followed: that has a place as well. (Others are held, see ``Order.stand_in``: what they follow is not known.)"""
        gone = {entry.mark for entry in void}
        for entry in void:
            for follower in entry.followers or ():
                if follower.proposal is not None and follower.mark not in gone:
                    self._follow(follower, entry, gone)

    def _follow(self, entry: Entry, void: Entry, gone: Collection[Mark | None]) -> None:
        for mark in void.preds:
            before = self._by_mark.get(mark)
            if before is None or mark in entry.preds:
                continue
            if mark in gone:
                self._follow(entry, before, gone)
                continue
            self._precede(entry, (mark,))
            if mark in void.lent:  # that one has got a stamp above it
                entry.lent = (*entry.lent, mark)
            elif self._alike(before, entry):
                entry.alike = (*entry.alike, mark)

    def _unordered(self, entry: Entry) -> Mark | None:
        """A predecessor that keeps this request held; on the way, settled ones are dropped."""
        if not entry.preds:
            return None
        waits_for, left = None, []
        for mark in entry.preds:
            if self.past.is_delivered(mark):
                entry.floor = max(entry.floor, self.past.stamp_of(mark))
                continue
            left.append(mark)
            if not self._is_ordered(mark, entry):
                waits_for = mark
        entry.preds = left
        return waits_for

    def _is_ordered(self, mark: Mark, after: Entry) -> bool:
        """Agreed; or proposed, when both take part in agreement at the same destinations: then each of them
        proposes more for the later one, and so the largest proposal is larger, too."""
        before = self._by_mark.get(mark)
        if before is None:
            return False
        if before.stamp is not None:
            return True
        return before.proposal is not None and mark not in after.lent and self._alike(before, after)

    def _alike(self, before: Entry, after: Entry) -> bool:
        if not (before.ordered and after.ordered and before.dests == after.dests):
            return False
        # of a pcast that reads here and writes there, contexts may remember only the part that writes (P1 §4): then the
        # other destinations do not know that it comes first
        assert before.request is not None
        parts = before.request.parts
        return len(parts) == 1 or len({p.footprint.readonly for p in parts}) == 1

    def _has_stamp(self, mark: Mark) -> bool:
        before = self._by_mark.get(mark)
        return before.stamp is not None if before else self.past.is_delivered(mark)

    def _undelivered(self, entry: Entry) -> Mark | None:
        """Return a predecessor that must be delivered before this request starts (protocol.md §5.4 and §7.3).

        A request that joins the prepared work of its transaction waits for all of them, like any other. A call back to
        a running ancestor stands at the place of that instance: only calls made on behalf of it come first, because
        any other predecessor may be waiting for it. A predecessor that has started without being settled stands for
        those that it has not waited for."""
        if not entry.preds:
            return None
        inside = self.ahead.inside(entry)
        if not inside:
            return self._last_undelivered(entry)
        running = [a for a in inside if not a.held]
        todo, seen = list(entry.preds), set(entry.preds)
        while todo:
            mark = todo.pop()
            if self.past.is_delivered(mark):
                continue
            before = self._by_mark.get(mark)
            if before is None:
                return mark
            if before.started or before.void:
                todo += [m for m in before.preds if m not in seen]
                seen.update(before.preds)
            elif not running or any(self.ahead.within(before, a) for a in running):
                return mark
        return None

    def _last_undelivered(self, entry: Entry) -> Mark | None:
        """Of a request that has its stamp, and wants nothing more of those that are delivered: the ones behind it are
        dropped. So n looks at n predecessors cost n, not n²."""
        preds, is_delivered = entry.preds, self.past.is_delivered
        while preds and is_delivered(preds[-1]):
            preds.pop()
        return preds[-1] if preds else None

    def _settleable(self, entry: Entry) -> bool:
        if entry.preds:
            entry.rests = self._last_undelivered(entry)
        return not entry.preds

    # stamps (protocol.md §5.2)

    def _bound(self, entry: Entry) -> Stamp:
        """The highest stamp that the proposal for this request must pass."""
        bound = self.past.highest_conflicting(entry)
        return max(bound, self._above_predecessors(entry))

    def _above_predecessors(self, entry: Entry) -> Stamp:
        bound = entry.floor
        for mark in entry.preds:
            before = self._by_mark.get(mark)
            if before is not None:
                bound = max(bound, before.stamp or before.proposal or LOWEST)
        return bound

    def _note_alike(self, entry: Entry) -> None:
        """Predecessors with the same destinations that may get their stamp after this one is proposed."""
        by_mark = self._by_mark
        preds = [m for m in entry.preds if m not in entry.lent] if entry.lent else entry.preds
        entry.alike = tuple([m for m in preds if m in by_mark and self._alike(by_mark[m], entry)])

    def _without_gone(self, entry: Entry, number: int) -> int:
        """What the departed have proposed counts as far as the flush brought it. It may have brought the proposal for a
        predecessor and not that for this one: so this one also goes above predecessors with the same destinations."""
        number = max(number, entry.heard)
        for mark in entry.alike:
            before = self._by_mark.get(mark)
            stamp = before.stamp if before is not None else self.past.stamp_of(mark)
            if stamp is not None and stamp >= (number, entry.group):
                number = stamp.number + 1
        return number
