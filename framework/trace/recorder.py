"""Records from the effects of a node's com layer. Made in the driver's loop: the core neither logs nor knows time."""

from collections.abc import Callable, Collection
from typing import Any

from framework.com.events import AnyEffect, Deliver, Installed, Out, Received, Snapshot
from framework.com.telling import Agreed, Changing, Duplicate, Ended, Landed, Prepared, Proposed, Rode, Sent
from framework.com.view import Directory, View
from framework.ids import Node, Replica
from framework.trace.record import Header, Placed, Record


def header(node: Node, directory: Directory, durable: Collection[str] = ()) -> Header:
    """Of the life that begins with ``directory.view``. ``durable``: names of the objects whose state is on disk."""
    objects = {}
    for name, placement in sorted(directory.objects.items()):
        pairs = sorted({(min(a, b), max(a, b)) for a, row in placement.relation.rows.items() for b in row})
        objects[str(name)] = Placed(tuple(placement.replicas), tuple(pairs), placement.durable or str(name) in durable)
    view = directory.view
    return Header(
        node=node,
        view=view.version,
        members=tuple(view.members),
        since=_since(view),
        life=view.life(node) or 1,
        objects=objects,
    )


def _since(view: View) -> tuple[int, ...]:
    """Left out where it says nothing: all have been members from the beginning."""
    return () if all(since == 1 for since in view.since) else view.since


class Recorder:
    """Numbers the records of one life of a node and gives them to ``sink``."""

    def __init__(self, node: Node, view: int, sink: Callable[[Record], None], life: int = 1) -> None:
        self.node = node
        self.view = view
        self.life = life
        self.sink = sink
        self.count = 0

    def effect(self, effect: AnyEffect, now: float) -> None:
        if type(effect) is Installed:
            self.view = effect.view.version
        if type(effect) is Received and effect.group is None:
            return  # it never left its node: no message of the group
        if type(effect) is Deliver and effect.request.riders:
            return  # of a convoy each call is told by itself
        make = _MAKERS.get(type(effect))
        if make is not None:
            self.write(now, **make(effect))

    def ticket(self, replica: Replica) -> str:
        """Of the state of ``replica`` as of the last record. For a Snapshot: to be asked right after its record is
        written, and to be brought to the joiner with the state. For a durable object: right after the record of the
        instance that has ended, and to be kept with what is on disk."""
        return f"{replica}#{self.life}#{self.count}"

    def adopt(self, now: float, replica: Replica, ticket: str, kept: tuple[str, ...] = ()) -> None:
        """A replica of this life has its state. To be called before the Take that lets its requests begin. ``kept``:
        instances that are in it and had not ended as of the ticket, or are from another replica (com/lasting.py)."""
        self.write(now, event="adopt", replica=replica, ticket=ticket, open=kept)

    def state(self, now: float, replica: Replica, digest: str, performed: int) -> None:
        self.write(now, event="state", replica=replica, digest=digest, performed=performed)

    def stop(self, now: float, still_open: tuple[str, ...]) -> None:
        self.write(now, event="stop", open=still_open)

    def write(self, now: float, **fields: Any) -> None:
        self.count += 1
        self.sink(Record(i=self.count, node=self.node, at=now, view=self.view, **fields))


def _sent(e: Sent) -> dict[str, Any]:
    return {
        "event": "send",
        "sid": str(e.caller),
        "cid": str(e.cid),
        "no": e.group.no,
        "group": str(e.group),
        "invocation": str(e.invocation),
        "client": e.client,
        "sessions": e.sessions,
        "kind": e.kind,
        "transmission": e.transmission,
        "receipt": str(e.receipt) if e.receipt else "",
        "parts": tuple((p.object, p.footprint) for p in e.parts),
        "dests": tuple((d.replica, d.seq) for d in e.dests),
        "stamp": f"{e.number}/{e.group}",
        "way": "" if e.ordered else "none",
        "entries": e.entries,
        "waived": e.waived,
        "tran": str(e.tran) if e.tran is not None else "",
    }


def _landed(e: Landed) -> dict[str, Any]:
    return {"event": "arrive", "replica": e.replica, "group": str(e.group), "invocation": str(e.invocation)}


def _proposed(e: Proposed) -> dict[str, Any]:
    return {"event": "propose", "replica": e.replica, "group": str(e.group), "stamp": str(e.stamp)}


def _agreed(e: Agreed) -> dict[str, Any]:
    return {"event": "agree", "replica": e.replica, "group": str(e.group), "stamp": str(e.stamp), "way": e.way}


def _deliver(e: Deliver) -> dict[str, Any]:
    return {
        "event": "deliver",
        "replica": e.replica,
        "group": str(e.request.group),
        "invocation": str(e.request.invocation),
        "sid": str(e.sid),
        "cid": str(e.cid),
        "footprint": e.footprint,
        "stamp": str(e.stamp),
        "way": e.way,
        "cancelled": e.cancelled,
    }


def _rode(e: Rode) -> dict[str, Any]:
    """Equal cids mean compatible: it has one of its own."""
    return {
        "event": "deliver",
        "replica": e.replica,
        "group": str(e.rider.group),
        "invocation": str(e.rider.invocation),
        "sid": str(e.sid),
        "cid": str(e.sid),
        "footprint": e.footprint,
        "stamp": str(e.stamp),
        "way": e.way,
    }


def _duplicate(e: Duplicate) -> dict[str, Any]:
    return {"event": "duplicate", "replica": e.replica, "group": str(e.group), "invocation": str(e.invocation)}


def _prepared(e: Prepared) -> dict[str, Any]:
    return {
        "event": "prepare",
        "replica": e.replica,
        "sid": str(e.sid),
        "invocation": str(e.invocation),
        "committed": e.committed,
    }


def _ended(e: Ended) -> dict[str, Any]:
    return {
        "event": "end",
        "replica": e.replica,
        "sid": str(e.sid),
        "invocation": str(e.invocation),
        "committed": e.committed,
    }


def _received(e: Received) -> dict[str, Any]:
    return {
        "event": "receive",
        "sid": str(e.caller),
        "client": e.client,
        "group": str(e.group) if e.group else "",
        "receipt": str(e.receipt),
        "received": tuple((r.replica, r.status) for r in e.responses),
        "complete": e.complete,
    }


def _changing(e: Changing) -> dict[str, Any]:
    return {"event": "change", "members": tuple(e.leaving)}


def _installed(e: Installed) -> dict[str, Any]:
    return {"event": "install", "members": tuple(e.view.members), "since": _since(e.view)}


def _out(e: Out) -> dict[str, Any]:
    return {"event": "out", "why": e.why}


def _snapshot(e: Snapshot) -> dict[str, Any]:
    return {"event": "snapshot", "replica": e.replica, "to": e.to}


_MAKERS: dict[type[Any], Callable[[Any], dict[str, Any]]] = {
    Sent: _sent,
    Landed: _landed,
    Proposed: _proposed,
    Agreed: _agreed,
    Deliver: _deliver,
    Duplicate: _duplicate,
    Ended: _ended,
    Rode: _rode,
    Prepared: _prepared,
    Received: _received,
    Changing: _changing,
    Installed: _installed,
    Out: _out,
    Snapshot: _snapshot,
}
