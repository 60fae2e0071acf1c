"""Rules about transactions, from the definitions: all or nothing, and as if one after the other.

- T1 one outcome: all replicas of tran that delivered an outcome of a transaction first delivered the same one; also
  those that crashed right after.
- T2 atomicity: of a transaction that is committed, all that ended well at a replica is committed there; of one that is
  aborted, nothing is, on any replica. What is part of a callee that was undone, or failed, is undone with it.
- T3 isolation: the graph of conflicts between committed transactions, over all objects and replicas, has no cycle: they
  could have been performed one after the other.
- No slot stays taken: whatever is held at the end shows as A8 (it never ended).

A call that nobody waits for (one-way), or that is declared so, is a transaction of its own (P1 §2.4: independent
instantiation). So is each call of a client outside of a transaction.
"""

from framework.sim.verdict import Facts, Performed, Place

TRAN = "tran"


def judge(run: Facts) -> None:
    if TRAN not in run.objects:
        return
    if run.fallen_back or any(version > 1 and run.views.formed(version) for version in run.views.members):
        return  # all replicas of an object were lost at once: what somebody still held is not of one moment
    outcomes = _one_outcome(run)
    _atomic(run, outcomes)
    _isolated(run)


def _one_outcome(run: Facts) -> dict[str, bool]:
    """By what was decided on: a transaction, or a part of one."""
    found: dict[str, tuple[bool, str]] = {}
    for place in run.places.values():
        for instance in place.performed if place.object == TRAN else ():
            assert instance.footprint is not None
            name, commit = decided(instance.invocation), instance.footprint.method == "commit"
            first, where = found.setdefault(name, (commit, place.name))
            if first != commit:
                run.blame("T1", f"{name} is {_word(first)} at {where} and {_word(commit)} at {place.name}")
    return {name: commit for name, (commit, _) in found.items()}


def decided(invocation: str) -> str:
    """c1/3.2.0 decides on c1/3.2."""
    return invocation.rpartition(".")[0]


def _word(commit: bool) -> str:
    return "committed" if commit else "aborted"


def _atomic(run: Facts, outcomes: dict[str, bool]) -> None:
    for place in run.places.values():
        for instance in place.performed if place.object != TRAN else ():
            if instance.ended is None or (instance.group is None or not instance.group.tran):
                root = instance.invocation in outcomes and instance.ended is not None
                if not root:
                    continue
            assert instance.ended is not None
            fate = _fate(instance, outcomes)
            if instance.ended.committed and fate is not True:
                said = "was aborted, or a part of it with this" if fate is False else "was never decided"
                run.blame("T2", f"{place.name} committed {instance.invocation} of {instance.tran}, which {said}")
            elif not instance.ended.committed and fate is True and _ended_well(instance):
                run.blame("T2", f"{place.name} undid {instance.invocation} of {instance.tran}, which was committed")


def _ended_well(instance: Performed) -> bool:
    return instance.prepared is not None and instance.prepared.committed


def _fate(instance: Performed, outcomes: dict[str, bool]) -> bool | None:
    """False if it, or something that it is a part of, up to the whole, was aborted; None if nothing is decided."""
    name, tran = instance.invocation, instance.tran
    while len(name) > len(tran):
        if outcomes.get(name) is False:
            return False
        name = name.rpartition(".")[0]
    return outcomes.get(tran)


def _isolated(run: Facts) -> None:
    after: dict[str, dict[str, str]] = {}  # transaction -> those that come after it, and where
    for place in run.places.values():
        if place.object == TRAN:
            continue
        _conflicts(place, after)
    cycle = _cycle(after)
    if cycle:
        told = "; ".join(f"{a} before {b} at {after[a][b]}" for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        run.blame("T3", f"no order of these transactions explains the run: {told}")


def _conflicts(place: Place, after: dict[str, dict[str, str]]) -> None:
    done = [p for p in place.performed if p.ended is not None and p.ended.committed]
    for n, later in enumerate(done):
        for earlier in done[:n]:
            if earlier.tran != later.tran and place.conflict(earlier.footprint, later.footprint):
                after.setdefault(earlier.tran, {}).setdefault(later.tran, place.name)


def _cycle(after: dict[str, dict[str, str]]) -> list[str]:
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
