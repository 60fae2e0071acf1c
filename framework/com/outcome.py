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
    """What is decided by this call of tran."""
    return invocation.ancestor(len(invocation.path) - 1)


def read(body: bytes) -> Outcome:
    """The answer of tran."""
    word, _, why = body.decode(errors="replace").partition(" ")
    return Outcome(word == COMMIT, why)
