"""What travels with a request so that every replica judges conflict alike (PROTOCOL §1).

Two calls conflict iff their methods are declared to conflict and their keys meet in something that is not read by
both. A call without keys meets every key.

``places`` and ``meets`` say the same as ``conflict`` in a form that an index can use: f and g conflict iff
``places(f)`` and ``meets(g)`` have a slot in common. Nothing in com/ then ever scans over waiting requests. A slot is
a string, not a tuple: its hash is computed once.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

Mode = Literal["r", "w"]
READ: Final[Mode] = "r"
WRITE: Final[Mode] = "w"

Keys = tuple[tuple[str, Mode], ...]


class Footprint(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Method, and the keys it touches with read or write for each; ``keys`` is None for a call without key.

    ``readonly`` is P1's N: the method does not change the object's state.
    """

    method: str
    keys: Keys | None = None
    readonly: bool = False

    def __str__(self) -> str:
        inside = "" if self.keys is None else ", ".join(f"{k}:{m}" for k, m in self.keys)
        return f"{self.method}({inside})" if self.keys is not None else self.method


_ALL = "\x00all"  # every call of the method, with or without key
_BARE = "\x00bare"  # the calls of the method without key
_BOUND = 4096


class Relation:
    """The conflict relation on the methods of one class: symmetric by construction."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        rows: dict[str, set[str]] = {}
        for a, b in pairs:
            rows.setdefault(a, set()).add(b)
            rows.setdefault(b, set()).add(a)
        self.rows: Mapping[str, frozenset[str]] = {m: frozenset(rows[m]) for m in sorted(rows)}
        self._slots: dict[Footprint, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def methods(self, a: str, b: str) -> bool:
        """Are the methods declared to conflict, for some keys at least?"""
        return b in self.rows.get(a, ())

    def free(self, method: str) -> bool:
        """A method that conflicts with nothing needs no agreement (PROTOCOL §5)."""
        return method not in self.rows

    def conflict(self, f: Footprint, g: Footprint) -> bool:
        """The definition: methods declared, and keys that meet in something not read by both."""
        if not self.methods(f.method, g.method):
            return False
        if f.keys is None or g.keys is None:
            return True
        mine = dict(f.keys)
        return any(k in mine and WRITE in (mode, mine[k]) for k, mode in g.keys)

    def slots(self, f: Footprint) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(places, meets) of f. Remembered: the same few footprints come again and again."""
        found = self._slots.get(f)
        if found is None:
            if len(self._slots) >= _BOUND:
                self._slots.clear()
            found = self._slots[f] = (self._places(f), self._meets(f))
        return found

    def _places(self, f: Footprint) -> tuple[str, ...]:
        if self.free(f.method):
            return ()
        if f.keys is None:
            return (f.method + _BARE, f.method + _ALL)
        return (*(f"{f.method}\x00{m}{k}" for k, m in f.keys), f.method + _ALL)

    def _meets(self, f: Footprint) -> tuple[str, ...]:
        out: list[str] = []
        for other in sorted(self.rows.get(f.method, ())):
            if f.keys is None:
                out.append(other + _ALL)
                continue
            out.append(other + _BARE)
            for key, mode in f.keys:
                out.append(f"{other}\x00w{key}")
                if mode == WRITE:
                    out.append(f"{other}\x00r{key}")
        return tuple(out)
