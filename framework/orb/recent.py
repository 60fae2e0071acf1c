"""What a replica has performed last."""

from collections import deque
from collections.abc import Iterable

import msgspec

from framework.com.messages import Request
from framework.com.spot import Spotted
from framework.orb.messages import Envelope
from framework.orb.messages import encode as encode_envelope

SECONDS, REQUESTS, BYTES = 60.0, 10_000, 64 << 20  # so much is remembered
HEAD = 1000  # requests that are written down with a state on disk
TOGETHER = 64  # requests that are packed as one

_requests: msgspec.msgpack.Decoder[list[Request]] = msgspec.msgpack.Decoder(list[Request])
_pack = msgspec.msgpack.Encoder().encode


class Chunk:
    """Some requests, one after the other."""

    __slots__ = ("count", "packed", "plain", "size", "until")

    def __init__(self) -> None:
        self.count = 0
        self.size = 0  # bytes of their arguments
        self.until = 0.0  # the last of them was performed then
        self.plain: list[Request | tuple[Spotted, Envelope]] = []
        self.packed = b""

    def pack(self) -> None:
        """Ten thousand requests are a hundred thousand objects. Where these lie about, what a node makes and frees with
        each call is never in the processor's cache: that was a fifth of its time. What was performed on the spot is
        made of few of them, and would have to be made a request first."""
        requests = [r for r in self.plain if not isinstance(r, tuple)]
        if len(requests) == self.count:
            self.packed, self.plain = _pack(requests), []

    def requests(self) -> list[Request]:
        if self.packed:
            return _requests.decode(self.packed)
        return [r if not isinstance(r, tuple) else r[0].request(encode_envelope(r[1])) for r in self.plain]


class Recent:
    """Requests that a replica has performed, and that change it: the last ones."""

    def __init__(self, requests: Iterable[Request] = (), now: float = 0.0) -> None:
        self._chunks: deque[Chunk] = deque((Chunk(),))
        self._count = self._bytes = 0
        for request in requests:
            self.add(request, now)

    def add(self, request: Request, now: float) -> None:
        self._add(request, len(request.args), now)

    def spotted(self, spotted: Spotted, envelope: Envelope, now: float) -> None:
        """One that was performed on the spot."""
        self._add((spotted, envelope), len(envelope.args), now)

    def _add(self, request: Request | tuple[Spotted, Envelope], size: int, now: float) -> None:
        chunk = self._chunks[-1]
        if chunk.count == TOGETHER:
            chunk.pack()
            chunk = Chunk()
            self._chunks.append(chunk)
        chunk.plain.append(request)
        chunk.count += 1
        chunk.size += size
        chunk.until = now
        self._count += 1
        self._bytes += size
        if chunk.count == 1:
            self._forget(now)

    def _forget(self, now: float) -> None:
        chunks = self._chunks
        while len(chunks) > 1 and (
            chunks[0].until < now - SECONDS or self._count > REQUESTS + TOGETHER or self._bytes > BYTES
        ):
            old = chunks.popleft()
            self._count -= old.count
            self._bytes -= old.size

    def requests(self, most: int = REQUESTS) -> tuple[Request, ...]:
        """The last of them. Only those are unpacked: to do that with all takes a tenth of a second or more."""
        found: deque[Request] = deque()
        for chunk in reversed(self._chunks):
            if len(found) >= most:
                break
            found.extendleft(reversed(chunk.requests()))
        return tuple(found)[-most:]
