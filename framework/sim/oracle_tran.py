"""Rules about transactions, from the definitions: all or nothing, and as if one after the other.

- T1 one outcome: all replicas of tran that delivered an outcome of a transaction first delivered the same one; also
  those that crashed right after. Where the parts of a transaction decide, the last of their votes is an outcome.
- T2 atomicity: of a transaction that is committed, all that ended well at a replica is committed there; of one that is
  aborted, nothing is, on any replica. What is part of a callee that was undone, or failed, is undone with it.
- T3 isolation: the graph of conflicts between committed transactions, over all objects and replicas, has no cycle: they
  could have been performed one after the other. A read that went to some of the replicas only, as a client may wish,
  says nothing about the others: it is no part of the graph (docs/transactions.md).
- No slot stays taken: whatever is held at the end shows as A8 (it never ended).

A call that nobody waits for (one-way), or that is declared so, is a transaction of its own (P1 §2.4: independent
instantiation). So is each call of a client outside of a transaction.
"""

from collections.abc import Sequence
from copy import copy

from msgspec import structs

from framework.footprint import Footprint
from framework.sim.verdict import Facts, Performed, Place
from framework.trace.record import Record

TRAN = "tran"


def judge(run: Facts, outbox: bool = False) -> None:
    if TRAN not in run.objects or (_all_lost(run) and not run.objects[TRAN].durable):
        return  # all nodes were lost at once, and with them what was decided
    _one_outcome(run)
    _atomic(run)
    if outbox:
        _unsent(run)
    if run.is_over():
        _told(run)
    if not _all_lost(run):
        _isolated(run)


def _unsent(run: Facts) -> None:
    """T2, too: a one-way call leaves when its caller is committed, and not at all if that is aborted."""
    for group in run.groups.values():
        ended = run.callers[group.sid].ended
        if group.kind == "oneway" and TRAN not in group.parts and ended is not None and not ended.committed:
            run.blame("T2", f"{group.act} was sent by {group.sid}, which was aborted")


def _all_lost(run: Facts) -> bool:
    return TRAN in run.fallen or any(version > 1 and run.views.formed(version) for version in run.views.members)


def _one_outcome(run: Facts) -> None:
    """Where all replicas of tran were lost at once, only what is on a disk counts: what those have that came after."""
    found: dict[str, tuple[bool, str]] = {}
    here: dict[str, set[str]] = {place.name: set() for place in run.places.values()}
    for place in run.places.values():
        for instance in place.performed if place.object == TRAN and (place.final or not _all_lost(run)) else ():
            name, commit = outcome(run, place, instance) or ("", False)
            if not name or name in here[place.name]:
                continue  # it is known here
            here[place.name].add(name)
            first, where = found.setdefault(name, (commit, place.name))
            if first != commit:
                run.blame("T1", f"{name} is {_word(first)} at {where} and {_word(commit)} at {place.name}")


def outcome(run: Facts, place: Place, instance: Performed) -> tuple[str, bool] | None:
    """What is decided by this instance of tran: a transaction, or a part of one, and whether it is committed. A vote
    decides if it is the last one at this replica."""
    assert instance.footprint is not None
    name = decided(instance.invocation)
    if instance.footprint.method != "vote":
        return name, instance.footprint.method == "commit"
    whole = decided(decided(name))
    votes = _votes(run, place, whole)
    cast = [place.performed.index(v) for v in votes if v is not None]
    return (whole, True) if len(cast) == len(votes) and max(cast) == place.performed.index(instance) else None


def is_aborted(run: Facts, place: Place, name: str) -> bool:
    """Has this replica of tran heard an abort, and not all votes before it?"""
    told = place.by_invocation.get(f"{name}.0")
    if told is None or told.footprint is None or told.footprint.method != "abort":
        return False
    votes = _votes(run, place, name)
    before = place.performed[: place.performed.index(told)]
    return not votes or not all(v is not None and v in before for v in votes)


def _votes(run: Facts, place: Place, name: str) -> list[Performed | None]:
    """Of each part: its vote, if this replica of tran has delivered it."""
    found = [place.by_invocation.get(f"{part}.0.0") for part in run.parts_of.get(name, ())]
    return [v if v is not None and v.footprint is not None and v.footprint.method == "vote" else None for v in found]


def part(run: Facts, r: Record, invocation: str, bit: int, caller: Performed) -> None:
    """A message that is part of a transaction was sent."""
    run.of_tran[r.tran] = run.of_tran.get(r.tran, 0) | bit
    if decided(invocation) == r.tran:
        run.parts_of.setdefault(r.tran, set()).add(invocation)
    if caller.invocation == r.tran:
        run.roots.add(r.sid)


def decided(invocation: str) -> str:
    """c1/3.2.0 decides on c1/3.2."""
    return invocation.rpartition(".")[0]


def _word(commit: bool) -> str:
    return "committed" if commit else "aborted"


def _judged(run: Facts) -> list[Place]:
    """Not those of objects that were lost: what somebody still held of them is not of one moment with others. Unless
    they are durable: then in the end it is."""
    return [p for p in run.places.values() if p.object != TRAN and _is_judged(run, p)]


def _is_judged(run: Facts, place: Place) -> bool:
    lost = _all_lost(run) or place.object in run.fallen
    return not lost or (place.final and run.objects[place.object].durable and run.objects[TRAN].durable)


def _told(run: Facts) -> None:
    """What the caller of a root was told is so: all that belongs to it is committed, whoever crashes."""
    for group, name in run.acknowledged:
        root = group.invocations[name]
        parts = {part for part in run.parts_of.get(root, ()) if run.kinds.get(part) != "oneway"}
        if not group.tran and parts and run.outcomes.get(root) is not True:
            run.blame("T2", f"{root} was acknowledged by a majority of {name}, and is not committed")


def recall(run: Facts) -> None:
    """Where all replicas of tran were lost at once, what was decided is what those know that came after: all that was
    on a disk. What was on none nobody outside has been told of (``_told``, A10)."""
    if TRAN not in run.objects or not run.objects[TRAN].durable or not _all_lost(run):
        return
    run.outcomes = {}
    for place in run.places.values():
        for instance in place.performed if place.object == TRAN and place.final else ():
            if (found := outcome(run, place, instance)) is not None:
                run.outcomes.setdefault(*found)


def settled(instance: Performed, adopted: Record) -> Performed:
    """As it is in a state that was adopted with it."""
    out = copy(instance)
    if out.ended is None:
        out.ended = structs.replace(adopted, event="end", sid=out.sid, invocation=out.invocation)
    return out


def _atomic(run: Facts) -> None:
    surviving = {p.tran for place in run.places.values() if place.final for p in place.performed if _is_part(p)}
    for place in _judged(run):
        for instance in place.performed:
            if instance.ended is None or not _takes_part(run, instance, surviving):
                continue
            fate, root = run.fate(instance), instance.invocation == instance.tran
            if instance.ended.committed and fate is not True:
                said = "was aborted, or a part of it with this" if fate is False else "was never decided"
                run.blame("T2", f"{place.name} committed {instance.invocation} of {instance.tran}, which {said}")
            elif not instance.ended.committed and fate is True and (root or _ended_well(instance)):
                run.blame("T2", f"{place.name} undid {instance.invocation} of {instance.tran}, which was committed")


def _is_part(instance: Performed) -> bool:
    return instance.group is not None and bool(instance.group.tran)


def _takes_part(run: Facts, instance: Performed, surviving: set[str]) -> bool:
    """In a transaction of several: it is part of one, or one with parts, which it called itself or which are there.
    What another replica had called, and is lost with it, is nothing to decide on."""
    return _is_part(instance) or instance.sid in run.roots or instance.invocation in surviving


def _ended_well(instance: Performed) -> bool:
    return instance.prepared is not None and instance.prepared.committed


def _isolated(run: Facts) -> None:
    after: dict[str, dict[str, str]] = {}  # transaction -> those that come after it, and where
    for place in _judged(run):
        _conflicts(run, place, after)
    found = cycle(after)
    if found:
        told = "; ".join(f"{a} before {b} at {after[a][b]}" for a, b in zip(found, [*found[1:], found[0]], strict=True))
        run.blame("T3", f"no order of these transactions explains the run: {told}")


def _conflicts(run: Facts, place: Place, after: dict[str, dict[str, str]]) -> None:
    """What it adopted has the order of the donor, and was looked at there. Calls that do the same are looked at
    together: a long run has many of them, and few that differ. If they conflict with each other the last one is enough:
    the others come before it."""
    before: dict[Footprint | None, dict[str, None]] = {}  # by what they did: transactions
    clashes: dict[tuple[Footprint | None, Footprint | None], bool] = {}

    def clash(f: Footprint | None, g: Footprint | None) -> bool:
        if (f, g) not in clashes:
            clashes[f, g] = place.conflict(f, g)
        return clashes[f, g]

    for n, later in enumerate(place.performed):
        if later.ended is None or not later.ended.committed or _is_lone(run, place, later):
            continue
        for footprint, trans in before.items() if n >= place.adopted else ():
            for earlier in trans if clash(footprint, later.footprint) else ():
                if earlier != later.tran:
                    after.setdefault(earlier, {}).setdefault(later.tran, place.name)
        if clash(later.footprint, later.footprint):
            before[later.footprint] = {later.tran: None}
        else:
            before.setdefault(later.footprint, {})[later.tran] = None


def _is_lone(run: Facts, place: Place, instance: Performed) -> bool:
    """A read that did not go to all replicas of its object that were there; or one that nobody was told of: its
    transaction was over, and known to be, when it came to its turn at this replica. (Else it is prepared.)"""
    group = instance.group
    if instance.changes or group is None:
        return False
    if _is_part(instance) and instance.prepared is None:
        return True
    there = {r for r in run.objects[place.object].replicas if r.partition("@")[2] in run.views.members[group.view]}
    return not there <= group.dests


def cycle(after: dict[str, dict[str, str]]) -> list[str]:
    """Some cycle, or nothing. By depth, with a stack of its own: runs are long."""
    over: set[str] = set()
    for start in sorted(after):
        path: list[str] = []
        stack = [(start, iter(sorted(after.get(start, {}))))] if start not in over else []
        while stack:
            name, rest = stack[-1]
            if len(path) < len(stack):
                path.append(name)
            step = next(rest, None)
            if step is None:
                over.add(name)
                stack.pop()
                path.pop()
            elif step in path:
                return path[path.index(step) :]
            elif step not in over:
                stack.append((step, iter(sorted(after.get(step, {})))))
    return []


def wait_for(held: Sequence[Performed], place: Place) -> int:
    """What is not delivered here and cannot be, as long as these are held: it conflicts with one of them, or with
    such a one, or comes after such a one."""
    waiting, footprints, moved = 0, [p.footprint for p in held], True
    rest = [g for g in place.groups if not g.bits[place.object] & place.delivered]
    while moved:
        moved = False
        for group in tuple(rest):
            mine = group.parts[place.object]
            if group.before & waiting or any(place.conflict(mine, f) for f in footprints):
                waiting |= group.bits[place.object]
                footprints.append(mine)
                rest.remove(group)
                moved = True
    return waiting
