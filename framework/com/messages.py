"""The only message types; they are also the wire types (docs/architecture.md, "Chosen parts").

Arrays with an integer tag, so that a proposal is a dozen bytes. Everything is ordered (tuples, sorted), so equal
states give equal bytes: one seed, one trace (A11).
"""

from typing import Literal, NamedTuple, TypeVar

import msgspec

from framework.errors import BadMessage
from framework.footprint import Footprint
from framework.ids import GroupId, Invocation, Node, ObjectName, Replica

Kind = Literal["sync", "async", "oneway"]
Transmission = Literal["ucast", "mcast", "pcast"]

#: One request to one replica: (origin node, sequence number from that node to that replica). P3's SQ.
Mark = tuple[Node, int]
WireContext = tuple[tuple[Replica, tuple[Mark, ...]], ...]


class Dest(NamedTuple):
    """A destination of a message group, and the number the request has there."""

    replica: Replica
    seq: int


class Ancestor(NamedTuple):
    """An instance that waits for this request: where it runs, and the length of its invocation path."""

    object: ObjectName
    length: int
    replicas: tuple[Replica, ...]
    votes: int = 0  # of a client's transaction: so many parts decide on it, each by its vote; 0: the client does


class Part(NamedTuple):
    """What a message group does to one object. An mcast has one part, a pcast several."""

    object: ObjectName
    footprint: Footprint


class Rider(NamedTuple):
    """A call of a client that travels with others (framework.com.convoy)."""

    group: GroupId  # as if it had been sent alone
    invocation: Invocation
    done: int  # its client has all answers to its calls below this number


class Message(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, gc=False):
    """Every message carries the view version (protocol.md §10.6)."""

    view: int


class Request(Message, tag=1, frozen=True):
    group: GroupId
    invocation: Invocation
    kind: Kind
    target: Replica
    dests: tuple[Dest, ...]
    parts: tuple[Part, ...]
    number: int  # the origin stamp is (number, group)
    ordered: bool  # needs agreement; judged once, by the origin
    context: WireContext
    chain: tuple[Ancestor, ...]
    copies: int  # how many replicas of the caller make this same call
    done: int  # the client has all answers to its calls below this number
    args: bytes
    riders: tuple[Rider, ...] = ()  # the calls of a convoy; ``args`` has the arguments of each
    did: WireContext = ()  # of an outcome, or a vote: all that was sent for what it decides on


class Announce(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, gc=False):
    """What a destination needs to know of a request that it has not got yet (protocol.md §5.2)."""

    number: int
    dests: tuple[Dest, ...]
    parts: tuple[Part, ...]
    view: int = 1  # in which the request was sent


class Proposal(Message, tag=2, frozen=True):
    group: GroupId
    replica: Replica
    number: int
    announce: Announce | None = None


class Known(Message, tag=3, frozen=True):
    """Slow path: the stamp is known at this replica (protocol.md §5.3)."""

    group: GroupId
    replica: Replica


class Response(Message, tag=4, frozen=True):
    group: GroupId
    replica: Replica
    status: str  # "ok", or the name of an error
    body: bytes
    output: bool  # P1's O/N: does it carry data?
    settled: bool  # its request is settled there: then the response proves it (protocol.md §4.3)
    context: WireContext
    joins: WireContext  # calls that came back to objects of the caller's chain
    torn: bool = False  # something that it called was undone, before the end of the transaction
    did: WireContext = ()  # what was sent for its transaction, reads as well, by it and by those that it called


class Delivered(Message, tag=5, frozen=True):
    """Delivered marks: per replica and origin, ranges (first, last) of sequence numbers (protocol.md §4.3)."""

    marks: tuple[tuple[Replica, Node, tuple[tuple[int, int], ...]], ...]


class Cancel(Message, tag=6, frozen=True):
    """From the origin of a request to one of its destinations: nobody waits for it any more (docs/com.md)."""

    group: GroupId
    target: Replica


class Moved(Message, tag=7, frozen=True):
    """From here on, this node sends no request of a view before this one. Links are FIFO."""


class Ready(Message, tag=8, frozen=True):
    """This replica has its state now: it performs requests and answers."""

    replica: Replica


class Turns(NamedTuple):
    """What a replica says of two calls of its object."""

    object: ObjectName
    late: Invocation  # it waits
    early: Invocation
    begun: bool  # the early one has; else it waits, too, and only goes first


class Edge(NamedTuple):
    """A transaction waits for another one."""

    waiter: Invocation
    holder: Invocation
    waiter_born: int  # the lowest stamp that is known of it: who is younger gives way
    holder_born: int
    part: bool  # what waits is a part of the waiter, which has begun; else it is its root, and has not
    text: str  # where, and what: for people
    over: bool = False  # one of them was aborted, and this node knows it; it waits all the same
    turns: Turns | None = None


class Waits(Message, tag=9, frozen=True):
    """To the first member: who waits at the replicas of this node, for whom (com/deadlock.py)."""

    node: Node
    edges: tuple[Edge, ...]
    more: bool = False  # the rest of this report comes later


AnyMessage = Waits | Request | Proposal | Known | Response | Delivered | Cancel | Moved | Ready


class Frame(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, gc=False, tag=1):
    """What crosses a link: numbered, or 0 for one that only carries ack, ask and clock (protocol.md §9.1).

    A link joins two lives, those that are named: another life of either node has another link, and so have the lives of
    another formation, whose numbers may be the same."""

    source: Node
    view: int
    number: int
    ack: int
    ask: int  # please send again from this number; 0: nothing missing
    clock: int
    messages: tuple[AnyMessage, ...] = ()
    life: int = 1  # of the source
    to: int = 1  # life of the target
    formation: bytes = b""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)
T = TypeVar("T")


def encode(what: msgspec.Struct) -> bytes:
    return _encoder.encode(what)


def decode(data: bytes, peer: Node) -> Frame:
    """Bytes from ``peer`` as a frame, or BadMessage that says what is wrong and where."""
    return decode_with(_decoder, data, peer)


def decode_with(decoder: "msgspec.msgpack.Decoder[T]", data: bytes, peer: Node) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as e:
        raise BadMessage(f"frame from {peer} ({len(data)} bytes): {e}") from None
