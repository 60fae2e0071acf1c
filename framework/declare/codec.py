"""Arguments and results as msgpack, typed by the annotations. No pickle, ever.

A call's values are written and read back when they are bound: so a wrong argument is refused where it was
given, before anything is ordered, and the caller computes the footprint from what the replicas will see.
(msgspec takes a text for a date; keys made from the text and from the date would not meet.) What is annotated with
``Any`` comes back as it went in, too: see ``extended``. Annotations without it pay nothing for that.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import inspect as types

from framework.declare.extended import LONG, SHORT, Write, read_extended, writer
from framework.errors import DeclarationError

#: What msgspec raises for a value that it cannot write: unknown type, number above 64 bits, lone surrogate,
#: depth.
CANNOT_WRITE = (TypeError, ValueError, OverflowError, RecursionError)

_INDEX = re.compile(r"\$\[(\d+)\]")


class Codec:
    """msgpack for one annotation."""

    __slots__ = ("decode", "encode")  # functions: of bytes, and of a value

    def __init__(self, annotation: Any) -> None:
        encode = msgspec.msgpack.Encoder(order=_order(annotation)).encode
        write = writer(types.type_info(annotation))
        if write is None:
            self.encode = encode
            self.decode = msgspec.msgpack.Decoder(annotation).decode
        else:
            self.encode = _extended(encode, write)
            self.decode = msgspec.msgpack.Decoder(annotation, ext_hook=read_extended).decode

    def pack(self, value: object) -> bytes:
        return self.encode(value)

    def seen(self, value: object) -> Any:
        """The value as it arrives: a copy, of exactly the annotated type, or an error."""
        return self.decode(self.encode(value))

    def unpack(self, data: bytes) -> Any:
        return self.decode(data)


def _extended(encode: Callable[[Any], bytes], write: Write) -> Callable[[Any], bytes]:
    def pack(value: object) -> bytes:
        try:
            return encode(write(value, SHORT))
        except OverflowError:  # an integer beyond 64 bits: rare, so nobody looks for it before
            return encode(write(value, LONG))

    return pack


def _order(annotation: Any) -> Any:
    """Sets have no order of their own, and the bytes go into the trace (protocol.md §13, A11): write them sorted."""
    found = list(_walk(types.type_info(annotation)))
    sets = any(isinstance(t, (types.SetType, types.FrozenSetType)) for t in found)
    odd = any(isinstance(t, types.DictType) and not isinstance(t.key_type, types.StrType) for t in found)
    return "deterministic" if sets and not odd else None


def arguments_codec(annotations: Sequence[Any]) -> Codec:
    return Codec(tuple[tuple(annotations)])  # type: ignore[misc]  # a type made at run time


def blamed(error: Exception) -> int | None:
    """Which argument a decoding error is about; msgspec writes the place as ``$[1]``."""
    found = _INDEX.search(str(error))
    return int(found[1]) if found else None


def reason(error: Exception) -> str:
    """Without the place in msgspec's notation; the caller names the argument."""
    return str(error).partition(" - at `$")[0].replace("`", "'")


def check_annotation(where: str, what: str, annotation: Any) -> None:
    """An annotation must be a type whose values can be written and read back as themselves."""
    if _has_variable(annotation):
        raise DeclarationError(
            f"{where}: the annotation of {what} has a type variable: name a real type, or typing.Any"
        )
    try:
        info = types.type_info(annotation)
        msgspec.msgpack.Decoder(annotation)
    except TypeError as error:
        raise DeclarationError(f"{where}: the annotation of {what} cannot be sent: {error}") from None
    for part in _walk(info):
        if isinstance(part, types.CustomType):
            name = getattr(part.cls, "__qualname__", part.cls)
            raise DeclarationError(
                f"{where}: the annotation of {what} has {name}, which cannot be sent: use str, int, float, "
                "bool, bytes, list, dict, tuple, set, Decimal, UUID, date, datetime, Enum, a dataclass or "
                "msgspec.Struct"
            )


def check_default(where: str, name: str, annotation: Any, default: object) -> None:
    try:
        Codec(annotation).seen(default)
    except CANNOT_WRITE as error:
        raise DeclarationError(
            f"{where}: the default {default!r} of {name!r} does not fit its annotation: {reason(error)}"
        ) from None


def _has_variable(annotation: Any) -> bool:
    return isinstance(annotation, TypeVar) or any(_has_variable(part) for part in get_args(annotation))


def _walk(info: Any, seen: set[int] | None = None) -> Any:
    """Every type inside a type; structures may contain themselves."""
    seen = set() if seen is None else seen
    if id(info) in seen:
        return
    seen.add(id(info))
    if isinstance(info, types.Type):
        yield info
    if isinstance(info, (types.Type, types.Field)):
        for name in info.__struct_fields__:
            if name not in ("cls", "default", "default_factory"):
                yield from _walk(getattr(info, name), seen)
    elif isinstance(info, tuple):
        for part in info:
            yield from _walk(part, seen)
