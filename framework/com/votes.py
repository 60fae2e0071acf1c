"""Distributed control: the parts of a transaction decide, without their root (P1 §2.4).

Such a transaction is one pcast of a client, which says how many parts there are. A part that has ended well tells all
replicas of tran so: its *vote*. When all votes are delivered the transaction is committed. A vote conflicts with commit
and abort of the same transaction, so these have one order at all replicas of tran: everywhere the last vote comes
before the first abort, or nowhere. Anybody may abort, as ever; a part that fails does.

The root hears of the outcome as everybody else. That is one message delay less than if it waited for the responses and
then decided; but each replica of each part sends to all nodes, not the root alone.
"""

from collections.abc import Collection

from framework.com.events import Submit
from framework.com.messages import Request
from framework.com.outcome import vote_of
from framework.errors import BadRequest
from framework.ids import Invocation, ObjectName


class Votes:
    def __init__(self, voters: Collection[ObjectName]) -> None:
        self._voters = voters
        self.here: set[Invocation] = set()  # transactions of clients whose home this is that are decided by votes
        self._cast: dict[Invocation, dict[Invocation, Request | None]] = {}  # by transaction and part

    def check(self, event: Submit, name: Invocation | None, has_calls: bool) -> None:
        """Refuse a further call of a transaction whose parts decide: nobody would ask it. ``name``: a client's."""
        if event.votes and (not event.tran or event.kind == "oneway"):
            raise BadRequest("distributed control is for a call that is the whole of a client's transaction")
        silent = [p.object for p in event.parts if p.object not in self._voters] if event.votes else ()
        if silent:
            raise BadRequest(f"{silent[0]} takes no part in transactions, so it has no vote: leave control= out")
        if not event.tran or name is None:
            return
        if name in self.here or (event.votes and has_calls):
            raise BadRequest(f"{name} is decided by its parts: it cannot have another call")

    def cast(self, part: Invocation, wanted: int, request: Request | None) -> list[Request] | None:
        """A vote is delivered. If it is the last one: all of them, as far as they came here."""
        votes = self._cast.setdefault(part.ancestor(len(part.path) - 1), {})
        votes.setdefault(part, request)
        return [r for r in votes.values() if r is not None] if len(votes) == wanted else None

    def forget(self, name: Invocation) -> list[Invocation]:
        """Nobody remembers this transaction any more. The calls that were its votes."""
        self.here.discard(name)
        return [vote_of(p) for p in self._cast.pop(name, ())]
