"""Back-pressure (protocol.md §8.5): calls of clients that wait until a peer takes what is queued for it."""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from framework.com.events import Submit
from framework.errors import ResourceExhausted
from framework.ids import Sid, node_of

if TYPE_CHECKING:
    from framework.com.core import Com


class Backlog:
    def __init__(self, com: "Com") -> None:
        self._com = com
        self.lines: dict[str, deque[Submit]] = {}  # by client, in their order
        self.count = 0

    def congested(self, event: Submit) -> bool:
        links, most = self._com.links, self._com.limits.queued
        for part in event.parts:
            for at in part.replicas:
                link = links.get(node_of(at))
                if link is not None and link.queued >= most:
                    return True
        return False

    def add(self, client: str, event: Submit) -> None:
        if self.count >= self._com.limits.backlog:
            raise ResourceExhausted(
                f"{self._com.node} already holds {self.count} calls for peers that do not keep up; try again later"
            )
        self.lines.setdefault(client, deque()).append(event)
        self.count += 1

    def relieved(self) -> Iterator[tuple[str, Submit]]:
        """Those that may go now, each client's in their order."""
        for client in list(self.lines):
            line = self.lines[client]
            while line and not self.congested(line[0]):
                self.count -= 1
                yield client, line.popleft()
            if not line:
                del self.lines[client]

    def find(self, who: Sid | str, call: int) -> Submit | None:
        return next((s for s in self.lines.get(who, ()) if s.call == call), None) if isinstance(who, str) else None

    def remove(self, client: str, event: Submit) -> None:
        self.lines[client].remove(event)
        self.count -= 1
        if not self.lines[client]:
            del self.lines[client]

    def drop(self, client: str) -> deque[Submit]:
        """A client has left."""
        line = self.lines.pop(client, deque())
        self.count -= len(line)
        return line
