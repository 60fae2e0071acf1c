"""The calls of a convoy (framework.com.convoy) at a replica: performed one after the other, each whole or without a
trace. They are short and call nobody; whoever has the turn performs them in one go."""

import time
from collections.abc import Sequence

from framework.com.events import Completed, Deliver, Received, Ride
from framework.declare import Method
from framework.declare.environment import CURRENT
from framework.errors import Outdated
from framework.ids import Invocation
from framework.orb.blocked import Watched
from framework.orb.durable.entries import Entry, Seen
from framework.orb.messages import Envelope
from framework.orb.outcome import failure, stopped
from framework.orb.performance import Resident
from framework.orb.short import Elsewhere
from framework.orb.spots import Alone
from framework.orb.stage import Stage
from framework.orb.turn import LONGEST
from framework.orb.undo import Undo


class Riding:
    """What ``Dispatch`` knows of it is what it knows of a ``Performance``."""

    watched: Watched | None = None
    noted: Entry | None = None
    seen: tuple[Seen, ...] = ()  # it calls nobody

    def __init__(
        self, stage: Stage, resident: Resident, effect: Deliver, method: Method, envelopes: Sequence[Envelope]
    ) -> None:
        self.stage = stage
        self.resident = resident
        self.effect = effect
        self.method = method
        self.began = stage.loop.time()
        self.cancelled = False
        self.ended = False
        self._envelopes = envelopes
        self._undo = Undo(resident.tracker)
        self._short = stage.shorts[type(resident.object), method]
        #: Its sender thinks so; here it may take longer, and many calls take longer than one.
        self.brief = self._short.ok and self._short.average * len(envelopes) < LONGEST

    @property
    def changes(self) -> bool:
        """Is it still going on, and may change the state?"""
        return not self.ended

    def start(self) -> None:
        self.stage.enter(self.resident.turn, self)

    def cancel(self) -> None:
        """It is over in a moment."""

    def received(self, effect: Received, why: str) -> None:
        pass

    def perform(self) -> None:
        """In its turn. When the life is over, it is known which instances are in the state: so it ends before that, or
        does nothing."""
        began = time.perf_counter()
        with self.resident.ending:
            if self.resident.over or self.cancelled:
                rides = self._none()
            else:
                rides = self._all()
            self.ended = True
            ok = any(ride is not None and ride.ok for ride in rides)
            self.stage.done(self, Completed(self.effect.sid, ok, rides=tuple(rides)))
        self._short.took((time.perf_counter() - began) / len(rides))

    def _none(self) -> list[Ride | None]:
        body = failure(stopped(self.method.where))
        return [None if i in self.effect.skips else Ride(False, body, False) for i in range(len(self._envelopes))]

    def _all(self) -> list[Ride | None]:
        riders, skips, undo = self.effect.request.riders, self.effect.skips, self._undo
        rides: list[Ride | None] = []
        for i, envelope in enumerate(self._envelopes):
            if skips and i in skips:
                rides.append(None)
                continue
            rides.append(self._one(riders[i].invocation, envelope))
            undo.end()
        return rides

    def _one(self, invocation: Invocation, envelope: Envelope) -> Ride:
        method, undo = self.method, self._undo
        token = CURRENT.set(Alone(invocation, envelope))
        undo.begin()
        try:
            values = method.decode(envelope.args)  # a node has read them before
            result = getattr(self.resident.object, method.name)(*values)
            return Ride(True, method.pack_result(result), method.returns_value)
        except Elsewhere:  # the caller's node repeats it, and has heard by then that it is no short method
            self._short.ok = False
            undo.take_back()
            return Ride(False, failure(Outdated(f"{method.where} calls others, and must travel alone")), False)
        except BaseException as error:  # also SystemExit: a method does not end the node
            undo.take_back()
            return Ride(False, failure(error, self.resident.takes_part), False)
        finally:
            CURRENT.reset(token)
