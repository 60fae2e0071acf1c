"""Rules about what the lives that ended leave behind: uniformity (A5), nothing acknowledged is lost (A10), and that a
state which is handed on is the state at the cut between two views (protocol.md §11.1).

They say what must have happened, so they are judged when all lives of the final view have stopped. A *survivor* is a
replica whose life is in the final view.
"""

from framework.sim.verdict import Facts, Group, Performed, Place


def judge(run: Facts) -> None:
    _order(run)
    if run.is_over():
        _acknowledged(run)
        _uniform(run)
        _cut(run)
        _one_history(run)


def _after_agreement(instance: Performed) -> bool:
    return instance.way in ("fast", "slow")


def _uniform(run: Facts) -> None:
    """A5, first half: what any replica delivered after agreement every surviving destination delivers. (What survivors
    sent each other is delivered anyway: A8.)"""
    for place in run.places.values():
        for instance in filter(_after_agreement, place.own):
            group = instance.group
            assert group is not None
            if place.final and group.origin in run.views.final:
                continue
            for dest in group.places.values():
                invocation = group.invocations[dest.object]
                known = dest.final and dest.ready is not None and not dest.torn  # who never got a state: A8
                if known and invocation not in dest.by_invocation:
                    text = f"{place.name} delivered {group.name} ({invocation}) after agreement, {dest.name} never did"
                    run.blame_missing("A5", dest, invocation, text)


def _order(run: Facts) -> None:
    """A5, second half: what a surviving destination performs before it and conflicts with it, one that has gone had
    performed before it, if it was sent there, too."""
    for gone in run.places.values():
        if gone.final:
            continue
        index = {p.invocation: n for n, p in enumerate(gone.performed)}
        for instance in filter(_after_agreement, gone.own):
            assert instance.group is not None
            for dest in instance.group.places.values():
                alike = dest.object == gone.object and dest.history == gone.history
                if dest.final and alike and instance.invocation in dest.by_invocation:
                    _earlier(run, gone, index, instance, dest)


def _earlier(run: Facts, gone: Place, index: dict[str, int], instance: Performed, dest: Place) -> None:
    for other in dest.performed:
        if other.invocation == instance.invocation:
            return
        if not dest.conflict(other.footprint, instance.footprint):
            continue
        if run.lost(other) or run.lost(instance):
            continue
        assert other.group is not None
        sent_there = other.group.places.get(gone.replica) is gone
        if sent_there and index.get(other.invocation, len(index)) > index[instance.invocation]:
            run.blame(
                "A5",
                f"{dest.name} performed {other.invocation} before {instance.invocation}, with which it conflicts; "
                f"{gone.name}, which has gone, delivered {instance.invocation} after agreement without it",
            )


def _goes_to_all(run: Facts, group: Group, name: str) -> bool:
    """To every replica of this object that there was in its view: then it belongs to the state of the object."""
    there = {r for r in run.objects[name].replicas if r.partition("@")[2] in run.views.members.get(group.view, {})}
    return there <= group.dests


def _concerned(run: Facts, group: Group, name: str) -> list[Place]:
    """The survivors whose state must have this request in it: destinations, and those who joined later."""
    later = _goes_to_all(run, group, name)
    return [p for p in run.survivors(name) if group.places.get(p.replica) is p or (later and p.life[1] > group.view)]


def _acknowledged(run: Facts) -> None:
    """A10: a change that a majority of the replicas answered with ok is in the state of every survivor. Not promised,
    unless the object is durable, when one view change took a majority of the replicas that had a state. If it is
    durable, so is a change of which a client has learnt by a read, from whatever replica."""
    lost = {name: _lost_majority(run, name) for name in run.objects}
    for group, name in run.acknowledged:
        if group.tran and not _is_committed(run, group, name):
            continue
        _is_there(run, group, name, lost[name], f"acknowledged by a majority of {name}")
    for (group, name), read in run.seen.items():
        _is_there(run, group, name, lost[name], f"performed at a replica of {name} where {read} has read it")


def _is_committed(run: Facts, group: Group, name: str) -> bool:
    """What is part of a transaction is answered before that is decided, and acknowledged with it."""
    return bool(run.fate(Performed("", group, group.invocations[name], None, 0)))


def _is_there(run: Facts, group: Group, name: str, lost: list[int], known: str) -> None:
    invocation = group.invocations[name]
    for place in _concerned(run, group, name):
        done = place.by_invocation.get(invocation)
        if done is not None and (done.ended is None or done.ended.committed):
            continue
        promised = run.objects[name].durable and not _part_of_lost(run, group, invocation, place)
        if not promised and any(version > group.view for version in lost):
            run.verdict.unpromised += 1
            run.missing.add((place.name, invocation))
            continue
        what = "has not performed it" if done is None else "aborted it"
        run.blame_missing("A10", place, invocation, f"{invocation} was {known}, but {place.name} {what}")


def _part_of_lost(run: Facts, group: Group, invocation: str, place: Place) -> bool:
    """Did it come back to an instance of this object that waited for it, and that is lost? It was a part of that one.
    Who repeats that one begins from the beginning; perhaps nobody calls it back then, who has been answered before."""
    dests = [d for d in group.places.values() if d.object == place.object]
    waited = [p for d in dests for p in d.performed if run.within(invocation, p.invocation)]
    there = [place.by_invocation.get(p.invocation) for p in waited]
    return bool(waited) and not any(p is q for p in waited for q in there)


def _lost_majority(run: Facts, name: str) -> list[int]:
    """Versions of views that came without half or more of the replicas that had a state in the one before."""
    found = []
    for before, after in run.views.changes():
        ready = [
            p
            for p in run.places.values()
            if p.object == name and p.ready is not None and p.ready <= before and run.views.has(before, p.life)
        ]
        gone = [p for p in ready if not run.views.has(after, p.life)]
        if gone and 2 * len(gone) >= len(ready):
            found.append(after)
    return found


def _cut(run: Facts) -> None:
    """protocol.md §11.1: who joins gets the state as of the view change, and then the requests of the new view. So a
    change that was sent to all replicas in an earlier view, and which all its surviving destinations performed, is in
    what it adopted.
    """
    for group in run.groups.values():
        for name, footprint in group.parts.items():
            if footprint.readonly or not _goes_to_all(run, group, name):
                continue
            invocation = group.invocations[name]
            dests = [p for p in run.survivors(name) if group.places.get(p.replica) is p]
            if not dests or not all(invocation in p.by_invocation for p in dests):
                continue
            for place in run.survivors(name):
                if place.life[1] > group.view and invocation not in place.by_invocation:
                    text = (
                        f"{place.name} joined in view {place.life[1]} without {invocation}, which was sent in view "
                        f"{group.view} and performed at {dests[0].name}"
                    )
                    run.blame_missing("A7", place, invocation, text)


def _one_history(run: Facts) -> None:
    """A7, too: no replica begins with nothing beside one that has what was performed before. What one of them lacks
    may have been told by now."""
    told = {name for name, _ in run.missing}
    for name in run.objects:
        places = run.survivors(name)
        for place in places:
            first = places[0]
            if place.history != first.history and told.isdisjoint((place.name, first.name)):
                run.blame("A7", f"{first.name} {_began(first)}, and {place.name} {_began(place)}")


def _began(place: Place) -> str:
    return f"began with nothing in view {place.history}" if place.history else "has the state from the beginning"
