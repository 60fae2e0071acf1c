"""Replies by invocation id: a call is performed at most once per replica (A1).

A call comes more than once when replicas of its caller each make it, or when a client repeats it through another
node. The first copy delivered is performed; the others get its reply.

What bounds the cache:
- a nested call loses its reply when all copies that its callers make have been answered: links deliver each once;
- a client says with each call below which number it has all its answers: those replies go;
- beyond ``bound`` replies the oldest finished calls of clients lose theirs, too; never those that callers still wait
  for: replicas of a caller must get the same answer.

A call whose reply is gone is still not performed again, but answered with OutcomeUnknown: which calls of a client were
performed is kept as ranges, and the ids of the last ``16 * bound`` nested ones one by one. What was decided on a
transaction of a client is answered for good: of the reply a bit is left (framework.com.outcome).
"""

from collections import OrderedDict
from collections.abc import Collection
from itertools import islice
from typing import cast

from framework.com.handed import Kept, Told
from framework.com.messages import Request, WireContext
from framework.com.outcome import DECIDES, Decided, Outcome
from framework.com.ranges import Ranges
from framework.ids import GroupId, Invocation

BOUND = 10_000


class Reply:
    __slots__ = (
        *("adopted", "body", "context", "copies", "did", "full", "joins"),
        *("outcome", "output", "status", "torn", "unsaid", "waiting"),
    )

    def __init__(self, copies: int) -> None:
        self.status: str | None = None  # None: nobody may be told yet
        self.outcome: str | None = None  # None: still running. The same as status, but perhaps before it
        self.body = b""
        self.output = False
        self.context: WireContext = ()  # for the caller whose copy was performed
        self.full: WireContext = ()  # for callers of other copies: with what the performed one brought
        self.joins: WireContext = ()
        self.torn = False  # something that it called was undone
        self.did: WireContext = ()
        #: It came with a state, and is in it: also if its root was not, and is being performed again
        self.adopted = False
        self.copies = copies  # how many are still to come
        self.waiting: list[Request] = []  # copies that came before anybody may be told
        #: Copies that came while its convoy was performed: a trace says so after it has said that this call was
        self.unsaid: list[GroupId] | None = None


class Replies:
    def __init__(self, bound: int = BOUND) -> None:
        self.bound = bound
        self._replies: dict[Invocation, Reply] = {}
        self._tombs: OrderedDict[Invocation, None] = OrderedDict()
        self._roots: dict[str, Ranges] = {}
        self._done: dict[str, int] = {}
        self.decided = Decided()  # of tran

    def __len__(self) -> int:
        return len(self._replies)

    def __contains__(self, invocation: Invocation) -> bool:
        """Has the call been performed here, or is it running?"""
        if invocation in self._replies or invocation in self._tombs:
            return True
        if len(invocation.path) > 1:
            return self._decided(invocation) is not None
        roots = self._roots.get(invocation.client)
        return roots is not None and invocation.path[0] in roots

    def get(self, invocation: Invocation) -> Reply | None:
        """Its reply, or None if that is no longer kept."""
        reply = self._replies.get(invocation)
        outcome = self._decided(invocation) if reply is None else None
        if outcome is not None:
            reply = Reply(1)
            reply.status, reply.outcome, reply.body, reply.output = "ok", "ok", outcome.told, True
        return reply

    def _decided(self, invocation: Invocation) -> Outcome | None:
        """What this call of tran was told, if no reply is kept any more. Where votes decided, it was never made."""
        client, path = invocation
        if not self.decided or len(path) != 2 or path[1] != DECIDES:
            return None
        told = self._roots.get(client)
        return self.decided.get(invocation.ancestor(1)) if told is not None and path[0] in told else None

    def all(self) -> list[tuple[Invocation, Reply]]:
        return list(self._replies.items())

    def last(self, reply: Reply) -> None:
        """It is kept until it is dropped, however many copies are answered."""
        reply.copies = 1 << 40

    def drop(self, invocation: Invocation) -> None:
        client, path = invocation
        if self._replies.pop(invocation, None) is None:
            return
        if len(path) == 2 and path[1] == DECIDES and self.decided.get(invocation.ancestor(1)) is not None:
            self._roots.setdefault(client, Ranges()).add(path[0])
        else:
            self._bury(invocation)

    def export(self, held: Collection[Invocation] = ()) -> Kept:
        """For a replica that has no state. What is running or held is not in it; what is over is, also if nobody may be
        told yet: it is in the state."""
        over = {i: None if i in held else r.status or r.outcome for i, r in self._replies.items()}
        running = {i for i, status in over.items() if status is None} | set(held)
        told = [
            Told(i, status, r.body, r.output, r.context, r.full, r.joins, r.copies)
            for i, r in self._replies.items()
            if (status := over[i]) is not None and (r.adopted or not _within(i, running))
        ]
        tombs = tuple(i for i in self._tombs if i not in running and not _within(i, running))
        roots = tuple((client, ranges.wire()) for client, ranges in self._roots.items())
        started = tuple(sorted(i for i in running if len(i.path) == 1 and i in self))
        return Kept(tuple(told), tombs, roots, tuple(self._done.items()), started, self.decided.export())

    def adopt(self, kept: Kept) -> None:
        for told in kept.replies:
            reply = self._replies[told.invocation] = Reply(told.copies)
            reply.adopted = True
            reply.status, reply.body, reply.output = told.status, told.body, told.output
            reply.context, reply.full, reply.joins = told.context, told.full, told.joins
        self._tombs.update(dict.fromkeys(kept.tombs))
        for client, ranges in kept.roots:
            self._roots.setdefault(client, Ranges()).add_all(ranges)
        for invocation in kept.running:
            self._roots[invocation.client].remove(invocation.path[0])
        self._done.update(kept.done)
        self.decided.adopt(kept.decided)

    def start(self, request: Request) -> Reply:
        return self.begin(request.invocation, request.copies, request.done)

    def begin(self, invocation: Invocation, copies: int, done: int) -> Reply:
        client, path = invocation
        reply = self._replies[invocation] = Reply(copies)
        if len(path) == 1:
            roots = self._roots.get(client)
            if roots is None:
                roots = self._roots[client] = Ranges()
            roots.add(path[0])
        if done:
            self._acknowledge(client, done)
        return reply

    def at_once(
        self, invocation: Invocation, wanted: bool, done: int, ok: bool, body: bytes, output: bool, context: WireContext
    ) -> None:
        """A call of a client has been performed and told, at once. ``wanted``: who repeats it gets this answer."""
        client, number = invocation.client, invocation.path[0]
        roots = self._roots.get(client)
        if roots is None:
            roots = self._roots[client] = Ranges()
        roots.add(number)
        if done:
            self._acknowledge(client, done)
        if wanted and number >= self._done.get(client, 0):
            reply = self._replies[invocation] = Reply(0)
            reply.body, reply.output, reply.context, reply.full = body, output, context, context
            reply.status = reply.outcome = "ok" if ok else "error"
            if len(self._replies) > self.bound:
                self._shrink()

    def finish(self, invocation: Invocation, reply: Reply) -> list[Request]:
        """The call is over, and may be told; the copies that came meanwhile are to be answered with its reply."""
        waiting, reply.waiting = reply.waiting, []
        if not waiting:
            self._forget(invocation, reply)
        return waiting

    def answered(self, invocation: Invocation) -> None:
        """One copy has its answer."""
        reply = self._replies.get(invocation)
        if reply is None:
            return
        reply.copies -= 1
        self._forget(invocation, reply)

    def _forget(self, invocation: Invocation, reply: Reply) -> None:
        if reply.status is None:
            return
        client, path = invocation
        root = len(path) == 1
        wanted = path[0] >= self._done.get(client, 0) if root else reply.copies > 0
        if not wanted:
            if self._replies.pop(invocation, None) is not None and not root:
                self._bury(invocation)
        elif len(self._replies) > self.bound:
            self._shrink()

    def _acknowledge(self, client: str, done: int) -> None:
        before = self._done.get(client, 0)
        if done <= before:
            return
        self._done[client] = done
        if done - before < len(self._replies):
            calls = [cast(Invocation, (client, (n,))) for n in range(before, done)]  # as good to look up
        else:  # a client need not start at 1
            calls = [i for i in self._replies if i.client == client and len(i.path) == 1 and i.path[0] < done]
        for invocation in calls:
            reply = self._replies.get(invocation)
            if reply is not None and reply.status is not None:
                del self._replies[invocation]

    def _shrink(self) -> None:
        """Look at the oldest few; who is still wanted goes to the end, so that the next look finds others."""
        for invocation in list(islice(self._replies, max(8, len(self._replies) - self.bound))):
            if len(invocation.path) == 1 and self._replies[invocation].status is not None:
                del self._replies[invocation]
            else:
                self._replies[invocation] = self._replies.pop(invocation)

    def _bury(self, invocation: Invocation) -> None:
        self._tombs[invocation] = None
        if len(self._tombs) > 16 * self.bound:
            self._tombs.popitem(last=False)


def _within(invocation: Invocation, running: Collection[Invocation]) -> bool:
    """Is it a call of one of these, direct or not? It came back to an instance that waits for it."""
    return bool(running) and any(invocation.ancestor(n) in running for n in range(1, len(invocation.path)))
