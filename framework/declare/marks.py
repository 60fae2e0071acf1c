"""``@method``: the mark that makes a function callable from outside.

The decorator returns the function itself, for direct calls in unit tests. For mypy and editors it keeps its signature
and gets what a proxy of the object offers beside the call: taken from an object what one of ``Orb`` offers, taken from
the class what one of ``AsyncOrb`` does. What was said is kept beside it; ``build`` reads it when
the class is made.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from framework.errors import DeclarationError

#: What ``key=`` takes: a parameter, several, a mode for each, or a function of the arguments.
KeySpec = str | tuple[str, ...] | Mapping[str, str] | Callable[..., object]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
D_co = TypeVar("D_co", covariant=True)

_MARK = "__obo_method__"


@dataclass(frozen=True, slots=True)
class Mark:
    """What the decorator was told."""

    readonly: bool
    key: KeySpec | None

    def __str__(self) -> str:
        """As a user would type it: errors show it as the line to paste."""
        said = ["readonly=True"] if self.readonly else []
        if self.key is not None:
            said.append(f"key={'...' if callable(self.key) else repr(self.key)}")
        return f"@method({', '.join(said)})" if said else "@method"


class Invocable(Protocol[P, R]):
    """A method of a proxy of ``Orb``. On the object itself it is an ordinary method."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def submit(self, *args: P.args, **kwargs: P.kwargs) -> "Future[R]": ...
    def oneway(self, *args: P.args, **kwargs: P.kwargs) -> None: ...
    def request(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...
    def with_(
        self,
        *,
        timeout: float | None = None,
        receipt: Any = None,
        to: Sequence[str] | None = None,
        stale: bool | None = None,
    ) -> "Invocable[P, R]": ...


class Later(Awaitable[R_co], Protocol[R_co]):
    """What ``submit`` gives to coroutines: an ``asyncio.Future``, which this room does not know."""

    def result(self) -> R_co: ...
    def exception(self) -> BaseException | None: ...
    def done(self) -> bool: ...
    def cancel(self) -> bool: ...
    def cancelled(self) -> bool: ...


class Awaited(Protocol[P, R_co]):
    """A method of a proxy of ``AsyncOrb``."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...
    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Later[R_co]: ...
    def oneway(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, None]: ...
    def request(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...
    def with_(
        self,
        *,
        timeout: float | None = None,
        receipt: Any = None,
        to: Sequence[str] | None = None,
        stale: bool | None = None,
    ) -> "Awaited[P, R_co]": ...


class Me(Protocol):
    """An ``Object``, told by what only these have."""

    def now(self) -> float: ...
    def uuid(self) -> UUID: ...


class OfClass(Awaited[P, R_co], Protocol[P, R_co, D_co]):
    """A method taken from the class: that is the type which proxies of ``AsyncOrb`` have. With an object as first
    argument it is the function itself."""

    @overload
    def __call__(self, me: Me, /, *args: P.args, **kwargs: P.kwargs) -> D_co: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...


class Declared(Protocol[P, R, D_co]):
    """What type checkers know of a decorated function: the signature it had, and what proxies add to it. ``D`` is what
    the function itself returns: of an ``async def`` a coroutine, while a synchronous caller gets the result."""

    def __call__(self, me: Any, /, *args: P.args, **kwargs: P.kwargs) -> D_co: ...
    @overload
    def __get__(self, instance: None, owner: type) -> OfClass[P, R, D_co]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Invocable[P, R]: ...


class Decorator(Protocol):
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /
    ) -> Declared[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Any, P], R], /) -> Declared[P, R, R]: ...


@overload
def method(
    function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /
) -> Declared[P, R, Coroutine[Any, Any, R]]: ...
@overload
def method(function: Callable[Concatenate[Any, P], R], /) -> Declared[P, R, R]: ...
@overload
def method(*, readonly: bool = False, key: KeySpec | None = None) -> Decorator: ...
def method(function: Any = None, /, *, readonly: bool = False, key: KeySpec | None = None) -> Any:
    """Make a method callable from outside; without it a method is private to its object.

    ``readonly``: it does not change the object's state (P1 §4.1's N). ``key``: calls conflict only where
    their keys meet; a parameter name, a tuple of names, ``{"source": "read", "target": "write"}``, or a
    function of the arguments.
    """
    if not isinstance(readonly, bool):
        raise DeclarationError(f"@method(readonly={readonly!r}): readonly is True or False")
    if function is not None:
        return _mark(function, Mark(readonly, key))
    return lambda decorated: _mark(decorated, Mark(readonly, key))


def _mark(function: Any, mark: Mark) -> Any:
    if isinstance(function, str):
        raise DeclarationError(f"@method({function!r}): name the option: @method(key={function!r})")
    if not isinstance(function, FunctionType):
        inner = wrapped(function)
        name = getattr(inner, "__qualname__", repr(function))
        kind = type(function).__name__
        raise DeclarationError(
            f"@method on {name}: it decorates a {kind}; only a plain 'def' or 'async def' with self can be "
            f"called from outside: remove @{kind} or @method"
        )
    if hasattr(function, _MARK):
        raise DeclarationError(f"@method on {function.__qualname__}: it is there twice; keep one")
    setattr(function, _MARK, mark)
    return function


def mark_of(value: object) -> Mark | None:
    """The mark of a plain function; None for anything else, however wrapped."""
    found = getattr(value, _MARK, None) if isinstance(value, FunctionType) else None
    return found if isinstance(found, Mark) else None


def wrapped(value: object) -> object:
    """What a staticmethod, classmethod, property or cached_property wraps: a mark in there is a mistake."""
    for attribute in ("__func__", "fget", "func"):
        inner = getattr(value, attribute, None)
        if inner is not None:
            return inner
    return value
