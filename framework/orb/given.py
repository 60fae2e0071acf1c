"""What a method sees beside its object: from the request alone, so the same on every replica, and when it is performed
again from a journal."""

from random import Random
from uuid import UUID

from framework.ids import Invocation
from framework.orb.messages import Envelope


class Given:
    def __init__(self, invocation: Invocation, envelope: Envelope) -> None:
        self.envelope = envelope
        self._invocation = invocation
        self._chance: Random | None = None

    def _random(self) -> Random:
        if self._chance is None:
            self._chance = Random(str(self._invocation))
        return self._chance

    @property
    def basis(self) -> int | None:
        return self.envelope.basis

    def now(self) -> float:
        return self.envelope.time

    def random(self) -> float:
        return self._random().random()

    def uuid(self) -> UUID:
        return UUID(int=self._random().getrandbits(128), version=4)
