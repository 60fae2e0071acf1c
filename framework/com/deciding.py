"""How an outcome, or a vote, is sent to all replicas of ``tran`` (framework.com.tran)."""

from typing import TYPE_CHECKING

from framework.com.caller import Caller
from framework.com.events import Outgoing, Submit
from framework.com.outcome import DECIDES
from framework.com.present import present
from framework.com.view import VOTE
from framework.errors import Unavailable
from framework.footprint import WRITE, Footprint
from framework.ids import TRAN, Invocation

if TYPE_CHECKING:
    from framework.com.core import Com


class Deciding:
    def __init__(self, com: "Com") -> None:
        self._com = com
        self._late: list[tuple[Caller, Invocation, str, str]] = []  # to be sent as soon as there is a tran

    def send(self, caller: Caller, name: Invocation, word: str, what: str) -> None:
        """In the name of a transaction, or of a part of one, to which ``caller`` need not belong."""
        submit = Submit(caller.client or caller.sid, DECIDES, "oneway", "mcast", (self.part(name, word, what),))
        try:
            submit = present(self._com, submit)
        except Unavailable:  # a group has been formed, and no tran has its state yet
            self._late.append((caller, name, word, what))
            return
        own = caller.invocation
        caller.invocation = name if word != VOTE else Invocation(name.client, (*name.path, DECIDES))
        self._com.calls.send(caller, submit)
        caller.invocation = own  # what it sends next comes after this

    def part(self, name: Invocation, word: str, what: str) -> Outgoing:
        """Votes of parts meet with outcomes of the whole."""
        key = name.ancestor(len(name.path) - 1) if word == VOTE else name
        footprint = Footprint(word, ((str(key), WRITE),))
        return Outgoing(TRAN, footprint, what.encode(), self._com.directory.find(TRAN).replicas)

    def tick(self) -> None:
        late, self._late = self._late, []
        for one in late:
            self.send(*one)
