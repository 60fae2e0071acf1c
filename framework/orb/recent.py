"""What a replica has performed last."""

from collections import deque
from collections.abc import Iterable

from framework.com.messages import Request
from framework.com.spot import Spotted
from framework.orb.messages import Envelope, encode

SECONDS, REQUESTS, BYTES = 60.0, 10_000, 64 << 20  # so much is remembered


class Recent:
    """Requests that a replica has performed, and that change it: the last ones."""

    def __init__(self, requests: Iterable[Request] = (), now: float = 0.0) -> None:
        self._requests: deque[tuple[float, int, Request | Spotted, Envelope | None]] = deque()
        self._bytes = 0
        for request in requests:
            self.add(request, now)

    def add(self, request: Request, now: float) -> None:
        self._add(now, len(request.args), request, None)

    def spotted(self, spotted: Spotted, envelope: Envelope, now: float) -> None:
        """One that was performed on the spot. Hardly any of them is ever asked for."""
        self._add(now, len(envelope.args), spotted, envelope)

    def _add(self, now: float, size: int, request: Request | Spotted, envelope: Envelope | None) -> None:
        known = self._requests
        known.append((now, size, request, envelope))
        self._bytes += size
        while known[0][0] < now - SECONDS or len(known) > REQUESTS or self._bytes > BYTES:
            self._bytes -= known.popleft()[1]
            if not known:
                break

    def requests(self) -> tuple[Request, ...]:
        return tuple([r.request(encode(e)) if isinstance(r, Spotted) else r for _, _, r, e in self._requests])
