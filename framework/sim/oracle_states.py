"""The part of the oracle that follows states from one life to another: what a replica has performed when it begins."""

from framework.sim import oracle_tran
from framework.sim.oracle_replay import Replay
from framework.sim.oracle_views import named
from framework.sim.verdict import Performed, Place
from framework.trace.record import Record, is_unwritten, parse_ticket


class States(Replay):
    def _pause(self, r: Record) -> None:
        """What may hold requests back at a replica here, or at all of them."""
        for place in self.places.values():
            if place.life == self.life and r.replica in ("", place.replica):
                place.pauses.append(r.i)
        if r.event == "snapshot":
            self._snapshot(r)
        elif r.event == "adopt":
            self._adopt(r)

    def _snapshot(self, r: Record) -> None:
        """A4: what is being performed would be half in it; not what only reads, and has called nobody so far."""
        place = self._place_here(r.replica)
        for instance in place.own:
            if instance.ended is None and self._leaves_trace(instance):
                self.blame("A4", f"{place.name} gave its state to {r.to} while {instance.invocation} is running")

    def _adopt(self, r: Record) -> None:
        place = self._place_here(r.replica)
        if place.performed or place.ready is not None:
            self.blame("A1", f"{place.name} adopted {r.ticket or 'the initial state'}, but it had a state already")
            return
        place.ready, place.took = r.view, r.i
        if not r.ticket:
            place.history = self.life[1]
            if not self.views.formed(r.view):
                self.falls.append((place, r.view))
            return
        self.verdict.adopted += 1
        if is_unwritten(r.ticket):
            place.torn = True
            self.verdict.torn += 1
            return
        replica, since, i = parse_ticket(r.ticket)
        if place.torn:
            return
        donor = self.places[named(replica, since)]
        if not self.views.has(r.view, donor.life):
            self.falls.append((place, r.view))
        taken = donor.performed[: donor.adopted]
        running = [p.invocation for p in donor.own if p.start <= i and (p.ended is None or p.ended.i > i)]
        taken += [
            p
            for p in donor.own
            if p.ended is not None and p.ended.i <= i and not any(self.within(p.invocation, r) for r in running)
        ]
        place.clock = max([int(p.sid.partition(":")[0]) for p in taken], default=0)
        taken += self._kept(r, place.object)
        place.history, place.torn = donor.history, donor.torn
        place.adopted = len(taken)
        place.performed = taken
        place.by_invocation = {p.invocation: p for p in taken}
        for p in taken:
            place.delivered |= self.of_invocation[p.invocation]

    def _kept(self, r: Record, name: str) -> list[Performed]:
        """What is in the state beside that of its ticket: it had been performed, and its transaction was committed when
        the state was adopted; or another replica of tran had performed it."""
        found = {}
        for place in self.places.values():
            for p in place.own if place.object == name else ():
                if p.invocation in r.open and (p.invocation not in found or p.ended is not None):
                    found[p.invocation] = p
        for unknown in [i for i in r.open if i not in found]:
            self.blame("A1", f"{r.node} record {r.i}: {r.replica} adopted {unknown}, which nobody has performed")
        return [oracle_tran.settled(found[i], r) for i in r.open if i in found]

    def _fall(self) -> None:
        """Which objects have lost all replicas that had a state? Each record says only what one of them began with."""
        self.fallen = {place.object for place, version in self.falls if not self._has_a_state(place, version)}

    def _has_a_state(self, place: Place, version: int) -> bool:
        """Had another replica of this object one when this view began?"""
        others = [p for p in self.places.values() if p.object == place.object and p is not place]
        return any(p.ready is not None and p.ready < version and self.views.has(version, p.life) for p in others)

    def _leaves_trace(self, instance: Performed) -> bool:
        assert instance.footprint is not None
        return instance.acted or not instance.footprint.readonly
