"""One FIFO stream between two nodes, over anything that may lose, repeat or reorder frames (protocol.md §9.1, P3 §4.3).

Frames that carry messages are numbered from 1. The receiver drops duplicates, keeps early frames until the gap is
closed and asks for what is missing; the sender keeps frames until they are acknowledged and sends again from the
first unacknowledged one. Frames with number 0 carry only clock, ack and ask; they are never sent again.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from framework.com.messages import AnyMessage, Frame, Mark, Proposal, encode
from framework.com.ranges import as_ranges
from framework.errors import BadMessage
from framework.ids import Node, Replica

if TYPE_CHECKING:
    from framework.com.host import Host


class Timing(msgspec.Struct, frozen=True):
    """In the driver's unit of time; the defaults are seconds."""

    delta: float = 0.05  # a node that had nothing to send for delta sends an empty frame (P3 §4.4)
    ask_after: float = 0.02  # how long a gap may stay before it is asked for
    resend_after: float = 0.1  # 2 delta: no acknowledgement for this long means lost
    window: int = 256  # unacknowledged frames
    batch: int = 512  # messages in one frame
    burst: int = 32  # frames sent again at once
    hold_most: float = 60.0  # a transaction that was not decided for so long is aborted
    suspect_after: float = float("inf")  # a member is suspected when nothing was heard of it for this long, or longer


class Link:
    __slots__ = (
        "_acked",
        "_early",
        "_expected",
        "_next",
        "_out",
        "_sizes",
        "_unacked",
        "ack_due",
        "asked_at",
        "formation",
        "gap_at",
        "heard_at",
        "mine",
        "moved",
        "on_the_way",
        "peer",
        "resend_at",
        "sent_at",
        "theirs",
        "timing",
    )

    def __init__(self, peer: Node, timing: Timing, mine: int = 1, theirs: int = 1, formation: bytes = b"") -> None:
        self.peer = peer
        self.mine, self.theirs = mine, theirs  # the two lives that it joins
        self.formation = formation
        self.moved = 0  # the peer sends no request of an earlier view any more
        self.timing = timing
        self._out: deque[AnyMessage] = deque()
        self._next = 1
        self._unacked: deque[tuple[int, bytes]] = deque()
        self._sizes: deque[int] = deque()  # messages in each of them, but for proposals: these go with others
        self.on_the_way = 0  # the same in all of them
        self._expected = 1
        self._acked = 0  # what the peer has been told
        self._early: dict[int, Frame] = {}
        self.ack_due = False
        self.gap_at: float | None = None  # since when a frame is missing
        self.asked_at = float("-inf")
        self.resend_at = float("inf")
        self.heard_at = float("-inf")
        self.sent_at = float("-inf")

    # sending

    def push(self, message: AnyMessage) -> bool:
        """Queue a message. True if nothing was waiting before, so that the driver must be woken."""
        self._out.append(message)
        return len(self._out) == 1

    @property
    def queued(self) -> int:
        return len(self._out)

    @property
    def unacked(self) -> int:
        return len(self._unacked)

    @property
    def last(self) -> int:
        """The number of the frame that brings the last message which was pushed. Nothing was pushed before: 0."""
        return self._next + (len(self._out) - 1) // self.timing.batch

    def has_brought(self, number: int) -> bool:
        """Has the peer acknowledged this frame?"""
        return number < (self._unacked[0][0] if self._unacked else self._next)

    @property
    def open(self) -> bool:
        """Is there room in the window?"""
        return len(self._unacked) < self.timing.window

    def take(self, source: Node, view: int, clock: int, now: float) -> bytes | None:
        """All that waits for this peer as one frame, if the window has room for it."""
        if self._out and self.open:
            count = min(len(self._out), self.timing.batch)
            messages = tuple([self._out.popleft() for _ in range(count)])
            self._acked = self._expected - 1
            data = self._encoded(source, view, self._next, self._ask(now), clock, messages)
            self._unacked.append((self._next, data))
            size = len([m for m in messages if type(m) is not Proposal])
            self._sizes.append(size)
            self.on_the_way += size
            self._next += 1
            if len(self._unacked) == 1:
                self.resend_at = now + self.timing.resend_after
        elif self.ack_due:
            data = self.empty(source, view, clock, now)
        else:
            return None
        self.ack_due = False
        self.sent_at = now
        return data

    def empty(self, source: Node, view: int, clock: int, now: float) -> bytes:
        self.sent_at = now
        self.ack_due = False
        self._acked = self._expected - 1
        return self._encoded(source, view, 0, self._ask(now), clock, ())

    def _encoded(
        self, source: Node, view: int, number: int, ask: int, clock: int, messages: tuple[AnyMessage, ...]
    ) -> bytes:
        lives = self.mine, self.theirs, self.formation
        return encode(Frame(source, view, number, self._acked, ask, clock, messages, *lives))

    def resend(self, now: float) -> list[bytes]:
        """What is unacknowledged for too long, from the first on."""
        if now < self.resend_at:
            return []
        return self.again(now)

    def again(self, now: float, first: int = 0) -> list[bytes]:
        self.resend_at = now + self.timing.resend_after
        return [data for number, data in self._unacked if number >= first][: self.timing.burst]

    def _ask(self, now: float) -> int:
        if self.gap_at is None or now - max(self.gap_at, self.asked_at) < self.timing.ask_after:
            return 0
        self.asked_at = now
        return self._expected

    # receiving

    def check(self, frame: Frame) -> None:
        """Refuse what cannot be: acknowledged before it was sent, or far beyond the window."""
        if not 0 <= frame.ack < self._next:
            raise BadMessage(
                f"frame {frame.number} from {self.peer}: acknowledges {frame.ack}, but the last one sent is "
                f"{self._next - 1}"
            )
        if not 0 <= frame.number < self._expected + 4 * self.timing.window:
            raise BadMessage(f"frame {frame.number} from {self.peer}: far beyond {self._expected}, the next expected")
        if frame.number == 0 and frame.messages:
            raise BadMessage(f"frame 0 from {self.peer}: an unnumbered frame carries messages")
        if not 0 <= frame.ask < self._next:
            raise BadMessage(f"frame {frame.number} from {self.peer}: asks for {frame.ask}, which was not sent")

    @property
    def hurry(self) -> bool:
        """The peer may be about to run out of window: acknowledge soon."""
        return self._expected - 1 - self._acked >= self.timing.window // 4

    def preview(self, frame: Frame) -> list[Frame]:
        """The frames that ``receive`` would give, without taking anything over."""
        if frame.number != self._expected:
            return []
        ready, number = [frame], self._expected + 1
        while number in self._early:
            ready.append(self._early[number])
            number += 1
        return ready

    def receive(self, frame: Frame, now: float, dropped: Callable[[str], None]) -> list[Frame]:
        """The frames that are now in order; early ones are kept, duplicates dropped."""
        self.heard_at = now
        while self._unacked and self._unacked[0][0] <= frame.ack:
            self._unacked.popleft()
            self.on_the_way -= self._sizes.popleft()
            self.resend_at = now + self.timing.resend_after
        if not self._unacked:
            self.resend_at = float("inf")
        if frame.number == 0:
            return []
        self.ack_due = True
        if frame.number < self._expected or frame.number in self._early:
            dropped(f"frame {frame.number} from {self.peer} again; {self._expected} is the next expected")
            return []
        self._early[frame.number] = frame
        ready: list[Frame] = []
        while self._expected in self._early:
            ready.append(self._early.pop(self._expected))
            self._expected += 1
        if not self._early:
            self.gap_at = None
        elif self.gap_at is None or ready:
            self.gap_at = now
        return ready

    def wants_tick(self, now: float) -> bool:
        """An empty frame is due: nothing sent for delta, or a gap to ask for."""
        gap = self.gap_at is not None and now - max(self.gap_at, self.asked_at) >= self.timing.ask_after
        return gap or now - self.sent_at >= self.timing.delta


WireMarks = tuple[tuple[Replica, Node, tuple[tuple[int, int], ...]], ...]
BOUND = 65536  # delivered marks in the log


class Marks:
    """Delivered marks on their way to the peers (protocol.md §4.3): one log for all links, each has its place in it.

    Marks only let others drop context entries, so they never cause a frame of their own before delta has passed. A link
    that has fallen behind the log gets the whole state instead of the difference.
    """

    def __init__(self, peers: Iterable[Node], hosts: Mapping[Replica, "Host"]) -> None:
        self._hosts = hosts
        self._log: list[tuple[Replica, Mark]] = []
        self._start = 0  # position of the first entry of the log
        self._taken: dict[Node, int] = dict.fromkeys(peers, 0)
        self._last: tuple[int, int, WireMarks] = (0, 0, ())

    def add(self, at: Replica, mark: Mark) -> None:
        if self._taken:
            self._log.append((at, mark))
            if len(self._log) > BOUND:
                self._trim(self._start + len(self._log) // 2)

    def forget(self, peer: Node) -> None:
        self._taken.pop(peer, None)

    def begin(self, peer: Node) -> None:
        """A new life of a peer: it gets the whole state first."""
        self._taken[peer] = -1

    def take(self, peer: Node) -> WireMarks:
        """What this peer has not been told yet."""
        first, end = self._taken[peer], self._start + len(self._log)
        if first == end:
            return ()
        self._taken[peer] = end
        if first < self._start:
            return self._everything()
        if self._last[:2] != (first, end):  # links move together: they share the work
            self._last = (first, end, self._between(first))
        if min(self._taken.values()) == end:
            self._trim(end)
        return self._last[2]

    def _between(self, first: int) -> WireMarks:
        grouped: dict[tuple[Replica, Node], list[int]] = {}
        for at, (origin, seq) in self._log[first - self._start :]:
            grouped.setdefault((at, origin), []).append(seq)
        return tuple((at, origin, as_ranges(seqs)) for (at, origin), seqs in sorted(grouped.items()))

    def _everything(self) -> WireMarks:
        out = []
        for at, host in sorted(self._hosts.items()):
            for origin, ranges in sorted(host.order.past.delivered.items()):
                out.append((at, origin, ranges.wire()))
        return tuple(out)

    def _trim(self, start: int) -> None:
        del self._log[: start - self._start]
        self._start = start
