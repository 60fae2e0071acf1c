"""One instance that changes a backed object: performed in the thread of the committer."""

from typing import TYPE_CHECKING, Any

from framework.com.events import Completed, Deliver, Received
from framework.declare import Method, performing
from framework.errors import Aborted, BadRequest, Broken
from framework.orb.blocked import Watched
from framework.orb.durable.entries import Entry, Seen
from framework.orb.given import Given
from framework.orb.messages import Envelope
from framework.orb.outcome import failure

if TYPE_CHECKING:
    from framework.orb.backed.resident import BackedResident


class Writing(Given):
    """What ``Dispatch`` knows of it is what it knows of a ``Performance``."""

    watched: Watched | None = None
    noted: Entry | None = None
    changes = True
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
        sid = self.effect.sid
        try:
            if self.cancelled:
                raise Aborted(f"{self.method.where}: cancelled by its caller")
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
