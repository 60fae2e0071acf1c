"""Rules about a whole run, read from what the oracle has replayed: one order (A3), equal states (A7), nothing left over
(A8), and that compatible calls do not wait for each other."""

from collections import Counter
from itertools import combinations

from framework.footprint import Footprint
from framework.sim.oracle_views import named
from framework.sim.verdict import Facts, Performed, Place


def judge(run: Facts) -> None:
    _agreement(run)
    _states(run)
    _alike(run)
    _compatible(run)
    _needless(run)


def _agreement(run: Facts) -> None:
    """A3: conflicting requests are delivered in one order at all common destinations, also those that crashed.

    Over all objects: two acts that conflict on several objects (pcast) have one order on all of them."""
    judged: list[tuple[Place, dict[str, int]]] = []  # with the position of each act
    for place in run.places.values():
        done = place.performed
        _count(run, place)
        positions = {p.group.act: n for n, p in enumerate(done) if p.group is not None}
        others = [(other, at, _elsewhere(done, at)) for other, at in judged if not at.keys().isdisjoint(positions)]
        for i, j in combinations(sorted({n for *_, moved in others for n in moved}), 2):
            a, b = done[i], done[j]
            if j < place.adopted or not place.conflict(a.footprint, b.footprint):
                continue  # what was adopted has the order of the donor
            if run.lost(a) or run.lost(b):
                continue
            for other, at, moved in others:
                if i in moved and j in moved and _reversed(run, place, a, b, other, at):
                    run.blame(
                        "A3",
                        f"{place.name} delivered {a.invocation} ({a.footprint}) before {b.invocation} "
                        f"({b.footprint}), {other.name} the other way round",
                    )
                    break
        judged.append((place, positions))


def _count(run: Facts, place: Place) -> None:
    """Pairs of which this life performed the second, and those of them that conflict. Footprints are few."""
    earlier: Counter[Footprint | None] = Counter()
    for n, instance in enumerate(place.performed):
        if n >= place.adopted:
            run.verdict.pairs += n
            alike = (count for f, count in earlier.items() if place.conflict(f, instance.footprint))
            run.verdict.ordered += sum(alike)
        earlier[instance.footprint] += 1


def _elsewhere(done: list[Performed], at: dict[str, int]) -> set[int]:
    """Those of ``done`` that do not stand between the same others there as here. All pairs that are the other way round
    are among them, so that not all pairs have to be looked at."""
    both = [(n, at[p.group.act]) for n, p in enumerate(done) if p.group is not None and p.group.act in at]
    moved: set[int] = set()
    largest = -1
    for n, there in both:
        if there <= largest:
            moved.add(n)
        largest = max(largest, there)
    least = max((there for _, there in both), default=0) + 1
    for n, there in reversed(both):
        if there >= least:
            moved.add(n)
        least = min(least, there)
    return moved


def _reversed(run: Facts, place: Place, a: Performed, b: Performed, other: Place, at: dict[str, int]) -> bool:
    assert a.group is not None and b.group is not None
    x, y = at.get(a.group.act), at.get(b.group.act)
    if x is None or y is None or x < y:
        return False
    a2, b2 = other.performed[x], other.performed[y]
    if place.object != other.object and any(p.joined or run.lost(p) for p in (a, b, a2, b2)):
        return False  # on one object it stands at the place of what its transaction holds there; the whole is T3
    if place.history != other.history:
        return False  # one of the two objects has lost its state: what it performs again is not what it had performed
    return (
        other.conflict(a2.footprint, b2.footprint)
        and all(_common(p, p2, other) for p, p2 in ((a, a2), (b, b2)))
        and all(_common(p2, p, place) for p, p2 in ((a, a2), (b, b2)))
    )


def _common(mine: Performed, theirs: Performed, other: Place) -> bool:
    """Had this one, as performed elsewhere, the ``other`` as a destination, too? ``theirs`` is what that performed of
    the same act. Between lives of the final view all copies of a call that changes something count as one. But what a
    life that has gone performed may be repeated by a client to those that are left; that this comes at the right place
    is A5. And a read may be repeated anywhere, also one of an act that changes another object."""
    if other.final and mine.changes and theirs.changes:
        return True
    return mine.group is not None and mine.group.places.get(other.replica) is other


def _compatible(run: Facts) -> None:
    """Equal compatibility identifiers mean compatible (P3 §4.1, protocol.md §3.4)."""
    for place in run.places.values():
        epochs: dict[str, list[Performed]] = {}
        for instance in [p for p in place.own if p.cid and not p.passed_over]:
            for other in epochs.setdefault(instance.cid, []):
                if place.conflict(instance.footprint, other.footprint):
                    run.blame(
                        "P3 §4.1", f"{place.name}: {instance.sid} and {other.sid} conflict, with cid {instance.cid}"
                    )
            epochs[instance.cid].append(instance)


def _needless(run: Facts) -> None:
    """Compatible calls never wait for each other: one that brought no context and was agreed on, but not started at
    once, must have had a conflicting one before it; or a state was awaited here, or asked for: a replica may hold
    requests back until nothing runs, to give it, and let them go again."""
    for place in run.places.values():
        for instance, since, view in place.waited:
            if instance.group is None or instance.group.entries:
                continue
            if any(since < i < instance.start for i in place.pauses) or run.is_asked(place, view, since):
                continue
            if not any(
                (other.name not in place.over or place.over[other.name].i > since)
                and other is not instance.group
                and place.conflict(instance.footprint, other.parts[place.object])
                for other in place.groups
            ):
                run.blame("OBO", f"{place.name} kept {instance.invocation} waiting, but nothing conflicts with it")


def _states(run: Facts) -> None:
    """A7: same requests that change it, same state, at all that are in the final view."""
    seen: dict[tuple[str, frozenset[str]], tuple[str, str]] = {}
    for place in run.places.values():
        if not place.states or not place.final or place.torn or any(p.ended is None for p in place.own):
            continue  # with an instance that still runs the state is none in between two requests
        record = place.states[-1]
        done = frozenset(p.invocation for p in place.performed if p.ended and p.ended.committed and p.changes)
        digest, where = seen.setdefault((place.object, done), (record.digest, place.name))
        if digest != record.digest:
            run.blame(
                "A7",
                f"{where} and {place.name} performed the same {len(done)} changes, but their states differ: "
                f"{digest}, {record.digest}",
            )


def _alike(run: Facts) -> None:
    """A7, too: a request that changes state commits at all replicas that perform it, or at none. One that is excluded
    may have aborted it alone, cut off from what it called."""
    ends: dict[tuple[str, str], tuple[bool, str]] = {}
    for place in run.places.values():
        for instance in place.performed if place.final else ():
            if instance.ended is None or not instance.changes:
                continue
            committed = instance.ended.committed
            first, where = ends.setdefault((place.object, instance.invocation), (committed, place.name))
            if first != committed:
                yes, no = (where, place.name) if first else (place.name, where)
                run.blame("A7", f"{instance.invocation} committed at {yes} and aborted at {no}")


def judge_liveness(run: Facts, ended: bool) -> None:
    """A8, when all that are in the final view say that they have stopped: everything that one of them sent to another
    was delivered there, everything started has ended, and who joined has its state."""
    for life, record in run.stopped.items():
        for what in record.open if life in run.views.final else ():
            run.blame("A8", f"{named(*life)} stopped with {what}")
    if ended:
        for node, since in sorted(run.views.final):
            if (node, since) not in run.stopped:
                run.blame("A8", f"{named(node, since)} has ended, but is still in view {run.views.last}")
    if not run.is_over():
        return
    for life, record in run.stopped.items():
        if life in run.views.final and record.view < run.views.last:
            run.blame("A8", f"{named(*life)} stopped in view {record.view}; the last one is {run.views.last}")
    for name, group in run.groups.items():
        for place in group.places.values() if group.origin in run.views.final else ():
            invocation = group.invocations[place.object]
            known = place.final and place.ready is not None and not place.torn
            if known and invocation not in place.by_invocation:
                text = f"{name} ({invocation}) was never delivered at {place.name}"
                run.blame_missing("A8", place, invocation, text)
    for place in run.places.values():
        if place.final and place.ready is None:
            run.blame("A8", f"{place.name} never got its state")
        for instance in place.own if place.final else ():
            if instance.ended is None:
                run.blame("A8", f"{instance.invocation} at {place.name} never ended")
