"""What is on disk for transactions of which nothing else is known here (framework.com.lasting, docs/transactions.md).

A state that is used because nobody has a newer one is brought up to date first: what was performed for a transaction
that turns out to be committed is performed on it again. What other nodes use instead is not touched; but if it was
committed, and is not in the state that this node got, it is sent again.
"""

import asyncio
import logging
from collections.abc import Callable

from framework.com.event import Doubt, Resolved
from framework.errors import Unavailable
from framework.ids import Invocation, Replica
from framework.orb.held import Held

log = logging.getLogger(__name__)

Parts = tuple[tuple[Invocation, Invocation], ...]


class Doubting:
    def __init__(
        self,
        held: dict[Replica, Held],
        feed: Callable[[Doubt], None],
        failed: Callable[[Replica, BaseException], object] = lambda mine, error: None,
    ) -> None:
        self._held = held
        self._feed = feed
        self._failed = failed  # hears why what was in doubt could not be settled
        self._answers: dict[Replica, asyncio.Future[tuple[Invocation, ...]]] = {}
        self._settling: dict[Replica, asyncio.Task[None]] = {}

    def resolved(self, effect: Resolved) -> None:
        answer = self._answers.pop(effect.replica, None)
        if answer is not None and not answer.done():
            answer.set_result(effect.keep)

    def close(self) -> None:
        for answer in self._answers.values():
            answer.cancel()

    def is_whole(self, mine: Replica) -> bool:
        """Can what is held of this replica be used? If not, it is seen to."""
        held = self._held.get(mine)
        if held is None or not held.doubt:
            return True
        if mine not in self._settling:
            task = self._settling[mine] = asyncio.ensure_future(self._settle(mine, held))
            task.add_done_callback(lambda done: self._settled(mine, done))
        return False

    def check_whole(self, mine: Replica) -> None:
        if not self.is_whole(mine):
            parts = len(self._held[mine].doubt)
            raise Unavailable(f"{mine} waits to hear what became of {parts} parts of transactions")

    async def ask(self, mine: Replica, parts: Parts, decide: bool) -> tuple[Invocation, ...]:
        """Those of these that were committed, when all are over."""
        answer: asyncio.Future[tuple[Invocation, ...]] = asyncio.get_running_loop().create_future()
        self._answers[mine] = answer
        self._feed(Doubt(mine, parts, decide))
        return await answer

    async def _settle(self, mine: Replica, held: Held) -> None:
        keep = await self.ask(mine, held.doubt, True)
        assert held.resolve is not None
        whole = await asyncio.to_thread(held.resolve, keep)
        log.warning("%s: of %d parts of transactions in doubt, %d were committed", mine, len(held.doubt), len(keep))
        if self._held.get(mine) is held:
            self._held[mine] = whole
            if whole.spool is not held.spool:
                held.spool.close()

    def _settled(self, mine: Replica, task: "asyncio.Task[None]") -> None:
        self._settling.pop(mine, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s: what was in doubt cannot be settled: %s", mine, error, exc_info=error)
            self._failed(mine, error)
