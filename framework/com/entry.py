"""A request at one replica, with all that its way through the queue has to remember (framework.com.order)."""

from framework.com.messages import Dest, Mark, Part, Request, WireContext
from framework.footprint import Footprint
from framework.ids import GroupId, Invocation, ObjectName, Replica, Stamp

LOWEST = Stamp(0, GroupId(0, Replica(""), 0))


class Entry:
    """A request at this replica, from its first announcement until it is settled and ended."""

    __slots__ = (
        "alike",
        "awaits",
        "beyond",
        "dests",
        "fast",
        "first",
        "floor",
        "followers",
        "footprint",
        "gone",
        "group",
        "heard",
        "held",
        "invocation",
        "key",
        "known",
        "lent",
        "line",
        "mark",
        "meets",
        "ordered",
        "places",
        "preds",
        "proposal",
        "proposals",
        "queued",
        "request",
        "rests",
        "safe",
        "serial",
        "stamp",
        "started",
        "tran",
        "version",
        "void",
        "waited",
        "wanted",
        "watchers",
    )

    def __init__(self, group: GroupId, first: Stamp, footprint: Footprint, dests: tuple[Dest, ...]) -> None:
        self.group = group
        self.first = first  # origin stamp
        self.footprint = footprint
        self.dests = tuple([d[0] for d in dests])
        self.version = 0  # of the view in which it was sent
        self.gone: tuple[Replica, ...] = ()  # destinations whose life has ended: nobody waits for them
        self.wanted = len(dests)  # those whose word counts
        self.heard = 0  # highest proposal of the others, as far as the flush has brought it
        self.places: tuple[str, ...] = ()
        self.meets: tuple[str, ...] = ()
        self.request: Request | None = None  # None: only announced
        self.invocation: Invocation | None = None
        self.mark: Mark | None = None
        self.ordered = True
        self.line: tuple[Invocation, ...] = ()  # ancestors that may be running here
        self.preds: list[Mark] = []  # predecessors here that are not settled yet
        self.lent: tuple[
            Mark, ...
        ] = ()  # of them, those in the place of void ones: other destinations may not have them
        self.alike: tuple[Mark, ...] = ()  # of them, those with the same destinations
        self.rests: Mark | None = None  # it has its stamp, and this is the last of them: no other can let it go on
        self.floor = LOWEST  # highest stamp of those that are
        self.proposal: Stamp | None = None
        self.proposals: dict[Replica, int] | None = None
        self.stamp: Stamp | None = None
        self.known: set[Replica] | None = None
        self.safe = False
        self.fast = False
        self.started = False
        self.waited = False  # for a conflicting one
        self.serial = False  # a convoy whose calls are delivered one after the other, and the last of them is not yet
        self.awaits = range(0)  # numbers of the calls that its instance waits for now
        self.void = False
        self.tran: Invocation | None = None  # the transaction that it is a part of; a root is none of its own
        self.held = False  # performed, and kept until the transaction is over
        self.beyond: WireContext = ()  # what must be delivered first at other replicas of this node
        self.queued = False  # it will be looked at
        self.key: Stamp | None = None  # where it stands in the index of known requests
        self.watchers: list[Entry] | None = None  # look at these again when this one moves
        self.followers: list[Entry] | None = None  # requests that name this one as predecessor

    def all_know(self) -> bool:
        """Have all destinations said that they know its stamp?"""
        return len(self.known or ()) == self.wanted

    def __repr__(self) -> str:
        return f"<{self.group} {self.footprint} {self.stamp or self.proposal or 'held'}>"


def part_of(request: Request, name: ObjectName) -> Part:
    """What a request does to this object."""
    parts = request.parts
    return parts[0] if len(parts) == 1 else next(p for p in parts if p.object == name)


def line_of(request: Request, name: ObjectName) -> tuple[Invocation, ...]:
    """Its ancestors that may be running at this object."""
    if not request.chain:
        return ()
    return tuple(request.invocation.ancestor(a.length) for a in request.chain if a.object == name)


def way(entry: Entry) -> str:
    """How a stamp became safe; "none" where no agreement was needed."""
    if not entry.ordered:
        return "none"
    return "fast" if entry.fast else "slow"
