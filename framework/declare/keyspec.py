"""From ``key=`` to a function of the call's values: checked once when the class is made, fast afterwards."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, get_origin

from framework.declare.keys import OddKeyError, canonical
from framework.declare.marks import KeySpec, Mark
from framework.declare.signature import Parameter
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest, DeclarationError
from framework.footprint import READ, WRITE, Keys, Mode

#: The keys of a call, from its values in the order of the parameters. None: no key, so it meets every key.
KeyFunction = Callable[[Sequence[Any]], Keys | None]

#: A call with more keys than this counts as one without key: that only orders more, and keeps the footprint
#: small.
MOST: Final = 64

_MODES: Mapping[str, Mode] = {"read": READ, "write": WRITE, "r": READ, "w": WRITE}
_UNHASHABLE = (list, dict, set, bytearray)


def compile_key(where: str, mark: Mark, parameters: Sequence[Parameter]) -> KeyFunction | None:
    """The function that finds a call's keys, or None for a method without key. ``where`` is class.method."""
    spec: object = mark.key
    if spec is None:
        return None
    default = READ if mark.readonly else WRITE
    if isinstance(spec, str):
        spec = (spec,)
    if isinstance(spec, tuple):
        spec = dict.fromkeys(_names_once(where, spec), default)
    if isinstance(spec, Mapping):
        return _by_parameters(where, spec, mark, parameters)
    if callable(spec):
        return _by_function(where, spec, mark, parameters)
    raise DeclarationError(
        f"{where}: key={mark.key!r} is none of: a parameter name, a tuple of names, "
        "{name: 'read' or 'write'}, a function of the arguments"
    )


def describe_key(key: KeySpec | None) -> str:
    """For tables: ``source, target`` or ``source:read``; a function by its name."""
    if key is None:
        return ""
    if isinstance(key, str):
        return key
    if isinstance(key, Mapping):
        return ", ".join(f"{name}:{_MODES[mode]}" for name, mode in key.items())
    if isinstance(key, tuple):
        return ", ".join(key)
    name = getattr(key, "__name__", type(key).__name__)
    return f"{'function' if name == '<lambda>' else name}({', '.join(inspect.signature(key).parameters)})"


def _names_once(where: str, names: tuple[object, ...]) -> list[str]:
    out: list[str] = []
    for name in names:
        if not isinstance(name, str):
            raise DeclarationError(f"{where}: key={names!r} holds {name!r}: name parameters, as texts")
        if name in out:
            raise DeclarationError(f"{where}: key={names!r} names {name!r} twice: name it once")
        out.append(name)
    return out


def _by_parameters(where: str, spec: Mapping[Any, Any], mark: Mark, parameters: Sequence[Parameter]) -> KeyFunction:
    if not spec:
        raise DeclarationError(f"{where}: key={mark.key!r} is empty: name a parameter, or leave key= out")
    known = {p.name: i for i, p in enumerate(parameters)}
    for name, mode in spec.items():
        if name not in known:
            raise DeclarationError(
                f"{where}: key {name!r} is no parameter of the method; {did_you_mean(str(name), known)}"
            )
        _check_mode(where, mark, f"key {name!r}", mode, DeclarationError)
        _check_hashable(where, parameters[known[name]])
    places = tuple((known[name], name, _MODES[mode]) for name, mode in spec.items())
    return _single(where, *places[0]) if len(places) == 1 else _several(where, places)


def _check_mode(
    where: str, mark: Mark, what: str, mode: object, error: type[DeclarationError] | type[BadRequest]
) -> Mode:
    found = _MODES.get(mode) if isinstance(mode, str) else None
    if found is None:
        raise error(f"{where}: {what} has mode {mode!r}: use 'read' or 'write'")
    if mark.readonly and found == WRITE:
        raise error(f"{where}: {what} is written by a readonly method: make it 'read', or drop readonly=True")
    return found


def _check_hashable(where: str, parameter: Parameter) -> None:
    if (get_origin(parameter.type) or parameter.type) in _UNHASHABLE:
        raise DeclarationError(
            f"{where}: key {parameter.name!r} is a {parameter.type_name}, which cannot be a key: "
            f"for one key per element write key=lambda {parameter.name}: {parameter.name}"
        )


def _single(where: str, index: int, name: str, mode: Mode) -> KeyFunction:
    def keys(values: Sequence[Any]) -> Keys | None:
        value = values[index]
        return None if value is None else ((_canonical(where, name, value), mode),)

    return keys


def _several(where: str, places: tuple[tuple[int, str, Mode], ...]) -> KeyFunction:
    def keys(values: Sequence[Any]) -> Keys | None:
        out: dict[str, Mode] = {}
        for index, name, mode in places:
            value = values[index]
            if value is None:
                return None
            _merge(out, _canonical(where, name, value), mode)
        return tuple(sorted(out.items()))

    return keys


def _merge(out: dict[str, Mode], key: str, mode: Mode) -> None:
    """A key that is both read and written in one call is written."""
    if out.get(key) != WRITE:
        out[key] = mode


def _canonical(where: str, name: str, value: object) -> str:
    try:
        return canonical(value)
    except OddKeyError as odd:
        raise BadRequest(f"{where}: {name}={value!r:.80}: {odd}") from None


def _by_function(
    where: str, function: Callable[..., object], mark: Mark, parameters: Sequence[Parameter]
) -> KeyFunction:
    indices = _function_arguments(where, function, parameters)
    default = READ if mark.readonly else WRITE

    def keys(values: Sequence[Any]) -> Keys | None:
        try:
            said = function(*[values[i] for i in indices])
            found = _listed(said)
        except Exception as error:
            raise BadRequest(
                f"{where}: its key function raised {type(error).__name__}: {error}; it must take every "
                "argument that the annotations allow"
            ) from error
        out: dict[str, Mode] = {}
        for key, mode in found or ():
            if key is None:
                return None
            exact = default if mode is None else _check_mode(where, mark, f"key {key!r}", mode, BadRequest)
            _merge(out, _canonical(where, "the key function's value", key), exact)
        return tuple(sorted(out.items())) if 0 < len(out) <= MOST else None

    return keys


def _listed(said: object) -> Iterable[tuple[object, object]]:
    """What a key function may return: no key, one key, several, or several with their modes."""
    if isinstance(said, Mapping):
        return list(said.items())
    if isinstance(said, Iterable) and not isinstance(said, (str, bytes)):
        return [(key, None) for key in said]
    return [(said, None)]


def _function_arguments(
    where: str, function: Callable[..., object], parameters: Sequence[Parameter]
) -> tuple[int, ...]:
    if inspect.iscoroutinefunction(function):
        raise DeclarationError(f"{where}: its key function is async: a key comes from the arguments alone")
    try:
        wanted = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise DeclarationError(f"{where}: its key function has no signature: wrap it in a lambda") from None
    known = {p.name: i for i, p in enumerate(parameters)}
    out: list[int] = []
    for parameter in wanted:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or parameter.name not in known:
            raise DeclarationError(
                f"{where}: its key function takes {str(parameter)!r}, which is no parameter of the method "
                "(nor may it see self: a key comes from the arguments alone); "
                f"{did_you_mean(parameter.name, known)}"
            )
        out.append(known[parameter.name])
    return tuple(out)
