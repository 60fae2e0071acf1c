"""The position of a replica: which requests are in its state, in one number.

Compatible requests are performed in any order, so a count or a last request does not say what a state has. The position
is the sum of a number for each request: whatever their order, the same requests give the same position, and replicas
at the same position must have the same state (A7). Python's hash of numbers is the same in every process.
"""

from collections.abc import Iterable
from zlib import crc32

from framework.ids import Invocation

_MOST = (1 << 63) - 1
_checksums: dict[str, int] = {}  # of clients; they are asked for with every call


def with_one(position: int, invocation: Invocation) -> int:
    return (position + hash((_checksum(invocation.client), invocation.path))) & _MOST


def with_all(position: int | None, invocations: Iterable[Invocation]) -> int | None:
    """None: the position of what they come after is not known."""
    if position is None:
        return None
    for invocation in invocations:
        position = with_one(position, invocation)
    return position


def _checksum(client: str) -> int:
    found = _checksums.get(client)
    if found is None:
        if len(_checksums) > 4096:
            _checksums.clear()
        found = _checksums[client] = crc32(client.encode())
    return found
