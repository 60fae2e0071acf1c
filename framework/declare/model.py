"""What the rest of the framework knows about a class: ``Declaration`` and ``Method``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.declare.codec import CANNOT_WRITE, Codec, arguments_codec, blamed, reason
from framework.declare.keyspec import KeyFunction, compile_key, describe_key
from framework.declare.marks import Mark
from framework.declare.signature import Parameter, bind
from framework.declare.suggest import did_you_mean
from framework.errors import BadMessage, BadRequest, NoSuchMethod, RemoteError
from framework.footprint import Footprint, Relation

_NONE = b"\xc0"  # None, as msgpack


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """One method that can be called from outside. ``where`` is ``Class.method``, for messages."""

    where: str
    name: str
    mark: Mark
    parameters: tuple[Parameter, ...]
    result: Any
    is_async: bool
    readonly: bool = field(init=False)
    _size: int = field(init=False)
    _keys: KeyFunction | None = field(init=False)
    _bare: Footprint = field(init=False)
    _arguments: Codec = field(init=False)
    _output: Codec = field(init=False)
    #: The same as ``unpack``, but it raises what the decoder does (CANNOT_WRITE).
    decode: Callable[[bytes], tuple[Any, ...]] = field(init=False)
    #: Does the response carry output (P1 §4.1's O)? Not iff the annotation of the result is None.
    returns_value: bool = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "readonly", self.mark.readonly)
        put(self, "_size", len(self.parameters))
        put(self, "_keys", compile_key(self.where, self.mark, self.parameters))
        put(self, "_bare", Footprint(self.name, None, self.readonly))
        put(self, "_arguments", arguments_codec([p.type for p in self.parameters]))
        put(self, "_output", Codec(self.result))
        put(self, "decode", self._arguments.decode)
        put(self, "returns_value", self.result is not type(None))

    @property
    def takes_input(self) -> bool:
        """Does the request carry input (P1 §4.1's I)?"""
        return self._size > 0

    @property
    def keyed(self) -> bool:
        return self._keys is not None

    @property
    def key(self) -> str:
        """The keys in words, for tables; empty without."""
        return describe_key(self.mark.key)

    def bind(self, /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The call's values, in the order of the parameters and as the replicas will see them."""
        if kwargs or len(args) != self._size:
            args = bind(self.where, self.parameters, args, kwargs)
        try:
            values: tuple[Any, ...] = self._arguments.seen(args)
        except CANNOT_WRITE as error:
            raise BadRequest(self._complaint(args, error)) from None
        return values

    def packed(self, args: tuple[Any, ...], named: dict[str, Any]) -> bytes:
        """A call's arguments as msgpack, from which replicas read what ``bind`` gives: checked by reading them."""
        if named or len(args) != self._size:
            args = bind(self.where, self.parameters, args, named)
        try:
            data = self._arguments.encode(args)
            self.decode(data)
        except CANNOT_WRITE as error:
            raise BadRequest(self._complaint(args, error)) from None
        return data

    def footprint(self, values: tuple[Any, ...]) -> Footprint:
        """What travels with the request (protocol.md §2.1); ``values`` as from ``bind``."""
        if self._keys is None:
            return self._bare
        found = self._keys(values)
        return self._bare if found is None else Footprint(self.name, found, self.readonly)

    def pack(self, values: tuple[Any, ...]) -> bytes:
        """The arguments as msgpack; ``values`` as from ``bind``."""
        try:
            return self._arguments.pack(values)
        except CANNOT_WRITE as error:
            raise BadRequest(self._complaint(values, error)) from None

    def unpack(self, data: bytes) -> tuple[Any, ...]:
        """The values from msgpack, checked against the annotations."""
        try:
            values: tuple[Any, ...] = self._arguments.unpack(data)
        except CANNOT_WRITE as error:
            raise BadRequest(self._complaint(None, error)) from None
        return values

    def pack_result(self, value: Any) -> bytes:
        """The result as msgpack; one that breaks the annotation is the method's own fault."""
        if value is None and not self.returns_value:
            return _NONE
        try:
            packed = self._output.encode(value)
            self._output.decode(packed)
        except CANNOT_WRITE as error:
            raise RemoteError(
                f"{self.where} returned {value!r:.80}, which its annotation does not allow: {reason(error)}"
            ) from None
        return packed

    def unpack_result(self, data: bytes) -> Any:
        try:
            return self._output.unpack(data)
        except CANNOT_WRITE as error:
            raise BadMessage(f"{self.where}: the result that came is not what its annotation says: {error}") from None

    def _complaint(self, values: tuple[Any, ...] | None, error: Exception) -> str:
        index = blamed(error)
        if index is None and values is not None:
            index = self._unwritable(values)
        if index is None or index >= self._size:
            return f"{self.where}: the arguments are wrong: {reason(error)}"
        given = "" if values is None else f"={values[index]!r:.80}"
        return f"{self.where}: argument {self.parameters[index].name}{given}: {reason(error)}"

    def _unwritable(self, values: tuple[Any, ...]) -> int | None:
        """Which value cannot be written at all: the encoder does not say."""
        for index, (parameter, value) in enumerate(zip(self.parameters, values, strict=False)):
            try:
                Codec(parameter.type).pack(value)
            except CANNOT_WRITE:
                return index
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """All that a class says: its methods, and which of them conflict."""

    cls: type
    name: str
    methods: Mapping[str, Method]
    relation: Relation

    def method(self, name: str) -> Method:
        found = self.methods.get(name)
        if found is not None:
            return found
        if not name.startswith("_") and callable(getattr(self.cls, name, None)):
            raise NoSuchMethod(f"{self.name}.{name} cannot be called from outside: it is not decorated with @method")
        raise NoSuchMethod(f"{self.name} has no method {name!r}; {did_you_mean(name, self.methods)}")

    def footprint(self, name: str, values: tuple[Any, ...]) -> Footprint:
        return self.method(name).footprint(values)
