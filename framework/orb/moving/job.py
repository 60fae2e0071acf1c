"""One state being fetched: what has come of it so far, and from whom."""

import zlib
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from framework.errors import BadMessage
from framework.ids import Node, Replica
from framework.net.wire.com_pb2 import FetchEnd, FetchHeader, FetchPiece
from framework.orb.moving.breath import slowly
from framework.orb.moving.offer import DIGEST
from framework.orb.moving.spool import Spool

STRIKES = 3  # streams without a byte, one after the other, after which a donor is given up


class Fetched:
    """A state, complete and verified, in a file that goes when this is closed."""

    def __init__(self, replica: Replica, donor: Node, ticket: str, part: bytes, spool: Spool) -> None:
        self.replica = replica
        self.donor = donor
        self.ticket = ticket
        self.part = part
        self.size = spool.size
        self._spool = spool

    def chunks(self) -> Iterator[bytes]:
        """What ``get_state`` gave. It reads from a file: in a thread."""
        return slowly(self._spool.chunks())

    def close(self) -> None:
        self._spool.close()


class Job:
    def __init__(self, replica: Replica, donors: Sequence[Node], directory: Path | None, held: bool = False) -> None:
        self.replica = replica
        self.held = held
        self.donors = donors
        self.directory = directory
        self.turn = 0
        self.strikes = 0
        self.ticket = ""
        self.total: int | None = None
        self.fault = ""  # why the last stream ended
        self._part = b""
        self._spool: Spool | None = None
        self._hasher = blake2b(digest_size=DIGEST)

    @property
    def donor(self) -> Node:
        return self.donors[self.turn % len(self.donors)]

    @property
    def got(self) -> int:
        return self._spool.size if self._spool is not None else 0

    # in a thread: these write to disk

    def begin(self, header: FetchHeader) -> None:
        """A stream begins: it goes on with what is there, or with nothing."""
        known = header.ticket == self.ticket and self._spool is not None
        if header.offset != (self.got if known else 0):
            raise BadMessage(f"{self.donor} goes on at byte {header.offset:,}, and {self.got:,} are here")
        if not known:
            self.reset()
            self.ticket, self._part = header.ticket, header.part
            self._hasher.update(header.part)
            self._spool = Spool(self.directory)
        self.total = header.total if header.HasField("total") else None

    def take(self, piece: FetchPiece) -> None:
        """BadMessage if it was damaged: what came before is good, and the next stream goes on behind it."""
        if zlib.crc32(piece.data) != piece.crc:
            raise BadMessage(f"a piece from {self.donor} was damaged on its way, at byte {self.got:,}")
        if self._spool is None:
            raise BadMessage(f"{self.donor} sends data before it says what it is")
        self._spool.write(piece.data)
        self._hasher.update(piece.data)

    # on the loop

    def finish(self, end: FetchEnd) -> Fetched:
        """BadMessage if the whole is not what the donor has: nothing of it can be trusted."""
        if self._spool is None or end.total != self.got or end.digest != self._hasher.digest():
            raise BadMessage(f"the state {self.ticket} from {self.donor} is not what it should be as a whole")
        fetched = Fetched(self.replica, self.donor, self.ticket, self._part, self._spool)
        self._spool = None
        return fetched

    def strike(self, for_good: bool) -> None:
        """This donor gave nothing. After some of them, or at once if it will never give anything: the next one."""
        self.strikes += 1
        if for_good or self.strikes >= STRIKES:
            self.strikes = 0
            self.turn += 1
            if len(self.donors) > 1:
                self.reset()

    def reset(self) -> None:
        """Throw away what has come."""
        if self._spool is not None:
            self._spool.close()
        self._spool = None
        self.ticket, self._part, self.total = "", b"", None
        self._hasher = blake2b(digest_size=DIGEST)
