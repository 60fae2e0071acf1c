"""What events and effects are (framework.com.events), and those by which transactions survive a crash of all."""

import msgspec

from framework.com.messages import Request, WireContext
from framework.ids import Invocation, Replica, Sid


class Event(msgspec.Struct, gc=False):  # plain data is in no cycle: the collector need not look
    pass


class Effect(msgspec.Struct, frozen=True, gc=False):
    pass


class Doubt(Event):
    """On disk here is what these instances of a replica did for transactions, and not what became of those: instances
    with their transactions. Before that state is used, or anything of it is sent again. ``Resolved`` answers.

    ``decide``: nobody has a newer state, so nobody waits for those transactions: what is not decided is aborted. Else
    they are decided by others; or by nobody, and then there is no answer."""

    replica: Replica
    parts: tuple[tuple[Invocation, Invocation], ...]
    decide: bool


class Decided(Effect, frozen=True):
    """An outcome, or a vote, has been delivered to tran, which is durable: write it down, and say ``Safe``. Before any
    effect that follows is."""

    sid: Sid
    replica: Replica
    request: Request
    body: bytes
    context: WireContext


class Resolved(Effect, frozen=True):
    """All transactions of a ``Doubt`` are over; these instances are committed, the others undone."""

    replica: Replica
    keep: tuple[Invocation, ...]
