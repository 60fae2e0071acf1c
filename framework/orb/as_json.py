"""Calls in words that any language has: arguments and results as JSON, receipts by name.

The method's own annotations say how JSON is read: bytes are base64, times ISO 8601, tuples and sets arrays, records
objects. JSON has no NaN, and messages carry integers of 64 bits: both get an error that says so.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec

from framework.com.receipt import CREC, DREC, Receipt, quorum
from framework.declare import Method
from framework.declare.codec import CANNOT_WRITE, reason
from framework.declare.signature import Parameter, bind
from framework.errors import BadRequest, RemoteError

_LOWEST, _HIGHEST = -(1 << 63), (1 << 64) - 1

_array = msgspec.json.Decoder(list[msgspec.Raw])
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_pack = msgspec.msgpack.Encoder().encode
_CANNOT_READ = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)


def read_arguments(method: Method, text: str) -> bytes:
    """The arguments as msgpack, in the order of the parameters; BadRequest names the argument that is wrong."""
    args, named = _split(method, text)
    values = bind(method.where, method.parameters, args, named)
    read = [_read(method, *each) for each in zip(method.parameters, _decoders(method), values, strict=True)]
    try:
        return _pack(read)
    except CANNOT_WRITE as error:
        raise BadRequest(
            f"{method.where}: {_large(method, read) or f'the arguments cannot be sent: {error}'}"
        ) from None


def write_result(method: Method, value: Any) -> str:
    """The result as JSON. The call has happened: what cannot be written is the method's own fault."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
        if any(isinstance(leaf, float) and not isfinite(leaf) for leaf in _leaves(plain)):
            raise ValueError("JSON has no NaN and no infinity")
        return msgspec.json.encode(plain).decode()
    except CANNOT_WRITE as error:
        raise RemoteError(
            f"{method.where} was performed, but its result {value!r:.80} cannot be written as JSON: {reason(error)}"
        ) from None


def receipt_named(text: str) -> Receipt | None:
    """None: the usual one, a majority."""
    if text in ("", "majority"):
        return None
    if text in ("all", "first"):
        return CREC if text == "all" else DREC
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise BadRequest(f"receipt {text!r}: write majority, all, first, or how many")
    return quorum(int(text))


def _split(method: Method, text: str) -> tuple[tuple[msgspec.Raw, ...], dict[str, msgspec.Raw]]:
    """Which values there are, by position or by name; what is in them is read later, by type."""
    text = text.strip()
    try:
        if text.startswith("{"):
            return (), _object.decode(text)
        return tuple(_array.decode(text)) if text else (), {}
    except _CANNOT_READ as error:
        raise BadRequest(
            f"{method.where}: the arguments must be a JSON array, by position, or a JSON object, by name: "
            f"{reason(error)}{_hint(text)}"
        ) from None


def _read(method: Method, parameter: Parameter, decoder: msgspec.json.Decoder[Any], value: object) -> Any:
    if not isinstance(value, msgspec.Raw):
        return value  # the default
    try:
        return decoder.decode(value)
    except _CANNOT_READ as error:
        raise BadRequest(
            f"{method.where}: argument {parameter.name} ({parameter.type_name}): {reason(error)}{_hint(bytes(value))}"
        ) from None


@lru_cache(4096)
def _decoders(method: Method) -> tuple[msgspec.json.Decoder[Any], ...]:
    return tuple(msgspec.json.Decoder(p.type) for p in method.parameters)


def _hint(text: str | bytes) -> str:
    found = text if isinstance(text, str) else text.decode(errors="replace")
    odd = next((word for word in ("NaN", "Infinity") if word in found), None)
    return f"; JSON has no {odd}" if odd else ""


def _large(method: Method, values: list[Any]) -> str | None:
    """Which argument has a number that is too large; the encoder does not say."""
    for parameter, value in zip(method.parameters, values, strict=True):
        for leaf in _leaves(msgspec.to_builtins(value, str_keys=True)):
            if isinstance(leaf, int) and not _LOWEST <= leaf <= _HIGHEST:
                return f"argument {parameter.name}: {leaf} does not fit into 64 bits"
    return None


def _leaves(value: Any) -> Iterator[Any]:
    todo = [value]
    while todo:
        found = todo.pop()
        if isinstance(found, dict):
            todo += found.values()
        elif isinstance(found, (list, tuple)):
            todo += found
        else:
            yield found
