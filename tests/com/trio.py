"""Three nodes and nothing between them: a test makes each frame by hand, good or bad."""

from typing import Any

from framework.com.core import Com
from framework.com.events import AnyEffect, Arrived, Deliver, Outgoing
from framework.com.limits import Limits
from framework.com.messages import Announce, AnyMessage, Dest, Frame, Part, Proposal, Request, encode
from framework.com.view import Directory, Placement, View
from framework.footprint import Footprint, Relation
from framework.ids import GroupId, Invocation, Node, ObjectName, Replica, Sid

N1, N2, N3 = Node("n1"), Node("n2"), Node("n3")
F, G = ObjectName("f"), ObjectName("g")
EVERYWHERE = tuple(Replica(f"f@n{i}") for i in (1, 2, 3))
ORIGIN = Replica("tran@n2")
W = (Part(F, Footprint("w")),)


def nodes(limits: Limits | None = None) -> dict[Node, Com]:
    placements = [
        Placement("f", Relation([("w", "w"), ("w", "r")]), ["n1", "n2", "n3"]),
        Placement("g", Relation([("a", "a")]), ["n1", "n2"]),
        Placement("h", Relation([]), ["n1"]),
    ]
    directory = Directory(View(1, (N1, N2, N3)), placements)
    return {n: Com(n, directory, limits=limits) for n in (N1, N2, N3)}


def group(no: int, origin: str = ORIGIN) -> GroupId:
    return GroupId(5, Replica(origin), no)


def to(*replicas: str, seq: int = 1) -> tuple[Dest, ...]:
    return tuple(Dest(Replica(r), seq) for r in replicas)


def request(no: int = 1, **change: Any) -> Request:
    """The ``no``-th request of a client at n2, g.a at n1, changed as the test needs it."""
    fields: dict[str, Any] = {
        "view": 1, "group": group(no), "invocation": Invocation("bob", (no,)), "kind": "sync", "target": "g@n1",
        "dests": to("g@n1", seq=no), "parts": (Part(G, Footprint("a")),), "number": 5, "ordered": False,
        "context": (), "chain": (), "copies": 1, "done": 0, "args": b"",
    }  # fmt: skip
    return Request(**{**fields, **change})


def write(no: int = 1, **change: Any) -> Request:
    """The same for f.w at n1 and n2, which needs agreement."""
    fields = {"target": "f@n1", "dests": to("f@n1", "f@n2", seq=no), "parts": W, "ordered": True}
    return request(no, **{**fields, **change})


def proposal(no: int = 1, announce: Announce | None = None, origin: str = ORIGIN, at: str = "f@n2") -> Proposal:
    return Proposal(1, group(no, origin), Replica(at), 5, announce)


def arrived(*messages: AnyMessage, number: int = 1, clock: int = 1, peer: Node = N2) -> Arrived:
    return Arrived(peer, encode(Frame(peer, 1, number, 0, 0, clock, messages)))


def outgoing(name: str, method: str, *replicas: str, keys: Any = None) -> Outgoing:
    return Outgoing(ObjectName(name), Footprint(method, keys), b"", tuple(Replica(r) for r in replicas))


def delivered(effects: list[AnyEffect]) -> list[Sid]:
    return [e.sid for e in effects if isinstance(e, Deliver)]
