"""From facts about single requests to one text that says who waits for whom, and whether that is a deadlock."""

from collections.abc import Iterable, Mapping, Sequence

from framework.ids import Replica
from framework.orb.facts import Fact, Spot

Key = tuple[Replica, str, bool]
Known = Mapping[Key, Fact]

LONGEST = 16  # lines of a text; what is longer helps nobody


def told(roots: Sequence[Spot], facts: Known) -> str:
    """Why those at ``roots`` do not answer. A cycle alone, if there is one that nothing will break."""
    cycle = _cycle(roots, facts, _stuck(facts))
    if cycle:
        lines = [_line(f, (f.spot.replica,), facts) for f in cycle]
        return f"{_short(lines)}: a deadlock"
    return _short(_lines(_reached(roots, facts), facts))


def _stuck(facts: Known) -> set[Key]:
    """Those that cannot go on, whatever the others do. Of whom nothing is known may go on."""
    stuck = {key for key, fact in facts.items() if not fact.free}
    while True:
        freed = {key for key in stuck if _may_go_on(facts[key], stuck)}
        if not freed:
            return stuck
        stuck -= freed


def _may_go_on(fact: Fact, stuck: set[Key]) -> bool:
    return bool(fact.waits) and sum(spot.key not in stuck for spot in fact.waits) >= fact.need


def _cycle(roots: Sequence[Spot], facts: Known, stuck: set[Key]) -> list[Fact]:
    """A way from a root into a cycle, up to where it closes; empty if there is none."""
    done: set[Key] = set()
    for root in roots:
        path: list[Key] = []
        todo = [(root.key, 0)]  # whom to look at, and how long the path to it is
        while todo:
            key, depth = todo.pop()
            del path[depth:]
            if key in path:
                return [facts[k] for k in path]
            if key in done or key not in stuck:
                continue
            done.add(key)
            path.append(key)
            todo += [(spot.key, depth + 1) for spot in reversed(facts[key].waits)]
    return []


def _reached(roots: Sequence[Spot], facts: Known) -> list[Fact]:
    """In the order in which one would ask."""
    keys = dict.fromkeys(spot.key for spot in roots)
    todo = list(keys)
    for key in todo:
        for spot in facts[key].waits if key in facts else ():
            if spot.key not in keys:
                keys[spot.key] = None
                todo.append(spot.key)
    return [facts[key] for key in keys if key in facts]


def _lines(found: Iterable[Fact], facts: Known) -> list[str]:
    """What is the same at several replicas is told once."""
    alike: dict[str, tuple[Fact, list[Replica]]] = {}
    for fact in found:
        alike.setdefault(_line(fact, (), facts), (fact, []))[1].append(fact.spot.replica)
    return [_line(fact, list(dict.fromkeys(at)), facts) for fact, at in alike.values()]


def _line(fact: Fact, at: Sequence[Replica], facts: Known) -> str:
    names = dict.fromkeys(_name(spot, facts) for spot in fact.waits)
    return f"{fact.what} of {fact.spot.name} at {', '.join(at)} {fact.why.replace('{}', ', '.join(names))}"


def _name(spot: Spot, facts: Known) -> str:
    known = facts.get(spot.key)
    return f"{known.what if known is not None else spot.replica.partition('@')[0]} of {spot.name}"


def _short(lines: Sequence[str]) -> str:
    more = len(lines) - LONGEST
    return "; ".join(lines[:LONGEST]) + (f"; and {more} more" if more > 0 else "")
