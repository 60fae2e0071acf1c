"""What a replica's queue knows of transactions: who belongs to which, what is held, and calls that came back.

A request is part of the transaction of its outermost ancestor that waits for it (P1 §2.4: dependent instantiation).
When it has been performed it stays in its slots until the outcome of the transaction is known here: nobody else sees
or disturbs what it did, and its kin, requests of the same transaction, join it (framework.com.ahead).
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from framework.com.before import Before
from framework.com.entry import Entry
from framework.com.messages import Mark, Request
from framework.com.past import Past
from framework.ids import GroupId, Invocation, ObjectName, Replica

if TYPE_CHECKING:
    from framework.com.order import Order


def _open(order: "Order", entry: Entry) -> bool:
    return False


def _going_on(name: Invocation) -> bool:
    return False


class Kin(Before):
    entries: dict[GroupId, Entry]
    _joining: dict[Mark, Invocation]

    def __init__(self, past: Past, at: Replica) -> None:
        super().__init__(past, at)
        self.roots: Collection[ObjectName] = ()  # in whose transactions this replica takes part
        #: Must it wait for something at another replica of this node? If so, it is looked at again afterwards.
        self.gate: Callable[[Order, Entry], bool] = _open
        #: Has this transaction been aborted?
        self.aborted: Callable[[Invocation], bool] = _going_on

    def tran_of(self, request: Request) -> Invocation | None:
        """The transaction of a request with ancestors, if this replica takes part in it."""
        root = request.chain[0]
        return request.invocation.ancestor(root.length) if root.object in self.roots else None

    def hold(self, entry: Entry) -> None:
        """The instance of this request is over for its caller. Its slots are taken until the transaction is over."""
        self.ahead.hold(entry)
        self._joined(entry)
        self._look(*[e for e in self.entries.values() if e.tran == entry.tran and e.request is not None])
        self._move(entry)
        self._run()

    def drop(self, entry: Entry) -> None:
        """Its transaction was aborted before it came to its turn. It will have no effect, so it has no place among
        those that conflict: another replica may have performed it, undone it, and forgotten its place."""
        self.ahead.leave(entry)
        entry.places = entry.meets = ()
        self._move(entry)
        self.look(entry)

    def look(self, entry: Entry) -> None:
        """What it waited for at another replica may be over."""
        self._look(entry)
        self._run()

    def has_performed(self, mark: Mark) -> bool:
        """Return whether this request, or another copy of its call, has started here."""
        entry = self._by_mark.get(mark)
        return self.past.is_delivered(mark) if entry is None else entry.started or entry.void

    def known(self, mark: Mark) -> Entry | None:
        """A request that is here and not settled."""
        return self._by_mark.get(mark)

    def comes_back(self, ancestor: Entry, calls: range) -> bool:
        """Does a request that came back from one of these calls of a running instance wait here, or is it running?"""
        assert ancestor.invocation is not None
        depth = len(ancestor.invocation.path)
        known = [*self.entries.values(), *self.ahead.performing.values()]
        return any(
            ancestor.invocation in e.line
            and not e.void
            and e.invocation is not None
            and e.invocation.path[depth] in calls
            for e in known
            if e is not ancestor and not e.held and (not e.started or e.invocation in self.ahead.performing)
        )

    def has_joined(self, mark: Mark) -> bool:
        """Is this call, which came back to an instance that waits for it, over? By this or another copy of it."""
        return mark not in self._joining and self.has_performed(mark)

    def _joined(self, entry: Entry) -> None:
        """It is over for who waits that calls which came back to this replica are."""
        if entry.line:
            self._joining = {m: i for m, i in self._joining.items() if i != entry.invocation}

    def _move(self, entry: Entry) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        raise NotImplementedError

    def _look(self, *entries: Entry) -> None:
        raise NotImplementedError
