"""A9, no stop: while a view changes, requests between survivors that need nothing from the departed are delivered.

"While" and "delivered" are told by time here, and by a bound that the caller gives: this is for the simulator, where
all nodes have one clock. A change lasts from when somebody took part in it (`change`), or a life that is lost in it
wrote its last record, until the last of those who stay has installed the new view.

A request needs something from others when, at its destination, a conflicting request waits or runs meanwhile, one that
significantly precedes it is not performed yet or needs those who leave to get its place (if only as a copy of a call
that was performed), or the state has not come yet. The same holds for outcomes of transactions that precede it, at the
replica of tran on the node of its destination: it starts after them there (protocol.md §7.4). A member that was to
leave and stays after all counts as one who leaves: whoever promised to go on without it did not listen to it meanwhile.
So does one that crashes before the request is delivered, also if it is a member of the next view: who decided that had
heard it before, and it takes a suspicion and one more change until nobody waits for it.

What a request significantly follows is what the definitions say. Contexts may name more (docs/com.md): what only reads
is named by requests of its own caller alone, but the context of a request does not tell which of its entries are such,
so calls of the instance that performs it name them, too. That they wait for those has nothing to do with the change.
"""

from typing import NamedTuple

from framework.sim.oracle_tran import TRAN
from framework.sim.oracle_views import Life, named
from framework.sim.verdict import Facts, Group, Place


class Change(NamedTuple):
    """To the view of this version."""

    version: int
    begun: float
    over: float
    stay: set[Life]
    ends: dict[Life, float]  # of all lives that have ended: when they wrote their last record

    def has(self, life: Life, until: float) -> bool:
        """Does it stay, and is it there until then?"""
        return life in self.stay and self.ends.get(life, until) >= until


def judge(run: Facts, bound: float) -> None:
    told: set[tuple[str, str]] = set()
    adopted, ends = _adopted(run), _ends(run)
    for before, after in run.views.changes():
        change = _change(run, before, after, ends)
        if change is None:
            continue
        for group in run.groups.values():
            if change.begun <= group.at <= change.over:
                _delivered(run, group, bound, change, adopted, told)


def _change(run: Facts, before: int, after: int, ends: dict[Life, float]) -> Change | None:
    old = set(run.views.members[before].items())
    stay = old & set(run.views.members[after].items())
    window = _window(run, before, after, old - stay, stay)
    leaving = _to_leave(run, before)
    return Change(after, *window, {life for life in stay if life[0] not in leaving}, ends) if window else None


def _to_leave(run: Facts, version: int) -> set[str]:
    """Nodes that somebody would have left out of the next view."""
    return {n for t in run.traces for r in t.records if r.event == "change" and r.view == version for n in r.members}


def _ends(run: Facts) -> dict[Life, float]:
    """Of the lives that did not last until the end of the run."""
    lives = {(t.header.node, t.header.life): t.records for t in run.traces if t.records}
    return {life: records[-1].at for life, records in lives.items() if life not in run.views.final}


def _adopted(run: Facts) -> dict[tuple[Life, str], float]:
    """When lives that joined got the states of their replicas."""
    out = {}
    for trace in run.traces:
        life = (trace.header.node, trace.header.life)
        out.update({(life, r.replica): r.at for r in trace.records if r.event == "adopt"})
    return out


def _window(run: Facts, before: int, after: int, gone: set[Life], stay: set[Life]) -> tuple[float, float] | None:
    """When this change began and when it was over. None: it cannot be told, or it never was."""
    begun, over = [], []
    for trace in run.traces:
        life = (trace.header.node, trace.header.life)
        if life in stay:
            begun += [r.at for r in trace.records if r.event == "change" and r.view == before]
            over += [r.at for r in trace.records if r.event == "install" and r.view == after]
        elif life in gone and trace.records and trace.records[-1].event not in ("stop", "out"):
            begun.append(trace.records[-1].at)
    return (min(begun), max(over)) if begun and over else None


def _delivered(
    run: Facts,
    group: Group,
    bound: float,
    change: Change,
    adopted: dict[tuple[Life, str], float],
    told: set[tuple[str, str]],
) -> None:
    for place in group.places.values():
        done = place.by_invocation.get(group.invocations[place.object])
        if done is None or done.at <= group.at + bound or (place.name, group.name) in told:
            continue  # what is never delivered is A8
        if adopted.get((place.life, place.replica), group.at) > group.at:
            continue
        needed = group.origin, *(p.life for p in group.places.values())
        if not all(change.has(life, done.at) for life in needed):
            continue
        # it has its place when all of its destinations have proposed one
        first = _named(run, group)
        gate = _gate(run, first, place)
        if any(adopted.get((p.life, p.replica), group.at) > group.at for p in gate):
            continue
        held = any(_is_held(group, first, p, done.at, bound, change) for p in [*group.places.values(), *gate])
        if not held and not _meets_another(group, place, done.at):
            told.add((place.name, group.name))
            run.blame(
                "A9",
                f"{place.name} delivered {done.invocation} {done.at - group.at:g} after it was sent, while view "
                f"{change.version} was being formed; it needed nothing from those who left (bound: {bound:g})",
            )


def _meets_another(group: Group, place: Place, until: float) -> bool:
    mine = group.parts[place.object]
    for other in place.groups:
        if other is not group and other.at <= until and place.conflict(mine, other.parts[place.object]):
            over = place.over.get(other.name)
            if over is None or over.at > group.at:
                return True
    return False


def _named(run: Facts, group: Group) -> int:
    """What significantly precedes it, or was read before by those that wait for it."""
    named, caller = group.before, run.callers.get(group.sid)
    while caller is not None and caller.group is not None:
        named |= caller.group.before
        caller = run.callers.get(caller.group.sid)
    return named


def _gate(run: Facts, first: int, place: Place) -> list[Place]:
    """The replica of tran beside this one, if an outcome went there that precedes the request."""
    gate = run.places.get(named(f"{TRAN}@{place.life[0]}", place.life[1])) if place.object != TRAN else None
    return [gate] if gate is not None and first & gate.here else []


def _is_held(group: Group, first: int, place: Place, until: float, bound: float, change: Change) -> bool:
    """``first``: what comes before this group."""
    since = change.begun - bound  # what was sent before that had its place when the first one left
    for other in place.groups:
        if other is group or other.at > until or not first & other.bits[place.object]:
            continue
        done = place.by_invocation.get(other.invocations[place.object])
        if done is None or done.at > group.at:
            return True
        if other.at >= since and not all(change.has(p.life, until) for p in other.places.values()):
            return True
    return False
