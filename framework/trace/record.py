"""The trace: one versioned record per event, enough to judge A1-A7 from the files alone (docs/trace.md).

A trace file is JSON lines. The first line is a Header: who wrote it, the view, every object with its replicas and
conflict relation. Each further line is a Record. Identifiers are text (``12:bank@n1:0``), so that a trace can be read,
searched and joined with ordinary tools.
"""

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
    "end",  # an instance ended: committed or aborted
    "receive",  # a receipt is over: what it received
    "state",  # digest of a replica's state
    "stop",  # the run is over at this node: what is still open
]


class Placed(msgspec.Struct, frozen=True):
    """An object of the run: where its replicas are, and which methods conflict."""

    replicas: tuple[str, ...]
    conflicts: tuple[tuple[str, str], ...]


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    trace: Literal["obo"] = "obo"
    version: int = VERSION
    node: str
    view: int
    members: tuple[str, ...]
    objects: dict[str, Placed]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happened. Fields that an event does not have are left out."""

    i: int  # per node, from 1, without gaps
    node: str
    at: float  # the driver's time; not used for any verdict
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
    received: tuple[tuple[str, str], ...] = ()  # receive: (replica, status), the most significant one last
    complete: bool = True  # receive: False when the deadline passed first
    committed: bool = True  # end
    digest: str = ""  # state
    performed: int = 0  # state: how many requests are in that state
    open: tuple[str, ...] = ()  # stop: requests, instances and receipts that are not over


_encoder = msgspec.json.Encoder()


def line(item: Header | Record) -> bytes:
    return _encoder.encode(item) + b"\n"
