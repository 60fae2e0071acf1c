"""What travels with a request so that every replica judges conflict alike (protocol.md §2.1).

Two calls conflict iff their methods are declared to conflict and their keys meet in something that is not read by
both. A call without keys meets every key.

A key may also be *intended* to be read or written: only a part of what it names is, and further keys say which part
(intention locks, Gray 1976). So a call that touches one row of a table, and one that reads the whole table, meet at the
key of the table, and two that touch different rows do not. Conflict of two modes of one key:

         w    r    iw   ir
    w    x    x    x    x
    r    x         x
    iw   x    x
    ir   x

``places`` and ``meets`` say the same as ``conflict`` in a form that an index can use: f and g conflict iff
``places(f)`` and ``meets(g)`` have a slot in common. Nothing in com/ then ever scans over waiting requests. A slot is
a string, not a tuple: its hash is computed once.

Slots name not the method but one that stands for all methods with the same row in the relation: that is fewer slots and
says the same. Let a and b have equal rows. For any x: a is in the row of x iff x is in the row of a (the relation is
symmetric) iff x is in the row of b iff b is in the row of x. So with each method its whole class is in a row, or none.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

Mode = Literal["r", "w", "ir", "iw"]
READ: Final[Mode] = "r"
WRITE: Final[Mode] = "w"
INTENDS_READ: Final[Mode] = "ir"
INTENDS_WRITE: Final[Mode] = "iw"

Keys = tuple[tuple[str, Mode], ...]

#: What a mode conflicts with.
AGAINST: Final[Mapping[Mode, tuple[Mode, ...]]] = {
    WRITE: (WRITE, READ, INTENDS_WRITE, INTENDS_READ),
    READ: (WRITE, INTENDS_WRITE),
    INTENDS_WRITE: (WRITE, READ),
    INTENDS_READ: (WRITE,),
}
_PLAIN: Final[Mapping[Mode, tuple[Mode, ...]]] = {WRITE: (WRITE, READ), READ: (WRITE,)}


class Footprint(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
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
_MANY = 6  # keys: such footprints, of calls that travel together for example, hardly ever come again


class Relation:
    """The conflict relation on the methods of one class: symmetric by construction.

    ``intentions``: may keys of its calls be intended to be read or written? Where not, nobody looks for them.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]] = (), intentions: bool = False) -> None:
        self.intentions = intentions
        self.modes: Mapping[Mode, tuple[Mode, ...]] = AGAINST if intentions else _PLAIN
        rows: dict[str, set[str]] = {}
        for a, b in pairs:
            rows.setdefault(a, set()).add(b)
            rows.setdefault(b, set()).add(a)
        self.rows: Mapping[str, frozenset[str]] = {m: frozenset(rows[m]) for m in sorted(rows)}
        first: dict[frozenset[str], str] = {}
        self._stands_for = {m: first.setdefault(row, m) for m, row in self.rows.items()}
        against = {m: sorted({self._stands_for[o] for o in row}) for m, row in self.rows.items()}
        self._bare = {m: tuple(o + _BARE for o in others) for m, others in against.items()}
        self._all = {m: tuple(o + _ALL for o in others) for m, others in against.items()}
        self._before_key = {  # what stands before a key in a slot that a method meets with it
            m: {mode: [f"{o}\x00{other}" for o in others for other in found] for mode, found in self.modes.items()}
            for m, others in against.items()
        }
        self._slots: dict[Footprint, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def methods(self, a: str, b: str) -> bool:
        """Are the methods declared to conflict, for some keys at least?"""
        return b in self.rows.get(a, ())

    def free(self, method: str) -> bool:
        """A method that conflicts with nothing needs no agreement (protocol.md §5.3)."""
        return method not in self.rows

    def conflict(self, f: Footprint, g: Footprint) -> bool:
        """The definition: methods declared, and keys that meet in modes that conflict."""
        if not self.methods(f.method, g.method):
            return False
        if f.keys is None or g.keys is None:
            return True
        mine = dict(f.keys)
        return any(k in mine and mode in AGAINST[mine[k]] for k, mode in g.keys)

    def slots(self, f: Footprint) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(places, meets) of f. Remembered: the same few footprints come again and again."""
        if f.keys is not None and len(f.keys) > _MANY:
            return self.places(f), self._meets(f)
        found = self._slots.get(f)
        if found is None:
            if len(self._slots) >= _BOUND:
                self._slots.clear()
            found = self._slots[f] = (self.places(f), self._meets(f))
        return found

    def places(self, f: Footprint) -> tuple[str, ...]:
        if self.free(f.method):
            return ()
        method = self._stands_for[f.method]
        if f.keys is None:
            return (method + _BARE, method + _ALL)
        return (*(f"{method}\x00{m}{k}" for k, m in f.keys), method + _ALL)

    def _meets(self, f: Footprint) -> tuple[str, ...]:
        if self.free(f.method):
            return ()
        if f.keys is None:
            return self._all[f.method]
        before = self._before_key[f.method]
        out = [*self._bare[f.method]]
        for key, mode in f.keys:
            out += [slot + key for slot in before[mode]]
        return tuple(out)
