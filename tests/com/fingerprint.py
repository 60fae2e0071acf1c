"""Everything that a node's com layer holds, as one value: two are equal iff nothing has changed.

Pure caches are left out by name: they say nothing about the node, only what was computed before.
"""

from collections import deque
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import msgspec

CACHES = {"_slots", "_good", "_peers_of", "_handlers", "_takes"}
PLAIN = (int, float, str, bytes, bool, type(None), range)


def fingerprint(thing: Any) -> Any:
    return _of(thing, {})


def _of(thing: Any, seen: dict[int, int]) -> Any:
    if isinstance(thing, PLAIN):
        return thing
    if isinstance(thing, FunctionType | BuiltinFunctionType | MethodType | type):
        return None
    if id(thing) in seen:
        return ("seen", seen[id(thing)])
    seen[id(thing)] = len(seen)
    if isinstance(thing, tuple | list | deque):
        return (type(thing).__name__, [_of(x, seen) for x in thing])
    if isinstance(thing, set | frozenset):
        return ("set", [_of(x, seen) for x in sorted(thing, key=repr)])
    if isinstance(thing, dict):
        inside = [(_of(k, seen), _of(v, seen)) for k, v in thing.items()]
        return (type(thing).__name__, inside, _attributes(thing, seen))
    return (type(thing).__name__, _attributes(thing, seen))


def _attributes(thing: Any, seen: dict[int, int]) -> list[tuple[str, Any]]:
    names = list(getattr(thing, "__dict__", ()))
    if isinstance(thing, msgspec.Struct):
        names += thing.__struct_fields__
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return [(n, _of(getattr(thing, n), seen)) for n in names if n not in CACHES and hasattr(thing, n)]
