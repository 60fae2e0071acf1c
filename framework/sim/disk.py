"""The disk of a node in the seeded world: what its durable replicas have done gets there a little later, in order.

As with a real one, records that come while it writes share the next sync. A crash loses those that are not there yet,
with the replies of their calls; nobody has been told of them. What only reads is not written down.
"""

from collections.abc import Callable, Collection
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import msgspec

from framework.com.events import Safe
from framework.com.handed import Told, read_part
from framework.com.messages import Request
from framework.footprint import Footprint
from framework.ids import TRAN, Invocation, Replica, Sid, object_of

if TYPE_CHECKING:
    from framework.sim.node import SimNode


LONGEST = (2.0, 10.0, 60.0)  # that a sync takes, in one world or another; a message takes 1 to 10
SLOW = (2.0, 60.0, 200.0)  # the same on one node or another, where transactions survive


class Promise(msgspec.Struct, frozen=True):
    """What an instance did for a transaction that is not over."""

    invocation: Invocation
    tran: Invocation
    footprint: Footprint
    request: Request
    told: Told


class Noted(msgspec.Struct, frozen=True):
    """An instance that has ended; or has been performed for a transaction, if there is a promise."""

    replica: Replica
    sid: Sid
    invocation: str
    ticket: str  # of the state with it
    promise: Promise | None = None


class Disk:
    def __init__(self, node: "SimNode") -> None:
        self._node = node
        self._chance = Random(f"{node.world.seed}/disk/{node.name}")
        objects = node.world.directory.objects
        lasting = TRAN in objects and objects[TRAN].durable  # then one may know what another one does not
        chance = Random(f"{node.world.seed}/disks/{node.name}" if lasting else f"{node.world.seed}/disks")
        self._longest = chance.choice(SLOW if lasting else LONGEST)
        self._ended: dict[Replica, list[Noted]] = {}  # since the state that is there
        self._pending: list[Noted] = []  # to be written
        self._writing = 0  # so many of them are under way
        self._noted = self._written = 0  # of this process, in all
        self._then: list[tuple[int, Callable[[], None]]] = []
        self._tickets: dict[Replica, str] = {}
        self.told: dict[Replica, Collection[Invocation]] = {}  # in the state with which it began
        self._promised: dict[Replica, dict[Sid, Promise]] = {}  # performed, and not known to be over
        self._doubtful: dict[Replica, dict[Sid, Promise]] = {}  # the same, as far as the disk knows

    def keeps(self, replica: Replica) -> bool:
        return self._node.world.directory.find(object_of(replica)).durable

    def begin(self, replica: Replica, ticket: str, told: Collection[Invocation] = ()) -> None:
        """A replica has its state, and it is there, with replies to these."""
        self._tickets[replica] = ticket
        self.told[replica] = told
        self._ended[replica] = []
        self._promised[replica], self._doubtful[replica] = {}, {}

    def note(self, noted: Noted, unsafe: bool) -> None:
        """It has ended; what is ``unsafe`` is written down. So is what has become of a promise."""
        if not self.keeps(noted.replica):
            return
        self._ended[noted.replica].append(noted)
        if self._promised[noted.replica].pop(noted.sid, None) is not None or unsafe:
            self._write(noted)

    def promise(self, noted: Noted) -> None:
        """It has been performed, and will be settled when it ends."""
        assert noted.promise is not None
        self._promised[noted.replica][noted.sid] = noted.promise
        self._write(noted)

    def promised(self, replica: Replica) -> list[Promise]:
        return list(self._promised[replica].values())

    def _write(self, noted: Noted) -> None:
        self._noted += 1
        self._pending.append(noted)
        self._go_on()

    def waits(self, replica: Replica) -> bool:
        return any(noted.replica == replica for noted in self._pending)

    def found(self, replica: Replica) -> tuple[str, list[str], list[Promise]]:
        """The ticket of the state that is there, what has ended since and is not in it, and what is in doubt."""
        lost = [noted.invocation for noted in self._ended[replica]]
        return self._tickets[replica], lost, list(self._doubtful[replica].values())

    def when_written(self, replica: Replica, act: Callable[[], None]) -> None:
        """When all that has ended there is on disk."""
        if self.waits(replica):
            self._then.append((self._noted, act))
        else:
            act()

    def finish(self) -> None:
        """The process goes on without a life: what is under way gets there."""
        self._take(len(self._pending))

    def crash(self) -> None:
        self._noted = self._written = self._writing = 0
        self._pending, self._then = [], []

    def _go_on(self) -> None:
        if self._pending and not self._writing:
            self._writing = len(self._pending)
            done = partial(self._done, self._node.starts, self._written)
            self._node.world.after(self._chance.uniform(0.1, self._longest), done)

    def _done(self, starts: int, written: int) -> None:
        if (starts, written) == (self._node.starts, self._written):  # else it was another one
            self._take(self._writing)
            self._go_on()

    def _take(self, count: int) -> None:
        done, self._pending = self._pending[:count], self._pending[count:]
        self._written += count
        self._writing = 0
        for noted in done:
            if noted.promise is not None:
                self._doubtful[noted.replica][noted.sid] = noted.promise
                continue
            self._doubtful[noted.replica].pop(noted.sid, None)
            ended = self._ended[noted.replica]
            del ended[: ended.index(noted) + 1]
            self._tickets[noted.replica] = noted.ticket
        if done:
            self._node.step(Safe(tuple([noted.sid for noted in done])))
        ready = [act for number, act in self._then if number <= self._written]
        self._then = [(number, act) for number, act in self._then if number > self._written]
        for act in ready:
            act()


def without(part: bytes, lost: Collection[str], told_before: Collection[Invocation] = ()) -> bytes:
    """What the com layer knew of a replica, if these invocations and their calls had not been performed there; but for
    calls that had been before. It may have no reply of them any more, and yet know that they were performed."""
    if not lost:
        return part
    read = read_part(part)
    kept = read.replies
    roots = [i for i in map(Invocation.parse, lost) if len(i.path) == 1 and i not in told_before]
    left = msgspec.structs.replace(
        kept,
        replies=tuple([t for t in kept.replies if t.invocation in told_before or not within(t.invocation, lost)]),
        tombs=tuple([i for i in kept.tombs if not within(i, lost)]),
        running=tuple(dict.fromkeys((*kept.running, *roots))),
    )
    return msgspec.msgpack.encode(msgspec.structs.replace(read, replies=left))


def with_told(part: bytes, told: Collection[Told]) -> bytes:
    """What the com layer knew of a replica, and that these were performed there."""
    read = read_part(part)
    kept, names = read.replies, {t.invocation for t in told}
    running = tuple([i for i in kept.running if i not in names])
    more = msgspec.structs.replace(kept, replies=(*kept.replies, *told), running=running)
    return msgspec.msgpack.encode(msgspec.structs.replace(read, replies=more))


def within(invocation: Invocation, lost: Collection[str]) -> bool:
    """Is it one of these, or a call of one of them?"""
    text = str(invocation)
    return any(text == other or text.startswith(f"{other}.") for other in lost)
