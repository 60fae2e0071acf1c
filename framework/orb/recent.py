"""What a replica has performed last."""

from collections import deque
from collections.abc import Iterable

from framework.com.messages import Request

SECONDS, REQUESTS, BYTES = 60.0, 10_000, 64 << 20  # so much is remembered


class Recent:
    """Requests that a replica has performed, and that change it: the last ones."""

    def __init__(self, requests: Iterable[Request] = (), now: float = 0.0) -> None:
        self._requests: deque[tuple[float, Request]] = deque()
        self._bytes = 0
        for request in requests:
            self.add(request, now)

    def add(self, request: Request, now: float) -> None:
        known = self._requests
        known.append((now, request))
        self._bytes += len(request.args)
        while known[0][0] < now - SECONDS or len(known) > REQUESTS or self._bytes > BYTES:
            self._bytes -= len(known.popleft()[1].args)
            if not known:
                break

    def requests(self) -> tuple[Request, ...]:
        return tuple(request for _, request in self._requests)
