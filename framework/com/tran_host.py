"""A replica of ``tran``, the object whose instances are transactions: it remembers outcomes (framework.com.tran)."""

from typing import TYPE_CHECKING

from framework.com.caller import Instance
from framework.com.entry import Entry
from framework.com.event import Decided
from framework.com.events import Completed
from framework.com.host import Host
from framework.com.outcome import DECIDES, decided, read, whole
from framework.com.view import COMMIT, VOTE, Placement
from framework.ids import Invocation, Replica

if TYPE_CHECKING:
    from framework.com.core import Com

BOUND = 10_000  # outcomes that a node remembers with all that is known of them


class TranHost(Host):
    """The replica of ``tran``: it performs what it is given by itself, at once."""

    def __init__(self, com: "Com", placement: Placement, at: Replica) -> None:
        super().__init__(com, placement, at)
        self.order.roots = ()
        com.trans.outcomes.older = self.replies.decided
        self._due: list[Instance] = []
        self._busy = False

    def _start(self, entry: Entry) -> Instance:
        instance = super()._start(entry)
        self.replies.last(instance.reply)
        self._due.append(instance)
        return instance

    def flush(self) -> None:
        super().flush()
        if self._busy:
            return  # one after the other
        self._busy = True
        while self._due:
            self._perform(self._due.pop(0))
        self._busy = False

    def _perform(self, instance: Instance) -> None:
        trans, request = self.com.trans, instance.entry.request
        assert request is not None
        word, name = instance.entry.footprint.method, decided(instance.invocation)
        known = trans.outcomes.get(name) if word != VOTE else None  # votes were all there before
        body = known.told if known is not None else b"commit" if word == COMMIT else f"{word} ".encode() + request.args
        if self.durable:
            context = instance.base + request.context + instance.siblings
            self.com.tell(Decided(instance.sid, self.replica, request, body, context))
            if known is None:
                trans.lasting.decided(whole(name) if word == VOTE else name, instance.sid)
        self.complete(instance, Completed(instance.sid, True, body, True, safe=not self.durable))
        if word == VOTE:
            trans.vote(name, request.args, request)
        elif known is None:
            trans.apply(name, read(body), (request,))
        elif name not in trans.outcomes.last:
            self.replies.drop(instance.invocation)  # votes had decided, long ago
        if len(trans.outcomes) > BOUND and (not self.durable or trans.lasting.may_forget()):
            self._forget(trans.outcomes.oldest())

    def _forget(self, oldest: Invocation) -> None:
        """Of a client's transaction, keep whether it was committed; of another one nothing, when nobody needs it."""
        trans, outcome = self.com.trans, Invocation(oldest.client, (*oldest.path, DECIDES))
        told = self.replies.get(outcome)
        unsafe = told is not None and told.status is None
        if unsafe or (len(oldest.path) > 1 and trans.has_here(oldest)):
            trans.outcomes.renew(oldest)
            return
        trans.outcomes.forget(oldest)
        for call in (outcome, *trans.votes.forget(oldest)):
            self.replies.drop(call)

    def adopted(self) -> None:
        trans, vote = self.com.trans, f"{VOTE} ".encode()
        known = [(decided(i), reply) for i, reply in self.replies.all() if reply.status == "ok"]
        for name, reply in sorted(known, key=lambda one: one[1].body.startswith(vote)):  # an abort may stop votes
            self.replies.last(reply)
            if reply.body.startswith(vote):
                trans.vote(name, reply.body.removeprefix(vote), None)
            else:
                trans.apply(name, read(reply.body))
        super().adopted()
