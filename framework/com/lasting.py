"""Transactions that survive a crash of all nodes: what has to be on disk before anybody is told (docs/transactions.md).

- What a part did is, before it answers; before its root decides, if it is the root; before it votes.
- The outcome is, at the node that answers, before anybody outside is told of it: who called the root, or a client.
- Outcomes are, before a state with what was committed leaves for another node (whose disk it is on then), or takes the
  place of a journal that has them, too.
- After a crash of all, the replica of tran that begins has what every disk has of outcomes (``merged``), and no other
  durable replica takes a state before tran of its node has one (framework.com.handover). So what is part of a state,
  and what tran says of it, agree. Whatever is left in doubt is aborted, as anybody may: the first outcome counts.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from framework.com.caller import Instance
from framework.com.context import Context
from framework.com.event import Doubt, Resolved
from framework.com.events import Completed
from framework.com.handed import Kept, Part, Told, read_part
from framework.com.outcome import DECIDES, Decided, Outcome
from framework.com.receipt import DREC, Receipt, quorum
from framework.com.replies import Replies
from framework.com.view import ABORT, VOTE
from framework.ids import TRAN, Invocation, Replica, Sid, node_of, object_of

if TYPE_CHECKING:
    from framework.com.core import Com
    from framework.com.tran import Trans


class Lasting:
    def __init__(self, com: "Com", trans: "Trans") -> None:
        self._com = com
        self._trans = trans
        self._records: dict[Invocation, Sid] = {}  # outcomes that are not on disk: the instance of tran
        self._roots: dict[Sid, list[Sid]] = {}  # by that: roots which are over, and whose callers wait for it
        self._waiting: set[Sid] = set()  # those roots
        self._then: dict[Sid, Callable[[], None]] = {}
        self._doubts: dict[Replica, Doubt] = {}

    def receipt(self) -> Receipt:
        """How a client waits for an outcome. If it has to last: until the disks of a majority have it, or of all nodes
        that are there. (After a crash of all, all are asked.)"""
        if not self._trans.lasts:
            return DREC
        pending = self._com.lives.pending
        every = self._com.directory.find(TRAN).replicas
        there = [r for r in every if node_of(r) in self._com.lives.view.members and r not in pending]
        return quorum(max(1, min(len(there), len(every) // 2 + 1)))

    def decided(self, name: Invocation, sid: Sid) -> None:
        """An instance of tran that is not safe has decided this."""
        self._records[name] = sid

    def held_back(self, root: Sid, name: Invocation, event: Completed) -> Completed:
        """How a root ends whose outcome may not be on disk. (What it did is: else it is not over.)"""
        record = self._records.get(name)
        if record is None:
            return event
        self._waiting.add(root)
        self._roots.setdefault(record, []).append(root)
        return msgspec.structs.replace(event, safe=False)

    def vote(self, instance: Instance, event: Completed, name: Invocation, votes: int) -> None:
        """A part decides on the whole (framework.com.tran); with yes when what it did is on disk."""
        send = self._trans.deciding.send
        if not event.ok:
            send(instance, name, ABORT, "")
        elif event.safe:
            send(instance, instance.invocation, VOTE, str(votes))
        else:
            self._then[instance.sid] = lambda: send(instance, instance.invocation, VOTE, str(votes))

    def waits(self, sid: Sid) -> bool:
        """Something of a root is on disk. Must its caller wait for the outcome?"""
        return sid in self._waiting

    def safe(self, sid: Sid) -> None:
        """What this instance did is on disk."""
        act = self._then.pop(sid, None)
        if act is not None:
            act()
        if sid.replica != self._trans.at:
            return
        for name in [n for n, record in self._records.items() if record == sid]:
            del self._records[name]
        for root in self._roots.pop(sid, ()):
            self._waiting.discard(root)
            self._com.hosts[root.replica].safe(root)

    # after a crash

    def doubt(self, event: Doubt, now: float) -> None:
        self._trans.check_on()
        self._doubts[event.replica] = event

    def tick(self) -> None:
        """What is in doubt is aborted, if it is not decided; when tran has heard of what others know."""
        if not self._doubts or self._trans.at in self._com.unready:
            return
        for at, doubt in tuple(self._doubts.items()):
            unknown = dict.fromkeys([name for _, name in doubt.parts if name not in self._trans.outcomes])
            for name in unknown if doubt.decide else ():
                self._trans.abort(name, f"no replica of {object_of(at)} was there any more when it was to be decided")
            if not unknown:
                del self._doubts[at]
                keep = tuple([part for part, name in doubt.parts if not self._trans.is_lost(part, name)])
                self._com.tell(Resolved(at, keep))

    def may_forget(self) -> bool:
        """Not while a durable object has no replica with a state: who comes back with one from disk asks."""
        view, pending = self._com.lives.view, self._com.lives.pending
        for placement in self._com.directory.objects.values():
            there = (node_of(r) in view.members and r not in pending for r in placement.replicas)
            if placement.durable and not any(there):
                return False
        return True


def with_commits(part: bytes, names: Iterable[Invocation]) -> bytes:
    """What a replica of tran remembers, and that these were committed: a replica beside it had heard of it."""
    read = read_part(part) if part else Part(0, (), Kept((), (), (), ()))
    known = {*[told.invocation for told in read.replies.replies], *read.replies.tombs}
    older = Decided()
    older.adopt(read.replies.decided)
    new = [name for name in names if older.get(name) is None]
    calls = [c for name in new if (c := Invocation(name.client, (*name.path, DECIDES))) not in known]
    if not calls and part:
        return part
    told = [Told(call, "ok", Outcome(True).told, True, (), (), (), 1) for call in dict.fromkeys(calls)]
    replies = msgspec.structs.replace(read.replies, replies=(*read.replies.replies, *told))
    return msgspec.msgpack.encode(msgspec.structs.replace(read, replies=replies))


def told_in(part: bytes) -> set[Invocation]:
    """The calls that a replica of tran remembers."""
    return {t.invocation for t in read_part(part).replies.replies} if part else set()


def merged(parts: Sequence[bytes]) -> bytes:
    """What several replicas of tran remember, in one. No two have heard different outcomes."""
    clock, context, replies = 0, Context(), Replies()
    for data in parts:
        part = read_part(data)
        clock = max(clock, part.clock)
        context.merge_wire(part.context)
        replies.adopt(part.replies)
    return msgspec.msgpack.encode(Part(clock, context.wire(), replies.export()))
