"""Calls of clients that travel together: one request, one place in the order, one instance at each replica.

What a request costs is spent once for all of them: its way through the links, proposals, agreement, the queue, the
instance, the response. What each of them is promised stays its own: an invocation id, performed once (A1), with a reply
that is kept; a group id; its place in its session; an answer of its own, also if a neighbour raises.

They are ordered as one: the footprint of a convoy is what all its calls touch. That orders more than each alone would
need, never less. So that nobody waits for what is none of its business (protocol.md §2.3: compatible requests never
wait for each other), a convoy has either

- calls of one session, which follow each other anyway (P0 Def. 1), or
- calls of sessions that have nothing under way and know of nothing but earlier requests to the same replicas; where all
  that is known here of the object is over in a moment, they may have such calls of that object under way,

and a call goes alone if a conflicting request is known here that may take long, or is held by a transaction. A driver
adds only methods that take microseconds and call nobody, and says which others do (``brief``). What is left: who
travels with a call that meets such a request of another node, which is on its way at the same moment, waits for it.

At a replica the calls are performed one after the other, in their order. If they may conflict with each other, each is
delivered when the one before it has ended, and who follows the convoy waits for the last of them; else all are
delivered at once. That is what the trace says: it knows calls, not convoys. A call that was performed here before, as
another copy that its client sent through another node, or in the state that this replica was given, is skipped. The
convoy itself is never sent twice, and nobody remembers it: its calls are known one by one, here and on disk.

Who sends them is in framework.com.together.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from framework.com.caller import Instance
from framework.com.entry import Entry, way
from framework.com.events import Completed, Ride
from framework.com.messages import Request, WireContext
from framework.com.replies import Replies, Reply
from framework.com.telling import Duplicate, Ended, Rode
from framework.ids import GroupId, Invocation, Replica, Sid, Stamp

if TYPE_CHECKING:
    from framework.com.core import Com
    from framework.com.host import Host

_encode = msgspec.msgpack.Encoder().encode
_args = msgspec.msgpack.Decoder(list[bytes])
_results = msgspec.msgpack.Decoder(list[tuple[str, bytes]])
_FAULTS = (msgspec.DecodeError, UnicodeDecodeError)

UNKNOWN: Final = ("OutcomeUnknown", b"performed before, but the reply is no longer kept")
GARBLED: Final = ("OutcomeUnknown", b"the results of a convoy cannot be read")


def args_of(request: Request) -> list[bytes]:
    """The arguments of each of its calls; of none if they do not fit (a fault of its origin)."""
    try:
        found = _args.decode(request.args)
    except _FAULTS:
        return []
    return found if len(found) == len(request.riders) else []


def pack_args(args: Sequence[bytes]) -> bytes:
    return _encode(args)


def calls_of(request: Request) -> list[tuple[GroupId, Invocation]]:
    """Of which calls it is the request: of one, or of those of a convoy."""
    if not request.riders:
        return [(request.group, request.invocation)]
    return [(rider.group, rider.invocation) for rider in request.riders]


def split(request: Request) -> list[Request]:
    """The requests that its calls would have been; itself, if it is no convoy."""
    if not request.riders:
        return [request]
    return [
        msgspec.structs.replace(request, group=r.group, invocation=r.invocation, done=r.done, args=a, riders=())
        for r, a in zip(request.riders, args_of(request), strict=False)
    ]


def rides_of(body: bytes, count: int) -> list[tuple[str, bytes]]:
    """Status and body of each call, from a response. ``pack_rides`` made it."""
    try:
        found = _results.decode(body)
    except _FAULTS:
        found = []
    return found if len(found) == count else [GARBLED] * count


def pack_rides(results: Sequence[tuple[str, bytes]]) -> bytes:
    return _encode(results)


# at a replica


def board(host: "Host", request: Request, serial: bool) -> tuple[list[Reply | None], tuple[int, ...]]:
    """Its calls begin: a reply for each of them, and which are skipped, for they were performed here before."""
    replies, com = host.replies, host.com
    out: list[Reply | None] = []
    skips: list[int] = []
    for i, (group, invocation, done) in enumerate(request.riders):
        if invocation in replies:
            skips.append(i)
            out.append(None)
            if com.told:
                say_copy(com, host.replica, replies.get(invocation), group, invocation)
        else:
            reply = replies.begin(invocation, 1, done)
            reply.unsaid = [] if serial else None
            out.append(reply)
    return out, tuple(skips)


def say_copy(com: "Com", at: Replica, reply: Reply | None, group: GroupId, invocation: Invocation) -> None:
    """Another copy of a call that is performed here, for the trace."""
    if reply is not None and reply.unsaid is not None:
        reply.unsaid.append(group)
    else:
        com.tell(Duplicate(at, group, invocation))


def performs(instance: Instance) -> list[Invocation]:
    """The calls that it performs: its own, or those of a convoy that are not skipped."""
    request = instance.entry.request
    if not instance.rides or request is None:
        return [instance.invocation]
    pairs = zip(request.riders, instance.rides, strict=True)
    return [rider.invocation for rider, reply in pairs if reply is not None]


def performed(instance: Instance, full: WireContext) -> None:
    """What copies of its calls are to be told besides."""
    for reply in instance.rides:
        if reply is not None:
            reply.context, reply.full = instance.base, full


def over(instance: Instance, event: Completed) -> None:
    """All have been performed: what became of each."""
    for reply, ride in zip(instance.rides, _rides(instance, event), strict=True):
        if reply is not None and ride is not None:
            reply.body, reply.output, reply.unsaid = ride.body, ride.output, None
            reply.outcome = "ok" if ride.ok else "error"


def under_way(replies: Replies, request: Request, rides: Sequence[Reply | None]) -> Reply | None:
    """One of those that were skipped which is still performed, as another copy, or is not safe yet."""
    for rider, reply in zip(request.riders, rides, strict=True):
        copy = replies.get(rider.invocation) if reply is None else None
        if copy is not None and copy.status is None:
            return copy
    return None


def results(replies: Replies, request: Request, rides: Sequence[Reply | None]) -> bytes:
    """What the response says of them."""
    pairs = zip(request.riders, rides, strict=True)
    return pack_rides([_result(reply or replies.get(rider.invocation)) for rider, reply in pairs])


def _result(reply: Reply | None) -> tuple[str, bytes]:
    return (reply.status, reply.body) if reply is not None and reply.status is not None else UNKNOWN


def _rides(instance: Instance, event: Completed) -> list[Ride | None]:
    """Of each that was not skipped, also if a driver could perform none of them."""
    failed = Ride(event.ok, event.body, False)
    said = event.rides if len(event.rides) == len(instance.rides) else [failed] * len(instance.rides)
    return [None if reply is None else ride or failed for reply, ride in zip(instance.rides, said, strict=True)]


def is_serial(entry: Entry) -> bool:
    """Do its calls conflict with each other, as far as its footprint says? Then each is delivered when the one before
    it has ended, and the convoy is delivered with the last of them. Else all are, at once."""
    request = entry.request
    return request is not None and bool(request.riders) and not set(entry.places).isdisjoint(entry.meets)


def delivered(instance: Instance) -> list[Rode]:
    """Of each of its calls that is not skipped, for the trace."""
    entry = instance.entry
    request, stamp = entry.request, entry.stamp
    assert request is not None and stamp is not None
    at, clock, out = instance.sid.replica, instance.sid.clock, []
    for i, (rider, reply) in enumerate(zip(request.riders, instance.rides, strict=True)):
        if reply is not None:
            sid, here = Sid(clock + 1 + i, at), Stamp(stamp.number, rider.group)
            out.append(Rode(sid, at, rider, entry.footprint, here, way(entry)))
    return out


def told(instance: Instance, event: Completed) -> list[Rode | Ended | Duplicate]:
    """The end of its calls, for the trace."""
    request = instance.entry.request
    assert request is not None
    at, clock, out = instance.sid.replica, instance.sid.clock, list[Rode | Ended | Duplicate]()
    began = {rode.sid: rode for rode in delivered(instance)} if is_serial(instance.entry) else {}
    for i, (rider, ride) in enumerate(zip(request.riders, _rides(instance, event), strict=True)):
        if ride is not None:
            sid = Sid(clock + 1 + i, at)
            if sid in began:
                out.append(began[sid])
            out.append(Ended(sid, at, rider.invocation, ride.ok))
            reply = instance.rides[i]
            if reply is not None and reply.unsaid is not None:
                out += [Duplicate(at, group, rider.invocation) for group in reply.unsaid]
    return out
