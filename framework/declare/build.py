"""From a class to its methods, with every mistake named: class, method, remedy."""

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from framework.declare.codec import check_annotation, check_default
from framework.declare.marks import Mark, mark_of, wrapped
from framework.declare.model import Method
from framework.declare.signature import read_signature
from framework.errors import DeclarationError

#: Names that objects and proxies have for themselves: ``self.orb``, ``bank.deposit.submit`` and so on.
OWN = frozenset({"orb", "now", "random", "uuid"})
RESERVED = OWN | {"submit", "request", "oneway", "with_", "get_state", "set_state"}


def methods_of(cls: type, root: type, inherited: Mapping[str, Method]) -> dict[str, Method]:
    """The methods of ``cls`` by name. ``inherited`` are those of its bases, the nearest first to win."""
    _check_mixins(cls, root)
    _check_slots(cls)
    out = dict(inherited)
    for name, value in list(vars(cls).items()):
        mark = mark_of(value)
        if mark is not None:
            _check_kept(cls, name, mark, inherited.get(name))
            out[name] = read_method(cls, name, value, mark)
        else:
            _check_unmarked(cls, name, value)
    for name, before in inherited.items():
        _check_shown(cls, name, before)
    return dict(sorted(out.items()))


def read_method(cls: type, name: str, function: Callable[..., Any], mark: Mark) -> Method:
    where = f"{cls.__name__}.{name}"
    _check_name(where, name)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(f"{where}: a method cannot yield: return a list")
    parameters, result = read_signature(where, function)
    for parameter in parameters:
        check_annotation(where, f"parameter {parameter.name!r}", parameter.type)
        if not parameter.required:
            check_default(where, parameter.name, parameter.type, parameter.default)
    check_annotation(where, "the result", result)
    return Method(where, name, mark, parameters, result, inspect.iscoroutinefunction(function))


def _check_name(where: str, name: str) -> None:
    if name.startswith("_"):
        raise DeclarationError(
            f"{where}: a name that starts with '_' is private and cannot be called from outside: rename the "
            "method, or remove @method"
        )
    if name in RESERVED:
        raise DeclarationError(
            f"{where}: the name {name!r} belongs to the framework: rename the method (taken: "
            f"{', '.join(sorted(RESERVED))})"
        )


def _check_mixins(cls: type, root: type) -> None:
    """A mark in a base that is no Object was checked by nobody."""
    for base in cls.__mro__[1:]:
        if issubclass(base, root):
            continue
        for name, value in vars(base).items():
            if mark_of(value) is not None:
                raise DeclarationError(
                    f"{base.__name__}.{name} has @method, but {base.__name__} is no Object: write "
                    f"class {base.__name__}({root.__name__})"
                )


def _check_slots(cls: type) -> None:
    if vars(cls).get("__slots__"):
        raise DeclarationError(
            f"{cls.__name__} has __slots__, but its ordinary attributes are the state that replicas copy: "
            "remove __slots__ (or slots=True)"
        )


def _check_kept(cls: type, name: str, mark: Mark, before: Method | None) -> None:
    """A caller that knows only the base sends a readonly call to one replica: it must stay readonly."""
    if before is not None and before.readonly and not mark.readonly:
        raise DeclarationError(
            f"{cls.__name__}.{name}: {before.where} is readonly, and who calls it relies on that: write "
            f"{Mark(True, mark.key)}, or give the method another name"
        )


def _check_unmarked(cls: type, name: str, value: object) -> None:
    where = f"{cls.__name__}.{name}"
    inner = wrapped(value)
    if not isinstance(value, FunctionType) and mark_of(inner) is not None:
        kind = type(value).__name__
        raise DeclarationError(
            f"{where}: @method inside a {kind}: only a plain 'def' or 'async def' with self can be called "
            f"from outside: remove @{kind} or @method"
        )
    if name in OWN:
        raise DeclarationError(f"{where}: the name {name!r} belongs to the framework: rename it")


def _check_shown(cls: type, name: str, before: Method) -> None:
    """What runs must be what was declared: an override, or a mixin in front, may have hidden it."""
    if mark_of(inspect.getattr_static(cls, name)) is not None:
        return
    owner = next(base for base in cls.__mro__ if name in vars(base))
    raise DeclarationError(
        f"{owner.__name__}.{name} overrides {before.where} without saying what it does: write {before.mark} "
        f"above it if that still holds{'' if owner is cls else f', and make {owner.__name__} an Object'}"
    )
