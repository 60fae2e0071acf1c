"""The trace: one versioned record per event, enough to judge A1-A10 from the files alone (docs/trace.md).

A trace file is JSON lines. The first line is a Header: who wrote it, the view, every object with its replicas and
conflict relation. Each further line is a Record. Identifiers are text (``12:bank@n1:0``), so that a trace can be read,
searched and joined with ordinary tools. A node that leaves the group and comes back has a new life, and a new trace.
"""

import re
from typing import Final, Literal

import msgspec

from framework.footprint import Footprint

VERSION: Final = 1

Happening = Literal[
    "send",  # a message group leaves: instance, group, parts, dests
    "arrive",  # a request reached a destination replica
    "propose",  # it has a place there: stamp
    "agree",  # its stamp is safe there: stamp, way
    "deliver",  # an instance starts: sid, cid, group, stamp, way
    "duplicate",  # another copy of a call performed there: answered, not performed
    "prepare",  # an instance has been performed and answered, and is held until its transaction is over: well or not
    "end",  # an instance ended: committed or aborted
    "receive",  # a receipt is over: what it received
    "change",  # this node takes part in deciding the next view: who is to leave
    "install",  # the group has a new view: members, since
    "snapshot",  # the state of a replica is taken, for one that joined
    "adopt",  # a replica that joined has its state: the ticket of the snapshot
    "out",  # this life is not a member any more: nothing follows
    "state",  # digest of a replica's state
    "stop",  # the run is over at this node: what is still open
]


class Placed(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object of the run: where its replicas are, and which methods conflict."""

    replicas: tuple[str, ...]
    conflicts: tuple[tuple[str, str], ...]
    durable: bool = False  # its state is on disk: it comes back after a crash of all replicas


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    trace: Literal["obo"] = "obo"
    version: int = VERSION
    node: str
    view: int
    members: tuple[str, ...]
    since: tuple[int, ...] = ()  # parallel to members: the version in which each one's life began; empty: 1 for all
    life: int = 1  # the same of this node
    objects: dict[str, Placed]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happened. Fields that an event does not have are left out."""

    i: int  # per node, from 1, without gaps
    node: str
    at: float  # the driver's time; used for A9 alone, and only where the caller gives a bound
    event: Happening
    view: int
    group: str = ""
    replica: str = ""
    sid: str = ""  # the instance (or session) that acts
    no: int = -1  # number of its sending event
    cid: str = ""
    invocation: str = ""  # send: of the first part; the last number of part j is higher by j
    client: str = ""  # for events of a client session
    sessions: tuple[str, ...] = ()  # send: what the client did at other nodes and brought along: "GROUP sent|received"
    kind: str = ""
    transmission: str = ""
    receipt: str = ""
    footprint: Footprint | None = None
    parts: tuple[tuple[str, Footprint], ...] = ()
    dests: tuple[tuple[str, int], ...] = ()
    stamp: str = ""
    way: str = ""  # fast, slow, or none
    entries: int = 0  # send: context entries it carries
    waived: tuple[str, ...] = ()  # send: destinations without a state yet: an instance does not wait for them
    received: tuple[tuple[str, str], ...] = ()  # receive: (replica, status), the most significant one last
    complete: bool = True  # receive: False when the deadline passed first
    committed: bool = True  # end
    digest: str = ""  # state
    performed: int = 0  # state: how many requests are in that state
    open: tuple[str, ...] = ()  # stop: requests, instances, receipts not over; adopt: in the state beside the ticket's
    members: tuple[str, ...] = ()  # install: of the new view; change: who is to leave
    since: tuple[int, ...] = ()  # install: parallel to members, the version in which each one's life began
    to: str = ""  # snapshot: the node that has joined
    ticket: str = ""  # adopt: of the snapshot, "REPLICA#LIFE#I" of the donor; empty: the initial state
    why: str = ""  # out
    cancelled: bool = False  # deliver: it is not performed any more, only answered
    tran: str = ""  # send: the transaction that it is a part of, by the invocation of its root; empty: one of its own


_TICKET = re.compile(r"([^@:#\s]+@[^@:#\s]+)#(\d{1,18})#(\d{1,18})\Z", re.ASCII)
_UNWRITTEN = re.compile(r"[^@:#\s]+@[^@:#\s]+#[0-9a-f]{16}\Z", re.ASCII)
_encoder = msgspec.json.Encoder()


def line(item: Header | Record) -> bytes:
    return _encoder.encode(item) + b"\n"


def is_unwritten(ticket: str) -> bool:
    """Of a donor that writes no trace: its replica, and a name that no other state has."""
    return _UNWRITTEN.match(ticket) is not None


def parse_ticket(ticket: str) -> tuple[str, int, int]:
    """Replica and life of the donor, and the number of the record whose state it was."""
    found = _TICKET.match(ticket)
    if found is None:
        raise ValueError(f"ticket {ticket!r} is none such as bank@n1#1#57")
    return found[1], int(found[2]), int(found[3])
