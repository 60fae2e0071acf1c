"""A transaction and a node that joins must not wait for each other.

A replica that has no state gets one when nothing is held where it is given (framework.com.handover). So a transaction
that holds something, and waits for the answer of such a replica, may wait for itself. Nobody else sees that: who holds
does not know who is waited for. Where it is waited for the transaction is aborted, as in any other deadlock
(framework.com.deadlock), if that does not pass soon.
"""

from typing import TYPE_CHECKING

from framework.com.caller import Call
from framework.ids import Replica, Sid

if TYPE_CHECKING:
    from framework.com.core import Com
    from framework.com.tran import Trans

PATIENCE = 16  # times delta


class Stuck:
    def __init__(self, com: "Com", trans: "Trans") -> None:
        self._com = com
        self._trans = trans
        self._since: dict[tuple[Sid, int], float] = {}  # by call

    def tick(self, now: float) -> None:
        if not self._com.lives.pending:
            self._since.clear()
            return
        since: dict[tuple[Sid, int], float] = {}
        for caller in self._com.calls.callers.values():
            for call in caller.calls.values():
                missing = self._missing(call)
                if call.tran is None or not missing:
                    continue
                began = since[caller.sid, call.number] = self._since.get((caller.sid, call.number), now)
                if now - began > PATIENCE * self._com.timing.delta:
                    why = f"{', '.join(missing)} had no state, and might not have got one before its end"
                    self._trans.abort(call.tran, f"deadlock: {call.group} waits for an answer, but {why}")
        self._since = since

    def _missing(self, call: Call) -> list[Replica]:
        if call.received or (call.receipt is None and not call.silent):
            return []
        return [d for d in call.dests if d not in call.got and d in self._com.lives.pending]
