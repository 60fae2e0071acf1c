"""A9, no stop: while a view changes, requests between survivors that need nothing from the departed are delivered.

"While" and "delivered" are told by time here, and by a bound that the caller gives: this is for the simulator, where
all nodes have one clock. A change lasts from when somebody took part in it (`change`), or a life that is lost in it
wrote its last record, until the last of those who stay has installed the new view.

A request needs something from others when, at its destination, a conflicting request waits or runs meanwhile, one that
significantly precedes it is not performed yet, or the state has not come yet. A member that was to leave and stays
after all counts as one who leaves: whoever promised to go on without it did not listen to it meanwhile.
"""

from framework.sim.oracle_views import Life
from framework.sim.verdict import Facts, Group, Place


def judge(run: Facts, bound: float) -> None:
    told: set[tuple[str, str]] = set()
    adopted = _adopted(run)
    for before, after in run.views.changes():
        old = set(run.views.members[before].items())
        stay = old & set(run.views.members[after].items())
        window = _window(run, before, after, old - stay, stay)
        if window is None:
            continue
        stay = {life for life in stay if life[0] not in _to_leave(run, before)}
        for group in run.groups.values():
            if window[0] <= group.at <= window[1] and group.origin in stay:
                if all(place.life in stay for place in group.places.values()):
                    _delivered(run, group, bound, after, adopted, told)


def _to_leave(run: Facts, version: int) -> set[str]:
    """Nodes that somebody would have left out of the next view."""
    return {n for t in run.traces for r in t.records if r.event == "change" and r.view == version for n in r.members}


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
    version: int,
    adopted: dict[tuple[Life, str], float],
    told: set[tuple[str, str]],
) -> None:
    for place in group.places.values():
        done = place.by_invocation.get(group.invocations[place.object])
        if done is None or done.at <= group.at + bound or (place.name, group.name) in told:
            continue  # what is never delivered is A8
        waits = adopted.get((place.life, place.replica), group.at) > group.at
        if not waits and not _needs_others(group, place, done.at):
            told.add((place.name, group.name))
            run.blame(
                "A9",
                f"{place.name} delivered {done.invocation} {done.at - group.at:g} after it was sent, while view "
                f"{version} was being formed; it needed nothing from those who left (bound: {bound:g})",
            )


def _needs_others(group: Group, place: Place, until: float) -> bool:
    mine = group.parts[place.object]
    for other in place.groups:
        if other is group or other.at > until:
            continue
        over = place.over.get(other.name)
        if place.conflict(mine, other.parts[place.object]) and (over is None or over.at > group.at):
            return True
        done = place.by_invocation.get(other.invocations[place.object])
        if group.before & other.bits[place.object] and (done is None or done.at > group.at):
            return True
    return False
