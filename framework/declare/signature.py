"""The parameters of a method, and binding a call's arguments to them.

Arguments travel as an array, by position, so that a client in any language can make the call; so every
parameter must be one that has a position and a name: no ``*args``, ``**kwargs``, ``/`` or ``*``.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest, DeclarationError

#: No default: the argument must be given.
REQUIRED: Final[Any] = inspect.Parameter.empty

_KINDS = {
    inspect.Parameter.VAR_POSITIONAL: ("*{}", "take a list instead: {}: list[...]"),
    inspect.Parameter.VAR_KEYWORD: ("**{}", "take a dict instead: {}: dict[str, ...]"),
    inspect.Parameter.KEYWORD_ONLY: ("keyword-only parameter {}", "remove the '*' before it"),
    inspect.Parameter.POSITIONAL_ONLY: ("positional-only parameter {}", "remove the '/' after it"),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: ``type`` is its annotation, ``default`` REQUIRED if there is none."""

    name: str
    type: Any
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def type_name(self) -> str:
        return self.type.__name__ if isinstance(self.type, type) and not _args(self.type) else str(self.type)


def _args(annotation: Any) -> object:
    return getattr(annotation, "__args__", ())


def read_signature(where: str, function: Callable[..., Any]) -> tuple[tuple[Parameter, ...], Any]:
    """Parameters (without self) and the annotation of the result; every oddity is an error."""
    signature = inspect.signature(function)
    hints = _hints(where, function)
    declared = list(signature.parameters.values())
    if not declared or declared[0].kind is inspect.Parameter.VAR_POSITIONAL:
        raise DeclarationError(f"{where}: a method takes the object first: def {function.__name__}(self, ...)")
    parameters = tuple(_parameter(where, p, hints) for p in declared[1:])
    if "return" not in hints:
        raise DeclarationError(f"{where}: annotate the result: '-> None' if there is none, else e.g. '-> int'")
    return parameters, hints["return"]


def _hints(where: str, function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise DeclarationError(
            f"{where}: the annotation name {error.name!r} is not known when the class is made: import or "
            "define it above the class, at module level and not under TYPE_CHECKING"
        ) from None
    except TypeError as error:
        raise DeclarationError(f"{where}: an annotation is no type: {error}") from None


def _parameter(where: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Parameter:
    name = parameter.name
    if parameter.kind in _KINDS:
        what, remedy = _KINDS[parameter.kind]
        raise DeclarationError(f"{where}: {what.format(name)}: arguments travel by position; {remedy.format(name)}")
    if name not in hints:
        raise DeclarationError(
            f"{where}: parameter {name!r} has no annotation: write e.g. '{name}: str'; arguments are checked by it"
        )
    if isinstance(parameter.default, (list, dict, set, bytearray)):
        raise DeclarationError(
            f"{where}: the default of {name!r} is a {type(parameter.default).__name__} that all calls would "
            "share: use None or a tuple"
        )
    return Parameter(name, hints[name], parameter.default)


def bind(
    where: str, parameters: Sequence[Parameter], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The values in the order of the parameters, defaults filled in."""
    if len(args) > len(parameters):
        wanted = f"takes {len(parameters)} argument{'s' * (len(parameters) != 1)}"
        raise BadRequest(f"{where} {wanted}, {len(args)} were given{_signature(parameters)}")
    given = dict(zip((p.name for p in parameters), args, strict=False))
    for name, value in kwargs.items():
        if name in given:
            raise BadRequest(f"{where}: argument {name!r} is given twice{_signature(parameters)}")
        given[name] = value
    values = tuple(given.pop(p.name, p.default) for p in parameters)
    for name in given:
        known = [p.name for p in parameters]
        raise BadRequest(f"{where} has no argument {name!r}; {did_you_mean(name, known)}")
    missing = [p.name for p, v in zip(parameters, values, strict=True) if v is REQUIRED]
    if missing:
        raise BadRequest(f"{where}: argument {missing[0]!r} is missing{_signature(parameters)}")
    return values


def _signature(parameters: Sequence[Parameter]) -> str:
    shown = (f"{p.name}: {p.type_name}" + ("" if p.required else f" = {p.default!r}") for p in parameters)
    return f" (it takes: {', '.join(shown)})" if parameters else ""
