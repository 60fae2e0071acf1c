"""What a client and its home node say to each other, and the envelope around arguments.

Arrays with an integer tag, as the messages of the com layer. A node trusts nothing in them: it binds the arguments to
the method itself and computes the footprint itself.
"""

from typing import Literal, NamedTuple

import msgspec

from framework.com.events import Response, Session
from framework.com.messages import Kind, Transmission
from framework.com.receipt import Receipt
from framework.errors import BadMessage
from framework.ids import Replica
from framework.net.options import MAX_MESSAGE


class Stay(NamedTuple):
    """A life of a node: when it is over, so is what the node knew of its clients."""

    node: str
    formation: bytes = b""  # of the group; empty: it is no member of one
    life: int = 0


class Ask(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Do this on that object."""

    object: str
    method: str
    args: bytes  # a msgpack array, by position
    named: bytes = b""  # a msgpack map, by name; empty: none
    to: tuple[Replica, ...] = ()  # empty: the framework chooses


class Part(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Of a client's transaction."""

    number: int
    limit: float = 0.0  # seconds until it is aborted, if it is not decided
    decide: Literal["", "commit", "abort"] = ""  # it ends it; then there is nothing else to do
    why: str = ""  # it is aborted
    votes: bool = False  # this call is all of it, and its parts decide (distributed control)


class Act(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One transmission, as the caller wishes it. What is left open is chosen by the node (naming.py)."""

    kind: Kind
    parts: tuple[Ask, ...]
    transmission: Transmission | None = None
    receipt: Receipt | None = None
    wait: bool = True  # wait for the receipt at once
    timeout: float | None = None
    stale: bool = False  # read at the home node, without order
    tran: Part | None = None  # the transaction of a client that it is a part of
    independent: bool = False  # a transaction of its own, also inside of another one


class Envelope(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Around the arguments of a request: the same on every replica, also when the call is repeated."""

    time: float  # what self.now() says
    deadline: float | None  # seconds since 1970
    args: bytes
    basis: int | None = None  # what its footprint stands on (framework.declare.backed)


class Hello(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=1):
    client: str


class Call(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=2):
    number: int
    act: Act
    time: float
    deadline: float | None
    done: int
    sessions: tuple[Session, ...] = ()  # of this client at other nodes, as far as this node does not have them
    again: bool = False  # it was sent before, to this node or another one
    formation: bytes = b""  # of the group to which it was sent first, if it was sent before


class Collect(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=3):
    number: int
    receipt: Receipt | None
    timeout: float | None


class Look(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=4):
    number: int
    what: Literal["objects", "status"]


class Change(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=7):
    """An administrator wants a node out of the group, or a transaction aborted. It is told when that has begun."""

    number: int
    what: Literal["leave", "evict", "abort"]
    node: str  # or the name of the transaction


class Bye(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=5):
    pass


class Cancel(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=6):
    """The caller does not wait for this call any more."""

    number: int


class Ping(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=8):
    """Are you there? Answered by Told."""

    number: int


class Welcome(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=1):
    node: str
    view: int
    max_message: int = MAX_MESSAGE  # what the node takes at once
    why: str = ""  # it takes no calls now, but for stale reads; questions it answers
    formation: bytes = b""
    life: int = 0

    @property
    def stay(self) -> Stay:
        return Stay(self.node, self.formation, self.life)


class Answer(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=2):
    number: int
    complete: bool
    responses: tuple[Response, ...]
    why: str = ""  # it is not complete: who waited for whom


class Refused(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=3):
    number: int
    error: str  # a name of framework.errors
    text: str
    again: bool = False  # too few replicas are there now: the same call may be answered here a moment later


class Told(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=4):
    number: int
    body: bytes


class Left(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=5):
    """Calls that are not answered at once have left, up to this one (0: nothing new). Stands before the answers of a
    packet: what the client sends after any of them comes after all that ``session`` includes, wherever it goes."""

    number: int
    session: Session


class Going(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=6):
    """The node is about to stop. It takes calls a little longer: a client with another node to go to opens that one
    first, and nobody waits."""

    why: str


ToNode = Hello | Call | Collect | Look | Bye | Cancel | Change | Ping
ToClient = Welcome | Answer | Refused | Told | Left | Going

encode = msgspec.msgpack.Encoder().encode
_to_node: msgspec.msgpack.Decoder[ToNode] = msgspec.msgpack.Decoder(ToNode)
_to_client: msgspec.msgpack.Decoder[ToClient] = msgspec.msgpack.Decoder(ToClient)
_envelope = msgspec.msgpack.Decoder(Envelope)
_FAULTS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)


def to_node(data: bytes) -> ToNode:
    try:
        return _to_node.decode(data)
    except _FAULTS as error:
        raise BadMessage(f"{len(data)} bytes from a client: {error}") from None


def to_client(data: bytes) -> ToClient:
    try:
        return _to_client.decode(data)
    except _FAULTS as error:
        raise BadMessage(f"{len(data)} bytes from the node: {error}") from None


def open_envelope(data: bytes) -> Envelope:
    try:
        return _envelope.decode(data)
    except _FAULTS as error:
        raise BadMessage(f"arguments without their envelope: {error}") from None
