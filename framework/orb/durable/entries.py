"""What stands in a journal, and at the beginning of a snapshot."""

from typing import Any, TypeVar

import msgspec

from framework.com.events import Response
from framework.com.messages import Request, WireContext
from framework.errors import BadMessage, OboError
from framework.ids import Invocation, Replica
from framework.orb.outcome import Outcome, named


class Seen(msgspec.Struct, array_like=True, frozen=True):
    """What a method was told of a call that it made: responses, or an error of the framework."""

    next: int  # number of its next call
    responses: tuple[Response, ...] = ()
    complete: bool = True
    why: str = ""
    error: str = ""
    text: str = ""

    @property
    def outcome(self) -> Outcome | OboError:
        if self.error:
            return named(self.error, self.text)
        return Outcome(self.responses, self.complete, self.why)


def seen(after: int, outcome: Outcome | OboError) -> Seen:
    if isinstance(outcome, OboError):
        return Seen(after, error=type(outcome).__name__, text=str(outcome))
    return Seen(after, outcome.responses, outcome.complete, outcome.why)


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """An instance that has ended. One that raised is here for its reply alone."""

    request: Request
    ok: bool
    body: bytes
    output: bool
    seen: tuple[Seen, ...]
    context: WireContext  # what its caller, and later instances, know of it
    joins: WireContext
    version: int  # of the view
    clock: int
    ticket: str  # of the state with it, for the trace
    tran: Invocation | None = None  # it was performed for this transaction: a ``Settled`` says what became of it


class Settled(msgspec.Struct, frozen=True):
    """The transaction of an instance is over, or a part of it with this instance is undone."""

    invocation: Invocation
    tran: Invocation
    commit: bool
    ticket: str


class Head(msgspec.Struct, array_like=True, frozen=True):
    """The first chunk of a snapshot; the others are the state."""

    version: int
    changes: int
    part: bytes
    ticket: str
    done: tuple[Request, ...]
    position: int | None = None  # of the state (position.py); an older version of the framework did not write it


class Note(msgspec.Struct, array_like=True, frozen=True):
    """What the node remembers besides."""

    version: int = 0  # of the last view it was in
    replicas: dict[Replica, int] = {}  # of the last view in which they had a state that is on disk


encode = msgspec.msgpack.Encoder().encode
T = TypeVar("T")
#: Made when this is imported: see framework/com/handed.py.
_DECODERS: dict[type, msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(kind) for kind in (Entry, Settled, Head, Note)
}


def decode(data: bytes, kind: type[T], where: str) -> T:
    """BadMessage: it was written by another version of the framework; the store has compared all bytes."""
    try:
        found: T = _DECODERS[kind].decode(data)
        return found
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessage(f"{where} is no {kind.__name__} of this version of the framework: {error}") from None


def record(data: bytes, where: str) -> Entry | Settled:
    """What stands in a journal, or in the notes of a store: an entry is an array, a settlement a map."""
    if data[:1] and data[0] & 0xF0 == 0x80:
        return decode(data, Settled, where)
    return decode(data, Entry, where)
