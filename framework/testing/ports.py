"""Ports on loopback for servers that start, are killed and come back."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def held(count: int) -> Iterator[list[int]]:
    """Yield ports that no other process gets until the block ends, also while their server is down.

    Linux gives a port that is bound here neither to ``bind`` with port 0 nor to an outgoing connection, and lets a
    server with SO_REUSEADDR listen on it. Elsewhere a server could not start, so the ports are only free when they are
    yielded."""
    with ExitStack() as end:
        holders = [end.enter_context(socket.socket()) for _ in range(count)]
        for holder in holders:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", 0))
        found = [holder.getsockname()[1] for holder in holders]
        if sys.platform != "linux":
            end.close()
        yield found
