"""From chunks of bytes to the attributes of an object. What is not understood is refused as a whole."""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from framework.declare.portable import tags
from framework.declare.portable.classes import Classes, classes_of
from framework.declare.portable.encode import PRIVATE
from framework.declare.portable.leaves import Token, read
from framework.declare.portable.parts import OWN_FACTORY
from framework.errors import BadMessage

_decode = msgspec.msgpack.Decoder(list[Any]).decode
_FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, UnicodeError, ValueError, RecursionError)

_PAIRED = frozenset((tags.DICT, tags.ORDERED, tags.COUNTER, tags.DEFAULT))
_OF_USER = frozenset((tags.INSTANCE, tags.STRUCT, tags.NAMED))
_COUNTED = frozenset((tags.LIST, tags.TUPLE, tags.SET, tags.FROZENSET, tags.DEQUE, tags.PIECES)) | _PAIRED


def decoded(target: object, chunks: Iterable[bytes]) -> dict[str, Any]:
    """Attributes for ``target``, which is not changed. BadMessage if this is not the state of such an object."""
    owner = type(target)
    try:
        return _Decoder(target).all(chunks)
    except _FAULTS as error:
        said = f"nothing named {error}" if isinstance(error, KeyError) else str(error)
        raise BadMessage(f"this is no state of {owner.__qualname__}: {said or type(error).__name__}") from error


class _Decoder:
    def __init__(self, target: object) -> None:
        self._own = vars(target)
        owner: Any = type(target)
        self._owner = owner
        self._classes = classes_of(owner)

    def all(self, chunks: Iterable[bytes]) -> dict[str, Any]:
        tokens = self._tokens(chunks)
        self._check_header(next(tokens, None))
        state = self._value(tokens)
        if next(tokens, self) is not self:
            raise ValueError("more follows after its end")
        if type(state) is not dict or not all(type(name) is str for name in state):
            raise ValueError("it does not consist of attributes")
        private = next((name for name in state if name.startswith(PRIVATE)), None)
        if private is not None:
            raise ValueError(f"{private} belongs to the framework")
        return state

    def _tokens(self, chunks: Iterable[bytes]) -> Iterator[Any]:
        for chunk in chunks:
            yield from _decode(chunk)

    def _check_header(self, header: Any) -> None:
        if type(header) is not list or len(header) != 2:
            raise ValueError("it does not begin as one")
        version, name = header
        if version != tags.VERSION:
            raise ValueError(f"its format has version {version}, and this node reads {tags.VERSION}")
        if name != self._owner.__qualname__:
            raise ValueError(f"it is that of a {name}")

    def _value(self, tokens: Iterator[Any]) -> Any:
        """The next value with all that is in it. Containers that are not complete lie on a stack."""
        items: list[Any] = []
        need = 1
        made_by: Token = []
        below: list[tuple[list[Any], int, Token]] = []
        for token in tokens:
            if type(token) is not list:
                items.append(token)
            elif token[0] in _COUNTED or token[0] in _OF_USER:
                below.append((items, need, made_by))
                items, need, made_by = [], _follow(token), token
            else:
                items.append(read(token, self._classes))
            while len(items) == need:
                if not below:
                    return items[0]
                outer, outer_need, outer_by = below.pop()
                attribute = outer[-1] if len(below) == 1 and outer else None
                outer.append(self._built(made_by, items, attribute))
                items, need, made_by = outer, outer_need, outer_by
        raise ValueError("it ends too early")

    def _built(self, token: Token, items: list[Any], attribute: Any) -> Any:
        if token[0] == tags.DEFAULT:
            return defaultdict(self._factory(token[2], attribute), _paired(items))
        if token[0] in _OF_USER:
            return _instance(token, items, self._classes)
        return _BUILD[token[0]](items, token)

    def _factory(self, name: Any, attribute: Any) -> Callable[[], Any] | None:
        if name is None:
            return None
        if name is not OWN_FACTORY:
            return self._classes.factory(name)
        own = self._own.get(attribute)
        if not isinstance(own, defaultdict):
            raise ValueError(f"self.{attribute} is a defaultdict there, and here it is none when the object is made")
        return own.default_factory


def _follow(token: Token) -> int:
    """How many values."""
    if token[0] in _OF_USER:
        return len(token[2])
    count = token[1]
    if type(count) is not int or count < 0:
        raise ValueError(f"a container of {count} elements")
    return 2 * count if token[0] in _PAIRED else count


def _paired(items: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(items[::2], items[1::2], strict=True)


def _instance(token: Token, items: list[Any], classes: Classes) -> Any:
    """Made from its parts, without asking its class: no ``__init__`` runs, but a Struct is always made by a call."""
    tag, name, names = token
    kind = classes.of(name)
    if tag == tags.STRUCT and issubclass(kind, msgspec.Struct):
        return kind(**dict(zip(names, items, strict=True)))
    if tag == tags.NAMED and issubclass(kind, tuple):
        if tuple(names) != kind._fields:
            raise ValueError(f"{name} has other fields there: {', '.join(map(str, names))}")
        return tuple.__new__(kind, items)
    made = object.__new__(kind)  # TypeError for what is no instance of this sort
    for attribute, value in zip(names, items, strict=True):
        object.__setattr__(made, attribute, value)
    return made


def _joined(items: list[Any], token: Token) -> str | bytes:
    data = b"".join(items)
    return data.decode("utf-8", "surrogatepass") if token[2] else data


def _counter(items: list[Any], _: Token) -> Counter[Any]:
    made: Counter[Any] = Counter()
    dict.update(made, _paired(items))  # Counter.update would add
    return made


_BUILD: dict[int, Callable[[list[Any], Token], Any]] = {
    tags.LIST: lambda items, _: items,
    tags.TUPLE: lambda items, _: tuple(items),
    tags.SET: lambda items, _: set(items),
    tags.FROZENSET: lambda items, _: frozenset(items),
    tags.DICT: lambda items, _: dict(_paired(items)),
    tags.ORDERED: lambda items, _: OrderedDict(_paired(items)),
    tags.COUNTER: _counter,
    tags.DEQUE: lambda items, token: deque(items, token[2]),
    tags.PIECES: _joined,
}
