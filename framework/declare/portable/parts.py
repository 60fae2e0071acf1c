"""What is in a value: a token for the value itself, and the values that follow it."""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import chain
from typing import Any

import msgspec

from framework.declare.portable import tags
from framework.declare.portable.classes import Classes, is_value_class, name_of
from framework.declare.portable.leaves import Token, Unknown, leaf, member

#: A token, and the values that follow it; None for a leaf.
Opened = tuple[Token, Iterator[Any] | None]

#: In place of the name of a factory: the one that the object's own attribute has when the object is made.
OWN_FACTORY = False
#: Texts and bytes that are longer go in pieces.
PIECE = tags.CHUNK


class Still:
    """In the place of a value that may change: what it was (framework.declare.portable.still)."""

    __slots__ = ("token", "within")

    def __init__(self, token: Token, within: list[Any] | None) -> None:
        self.token = token
        self.within = within


def opened(value: Any, classes: Classes, of_attribute: bool) -> Opened:
    """Unknown if the value cannot travel. ``of_attribute``: it is an attribute of the object itself."""
    kind = type(value)
    if kind is Still:
        return value.token, None if value.within is None else iter(value.within)
    plain = getattr(kind, "plain_type", kind)  # tracked containers stand for plain ones
    if plain in _CONTAINERS and issubclass(kind, plain):
        return _CONTAINERS[plain](value)
    if plain is defaultdict and issubclass(kind, plain):
        return [tags.DEFAULT, len(value), _factory(value, classes, of_attribute)], _pairs(value)
    found = leaf(value)
    return (found, None) if found is not None else _of_user(value, kind, classes)


def _of_user(value: Any, kind: Any, classes: Classes) -> Opened:
    if not classes.has(kind):
        raise Unknown(_unknown(kind, classes))
    if isinstance(value, Enum):
        return member(value), None
    names = attributes(value)
    if names is None:
        raise Unknown("it has attributes beside its fields")
    if isinstance(value, tuple):
        return [tags.NAMED, name_of(kind), list(names)], iter(value)
    tag = tags.STRUCT if isinstance(value, msgspec.Struct) else tags.INSTANCE
    return [tag, name_of(kind), list(names)], (getattr(value, name) for name in names)


def _unknown(kind: Any, classes: Classes) -> str:
    if not is_value_class(kind):
        return ""
    return (
        f"{classes.owner.__module__} does not know its class: import {kind.__name__} there by name, or annotate an "
        "attribute of the class with it"
    )


def attributes(value: Any) -> tuple[str, ...] | None:
    """The names of all that an instance of a user's class holds; None if more than attributes makes it up."""
    kind = type(value)
    own = getattr(value, "__dict__", {})
    if isinstance(value, msgspec.Struct):
        return None if own else kind.__struct_fields__
    if isinstance(value, tuple):
        return None if own else getattr(kind, "_fields", None)
    if is_dataclass(kind):
        declared = [f.name for f in fields(kind) if f.name not in own and hasattr(value, f.name)]
        return (*declared, *own)
    return tuple(own) if hasattr(value, "__dict__") else None


def _factory(value: Any, classes: Classes, of_attribute: bool) -> Any:
    factory = value.default_factory
    if factory is None:
        return None
    if classes.has_factory(factory):
        return name_of(factory)
    if of_attribute:
        return OWN_FACTORY
    raise Unknown("its default_factory has no name in the object's module: define a function there")


def _counted(tag: int) -> Callable[[Any], Opened]:
    return lambda value: ([tag, len(value)], iter(value))


def _mapping(tag: int) -> Callable[[Any], Opened]:
    return lambda value: ([tag, len(value)], _pairs(value))


def _pairs(value: dict[Any, Any]) -> Iterator[Any]:
    return chain.from_iterable(value.items())


def _pieces(text: bool) -> Callable[[Any], Opened]:
    def cut(value: Any) -> Opened:
        data = value.encode("utf-8", "surrogatepass") if text else value
        cuts: Iterable[int] = range(0, len(data), PIECE)
        return [tags.PIECES, -(-len(data) // PIECE), text], (data[at : at + PIECE] for at in cuts)

    return cut


_CONTAINERS: dict[type[Any], Callable[[Any], Opened]] = {
    list: _counted(tags.LIST),
    tuple: _counted(tags.TUPLE),
    set: _counted(tags.SET),
    frozenset: _counted(tags.FROZENSET),
    dict: _mapping(tags.DICT),
    OrderedDict: _mapping(tags.ORDERED),
    Counter: _mapping(tags.COUNTER),
    deque: lambda value: ([tags.DEQUE, len(value), value.maxlen], iter(value)),
    str: _pieces(True),
    bytes: _pieces(False),
}
