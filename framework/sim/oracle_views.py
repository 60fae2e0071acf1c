"""The views of a run and the lives in them, as the traces tell them; and A6, which is about nothing else.

A *life* is one stay of a node in the group: its name, and the version of the view in which it began. A node that
crashed or was excluded comes back as another life. The *final* view is the one with the highest version that anybody
installed.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from framework.trace.files import Trace
from framework.trace.record import Header, Record

Life = tuple[str, int]


def named(name: str, life: int) -> str:
    """A node or replica with its life, as violations tell it: n1, and n1#4 for the one that joined in view 4."""
    return name if life == 1 else f"{name}#{life}"


class Views:
    def __init__(self, traces: Sequence[Trace]) -> None:
        self.members: dict[int, dict[str, int]] = {}  # per version: node and since when
        self.faults: list[str] = []  # A6
        self._lives: dict[str, set[int]] = {}
        for trace in traces:
            head = trace.header
            self._lives.setdefault(head.node, set()).add(head.life)
            self._take(head, head.view, head.node)
            self._follow(trace)
        for version, members in self.members.items():
            for node, since in members.items():
                self._lives.setdefault(node, set()).add(since)
            self.faults += self._strangers(version, members)
        for before, after in pairwise(sorted(self.members)):
            if after == before + 1:
                self.faults += self._majority(before, after)
        self.last = max(self.members, default=0)
        self.final: set[Life] = set(self.members.get(self.last, {}).items())

    def lives(self, node: str) -> list[int]:
        return sorted(self._lives.get(node, ())) or [1]

    def life_at(self, node: str, version: int) -> int:
        """The life that a request of this version is sent to: the last one that began by then."""
        lives = self.lives(node)
        return max((life for life in lives if life <= version), default=lives[0])

    def has(self, version: int, life: Life) -> bool:
        return self.members.get(version, {}).get(life[0]) == life[1]

    def formed(self, version: int) -> bool:
        """Did all its members begin with it?"""
        return all(since == version for since in self.members.get(version, {}).values())

    def changes(self) -> Iterator[tuple[int, int]]:
        """Versions that follow each other, as far as they are known."""
        yield from pairwise(sorted(self.members))

    def _take(self, told: Header | Record, version: int, node: str) -> None:
        members = dict(zip(told.members, told.since or (1,) * len(told.members), strict=True))
        known = self.members.setdefault(version, members)
        if known != members:
            self.faults.append(f"view {version} has two member lists: {_list(known)}; {_list(members)} at {node}")

    def _follow(self, trace: Trace) -> None:
        """What one life installs: later and later views, with itself in them; and nothing after it is out."""
        head = trace.header
        me, version, over = named(head.node, head.life), head.view, False
        for r in trace.records:
            if over:
                self.faults.append(f"{me} is out, but goes on with record {r.i}: {r.event}")
                return
            over = r.event == "out"
            if r.event != "install":
                continue
            if r.view <= version:
                self.faults.append(f"{me} installed view {r.view} after view {version}")
            version = r.view
            self._take(r, version, me)
            if dict(zip(r.members, r.since or (1,) * len(r.members), strict=True)).get(head.node) != head.life:
                self.faults.append(f"{me} installed view {version}, of which it is no member")

    def _strangers(self, version: int, members: dict[str, int]) -> Iterator[str]:
        """Who is a member was one in the view before, too, or has joined in this one: as a new life."""
        for node, since in members.items():
            if since < version and version - 1 in self.members and not self.has(version - 1, (node, since)):
                yield f"view {version} has {named(node, since)}, which was not in view {version - 1}: no new life"

    def _majority(self, before: int, after: int) -> Iterator[str]:
        """Each view holds a majority of the one before. One that is formed anew, because all had crashed, holds none of
        its lives; but a majority of its nodes, none of which can go on with the old one then."""
        old, new = self.members[before], self.members[after]
        kept = [node for node, since in new.items() if old.get(node) == since] or [n for n in new if n in old]
        if 2 * len(kept) <= len(old):
            yield f"view {after} ({_list(new)}) holds no majority of view {before} ({_list(old)})"


def _list(members: dict[str, int]) -> str:
    return ", ".join(named(node, since) for node, since in members.items())
