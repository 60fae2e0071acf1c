"""What a node still has of a replica when the life is over in which it had a state: in memory, or on disk.

Nobody uses it as long as another member has a state of the object. If nobody has, the view says which of the held ones
is the best, and one replica begins with it (framework.com.view, ``Directory.seeds``).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

import msgspec

from framework.com.messages import Request
from framework.com.view import Holding
from framework.errors import BadMessage, Unavailable
from framework.ids import Invocation
from framework.orb.durable.entries import Seen
from framework.orb.moving.captures import Capture
from framework.orb.moving.spool import Spool, framed


class Luggage(msgspec.Struct, array_like=True, frozen=True):
    """What travels with a state."""

    part: bytes  # of the com layer
    changes: int  # requests that are in it, without those that only read
    history: int = 0  # which: see Resident. A state that goes on after nobody had one begins anew
    kept: tuple[str, ...] = ()  # for the trace: in it, beside what its ticket says
    position: int = 0  # of it (position.py)


_luggage = msgspec.msgpack.Decoder(Luggage)


class Chunks(Protocol):
    """A state, as often as it is asked for."""

    def chunks(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


#: A request that is performed once more, and what the calls that it made were told the first time.
Once = tuple[Request, tuple[Seen, ...]]


class Held(msgspec.Struct):
    holding: Holding
    part: bytes
    ticket: str  # for the trace; empty without one
    spool: Chunks  # of the state
    done: tuple[Request, ...]  # what was performed last, in this order
    on_disk: bool = False  # the journal of this replica has just this
    #: Performed for transactions of which nothing else is known: (invocation, transaction). They are not in the state.
    doubt: tuple[tuple[Invocation, Invocation], ...] = ()
    #: In a thread: the same with these of them in the state, and without the others.
    resolve: "Callable[[Collection[Invocation]], Held] | None" = None
    doubtful: tuple[Request, ...] = ()  # the requests of those in doubt
    committed: tuple[Invocation, ...] = ()  # transactions that were committed, as is on disk
    kept: tuple[str, ...] = ()  # for the trace: what is in the state beside that of its ticket
    position: int | None = None  # of the state; None: not known, it was written by an older version
    #: In a thread: the digest of the state as it would be with these, too. It stays as it is. None: it cannot be told.
    digest: "Callable[[Sequence[Once]], str | None] | None" = None
    seen: dict[Invocation, tuple[Seen, ...]] = {}  # what calls of those in ``done`` were told, if they made some
    damaged: str = ""  # why there is no state, though there was one: it cannot be read
    verdict: str = ""  # how it compares with those of the others, once that is known (auditing.py)

    @property
    def luggage(self) -> bytes:
        return packed(self.part, self.holding.performed, kept=self.kept, position=self.position or 0)


class Unusable:
    """In the place of a state that cannot be read."""

    def __init__(self, why: str) -> None:
        self._why = why

    def chunks(self) -> Iterator[bytes]:
        raise Unavailable(self._why)

    def close(self) -> None:
        pass


class Stored:
    """Chunks in a file, as a capture: it can be read more than once, and stays when a reader closes it."""

    def __init__(self, spool: Chunks) -> None:
        self._spool = spool

    def chunks(self) -> Iterator[bytes]:
        return self._spool.chunks()

    def close(self) -> None:
        pass


def packed(part: bytes, changes: int, history: int = 0, kept: tuple[str, ...] = (), position: int = 0) -> bytes:
    return msgspec.msgpack.encode(Luggage(part, changes, history, kept, position))


def unpacked(data: bytes, whose: str) -> Luggage:
    try:
        return _luggage.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessage(f"what came with the state of {whose} cannot be used: {error}") from None


def spooled(taken: Capture) -> Spool:
    """In a thread. Errors of the capture and of the disk come out of it."""
    spool = Spool()
    try:
        for chunk in taken.chunks():
            spool.write(framed(chunk))
    except BaseException:
        spool.close()
        raise
    finally:
        taken.close()
    return spool
