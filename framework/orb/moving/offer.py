"""A state that a donor keeps for one joiner: written by a thread, read by streams on the loop while it grows."""

import asyncio
import contextlib
import logging
import zlib
from hashlib import blake2b
from pathlib import Path

import msgspec

from framework.errors import Aborted, OboError, Unavailable
from framework.ids import Node, Replica
from framework.net.wire.com_pb2 import FetchChunk, FetchEnd, FetchHeader, FetchPiece
from framework.orb.moving.aside import aside
from framework.orb.moving.breath import slowly
from framework.orb.moving.captures import Capture
from framework.orb.moving.spool import Spool, framed

log = logging.getLogger(__name__)

PIECE = 128 << 10
DIGEST = 16


class For(msgspec.Struct, frozen=True):
    """Whose state, and for whom."""

    replica: Replica
    to: Node


class Offer:
    def __init__(
        self, wish: For, life: int, ticket: str, part: bytes, capture: Capture, directory: Path | None
    ) -> None:
        self.wish = wish
        self.life = life  # of the joiner
        self.ticket = ticket
        self.part = part
        self.readers = 0
        self.sent = 0  # so far a stream has come
        self.size = 0  # so much can be read
        self.end: FetchEnd | None = None  # when all is written
        self._error: OboError | None = None
        self._capture = capture
        self._grown = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._directory = directory
        self._spool: Spool | None = None
        aside(self._fill)

    # in the thread

    def _fill(self) -> None:
        hasher = blake2b(self.part, digest_size=DIGEST)
        try:
            spool = self._spool = Spool(self._directory)
            for chunk in slowly(self._capture.chunks()):
                data = framed(chunk)
                hasher.update(data)
                spool.write(data)
                self._tell(spool.size, None, None)
                if self._closed:
                    return
            self._tell(spool.size, FetchEnd(total=spool.size, digest=hasher.digest()), None)
        except Exception as error:  # of get_state, of the child, of the disk
            self._tell(0, None, self._said(error))
        finally:
            self._capture.close()
            if self._closed and self._spool is not None:
                self._spool.close()

    def _said(self, error: Exception) -> OboError:
        said = str(error) if isinstance(error, OboError) else f"{type(error).__name__}: {error}"
        if not self._closed:
            log.error("the state of %s cannot be given to %s: %s", self.wish.replica, self.wish.to, said)
        return Unavailable(f"the state of {self.wish.replica} cannot be given: {said}")

    def _tell(self, size: int, end: FetchEnd | None, error: OboError | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._told, size, end, error)

    # on the loop

    def _told(self, size: int, end: FetchEnd | None, error: OboError | None) -> None:
        self.size, self.end, self._error = size, end, self._error or error
        self._grown.set()

    @property
    def failed(self) -> bool:
        return self._error is not None

    def header(self, offset: int) -> FetchChunk:
        total = None if self.end is None else self.end.total
        return FetchChunk(header=FetchHeader(ticket=self.ticket, offset=offset, total=total, part=self.part))

    async def next(self, offset: int) -> FetchChunk:
        """The piece at this offset, as soon as it is there, or the end."""
        while self._error is None and self.end is None and offset >= self.size:
            self._grown.clear()
            await self._grown.wait()
        if self._error is not None:
            raise self._error
        assert self._spool is not None
        if self.end is not None and offset >= self.size:
            return FetchChunk(end=self.end)
        return await asyncio.to_thread(_piece, self._spool, offset, min(PIECE, self.size - offset))

    def close(self, why: str) -> None:
        """Streams that read end with an error, the thread ends soon, the file goes."""
        self._closed = True
        if self._error is None:
            self._error = Aborted(f"the state {self.ticket} is not kept any more: {why}")
        self._grown.set()
        self._capture.close()
        if self._spool is not None:
            self._spool.close()


def _piece(spool: Spool, offset: int, most: int) -> FetchChunk:
    data = spool.read(offset, most)
    return FetchChunk(piece=FetchPiece(data=data, crc=zlib.crc32(data)))
