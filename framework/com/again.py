"""What was performed in an earlier life, and is not in the state that a replica has got, is sent once more."""

from typing import TYPE_CHECKING

from framework.com.caller import Caller
from framework.com.events import Again, Outgoing, Submit
from framework.com.present import present
from framework.ids import Invocation, Sid, object_of

if TYPE_CHECKING:
    from framework.com.core import Com

AGAIN = "again"  # in the place of a client


class Repeats:
    def __init__(self, com: "Com") -> None:
        self._com = com
        self._caller: Caller | None = None

    def send(self, event: Again, now: float) -> None:
        """Nobody waits for it: who does repeats it himself. One after the other, as they were performed."""
        com, old = self._com, event.request
        name = object_of(old.target)
        part = next(p for p in old.parts if p.object == name)
        client, path = old.invocation
        if self._caller is None:
            sid = Sid(com.tick(), com.calls.tran)
            self._caller = Caller(sid, com.calls.tran_cid(sid), AGAIN, old.invocation)
        self._caller.invocation = Invocation(client, path[:-1])
        out = Outgoing(name, part.footprint, old.args, com.directory.find(name).replicas)
        submit = Submit(AGAIN, path[-1], "oneway", "mcast", (out,))
        com.calls.send(self._caller, present(com, submit))
