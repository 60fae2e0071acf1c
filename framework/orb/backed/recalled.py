"""What a store says of its replica when a life is over: what is in its tables, and what is not decided there.

A part of a transaction is in the tables if and only if there is a note that it was committed: both are one commit. What
has no such note may have been committed nevertheless (parts.py): if another part of the same transaction was, it is
performed now; else it is *in doubt*, and whoever knows the outcome says which are to be kept. Nothing that conflicts
with it has been performed after it, for its conflict slots were held; so it can be performed last.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from framework.com.messages import Request
from framework.com.view import Holding
from framework.declare import Backed, declaration, performing
from framework.errors import BadRequest, Broken, Unavailable
from framework.ids import Invocation, Replica, object_of
from framework.orb.backed.checked import checked, unchecked
from framework.orb.durable.entries import Entry, Head, Settled, decode, record
from framework.orb.durable.noting import entries_of
from framework.orb.durable.restore import part_with
from framework.orb.given import Given
from framework.orb.held import Held, Once
from framework.orb.messages import open_envelope
from framework.orb.position import with_all
from framework.orb.recent import Recent


class InStore:
    """The state that is in the store of a replica; for ``Held`` what a spool is for others."""

    def __init__(self, target: Backed) -> None:
        self._target = target
        self._closed = False
        self._changing = threading.Lock()

    @contextmanager
    def changed(self) -> Iterator[None]:
        """In a thread. Nobody puts another state in its place meanwhile."""
        with self._changing:
            self.check()
            yield

    def chunks(self) -> Iterator[bytes]:
        self.check()
        return iter(self._target.get_state())

    def check(self) -> None:
        if self._closed:
            raise Unavailable("the state that was held is not there any more: another one has taken its place")

    def close(self) -> None:
        """Another state takes its place, or it is in use again."""
        with self._changing:
            self._closed = True


class _Store(NamedTuple):
    replica: Replica
    target: Backed
    head: Head
    version: int  # of the last view of which is noted that the replica had its state
    state: InStore


def recalled(replica: Replica, target: Backed, version: int) -> Held | None:
    """In a thread. None if there is no state."""
    found = target.recall()
    if found is None:
        target.set_state(())  # half of a state is none
        return None
    about, entry = f"what the store of {replica} says of its state", f"an entry in the store of {replica}"
    head = decode(unchecked(found.head, about), Head, about)
    read = [record(unchecked(data, entry), entry) for data in found.entries]
    notes = [one for note in read for one in (entries_of(note) if isinstance(note, Entry) else [note])]
    store = _Store(replica, target, head, version, InStore(target))
    committed = {n.tran for n in notes if isinstance(n, Settled) and n.commit}
    due = [e for e in _open(notes) if e.tran in committed]
    if due:
        notes += _settled(store, notes, due, [e.request.invocation for e in due])
    return _held(store, notes)


def _open(notes: Sequence[Entry | Settled]) -> list[Entry]:
    """What was performed for transactions, and may have to be performed again."""
    over = {n.invocation for n in notes if isinstance(n, Settled)}
    entries = [n for n in notes if isinstance(n, Entry) and n.ok and n.tran is not None]
    return [e for e in entries if e.request.invocation not in over]


def _held(store: _Store, notes: Sequence[Entry | Settled]) -> Held:
    entries = {n.request.invocation: n for n in notes if isinstance(n, Entry)}
    doubt = _open(notes)
    over = [e for e in entries.values() if e not in doubt]
    done = [e for e in (_done(n, entries) for n in notes) if e is not None]
    version = max([store.version, store.head.version, *(e.version for e in entries.values())])
    holding = Holding(store.replica, version, store.head.changes + len(done))
    recent = Recent((*store.head.done, *(e.request for e in done)))
    ticket = notes[-1].ticket if notes else store.head.ticket
    part = part_with(store.replica, store.head.part, over)
    held = Held(holding, part, ticket, store.state, recent.requests(), on_disk=True)
    held.position = with_all(store.head.position, (e.request.invocation for e in done))
    held.digest = partial(_digest, store)
    held.committed = tuple({n.tran: None for n in notes if isinstance(n, Settled) and n.commit})
    if doubt:
        held.doubtful = tuple([e.request for e in doubt])
        held.doubt = tuple([(e.request.invocation, e.tran) for e in doubt if e.tran is not None])
        held.resolve = lambda keep: _resolved(store, notes, doubt, keep)
    return held


def _resolved(
    store: _Store, notes: Sequence[Entry | Settled], doubt: Sequence[Entry], keep: Collection[Invocation]
) -> Held:
    with store.state.changed():
        held = _held(store, [*notes, *_settled(store, notes, doubt, keep)])
    held.kept = tuple([str(e.request.invocation) for e in doubt if e.request.invocation in keep])
    return held


def _done(note: Entry | Settled, entries: dict[Invocation, Entry]) -> Entry | None:
    """What has changed the tables at this point."""
    if isinstance(note, Settled):
        return entries[note.invocation] if note.commit else None
    return note if note.ok and note.tran is None else None


def _settled(
    store: _Store, notes: Sequence[Entry | Settled], doubt: Sequence[Entry], keep: Collection[Invocation]
) -> list[Settled]:
    """``keep`` is performed, and written down with it what became of all."""
    ticket, target = notes[-1].ticket, store.target
    target.begin()
    try:
        out = []
        for entry in doubt:
            kept = entry.request.invocation in keep
            if kept:
                _perform(store, entry.request, entry.tran)
            assert entry.tran is not None
            out.append(Settled(entry.request.invocation, entry.tran, kept, ticket))
        target.commit([checked(one) for one in out])
    except BaseException:
        target.rollback()
        raise
    return out


def _digest(store: _Store, more: Sequence[Once]) -> str | None:
    """See ``Held.digest``. What is performed for it is rolled back."""
    with store.state.changed():
        if not more:
            return store.target.fingerprint()
        store.target.begin()
        try:
            for request, _ in more:
                _perform(store, request)
            return store.target.fingerprint_of_batch()
        finally:
            store.target.rollback()


def _perform(store: _Store, request: Request, tran: Invocation | None = None) -> None:
    part = next(p for p in request.parts if p.object == object_of(store.replica))
    method = declaration(type(store.target)).method(part.footprint.method)
    envelope = open_envelope(request.args)
    try:
        with performing(_Again(request.invocation, envelope)):
            getattr(store.target, method.name)(*method.unpack(envelope.args))
    except Broken:
        raise
    except Exception as error:
        whose = f" for {tran}" if tran is not None else ""
        raise BadRequest(
            f"{store.replica}: {method.where} ({request.invocation}) had ended well{whose}, and now raises "
            f"{type(error).__name__}: {error}. Start the node with the class as it was; or move the store of this "
            "replica away, if others have its state"
        ) from error


class _Again(Given):
    @property
    def orb(self) -> Any:
        raise BadRequest("a backed object calls no other objects")
