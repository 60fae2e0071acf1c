"""Values where an annotation says ``Any``: they come back as they went in.

msgpack knows numbers of 64 bits, text, bytes, lists and maps. msgspec writes a Decimal or a date as text, and reads it
as such where nothing says better. So where the annotation is ``Any`` these are written as extension types:

    1 Decimal   2 datetime   3 date   4 time   5 timedelta   6 UUID   7 an integer beyond 64 bits

1 to 4 are text (ISO 8601; a datetime keeps its offset), 5 is days, seconds, microseconds as text, 6 has 16 bytes, 7 is
big-endian with a sign. What is in lists and maps inside of ``Any`` counts, too. A reader takes plain values as well.

``writer`` makes the function for one annotation; it copies nothing where there is nothing to write otherwise.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from copy import copy
from decimal import Decimal, InvalidOperation
from operator import is_
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import inspect as types
from msgspec.msgpack import Ext

#: Written as they are. Integers are taken to be short until the encoder says no: see ``Write``.
SHORT: Final[frozenset[type]] = frozenset({str, int, float, bool, bytes, type(None)})
LONG: Final[frozenset[type]] = SHORT - {int}
_LOWEST, _HIGHEST = -(1 << 63), (1 << 64) - 1

#: A value, and the types that need no look: the value to be encoded.
Write = Callable[[Any, frozenset[type]], Any]

_TO_BYTES: Final[Mapping[type, tuple[int, Callable[[Any], bytes]]]] = {
    Decimal: (1, lambda v: str(v).encode()),
    dt.datetime: (2, lambda v: v.isoformat().encode()),
    dt.date: (3, lambda v: v.isoformat().encode()),
    dt.time: (4, lambda v: v.isoformat().encode()),
    dt.timedelta: (5, lambda v: f"{v.days} {v.seconds} {v.microseconds}".encode()),
    UUID: (6, lambda v: v.bytes),
    int: (7, lambda v: v.to_bytes(v.bit_length() // 8 + 1, signed=True)),
}
_FROM_BYTES: Final[Mapping[int, Callable[[bytes], Any]]] = {
    1: lambda data: Decimal(data.decode()),
    2: lambda data: dt.datetime.fromisoformat(data.decode()),
    3: lambda data: dt.date.fromisoformat(data.decode()),
    4: lambda data: dt.time.fromisoformat(data.decode()),
    5: lambda data: dt.timedelta(*map(int, data.split())),
    6: lambda data: UUID(bytes=data),
    7: lambda data: int.from_bytes(data, signed=True),
}


def read_extended(code: int, data: memoryview) -> Any:
    """The ext_hook of msgspec."""
    read = _FROM_BYTES.get(code)
    if read is None:
        raise ValueError(f"extension type {code} has no meaning here")
    try:
        return read(bytes(data))
    except (ValueError, TypeError, OverflowError, InvalidOperation) as error:
        raise ValueError(f"extension type {code}: {bytes(data)[:80]!r} is none: {error}") from None


def writer(info: Any) -> Write | None:
    """For a type of msgspec.inspect; None: there is no ``Any`` in it."""
    return _writer(info, {})


def _writer(info: Any, known: dict[type, Write]) -> Write | None:
    """``known``: of the records on the way here, which may contain themselves."""
    if isinstance(info, types.AnyType):
        return _any
    if isinstance(info, types.UnionType):
        return _union([(part, _writer(part, known)) for part in info.types])
    if isinstance(info, (types.ListType, types.VarTupleType, types.CollectionType)):
        inner = _writer(info.item_type, known)
        return None if inner is None else _each(inner)
    if isinstance(info, types.TupleType):
        return _places([_writer(part, known) for part in info.item_types])
    if isinstance(info, types.DictType):
        inner = _writer(info.value_type, known)
        return None if inner is None else _values(inner)
    if isinstance(info, (types.StructType, types.DataclassType, types.NamedTupleType, types.TypedDictType)):
        return _record(info, known)
    return None


def _any(value: Any, plain: frozenset[type]) -> Any:
    kind = type(value)
    if kind in plain:
        return value
    if kind is int and _LOWEST <= value <= _HIGHEST:
        return value
    if kind in (list, tuple):
        return _list(value, plain)
    if kind is dict:
        return _values(_any)(value, plain)
    found = _TO_BYTES.get(kind)
    return value if found is None else Ext(found[0], found[1](value))


def _list(value: Any, plain: frozenset[type]) -> Any:
    if plain.issuperset(map(type, value)):
        return value
    return _if_changed(value, [_any(one, plain) for one in value])


def _if_changed(value: Any, made: list[Any]) -> Any:
    return value if all(map(is_, value, made)) else made


def _each(inner: Write) -> Write:
    if inner is _any:
        return lambda value, plain: _list(value, plain) if isinstance(value, (list, tuple)) else value

    def write(value: Any, plain: frozenset[type]) -> Any:
        if not value or not isinstance(value, (list, tuple)):
            return value  # the decoder will say what is wrong
        return _if_changed(value, [inner(one, plain) for one in value])

    return write


def _places(inner: list[Write | None]) -> Write | None:
    if not any(inner):
        return None

    def write(value: Any, plain: frozenset[type]) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != len(inner):
            return value
        made = [one if w is None else w(one, plain) for w, one in zip(inner, value, strict=True)]
        return _if_changed(value, made)

    return write


def _values(inner: Write) -> Write:
    def write(value: Any, plain: frozenset[type]) -> Any:
        if not isinstance(value, dict):
            return value
        made = {key: inner(one, plain) for key, one in value.items()}
        return value if all(made[key] is one for key, one in value.items()) else made

    return write


def _record(info: Any, known: dict[type, Write]) -> Write | None:
    if info.cls in known:
        return known[info.cls]
    inner: dict[str, Write] = {}

    def write(value: Any, plain: frozenset[type]) -> Any:
        changed: dict[str, Any] = {}
        for name, w in inner.items():
            of = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
            found = w(of, plain)
            if found is not of:
                changed[name] = found
        return _with(value, changed) if changed else value

    known[info.cls] = write
    for field in info.fields:
        found = _writer(field.type, known)
        if found is not None:
            inner[field.name] = found
    return write if any(w is not write for w in inner.values()) else None


def _with(value: Any, changed: dict[str, Any]) -> Any:
    """The record with some of its fields replaced by what encodes otherwise."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, dict):
        return {**value, **changed}
    if isinstance(value, tuple):
        return value._replace(**changed)  # type: ignore[attr-defined]  # a NamedTuple
    made = copy(value)  # a dataclass, which may be frozen
    for name, one in changed.items():
        object.__setattr__(made, name, one)
    return made


def _union(parts: list[tuple[Any, Write | None]]) -> Write | None:
    """By the type of the value: a union has at most one kind of list and one of map."""
    if not any(write for _, write in parts):
        return None
    if any(isinstance(info, types.AnyType) for info, _ in parts):
        return _any
    records = {info.cls: write for info, write in parts if write is not None and hasattr(info, "cls")}
    lists = next((w for info, w in parts if w and isinstance(info, _LISTS)), None)
    maps = next((w for info, w in parts if w and isinstance(info, types.DictType)), None)

    def write(value: Any, plain: frozenset[type]) -> Any:
        found = records.get(type(value))
        if found is None:
            found = lists if isinstance(value, (list, tuple)) else maps if isinstance(value, dict) else None
        return value if found is None else found(value, plain)

    return write


_LISTS = (types.ListType, types.VarTupleType, types.TupleType, types.CollectionType)
