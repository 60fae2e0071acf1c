"""Outcomes of transactions, as tran tells them (framework.com.tran)."""

from typing import NamedTuple

from framework.com.view import COMMIT
from framework.ids import Invocation

DECIDES = 0  # the number of the call that decides; others begin with 1


class Outcome(NamedTuple):
    commit: bool
    why: str = ""  # it was aborted by somebody else than its root

    @property
    def told(self) -> bytes:
        """As tran answers who asks."""
        return b"commit" if self.commit else b"abort " + self.why.encode()


def decided(invocation: Invocation) -> Invocation:
    """What is decided by this call of tran; whose vote it is."""
    length = len(invocation.path)
    while length > 1 and invocation.path[length - 1] == DECIDES:
        length -= 1
    return invocation.ancestor(length)


def whole(part: Invocation) -> Invocation:
    """What a part votes on."""
    return part.ancestor(len(part.path) - 1)


def vote_of(part: Invocation) -> Invocation:
    """Its call of tran. Not the one that decides on the part itself, if that is performed again as a root."""
    return Invocation(part.client, (*part.path, DECIDES, DECIDES))


def read(body: bytes) -> Outcome:
    """The answer of tran."""
    word, _, why = body.decode(errors="replace").partition(" ")
    return Outcome(word == COMMIT, why)
