"""A replica of ``tran``, the object whose instances are transactions: it remembers outcomes (framework.com.tran)."""

from typing import TYPE_CHECKING

from framework.com.entry import Entry
from framework.com.events import Completed
from framework.com.host import Host
from framework.com.instance import Instance
from framework.com.outcome import DECIDES, decided, read
from framework.com.view import COMMIT, Placement
from framework.ids import Invocation, Replica

if TYPE_CHECKING:
    from framework.com.core import Com

BOUND = 10_000  # outcomes that a node remembers


class TranHost(Host):
    """The replica of ``tran``: it performs what it is given by itself, at once."""

    def __init__(self, com: "Com", placement: Placement, at: Replica) -> None:
        super().__init__(com, placement, at)
        self.order.roots = ()
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
        commit = instance.entry.footprint.method == COMMIT
        body = b"commit" if commit else b"abort " + request.args
        self.complete(instance, Completed(instance.sid, True, body, True))
        trans.apply(decided(instance.invocation), read(body), request)
        if len(trans.outcomes) > BOUND:
            oldest = next(iter(trans.outcomes))
            del trans.outcomes[oldest]
            self.replies.drop(Invocation(oldest.client, (*oldest.path, DECIDES)))

    def adopted(self) -> None:
        trans = self.com.trans
        for invocation, reply in self.replies.all():
            if reply.status == "ok":
                self.replies.last(reply)
                trans.apply(decided(invocation), read(reply.body))
        super().adopted()
