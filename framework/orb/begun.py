"""The transactions of a client that began at this node, its home."""

import asyncio
from collections.abc import Callable

from framework.com.events import Begin, Decide
from framework.orb.messages import Act, Call, Part
from framework.orb.naming import Naming

LONGEST = 3600.0  # seconds that a transaction may last


class Begun:
    def __init__(self, client: str, feed: Callable[[Begin], None]) -> None:
        self._client = client
        self._feed = feed
        self._open: set[int] = set()

    @property
    def open(self) -> bool:
        return bool(self._open)

    def part(self, act: Act, part: Part, naming: Naming) -> int:
        """The number of the transaction. Its first call begins it."""
        naming.check_undoable(act)
        if part.number not in self._open:
            limit = min(max(part.limit, 0.0), LONGEST)
            self._feed(Begin(self._client, part.number, asyncio.get_running_loop().time() + limit))
            self._open.add(part.number)
        return part.number

    def decide(self, message: Call, part: Part, until: float | None) -> Decide:
        """It is answered by what became of the transaction. Also of one that began at another node."""
        self._open.discard(part.number)
        commit = part.decide == "commit"
        return Decide(
            self._client, message.number, part.number, commit, part.why, until, message.sessions, message.done
        )
