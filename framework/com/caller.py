"""Who sends: an instance on a replica, or a client's session (a transaction, P0 §2). Its context, its calls.

A caller's context says what must be delivered before anything it sends from now on (protocol.md §4.1). Requests that
only read are kept apart: they matter to later requests of their own instance and are forgotten with it (P1 §4).
"""

from collections.abc import Collection, Container, Sequence
from typing import TYPE_CHECKING

from framework.com import receipt as receipts
from framework.com.check import MANY
from framework.com.context import Context, Known
from framework.com.entry import Entry
from framework.com.events import Completed, Outgoing, Session, Submit
from framework.com.messages import Ancestor, Cancel, Dest, Kind, Mark, Part, Request, Response, WireContext
from framework.com.receipt import Receipt
from framework.com.replies import Reply
from framework.com.telling import Sent
from framework.com.view import View
from framework.errors import BadRequest
from framework.ids import GroupId, Invocation, Node, ObjectName, Replica, Sid, node_of, object_of

if TYPE_CHECKING:
    from framework.com.core import Com


class Call:
    """A transmission whose responses are or will be wanted."""

    __slots__ = (
        "absent",
        "brief",
        "brought",
        "deadline",
        "dests",
        "got",
        "group",
        "nested",
        "number",
        "objects",
        "overlaps",
        "receipt",
        "received",
        "riders",
        "rides",
        "seqs",
        "silent",
        "torn",
        "tran",
        "unprepared",
        "waived",
    )

    def __init__(self, number: int, group: GroupId, dests: tuple[Dest, ...], absent: tuple[Replica, ...] = ()) -> None:
        self.number = number
        self.group = group
        self.absent = absent  # destinations that were not there: it was not sent to them
        self.seqs: dict[Replica, int] = dict(dests)
        self.dests = tuple(self.seqs)  # those that have answered or may answer
        self.got: dict[Replica, Response] = {}  # in the order of arrival
        self.receipt: Receipt | None = None  # what the caller waits for now
        self.deadline: float | None = None
        self.received = False  # the receipt is over: what comes now is not received
        self.silent: set[ObjectName] = {object_of(d) for d in self.dests}  # objects that have not answered at all
        self.unprepared: set[Replica] = set(self.dests)  # replicas that have not answered
        self.objects = len(self.silent)
        self.nested = False
        self.tran: Invocation | None = None  # a client's transaction that it is a part of
        self.overlaps = False  # others of its caller were under way at the same time
        self.torn = False  # something was undone that it had done
        self.waived: tuple[Replica, ...] = ()
        self.brought: WireContext = ()  # what it stands for at its destinations, once it is agreed
        self.brief = False  # it is over in a moment, and might have travelled with others (framework.com.together)
        self.rides = False  # it does: the request is that of its convoy
        self.riders: list[tuple[Caller, Call]] = []  # it is a convoy: these are in it

    @property
    def numbers(self) -> range:
        """A pcast takes one for each object."""
        return range(self.number, self.number + self.objects)

    def is_open(self, stateless: Container[Replica] = ()) -> bool:
        """Return whether its caller cannot end yet. A part of a transaction has to be prepared at each replica that has
        a state: one that has not performed it may have it wait for a request that waits for the transaction
        (protocol.md §7.4)."""
        return bool(self.silent) or (self.tran is not None and any(r not in stateless for r in self.unprepared))

    @property
    def finished(self) -> bool:
        return len(self.got) == len(self.dests)

    def take(self, response: Response) -> bool:
        """Keep a response. False if it is not one of this call, or came before."""
        at = response.replica
        if at in self.waived:  # it has its state now
            self.waived = tuple([d for d in self.waived if d != at])
            self.dests = (*self.dests, at)
        if at not in self.dests or at in self.got:
            return False
        self.got[at] = response
        self.silent.discard(object_of(at))
        self.unprepared.discard(at)
        return True

    def lose(self, left: Collection[Node]) -> bool:
        """Destinations on these nodes answer no more. False if this call waits for none of them."""
        dests = [d for d in self.dests if d in self.got or node_of(d) not in left]
        self.waived = tuple([d for d in self.waived if node_of(d) not in left])
        if len(dests) == len(self.dests):
            return False
        there = {object_of(d) for d in dests}
        dests += [d for d in self.waived if object_of(d) not in there]  # nobody else can answer
        self.dests = tuple(dests)
        self.waived = tuple([d for d in self.waived if d not in dests])
        self.unprepared &= set(dests)
        self.silent &= {object_of(d) for d in dests}
        return True

    def waive(self, dests: Collection[Replica]) -> None:
        """These have no state yet. Nobody waits for them."""
        self.waived = tuple(dests)
        self.unprepared.difference_update(dests)
        self.dests = tuple([d for d in self.dests if d not in dests])

    @property
    def hopeless(self) -> bool:
        """Can its receipt never be complete, because destinations have departed?"""
        if self.receipt is None or (len(self.dests) == len(self.seqs) and not self.absent):
            return False
        if self.receipt.source is not None and not self.nested:
            return self.receipt.source not in self.dests
        if self.receipt.way == "drec":
            return not self.dests
        least = self.receipt.r if self.receipt.way == "quorum" and not self.nested else 1
        left = [object_of(d) for d in self.dests]
        return any(left.count(o) < least for o in {object_of(d) for d in self.seqs})

    def significant(self) -> tuple[Response, ...] | None:
        """The responses that complete the receipt, the most significant one last; None while it is incomplete.

        As they came: a drec of three responses that are all here receives the first of them only."""
        assert self.receipt is not None
        if self.hopeless:
            return None
        if len(self.seqs) == 1:
            return tuple(self.got.values()) or None
        if self.receipt.source in self.dests:  # srec: from this one, whoever else has answered
            wanted = self.got.get(self.receipt.source)
            return (wanted,) if wanted is not None else None
        if self.objects == 1 and self.receipt.way == "quorum" and not self.nested:
            r = self.receipt.r
            return tuple(self.got.values())[:r] if len(self.got) >= r else None
        got: list[Replica] = []
        for replica in self.got:
            got.append(replica)
            if self._complete(got):
                return tuple(self.got[r] for r in got)
        return None

    def _complete(self, got: Sequence[Replica]) -> bool:
        """Replicas of a caller must come to the same result, also if one of them had all responses and another one lost
        a destination before. Replicas of the callee answer alike. So a nested call that has lost some of its
        destinations does with those that are left."""
        assert self.receipt is not None
        if self.nested and self.receipt.source is not None:
            return bool(got)
        if self.nested and self.receipt.way == "quorum":
            names, left = [object_of(g) for g in got], [object_of(d) for d in self.dests]
            return all(names.count(o) >= min(self.receipt.r, left.count(o)) for o in set(left))
        return receipts.complete(self.receipt, self.dests, got)


class Caller:
    __slots__ = (
        "_context",
        "_joins",
        "_reads",
        "acted",
        "calls",
        "cid",
        "client",
        "dependents",
        "did",
        "invocation",
        "next",
        "no",
        "sid",
        "torn",
    )

    def __init__(self, sid: Sid, cid: Sid, client: str, invocation: Invocation) -> None:
        self.sid = sid
        self.cid = cid
        self.client = client  # "" for an instance
        self.invocation = invocation
        self.no = 0
        self.next = 0  # an instance numbers its calls upwards: the lowest free number
        self._context: Context | None = None
        self._reads: Context | None = None
        self._joins: Context | None = None
        self.calls: dict[int, Call] = {}
        self.acted = False  # has it sent or received anything?
        self.dependents = False  # has it called anybody who is part of its transaction?
        self.torn = False  # was something undone that it had called for?
        self.did: dict[Invocation, Context] = {}  # by transaction: all that was sent for it, as far as it knows

    @property
    def context(self) -> Context:
        if self._context is None:
            self._context = self._inherit()
        return self._context

    def _inherit(self) -> Context:
        return Context()

    @property
    def chain(self) -> tuple[Ancestor, ...]:
        """Itself and its ancestors that wait for what it does."""
        return ()

    @property
    def version(self) -> int:
        """Who joined after this view is sent what it sends, but not waited for (framework.com.present)."""
        return MANY

    @property
    def copies(self) -> int:
        """How many replicas make the same calls."""
        return 1

    @property
    def reads(self) -> Context:
        if self._reads is None:
            self._reads = Context()
        return self._reads

    @property
    def joins(self) -> Context:
        """Calls that came back to objects of its chain."""
        if self._joins is None:
            self._joins = Context()
        return self._joins

    def knows(self, known: Known) -> WireContext:
        """What the next message carries."""
        context = self.context
        context.prune(known)
        if not self._reads:
            return context.wire()
        self.reads.prune(known)
        both = self.context.copy()
        both.merge(self.reads)
        return both.wire()

    def leaves(self, known: Known) -> WireContext:
        """What its response carries: reads are forgotten with it."""
        self.context.prune(known)
        return self.context.wire()

    def sent(self, dest: Dest, mark: Mark, kind: Kind, readonly: bool) -> None:
        self.acted = True
        if readonly:
            self.reads.replace(dest.replica, mark)  # it waits for reads before it by itself
        else:
            self.context.replace(dest.replica, mark)
            if self._reads:
                self._reads.drop(dest.replica)
        if kind != "oneway" and not self.client and any(a.object == object_of(dest.replica) for a in self.chain):
            self.joins.add(dest.replica, mark)

    def received(self, responses: Sequence[Response]) -> None:
        """Completing a receipt merges the contexts of what was received, and of nothing else."""
        self.acted = True
        for response in responses:
            if response.context:
                self.context.merge_wire(response.context)

    def brings(self, parts: Sequence[Outgoing], context: WireContext) -> WireContext:
        """What a call of a client stands for later. One that only reads is forgotten before others are."""
        if not self.client:
            return ()
        where = {r for p in parts if not p.footprint.readonly for r in p.replicas}
        return tuple([c for c in context if c[0] in where])

    def agreed(self, call: Call) -> None:
        """A call that has been delivered somewhere after agreement is delivered at all its destinations, whoever
        crashes (A5): there it stands for all that it waits for, also for requests of other nodes. Else a session would
        name all that it ever heard of, for as long as a replica is behind."""
        if call.riders:
            for caller, _ in call.riders:
                caller.context.without(call.brought)
        else:
            self.context.without(call.brought)
        call.brought = ()

    def joined(self, joins: WireContext) -> None:
        """Calls that came back, as far as somebody of its own chain has to know of them."""
        for at, marks in joins:
            if any(a.object == object_of(at) for a in self.chain):
                for mark in marks:
                    self.joins.add(at, mark)

    def check_chain(self, parts: Sequence[Outgoing]) -> None:
        """A call back to an object of its own chain joins the instance that waits for it. That works only where
        this instance runs: elsewhere the order of the two could differ from replica to replica."""
        for part in parts:
            for ancestor in self.chain:
                if ancestor.object != part.object:
                    continue
                if len(parts) > 1:
                    raise BadRequest(
                        f"a pcast with {part.object}, which waits for this call: call it back by ucast or mcast"
                    )
                if not set(part.replicas) <= set(ancestor.replicas):
                    raise BadRequest(
                        f"a call back to {part.object} at {', '.join(part.replicas)}: its instance that waits for "
                        f"this call runs at {', '.join(ancestor.replicas)} only; call it there"
                    )


class ClientSession(Caller):
    """What a client sends: its session; or one of its transactions, which is a sender of its own."""

    __slots__ = ("after", "included", "latest", "over", "session", "transactions")

    def __init__(self, sid: Sid, cid: Sid, client: str, session: "ClientSession | None" = None) -> None:
        super().__init__(sid, cid, client, Invocation(client, ()))
        self.session = session or self
        self.transactions: dict[int, ClientSession] = {}  # of a session, by their numbers
        self.over = False  # a transaction: the client knows its outcome
        self.included: list[str] = []  # for the trace: what it has followed of other senders since it sent something
        self.after: tuple[GroupId, str] | None = None  # the last thing that it sent or received
        self.latest: tuple[GroupId, str] | None = None  # of a session: the last thing of all its senders

    def went_on(self, group: GroupId, what: str) -> None:
        """Note that it has sent or received something."""
        self.after = self.session.latest = group, what

    def follow(self, other: "ClientSession", known: Known) -> None:
        """Send everything from now on after all that the other sender knows."""
        self.context.merge_wire(other.knows(known))
        self.included += other.included
        if other.after is not None:
            self.included.append(_named(other.after))

    def kept(self, known: Known, clock: int, view: View) -> Session | None:
        """Return what a client keeps of its session; None before its first call has left."""
        if self.latest is None:
            return None
        context = self.knows(known)
        if self.transactions:
            both = Context()
            for sender in (self, *self.transactions.values()):
                both.merge_wire(sender.knows(known))
            context = both.wire()
        return Session(context, clock, _named(self.latest), view.version, view.formation)


def _named(after: tuple[GroupId, str]) -> str:
    group, what = after
    return f"{group} {what}"


class Instance(Caller):
    """A method being performed on this replica.

    Most instances call nobody. So what they inherit is put together only when they do (protocol.md §4.1): base, the
    request's context, and the other instances of the request's message group."""

    __slots__ = ("base", "entry", "finished", "outbox", "reply", "rides", "siblings")

    def __init__(
        self, sid: Sid, cid: Sid, entry: Entry, reply: Reply, base: WireContext, siblings: WireContext
    ) -> None:
        request = entry.request
        assert request is not None
        super().__init__(sid, cid, "", request.invocation)
        self.entry = entry
        self.reply = reply
        self.finished: Completed | None = None
        self.base = base
        self.siblings = siblings
        self.outbox: list[Submit] = []  # one-way calls, which leave when its transaction is committed
        self.rides: list[Reply | None] = []  # of a convoy: of each of its calls; None of those that are skipped

    def _inherit(self) -> Context:
        assert self.entry.request is not None
        context = Context()
        for wire in (self.base, *self.brought(self.entry.request)):
            context.merge_wire(wire)
        return context

    @property
    def _mine(self) -> tuple[Replica, ...]:
        """Where else it is performed, and here."""
        name = object_of(self.sid.replica)
        return tuple([d for d in self.entry.dests if object_of(d) == name])

    @property
    def chain(self) -> tuple[Ancestor, ...]:
        request = self.entry.request
        assert request is not None
        name = object_of(self.sid.replica)
        return (*request.chain, Ancestor(name, len(request.invocation.path), self._mine))

    @property
    def version(self) -> int:
        return self.entry.version

    @property
    def copies(self) -> int:
        return len(self._mine)

    def brought(self, request: Request) -> tuple[WireContext, WireContext]:
        """What its request brought to this replica. At each destination it stands for what it waits for there."""
        dests = self.entry.dests
        return tuple([at for at in request.context if at[0] not in dests]), self.siblings


# Cancelling a call (docs/com.md). Replicas must do the same, and each hears of a cancelling at another moment. So a
# request that several replicas of an object perform is carried through; also one that only reads: a call back to it
# (joining) goes to all these replicas and has to find it there. So is one that several replicas of its caller make: the
# others wait for its answer. What is left goes to a single replica. It keeps its place in the queue: order, contexts
# and marks do not notice.


def alone(what: Request | Call) -> bool:
    """Does each object get it at one replica only?"""
    return len(what.dests) == (what.objects if isinstance(what, Call) else len(what.parts))


def may_stop(request: Request) -> bool:
    """Judged by the callee, from the request alone."""
    if request.copies > 1 or not alone(request):
        return False
    return len(request.parts) == 1 or all(p.footprint.readonly for p in request.parts)  # a pcast: not half of a change


def recall(com: "Com", call: Call) -> None:
    """Tell those that have not answered. Links are FIFO: it comes after the request."""
    if not alone(call):
        return
    for at in call.dests:
        if at not in call.got:
            com.post(node_of(at), Cancel(com.view, call.group, at))


def sent(
    caller: Caller,
    event: Submit,
    call: Call,
    parts: tuple[Part, ...],
    first: Invocation,
    place: tuple[int, bool],  # its origin stamp, and whether it needs agreement
    context: WireContext,
    tran: Invocation | None,
) -> Sent:
    """Return what is told of a message group that has left, for the trace."""
    included: list[str] = []
    if isinstance(caller, ClientSession):
        included, caller.included = caller.included, included
    return Sent(
        caller.sid,
        caller.cid,
        event.call,
        call.group,
        first,
        event.kind,
        event.transmission,
        tuple([Dest(at, seq) for at, seq in call.seqs.items()]),
        parts,
        *place,
        sum(len(marks) for _, marks in context),
        caller.client,
        event.receipt,
        (*[s.after for s in event.sessions], *included),
        call.waived,
        tran,
    )
