"""The state of a durable replica from its disk: the snapshot, and what was performed after it, once more.

Instances are performed in the order in which they ended. Those that conflict ended in their order, the others may have
any. A call that came back to an instance which waited for it is performed where that one waits; if the one that waited
has not ended, nothing of both is in the state: whoever repeats it begins from the beginning.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from framework.com.context import Context
from framework.com.handed import Kept, Part, read_part
from framework.com.messages import Request
from framework.com.replies import Replies
from framework.com.view import Holding
from framework.declare import Object, declaration, performing
from framework.declare.portable.fingerprint import fingerprint
from framework.errors import BadRequest
from framework.ids import TRAN, Invocation, Replica, object_of
from framework.orb.durable.entries import Entry, Head, Settled, decode, record
from framework.orb.durable.past import Past
from framework.orb.held import Chunks, Held, Once, spooled
from framework.orb.loops import new_loop
from framework.orb.messages import open_envelope
from framework.orb.moving import capture
from framework.orb.position import with_all
from framework.orb.recent import Recent
from framework.store import Loaded

log = logging.getLogger(__name__)

CONTEXTS = 1000  # entries whose context may still count: other nodes have delivered what is older
_EMPTY = Part(0, (), Kept((), (), (), ()))


class Fates(NamedTuple):
    """What became of what stands in a journal, as far as the journal knows (docs/transactions.md)."""

    over: list[Entry]  # in the state; or it raised, and has a reply
    doubt: list[Entry]  # performed for transactions of which nothing else is known
    committed: tuple[Invocation, ...]  # transactions


def fates(records: Sequence[Entry | Settled]) -> Fates:
    settled = [r for r in records if isinstance(r, Settled)]
    committed = dict.fromkeys([s.tran for s in settled if s.commit])
    undone = {s.invocation for s in settled if not s.commit}
    entries = [r for r in records if isinstance(r, Entry) and r.request.invocation not in undone]
    doubt = [e for e in entries if e.tran is not None and e.tran not in committed]
    return Fates([e for e in entries if e.tran is None or e.tran in committed], doubt, tuple(committed))


def restored(replica: Replica, cls: type[Object], loaded: Loaded, version: int) -> Held | None:
    """In a thread. None if there is nothing. ``version``: of the last view of which is noted that it had its state."""
    head = Head(0, 0, b"", "", (), 0)
    target = cls()
    if loaded.snapshot is not None:
        head = decode(next(loaded.snapshot), Head, f"the snapshot of {replica}")
        target.set_state(loaded.snapshot)
        for _ in loaded.snapshot:  # a set_state of the user's need not read to the end
            pass
    elif not loaded.position:
        return None
    records = [record(data, f"record {at} of {replica}") for at, data in loaded.records]
    found = fates(records)
    performed = found.over
    if object_of(replica) != TRAN:  # the com layer knows what that has done
        performed = perform_again(replica, target, found.over)
    done = [e for e in performed if e.ok]
    versions = [r.version for r in records if isinstance(r, Entry)]
    last = records[-1].ticket if records else head.ticket
    holding = Holding(replica, max([version, head.version, *versions]), head.changes + len(done))
    recent = Recent(chain(head.done, (e.request for e in done)))
    part = part_with(replica, head.part, performed)
    spool = spooled(capture(target))
    held = Held(holding, part, last, spool, recent.requests(), on_disk=True)
    held.committed = found.committed
    held.position = with_all(head.position, (e.request.invocation for e in done))
    held.digest = partial(digest_with, replica, cls, spool)
    held.seen = {e.request.invocation: e.seen for e in done if e.seen}
    return doubtful(replica, cls, held, found.doubt)


def doubtful(replica: Replica, cls: type[Object], held: Held, doubt: Sequence[Entry]) -> Held:
    """The same, beside which these are in doubt."""
    held.doubt = tuple([(e.request.invocation, e.tran) for e in doubt if e.tran is not None])
    held.doubtful = tuple([e.request for e in doubt])
    held.resolve = lambda keep: _resolved(replica, cls, held, [e for e in doubt if e.request.invocation in keep])
    return held


def _resolved(replica: Replica, cls: type[Object], held: Held, kept: Sequence[Entry]) -> Held:
    """In a thread: with these in the state, and nothing in doubt."""
    target = cls()
    target.set_state(held.spool.chunks())
    done = perform_again(replica, target, kept)
    holding = held.holding._replace(performed=held.holding.performed + len(done))
    requests = (*held.done, *[e.request for e in done])
    part = part_with(replica, held.part, done)
    names = tuple([str(e.request.invocation) for e in done])
    spool = spooled(capture(target))
    whole = Held(holding, part, held.ticket, spool, requests, kept=names)
    whole.position = with_all(held.position, (e.request.invocation for e in done))
    whole.digest = partial(digest_with, replica, cls, spool)
    whole.seen = {**held.seen, **{e.request.invocation: e.seen for e in done if e.seen}}
    return whole


def digest_with(replica: Replica, cls: type[Object], spool: Chunks, more: Sequence[Once]) -> str | None:
    """In a thread: see ``Held.digest``."""
    if cls.get_state is not Object.get_state:
        return None  # nobody knows what makes up its state
    target = cls()
    target.set_state(spool.chunks())
    entries = [Entry(r, True, b"", False, seen, (), (), 0, 0, "") for r, seen in more]
    perform_again(replica, target, entries, quietly=True)
    return fingerprint(target)


def perform_again(replica: Replica, target: Object, entries: Sequence[Entry], quietly: bool = False) -> list[Entry]:
    """Those that are in the state then, in the order in which they ended. ``quietly``: their results are not known."""
    performer = _Again(replica, target, entries, quietly)
    performer.perform()
    return performer.done


def part_with(replica: Replica, old: bytes, entries: Sequence[Entry]) -> bytes:
    """What the com layer knew of this replica, with the replies of what was performed since."""
    part = read_part(old) if old else _EMPTY
    replies = Replies()
    replies.adopt(part.replies)
    context = Context()
    context.merge_wire(part.context)
    recent = len(entries) - CONTEXTS
    for number, entry in enumerate(entries):
        reply = replies.start(entry.request)
        reply.status, reply.body, reply.output = "ok" if entry.ok else "error", entry.body, entry.output
        if number >= recent:
            others = tuple([c for c in entry.context if object_of(c[0]) != object_of(replica)])
            reply.context = reply.full = others
            reply.joins = entry.joins
            if entry.ok:
                context.merge_wire(others)
        replies.finish(entry.request.invocation, reply)
    clock = max([part.clock, *(e.clock for e in islice(entries, max(recent, 0), None))])
    return msgspec.msgpack.encode(Part(clock, context.wire(), replies.export()))


class _Again:
    def __init__(self, replica: Replica, target: Object, entries: Sequence[Entry], quietly: bool = False) -> None:
        self._quietly = quietly
        self._replica = replica
        self._target = target
        self._entries = entries
        self._methods = declaration(type(target))
        self._within: dict[Invocation, list[Entry]] = {}  # calls that came back to an instance, by that one
        self._loop: asyncio.AbstractEventLoop | None = None
        self.done: list[Entry] = []  # in the order in which they ended

    def perform(self) -> None:
        ended = {e.request.invocation: e.ok for e in self._entries}
        top = []
        for entry in self._entries:
            above = next(self._above(entry.request), None)
            if above is None or ended.get(above) is False:
                top.append(entry)
            elif above in ended:
                self._within.setdefault(above, []).append(entry)
        try:
            for entry in top:
                self._one(entry)
        finally:
            if self._loop is not None:
                self._loop.close()

    def _above(self, request: Request) -> Iterator[Invocation]:
        """Instances at this very replica that wait for this request, the nearest one first."""
        for ancestor in reversed(request.chain):
            if ancestor.object == object_of(self._replica) and self._replica in ancestor.replicas:
                yield request.invocation.ancestor(ancestor.length)

    def _one(self, entry: Entry) -> None:
        if entry.ok:
            self._again(entry)
        self.done.append(entry)

    def _again(self, entry: Entry) -> None:
        request = entry.request
        part = next(p for p in request.parts if p.object == object_of(self._replica))
        method = self._methods.method(part.footprint.method)
        inner = self._within.pop(request.invocation, [])

        def meanwhile(first: int, end: int) -> None:
            mine = [e for e in inner if first <= e.request.invocation.path[len(request.invocation.path)] < end]
            for each in mine:
                inner.remove(each)
                self._one(each)

        envelope = open_envelope(request.args)
        past = Past(request.invocation, envelope, entry.seen, method.is_async, meanwhile)
        try:
            with performing(past):
                body = getattr(self._target, method.name)(*method.unpack(envelope.args))
                result = self._awaited(body) if method.is_async else body
            packed = method.pack_result(result)
        except Exception as error:
            raise BadRequest(
                f"{self._replica}: {method.where} ({request.invocation}) was performed without an error, and now "
                f"raises {type(error).__name__}: {error}. Has the class changed, or is the method not deterministic? "
                "Start the node with the class as it was; or move the directory of this replica away, if others have "
                "its state"
            ) from error
        if packed != entry.body and not self._quietly:
            log.warning("%s: %s (%s) has another result now", self._replica, method.where, request.invocation)
        for each in inner:  # sent, and not waited for
            self._one(each)

    def _awaited(self, body: object) -> object:
        if self._loop is None:
            self._loop = new_loop()
        return self._loop.run_until_complete(body)  # type: ignore[arg-type]  # a coroutine
