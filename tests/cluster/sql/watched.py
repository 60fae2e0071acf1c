"""A database that remembers in which order this replica has performed what, for who asks afterwards."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from framework import declaration
from framework.orb.backed.checked import unchecked
from framework.orb.durable.entries import Entry, decode
from framework.orb.durable.noting import entries_of
from framework.orb.messages import open_envelope
from framework.orb.outcome import Failure
from objects.sql import Database


class Watched(Database):
    """``order``: the notes of the framework of all that was committed since it was emptied."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[bytes] = []

    def commit(self, entries: Sequence[bytes], head: bytes | None = None) -> None:
        super().commit(entries, head)
        self.order.extend(entries)


class Performed(NamedTuple):
    """A call as one replica has performed it, and what it answered: a value, or the name of an error."""

    client: str
    number: int
    method: str
    values: tuple[Any, ...]
    value: Any
    error: str


def performed(notes: Sequence[bytes]) -> list[Performed]:
    """Calls that were judged too early were not performed: they come again."""
    entries = [one for note in notes for one in entries_of(decode(unchecked(note, "a note"), Entry, "a note"))]
    return [one for one in map(_read, entries) if one.error != "Outdated"]


def _read(entry: Entry) -> Performed:
    request = entry.request
    method = declaration(Database).method(request.parts[0].footprint.method)
    values = method.unpack(open_envelope(request.args).args)
    client, number = request.invocation.client, request.invocation.path[0]
    if entry.ok:
        return Performed(client, number, method.name, values, method.unpack_result(entry.body), "")
    return Performed(client, number, method.name, values, None, msgspec.msgpack.decode(entry.body, type=Failure).error)
