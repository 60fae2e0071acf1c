"""A method being performed on a replica, as the com layer sees it."""

from framework.com.caller import Caller
from framework.com.context import Context
from framework.com.entry import Entry
from framework.com.events import Completed, Submit
from framework.com.messages import Ancestor, Request, WireContext
from framework.com.replies import Reply
from framework.ids import Replica, Sid, object_of


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
