"""Where in a state a value stands, for people: ``self.orders[3].lock``. Only looked for when there is an error."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from framework.declare.portable.parts import attributes

_SHORT = 40  # letters of a key


def place_of(state: dict[str, Any], wanted: Any) -> str:
    """The first place found, the shallowest."""
    todo: deque[tuple[str, Any]] = deque((f"self.{name}", value) for name, value in state.items())
    seen: set[int] = set()
    while todo:
        place, value = todo.popleft()
        if value is wanted:
            return place
        if id(value) not in seen:
            seen.add(id(value))
            todo += ((place + step, inner) for step, inner in _inside(value))
    return "a value in it"


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"[{_short(key)}]", inner
            yield " (a key of it)", key
    elif isinstance(value, list | deque) or type(value) is tuple:
        yield from ((f"[{n}]", inner) for n, inner in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from ((" (an element of it)", inner) for inner in value)
    elif not isinstance(value, type):
        yield from ((f".{name}", getattr(value, name)) for name in attributes(value) or ())


def _short(key: Any) -> str:
    try:
        text = repr(key)
    except Exception:
        text = f"a {type(key).__name__}"
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"
