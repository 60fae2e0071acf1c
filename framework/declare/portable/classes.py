"""Which classes of a user may occur in the state of an object.

Those that stand in the module of the object's class, by definition or by import, or that annotations of the class and
of its methods mention; then those that annotations of these mention. The bytes say the name of a class, and it is
looked up here and nowhere else.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from types import FunctionType
from typing import Any, get_args, get_type_hints

import msgspec

from framework.errors import OboError


class NotPortable(OboError, TypeError):
    """The state of an object cannot travel to another node: the error names the class, the place in it and the value,
    and says what to do."""


#: What a defaultdict may call, beside classes and functions of the user.
_BUILTIN = {f"builtins.{kind.__name__}": kind for kind in (bool, bytes, dict, float, int, list, set, str, tuple)}


class Classes:
    """Of one class of objects. Made once for each."""

    def __init__(self, owner: type) -> None:
        self.owner = owner
        self._known: dict[str, Any] = {}
        self._factories: dict[str, Callable[..., Any]] = dict(_BUILTIN)
        for base in owner.__mro__:
            if base.__module__ != "builtins" and not base.__module__.startswith("framework.declare"):
                for value in vars(inspect.getmodule(base) or base).values():
                    self._add(value)
                self._mentioned(base)
        self._factories.update(self._known)

    def _add(self, value: Any) -> None:
        if isinstance(value, FunctionType) and value.__name__ != "<lambda>":
            self._factories[name_of(value)] = value
        if not isinstance(value, type) or name_of(value) in self._known or value.__module__ == "builtins":
            return
        if is_value_class(value):
            self._known[name_of(value)] = value
            self._mentioned(value)

    def _mentioned(self, kind: type) -> None:
        for inner in vars(kind).values():
            if isinstance(inner, type):
                self._add(inner)
            if isinstance(inner, FunctionType):
                self._hints(inner)
        self._hints(kind)

    def _hints(self, source: Any) -> None:
        try:
            hints = get_type_hints(source)
        except Exception:  # names that only a type checker knows
            return
        for hint in hints.values():
            for part in _parts(hint):
                self._add(part)

    # by name, and the name

    def of(self, name: object) -> Any:
        """KeyError if there is none."""
        return self._known[str(name)]

    def factory(self, name: object) -> Callable[..., Any]:
        return self._factories[str(name)]

    def has(self, kind: Any) -> bool:
        return self._known.get(name_of(kind)) is kind

    def has_factory(self, call: Any) -> bool:
        return self._factories.get(name_of(call)) is call


@cache
def classes_of(owner: type[Any]) -> Classes:
    return Classes(owner)


def name_of(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


def is_value_class(kind: type) -> bool:
    """Its instances are what stands in them, and can be made again from that."""
    if issubclass(kind, Enum | msgspec.Struct):
        return True
    if issubclass(kind, tuple):
        return hasattr(kind, "_fields")
    if hasattr(kind, "__deepcopy__") or not all(getattr(kind, way) is getattr(object, way) for way in _OWN_WAYS):
        return False
    if is_dataclass(kind):
        return True
    return not hasattr(kind, "__setstate__") and not any(vars(base).get("__slots__") for base in kind.__mro__)


#: A class with one of these of its own is more than its attributes.
_OWN_WAYS = ("__new__", "__reduce__", "__reduce_ex__")


def _parts(hint: Any) -> Iterator[Any]:
    """The classes in ``dict[str, list[Order] | None]``."""
    yield hint
    for inner in get_args(hint):
        yield from _parts(inner)
