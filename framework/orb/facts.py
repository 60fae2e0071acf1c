"""Why a request is not answered by a replica of this node: what the com layer here knows, as plain facts.

Facts travel between nodes (explain.py) and become one text (chain.py).
"""

from collections.abc import Callable

import msgspec

from framework.com.caller import Call, Instance
from framework.com.convoy import calls_of
from framework.com.core import Com
from framework.com.entry import Entry
from framework.com.host import Host
from framework.com.messages import Mark
from framework.com.receipt import Receipt
from framework.ids import GroupId, Invocation, Node, Replica, Sid, node_of, object_of


class Spot(msgspec.Struct, array_like=True, frozen=True):
    """A request at a replica. ``place``: not its answer is waited for, but the replica's word about its place."""

    replica: Replica
    group: GroupId
    invocation: Invocation | None  # None: only announced there
    place: bool = False
    called: str = ""  # for people, if it is a convoy: its calls, or the one of them that is asked about

    @property
    def name(self) -> str:
        return self.called or self._id

    @property
    def key(self) -> tuple[Replica, str, bool]:
        """Copies of a call are one: a replica performs one of them."""
        return self.replica, self._id, self.place

    @property
    def _id(self) -> str:
        return str(self.invocation or self.group)


class Fact(msgspec.Struct, array_like=True, frozen=True):
    spot: Spot
    what: str  # object.method, or only the object
    why: str  # {} stands for the names of those it waits for
    waits: tuple[Spot, ...] = ()
    need: int = 0  # so many of them must go on before this does
    free: bool = False  # it goes on by itself


class Facts:
    """Reads the com layer, and changes nothing there."""

    def __init__(self, com: Com, up: Callable[[Node], bool], since: Callable[[Sid], float]) -> None:
        self._com = com
        self._up = up
        self._since = since

    def of(self, spot: Spot) -> Fact:
        host = self._com.hosts.get(spot.replica)
        if host is None:
            return Fact(spot, object_of(spot.replica), f"is not a matter of {self._com.node}")
        order = host.order
        if spot.invocation is None:
            running = next((e for e in order.ahead.performing.values() if e.group == spot.group), None)
        else:
            running = order.ahead.performing.get(spot.invocation)
        if running is not None and not spot.place:
            return self._running(spot, running)
        entry = order.entries.get(spot.group)
        if entry is None and spot.invocation is not None and not spot.place:
            entry = next(iter(order.copies.get(spot.invocation, ())), None)
        if entry is None:
            return self._absent(spot, host)
        return self._waiting(spot, host, entry)

    def gave_up(self, instance: Instance, call: Call, receipt: Receipt) -> Fact:
        """An instance waited for this call until now."""
        spot = Spot(instance.sid.replica, instance.entry.group, instance.invocation)
        waits, need = still_missing(instance.invocation, call, receipt)
        return Fact(spot, _what(spot, instance.entry), "waits for {}", waits, need)

    def _absent(self, spot: Spot, host: Host) -> Fact:
        what, origin = object_of(spot.replica), node_of(spot.group.replica)
        if spot.invocation is not None and spot.invocation in host.replies:
            return Fact(spot, what, "has been performed, its answer is on the way", free=True)
        return self._not_here(spot, what, origin)

    def _not_here(self, spot: Spot, what: str, origin: Node) -> Fact:
        if origin == self._com.node or self._up(origin):
            return Fact(spot, what, f"has not come from {origin} yet", free=True)
        return Fact(spot, what, f"has not come: {origin} cannot be reached from {self._com.node}")

    def _running(self, spot: Spot, entry: Entry) -> Fact:
        what = _what(spot, entry)
        here = self._com.instances.values()
        instance = next((i for i in here if i.sid.replica == spot.replica and i.entry is entry), None)
        if instance is None:
            return Fact(spot, what, "is about to end", free=True)
        for call in instance.calls.values():
            if call.receipt is not None:
                waits, need = still_missing(instance.invocation, call, call.receipt)
                return Fact(spot, what, "waits for {}", waits, need)
        if instance.finished is None:
            return Fact(spot, what, f"is being performed since {self._since(instance.sid):.1f} s", free=True)
        silent = [(c, r) for c in instance.calls.values() for r in c.dests if object_of(r) in c.silent]
        waits = tuple([_callee(instance.invocation, call, r) for call, r in silent])
        objects = {(call.number, object_of(r)) for call, r in silent}
        return Fact(spot, what, "has been performed, but waits for {}, which it called", waits, len(objects))

    def _waiting(self, spot: Spot, host: Host, entry: Entry) -> Fact:
        what = _what(spot, entry)
        if (entry.started or entry.void) and not spot.place:
            return Fact(spot, what, "has been performed, its answer is on the way", free=True)
        if entry.request is None:
            return self._not_here(spot, what, node_of(entry.group.replica))
        reason = host.order.blockers(entry)
        if reason.missing:
            waits = tuple([_spot(r, entry, True) for r in reason.missing])
            return Fact(
                spot, what, f"waits for the word of {', '.join(reason.missing)} about its place", waits, len(waits)
            )
        if reason.after:
            return self._after(spot, what, host, entry, reason.after)
        if reason.behind is not None and not spot.place:
            return Fact(spot, what, "waits behind {}", (_spot(spot.replica, reason.behind),), 1)
        return Fact(spot, what, "goes on", free=True)

    def _after(self, spot: Spot, what: str, host: Host, entry: Entry, marks: tuple[Mark, ...]) -> Fact:
        """It waits for a predecessor's place, or until it is delivered."""
        before = next((e for e in host.order.entries.values() if e.mark in marks), None)
        if before is None:
            (origin, number), *_ = marks
            why = f"waits for its predecessor, request {number} of {origin}, which has not come"
            return Fact(spot, what, why, free=origin == self._com.node or self._up(origin))
        begun = (before.started and not before.serial) or before.void
        place = entry.proposal is None or entry.stamp is None or begun
        return Fact(spot, what, "waits for its predecessor {}", (_spot(spot.replica, before, place),), 1)


def calls(entry: Entry) -> str:
    """The call that a request is, for people; of a convoy the first of them."""
    if entry.request is None or not entry.request.riders:
        return str(entry.invocation or "")
    (_, first), *others = calls_of(entry.request)
    return f"{first} and {len(others)} more"


def _spot(at: Replica, entry: Entry, place: bool = False) -> Spot:
    riders = entry.request is not None and entry.request.riders
    return Spot(at, entry.group, entry.invocation, place, calls(entry) if riders else "")


def still_missing(caller: Invocation, call: Call, receipt: Receipt) -> tuple[tuple[Spot, ...], int]:
    """Who has not answered this call, and how many of them it takes to complete the receipt."""
    missing = [r for r in call.dests if r not in call.got]
    need = len(missing)
    if receipt.source is not None:
        missing, need = [receipt.source], 1
    elif receipt.way == "drec":
        need = 1
    elif receipt.way == "quorum":
        objects = {object_of(r) for r in call.dests}
        need = sum(max(0, receipt.r - sum(object_of(r) == name for r in call.got)) for name in objects)
    return tuple([_callee(caller, call, r) for r in missing]), need


def missing_ride(com: Com, group: GroupId, name: Invocation, receipt: Receipt) -> tuple[Spot, ...] | None:
    """The same of a call that travels in a convoy: that is what replicas know of it. None: it does not."""
    for sender, convoy in com.calls._waiting.values():  # all of them: calls are rarely late
        if any(own.group == group for _, own in convoy.riders):
            missing, _ = still_missing(sender.invocation, convoy, receipt)
            return tuple([msgspec.structs.replace(spot, called=str(name)) for spot in missing])
    return None


def _callee(caller: Invocation, call: Call, at: Replica) -> Spot:
    """A pcast takes a number for each object, in the order of its parts."""
    objects = list(dict.fromkeys(object_of(r) for r in call.dests))
    number = call.number + objects.index(object_of(at))
    return Spot(at, call.group, Invocation(caller.client, (*caller.path, number)))


def _what(spot: Spot, entry: Entry) -> str:
    return f"{object_of(spot.replica)}.{entry.footprint.method}"
