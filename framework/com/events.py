"""What goes into ``Com.step`` and what comes out of it.

A driver (the simulator, the node) feeds events and carries out effects. The com layer neither performs methods nor
sends bytes nor knows the time. Effects that change nothing, and say what happened, are in framework.com.telling.
"""

from typing import NamedTuple

import msgspec

from framework.com.event import Decided, Doubt, Effect, Event, Resolved
from framework.com.messages import Kind, Request, Transmission, WireContext
from framework.com.receipt import Receipt
from framework.com.telling import Told
from framework.com.view import View
from framework.footprint import Footprint
from framework.ids import GroupId, Invocation, Node, ObjectName, Replica, Sid, Stamp


class Outgoing(NamedTuple):
    """One part of a transmission: what to do to which replicas of one object."""

    object: ObjectName
    footprint: Footprint
    args: bytes
    replicas: tuple[Replica, ...]


class Session(msgspec.Struct, frozen=True, array_like=True):
    """What a client keeps of its session at a node, to bring it to another one (protocol.md §8.1)."""

    context: WireContext
    clock: int
    after: str  # what it includes: "GROUP sent" or "GROUP received"
    view: int = 1  # it names nothing at nodes that had departed by then
    formation: bytes = b""  # of the group whose requests it names; in another one it names nothing


class Submit(Event):
    """A client (by name) or an instance (by sid) sends requests in one act.

    ``call`` is the caller's own number of this call, and part of the invocation id: replicas of a caller must number
    alike, and a client that repeats a call through another node gives the same number. A pcast of k parts takes the k
    numbers from ``call`` on, one for each part: each is an invocation of its own. With a receipt the caller waits at
    once (synchronous); without one it may Collect later (asynchronous).
    """

    caller: Sid | str
    call: int
    kind: Kind
    transmission: Transmission
    parts: tuple[Outgoing, ...]
    receipt: Receipt | None = None
    deadline: float | None = None
    sessions: tuple[Session, ...] = ()  # of a client, at other nodes, as far as this node does not have them yet
    done: int = 0  # the client has all its answers to calls below this number
    absent: tuple[Replica, ...] = ()  # asked for, but not there: the com layer leaves them out and knows
    tran: int = 0  # of a client: the number of its transaction that this call is a part of
    independent: bool = False  # of an instance: a transaction of its own, whatever becomes of the caller
    votes: bool = False  # of a client: this call is all of its transaction, and its parts decide on it


class Together(Event):
    """Calls of clients to all replicas of one object, by one method that changes it, with the same receipt. Those that
    wait for nothing that the others do not wait for leave as one request (framework.com.convoy), the others by
    themselves. All were checked (``Calls.check``) right before this.

    ``name`` stands for a client: no other node or life may ever have the same."""

    name: str
    submits: tuple[Submit, ...]
    brief: frozenset[str]  # methods of their object that take no longer than a moment


class Collect(Event):
    """Wait for the responses of an asynchronous call."""

    caller: Sid | str
    call: int
    receipt: Receipt
    deadline: float | None = None


class Completed(Event):
    """The driver has performed an instance. ``ok`` False: it raised and its effect is undone (abort).

    ``safe`` False: what it did can still get lost. It is over, and what conflicts with it may begin, but nobody is told
    of it before ``Safe`` names it: neither its caller nor who sends a copy of it, and no state with it is given away.

    The com layer does not know what an instance has seen. So the driver sees to it that nothing else tells of what is
    unsafe: an instance that follows an unsafe one, also one that only reads, is not safe before that one, and what it
    sends is submitted when that one is safe."""

    sid: Sid
    ok: bool  # of a convoy: of any of its calls
    body: bytes = b""
    output: bool = False
    safe: bool = True
    rides: tuple["Ride | None", ...] = ()  # of a convoy: of each of its calls; None of those that Deliver says to skip


class Ride(NamedTuple):
    """What came of one call of a convoy."""

    ok: bool
    body: bytes
    output: bool


class Decide(Event):
    """A client ends its transaction. It is told the outcome as the response to ``call``: "commit" or "abort" in its
    body. With ``commit`` False also: what became of that transaction? What nobody has decided is aborted by asking."""

    client: str
    call: int
    tran: int
    commit: bool
    why: str = ""
    deadline: float | None = None
    sessions: tuple[Session, ...] = ()
    done: int = 0


class Begin(Event):
    """A client begins a transaction here. It is aborted at its deadline, or when the client or this node leaves."""

    client: str
    tran: int
    deadline: float


class Veto(Event):
    """Somebody who is no part of it wants this transaction aborted. Refused if it is over, or nobody here knows it."""

    tran: Invocation
    why: str


class Safe(Event):
    """What these instances did cannot get lost any more: they are answered. All have been completed; it is no fault if
    one is safe already, or is not known."""

    sids: tuple[Sid, ...]


class Cancel(Event):
    """The caller does not wait for this call any more. It is no fault if the call is over, or is not known."""

    caller: Sid | str
    call: int


class Leave(Event):
    """A client session is over."""

    client: str


class Arrived(Event):
    """Bytes from a peer."""

    peer: Node
    data: bytes


class Writable(Event):
    """The transport to a peer can take a frame."""

    peer: Node


class Heard(Event):
    """A piece of a large frame has come from a peer, which is there: the frame takes its time."""

    peer: Node


class Connected(Event):
    """The transport to a peer is new: send again what it has not acknowledged."""

    peer: Node


class Tick(Event):
    """Time has passed."""


class Evict(Event):
    """This member shall leave the group, whether it can be reached or not."""

    node: Node


class Depart(Event):
    """This node leaves the group in order. To be given when nothing is open here."""


class Give(Event):
    """A node that has joined asks for the state of a replica here. It says which life it is: the one who is asked may
    not have heard of it yet."""

    replica: Replica
    to: Node
    life: int


class Take(Event):
    """A replica of a node that has joined has its state: ``part`` came with a Snapshot. Empty: nobody has a state to
    give, and this replica begins with the initial one."""

    replica: Replica
    part: bytes


class Again(Event):
    """A request that was performed in an earlier life, and is not in the state that this replica has got: it is sent
    once more, as the same invocation."""

    request: Request


AnyEvent = (
    Again | Doubt | Evict | Depart | Give | Take | Submit | Together | Collect | Completed | Safe | Begin | Decide
    | Veto | Cancel | Leave | Arrived | Writable | Heard | Connected | Tick
)  # fmt: skip


class Wake(Effect, frozen=True):
    """Something waits for this peer: give Writable when the transport can take a frame."""

    peer: Node


class Transmit(Effect, frozen=True):
    peer: Node
    data: bytes


class Deliver(Effect, frozen=True):
    """Perform this request: a new instance. Answer with Completed.

    ``cancelled``: nobody waits for it any more. Do not perform it: answer at once, with ``ok`` False.

    If the request has riders it is a convoy: perform each of them, one after the other, but for those in ``skips``,
    which have been performed here as other copies. None of them may call anybody."""

    sid: Sid
    cid: Sid
    replica: Replica
    request: Request
    footprint: Footprint
    stamp: Stamp
    way: str  # "fast", "slow", or "none" where no agreement was needed
    cancelled: bool = False
    tran: Invocation | None = None  # the transaction that it is a part of: if it ends well it is held, until Settle
    skips: tuple[int, ...] = ()


class Stop(Effect, frozen=True):
    """Nobody waits for this instance any more. Undo it and answer with Completed (``ok`` False) as soon as that can be
    done; one that cannot be stopped runs to its end. May come more than once."""

    sid: Sid


class Settle(Effect, frozen=True):
    """The transaction of an instance is over, or what it was called for has failed. It was completed with ``ok``, and
    held: now keep what it did, or take that back. Before any effect that follows."""

    sid: Sid
    replica: Replica
    commit: bool


class Response(NamedTuple):
    replica: Replica
    status: str
    body: bytes


class Received(Effect, frozen=True):
    """A receipt is complete, or its deadline has passed (``complete`` False, with the responses there are)."""

    caller: Sid
    client: str  # "" for an instance
    call: int
    group: GroupId | None  # None: it never left this node (back-pressure)
    receipt: Receipt
    responses: tuple[Response, ...]
    complete: bool


class Accepted(Effect, frozen=True):
    """A client's call has left. What it sends next comes after this call, also through another node: the driver gives
    it ``Com.session`` to keep. To repeat this very call elsewhere it brings what it had before."""

    client: str
    call: int


class Installed(Effect, frozen=True):
    """The group has a new view."""

    view: View
    left: tuple[Node, ...]
    joined: tuple[Node, ...]


class Out(Effect, frozen=True):
    """This node is not a member any more. What is in its com layer is of no use: it can only join anew."""

    why: str


class Isolated(Effect, frozen=True):
    """Too few members are heard (``yes``), or enough again, to decide anything: ordered calls cannot be promised."""

    yes: bool


class Snapshot(Effect, frozen=True):
    """Take the state of this replica now: nothing is being performed on it. It goes to a node that has joined, with
    ``part``, which that one gives back with Take."""

    replica: Replica
    to: Node
    part: bytes


Done = Deliver | Settle | Stop | Received | Accepted | Decided | Resolved
AnyEffect = Installed | Out | Isolated | Snapshot | Wake | Transmit | Done | Told
