"""One instance that is performed in the thread of the committer: it changes a backed object, or reads what its own
transaction has changed."""

import logging
from typing import TYPE_CHECKING, Any

from framework.com.events import Completed, Deliver, Received
from framework.declare import Method, performing
from framework.errors import BadRequest, Broken
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
        """Nobody waits for it any more: it is not begun, if it has not been. Databases cannot be stopped in the
        middle of a statement without a fault for those beside it."""

    def received(self, effect: Received, why: str) -> None:
        pass

    def perform(self) -> Completed:
        """In the thread. ``Broken`` comes out of it: then nobody is told anything."""
        if self.cancelled:
            return Completed(self.effect.sid, False, failure(stopped(self.method.where)), False, safe=False)
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
