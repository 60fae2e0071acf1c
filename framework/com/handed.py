"""What the com layer of a replica hands over beside the state, as it crosses the wire.

Like all wire types in a module without anything else: mypyc would take from them what msgspec has to know (see
framework/cli/compile.py)."""

import msgspec

from framework.com.messages import WireContext
from framework.ids import Invocation


class Told(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A reply, as it is handed over."""

    invocation: Invocation
    status: str
    body: bytes
    output: bool
    context: WireContext
    full: WireContext
    joins: WireContext
    copies: int


class Kept(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """What has been performed at a replica, as far as it remembers."""

    replies: tuple[Told, ...]
    tombs: tuple[Invocation, ...]
    roots: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
    done: tuple[tuple[str, int], ...]
    running: tuple[Invocation, ...] = ()  # in ``roots``, but not in the state
    #: Of tran: transactions of each client that were committed, and that were aborted, where no reply is kept any more
    decided: tuple[tuple[str, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]], ...] = ()


class Part(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """What the com layer of a replica hands over."""

    clock: int
    context: WireContext  # what later instances inherit (protocol.md §4.1)
    replies: Kept


#: Made when this is imported: if threads decode a type for the first time at once the process crashes, because msgspec
#: uses what another thread has half made of it.
read_part = msgspec.msgpack.Decoder(Part).decode
