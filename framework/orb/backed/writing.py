"""One instance that is performed in the thread of the committer: it changes a backed object, or reads what its own
transaction has changed."""

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from framework.com.events import Completed, Deliver, Received, Ride
from framework.declare import Method, performing
from framework.errors import BadRequest, Broken
from framework.ids import Invocation
from framework.orb.blocked import Watched
from framework.orb.durable.entries import Entry, Seen
from framework.orb.given import Given
from framework.orb.messages import Envelope
from framework.orb.outcome import failure, stopped

if TYPE_CHECKING:
    from framework.orb.backed.resident import BackedResident

log = logging.getLogger(__name__)


class Writing(Given):
    """What ``Dispatch`` knows of it is what it knows of a ``Performance``."""

    watched: Watched | None = None
    noted: Entry | None = None
    seen: tuple[Seen, ...] = ()  # it calls nobody
    calls = 1

    # What is decided on it, beside its order (verdicts.py). All but ``since`` belong to the loop.
    since = 0.0  # when it was begun (of a convoy: the call that is performed); time.monotonic
    part = 0  # of a convoy: which call that is
    unlimited = False  # it may take as long as it takes
    halted = False  # it must not be performed before there is a verdict
    parked = False  # nor is it: the committer has taken it back
    decided = False  # there is a verdict, and it waits for the committer
    fault: Broken | None = None  # why it was taken back, if nobody has asked for that
    failed: bytes | None = None  # it is not performed: this is its result

    def __init__(
        self, resident: "BackedResident", effect: Deliver, method: Method, envelope: Envelope, began: float
    ) -> None:
        super().__init__(effect.request.invocation, envelope)
        self.resident = resident
        self.effect = effect
        self.method = method
        self.began = began
        self.cancelled = False
        self.changes = not method.readonly
        self.order = 0  # the committer's
        self._body = b""  # its result

    def start(self) -> None:
        """On the loop."""
        self.resident.committer.enter(self)

    def cancel(self) -> None:
        """Nobody waits for it any more. It is not begun; if it has been, it is ended, and taken back."""
        if self.resident.committer.knows(self):
            self.resident.verdicts.stop(self)

    @property
    def caller(self) -> Invocation:
        """The call that is performed."""
        return self.effect.request.invocation

    @property
    def known(self) -> Invocation:
        """Whose reply tells that it is over."""
        return self.effect.request.invocation

    def fail(self, part: int, body: bytes) -> None:
        """It is not performed, but answered with this."""
        self.failed = body

    def received(self, effect: Received, why: str) -> None:
        pass

    def perform(self) -> Completed:
        """In the thread. ``Broken`` comes out of it: then nobody is told anything."""
        if self.failed is not None:
            return Completed(self.effect.sid, False, self.failed, False, safe=False)
        if self.cancelled:
            return Completed(self.effect.sid, False, failure(stopped(self.method.where)), False, safe=False)
        self._chance = None  # it may have been taken back
        completed = self._performed()
        self._body = completed.body
        return completed

    def again(self) -> None:
        """The same once more, after its effect was taken back. ``Broken``: this replica is not what it was."""
        self._chance = None
        completed = self._performed()
        if not completed.ok:
            where, invocation = self.method.where, self.effect.request.invocation
            raise Broken(f"{where} ({invocation}) had ended well, and fails when it is performed again")
        if completed.body != self._body:
            log.warning("%s (%s) has another result now", self.method.where, self.effect.request.invocation)

    def contradicts(self, completed: Completed) -> bool:
        """Has it been performed though there is a verdict that it is not?"""
        return self.failed is not None and completed.ok and not self.cancelled

    def redo(self, completed: Completed) -> None:
        """The same for what was lost with a batch. What has raised may have left something as well, for example in what
        gives keys: other replicas have not lost that. But what was taken back by itself has left nothing."""
        if completed.ok and self.changes and self.effect.tran is None:
            self.again()
        elif self.changes and self.effect.tran is None and self.failed is None and not self.cancelled:
            self._chance = None
            self._performed()

    def _performed(self) -> Completed:
        sid = self.effect.sid
        try:
            values = self.method.unpack(self.envelope.args)
            with performing(self):
                result = getattr(self.resident.object, self.method.name)(*values)
            packed = self.method.pack_result(result)
        except Broken:
            raise
        except Exception as error:
            return Completed(sid, False, failure(error), False, safe=False)
        return Completed(sid, True, packed, self.method.returns_value, safe=False)

    @property
    def orb(self) -> Any:
        raise BadRequest(f"{self.method.where}: a backed object calls no other objects")


class Convoy(Writing):
    """The calls of a convoy (framework.com.convoy), one after the other. Each takes back its own effect if it fails."""

    def __init__(
        self,
        resident: "BackedResident",
        effect: Deliver,
        method: Method,
        envelopes: Sequence[Envelope],
        began: float,
    ) -> None:
        super().__init__(resident, effect, method, envelopes[0], began)
        self._envelopes = envelopes
        self.calls = len(envelopes)
        self._failed: dict[int, bytes] = {}  # those that are not performed, and what they are answered

    @property
    def caller(self) -> Invocation:
        return self.effect.request.riders[self.part].invocation

    @property
    def known(self) -> Invocation:
        skips = self.effect.skips
        return next(r.invocation for i, r in enumerate(self.effect.request.riders) if i not in skips)

    def fail(self, part: int, body: bytes) -> None:
        self._failed[part] = body

    def contradicts(self, completed: Completed) -> bool:
        rides = [completed.rides[part] for part in self._failed]
        return any(ride is not None and ride.ok for ride in rides)

    def cancel(self) -> None:
        """Others travel with a call that nobody waits for."""

    def redo(self, completed: Completed) -> None:
        again = [ride is not None and ride.ok for ride in self.perform().rides]
        if again != [ride is not None and ride.ok for ride in completed.rides]:
            raise Broken(f"calls of {self.method.where} that left together end otherwise when they are performed again")

    def perform(self) -> Completed:
        effect, method, skips = self.effect, self.method, self.effect.skips
        body = getattr(self.resident.object, method.name)
        rides: list[Ride | None] = []
        for i, (rider, envelope) in enumerate(zip(effect.request.riders, self._envelopes, strict=True)):
            if skips and i in skips:
                rides.append(None)
                continue
            if i in self._failed:
                rides.append(Ride(False, self._failed[i], False))
                continue
            self.part, self.envelope, self.since = i, envelope, time.monotonic()
            try:
                values = method.unpack(envelope.args)
                with performing(_Given(rider.invocation, envelope)):
                    packed = method.pack_result(body(*values))
            except Broken:
                raise
            except Exception as error:
                rides.append(Ride(False, failure(error), False))
            else:
                rides.append(Ride(True, packed, method.returns_value))
        ok = any(ride is not None and ride.ok for ride in rides)
        return Completed(effect.sid, ok, safe=False, rides=tuple(rides))


class _Given(Given):
    @property
    def orb(self) -> Any:
        raise BadRequest("a backed object calls no other objects")
