"""Effects that change nothing: they say what happened, for the trace (framework.com.events has the others)."""

from framework.com.event import Effect
from framework.com.messages import Dest, Kind, Part, Rider, Transmission
from framework.com.receipt import Receipt
from framework.footprint import Footprint
from framework.ids import GroupId, Invocation, Node, Replica, Sid, Stamp


class Sent(Effect, frozen=True):
    """Told: a message group was sent."""

    caller: Sid
    cid: Sid
    call: int
    group: GroupId
    invocation: Invocation
    kind: Kind
    transmission: Transmission
    dests: tuple[Dest, ...]
    parts: tuple[Part, ...]
    number: int
    ordered: bool
    entries: int  # context entries it carries
    client: str
    receipt: Receipt | None
    sessions: tuple[str, ...]
    waived: tuple[Replica, ...] = ()  # have no state yet: they are not waited for
    tran: Invocation | None = None  # the transaction that it is a part of, if it is not one of its own


class Landed(Effect, frozen=True):
    """Told: a request reached its destination."""

    replica: Replica
    group: GroupId
    invocation: Invocation


class Proposed(Effect, frozen=True):
    """Told: a request has a place here."""

    replica: Replica
    group: GroupId
    stamp: Stamp


class Agreed(Effect, frozen=True):
    """Told: the stamp of a request is safe here."""

    replica: Replica
    group: GroupId
    stamp: Stamp
    way: str


class Rode(Effect, frozen=True):
    """Told: a call of a convoy was delivered. ``Ended`` says when it was over."""

    sid: Sid
    replica: Replica
    rider: Rider
    footprint: Footprint
    stamp: Stamp
    way: str


class Duplicate(Effect, frozen=True):
    """Told: another copy of a call that is performed here once; it is answered, not performed."""

    replica: Replica
    group: GroupId
    invocation: Invocation


class Prepared(Effect, frozen=True):
    """Told: an instance has been performed, and its response leaves; its conflict slots are taken until its transaction
    is over."""

    sid: Sid
    replica: Replica
    invocation: Invocation
    committed: bool  # did it end well?


class Ended(Effect, frozen=True):
    """Told: an instance has ended, its conflict slots are free. Its response leaves when it is safe."""

    sid: Sid
    replica: Replica
    invocation: Invocation
    committed: bool


class Dropped(Effect, frozen=True):
    """Told: something from a peer was of no use, and why."""

    peer: Node
    why: str


class Forgotten(Effect, frozen=True):
    """Told: a call of a client brought a session of another formation of the group. Nothing of that is used."""

    client: str
    call: int


class Changing(Effect, frozen=True):
    """Told: this node takes part in deciding the next view, without these members."""

    leaving: tuple[Node, ...]


Told = Changing | Forgotten | Ended | Rode | Prepared | Sent | Landed | Proposed | Agreed | Duplicate | Dropped
