"""Every mistake in a class is an error when the class is made, naming class, method and remedy."""

import functools
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any, Generic, TypeVar

import pytest

from framework import DeclarationError, Object, method
from framework.declare import declaration

T = TypeVar("T")


class Opaque:
    pass


def f_no_self() -> None: ...
def f_star_self(*args: int) -> None: ...
def f_args(self, *args: int) -> None: ...
def f_kwargs(self, **kwargs: int) -> None: ...
def f_keyword_only(self, *, by: int) -> None: ...
def f_positional_only(self, by: int, /) -> None: ...
def f_no_annotation(self, by) -> None: ...
def f_no_result(self, by: int): ...
def f_opaque(self, by: Opaque) -> None: ...
def f_nested_opaque(self, by: dict[str, list[Opaque]]) -> None: ...
def f_opaque_result(self) -> Opaque: ...
def f_object(self, by: object) -> None: ...
def f_union(self, by: list[int] | set[int]) -> None: ...
def f_variable(self, by: list[T]) -> None: ...
def f_bad_default(self, by: int = None) -> None: ...  # noqa: RUF013  # the mistake itself
def f_shared_default(self, by: list[int] = []) -> None: ...  # noqa: B006  # the mistake itself
def f_unknown_name(self, by: "Nowhere") -> None: ...  # noqa: F821  # the mistake itself
def f_no_type(self, by: 3) -> None: ...
def f_generator(self) -> Iterator[int]:
    yield 1


async def f_async_generator(self) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (f_no_self, ["takes the object first", "(self, ...)"]),
        (f_star_self, ["takes the object first"]),
        (f_args, ["*args", "args: list[...]"]),
        (f_kwargs, ["**kwargs", "kwargs: dict[str, ...]"]),
        (f_keyword_only, ["keyword-only", "by", "remove the '*'"]),
        (f_positional_only, ["positional-only", "remove the '/'"]),
        (f_no_annotation, ["'by' has no annotation", "by: str"]),
        (f_no_result, ["annotate the result", "-> None"]),
        (f_opaque, ["'by'", "Opaque", "cannot be sent", "dataclass"]),
        (f_nested_opaque, ["'by'", "Opaque"]),
        (f_opaque_result, ["the result", "Opaque"]),
        (f_object, ["'by'", "object"]),
        (f_union, ["'by'", "cannot be sent"]),
        (f_variable, ["'by'", "type variable", "typing.Any"]),
        (f_bad_default, ["default None of 'by'", "Expected 'int', got 'None'"]),
        (f_shared_default, ["'by'", "is a list that all calls would share"]),
        (f_unknown_name, ["'Nowhere'", "TYPE_CHECKING"]),
        (f_no_type, ["annotation"]),
        (f_generator, ["cannot yield", "return a list"]),
        (f_async_generator, ["cannot yield"]),
    ],
)
def test_signatures(function, words):
    fresh = type(function)(function.__code__, function.__globals__, "go", function.__defaults__)
    fresh.__annotations__, fresh.__kwdefaults__ = function.__annotations__, function.__kwdefaults__
    with pytest.raises(DeclarationError) as caught:
        type("Box", (Object,), {"go": method(fresh)})
    for word in ["Box.go", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("name", ["_hidden", "__secret__", "orb", "now", "submit", "request", "oneway", "with_"])
def test_names(name):
    def go(self) -> None: ...

    with pytest.raises(DeclarationError, match=rf"Box\.{name}.*rename the method"):
        type("Box", (Object,), {name: method(go)})


@pytest.mark.parametrize("name", ["orb", "now", "random", "uuid"])
def test_what_an_object_has_for_itself_stays(name):
    with pytest.raises(DeclarationError, match=rf"Box\.{name}.*belongs to the framework"):
        type("Box", (Object,), {name: lambda self: 0})


@pytest.mark.parametrize("wrap", [staticmethod, classmethod, property, functools.cached_property])
def test_wrappers_on_either_side(wrap):
    def go(self) -> None: ...

    with pytest.raises(DeclarationError, match=rf"go.*{wrap.__name__}.*remove"):
        method(wrap(go))
    with pytest.raises(DeclarationError, match=rf"Box\.go.*{wrap.__name__}.*remove"):
        type("Box", (Object,), {"go": wrap(method(go))})


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: method("account"), "key='account'"),
        (lambda: method(readonly="yes"), "True or False"),
        (lambda: method(3), "plain 'def'"),
        (lambda: method(Opaque), "plain 'def'"),
        (lambda: method(method(f_args)), "twice"),
    ],
)
def test_wrong_use_of_the_decorator(use, words):
    with pytest.raises(DeclarationError, match=re.escape(words)):
        use()


@pytest.mark.parametrize(
    ("readonly", "key", "words"),
    [
        (False, "cel", ["key 'cel'", "did you mean 'cell'"]),
        (False, "self", ["key 'self' is no parameter"]),
        (False, ("cell", "zzzz"), ["key 'zzzz'", "known: by, cell, cells"]),
        (False, ("cell", "cell"), ["twice"]),
        (False, ("cell", 3), ["holds 3"]),
        (False, (), ["empty", "leave key= out"]),
        (False, {}, ["empty"]),
        (False, {"cell": "append"}, ["mode 'append'", "'read' or 'write'"]),
        (False, {"cell": 1}, ["mode 1"]),
        (True, {"cell": "write"}, ["readonly", "make it 'read'"]),
        (False, ["cell"], ["is none of", "a tuple of names"]),
        (False, 3, ["is none of"]),
        (False, "cells", ["list[str]", "key=lambda cells: cells"]),
        (False, lambda cel: cel, ["'cel'", "did you mean 'cell'"]),
        (False, lambda self: 1, ["'self'", "arguments alone"]),
        (False, lambda *cell: 1, ["'*cell'"]),
        (False, str.lower, ["no parameter"]),
        (False, dict, ["key function"]),
    ],
)
def test_keys(readonly, key, words):
    with pytest.raises(DeclarationError) as caught:

        class Box(Object):
            @method(readonly=readonly, key=key)
            def go(self, cell: str, by: int, cells: list[str]) -> None: ...

    for word in ["Box.go", *words]:
        assert word in str(caught.value)


def test_an_async_key_function():
    async def key(cell):
        return cell

    with pytest.raises(DeclarationError, match=r"Box\.go.*async"):

        class Box(Object):
            @method(key=key)
            def go(self, cell: str) -> None: ...


def test_a_generic_object_needs_real_types():
    with pytest.raises(DeclarationError, match=r"Box\.put.*'thing'.*type variable"):

        class Box(Object, Generic[T]):
            @method
            def put(self, thing: T) -> None: ...


def test_declaration_of_what_is_none():
    with pytest.raises(DeclarationError, match=r"Opaque is no Object.*class Opaque\(Object\)"):
        declaration(Opaque)
    with pytest.raises(DeclarationError, match="is no Object"):
        declaration("Bank")  # type: ignore[arg-type]


def test_what_is_fine():
    class Box(Object):
        @method
        def anything(self, thing: Any = None) -> Any: ...
        @method
        async def later(self, by: "int" = 3) -> "list[int]": ...
        def submit(self) -> None:
            """Not callable from outside, so the name is free."""

    assert set(declaration(Box).methods) == {"anything", "later"}
