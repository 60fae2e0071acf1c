"""The digest of a state, for A7: same requests delivered, same state."""

from collections import deque
from hashlib import blake2b


def digest(state: object) -> str:
    """Of a state in canonical form: neither the order of keys in a dict nor that of elements in a set counts."""
    return blake2b(canonical(state).encode(), digest_size=8).hexdigest()


def canonical(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{canonical(k)}:{canonical(v)}" for k, v in value.items())) + "}"
    if isinstance(value, (set, frozenset)):
        return "<" + ",".join(sorted(map(canonical, value))) + ">"
    if isinstance(value, (list, deque, tuple)):  # a list or deque counts as one, whatever notes its changes
        name = next((kind.__name__ for kind in (list, deque) if isinstance(value, kind)), type(value).__name__)
        return f"{name}(" + ",".join(map(canonical, value)) + ")"
    slots = [s for cls in type(value).__mro__ for s in getattr(cls, "__slots__", ()) if hasattr(value, s)]
    if slots or hasattr(value, "__dict__"):
        state = {s: getattr(value, s) for s in slots} | getattr(value, "__dict__", {})
        return f"{type(value).__qualname__}{canonical(state)}"
    return repr(value)
