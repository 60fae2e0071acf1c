"""Refuse gRPC in a process that was forked from one that uses it: the threads that read and write stay in the parent.

Without this module every call in such a child waits for ever. Instead each call, and each attempt to connect or to
start a node, raises BadRequest at once and says what to do. Calls that were under way at the fork belong to the
parent; in the child they end with the same error. A fork before the first connection is harmless.
"""

import os
from typing import Final, Protocol
from weakref import WeakSet

from framework.errors import BadRequest

WHY: Final = (
    "this process was forked from one that already used OBO, and connections do not survive a fork: fork before the "
    "parent connects, or start the process with another method: multiprocessing.get_context('spawn')"
)


class Connection(Protocol):
    """What a fork cuts off."""

    def forked(self, error: BadRequest) -> None: ...


_used = False  # gRPC, in this process or in one that it was forked from
_cut_off = False
_connections: "WeakSet[Connection]" = WeakSet()


def check() -> None:
    """Raise BadRequest in a process that was forked too late."""
    if _cut_off:
        raise BadRequest(WHY)


def cut_off() -> bool:
    """Return whether this process was forked too late."""
    return _cut_off


def uses_grpc(connection: Connection | None = None) -> None:
    """Say that this process is about to use gRPC; raise BadRequest where it cannot."""
    global _used
    check()
    _used = True
    if connection is not None:
        _connections.add(connection)


def _in_child() -> None:
    global _cut_off
    if not _used:
        return
    _cut_off = True
    for connection in list(_connections):
        connection.forked(BadRequest(WHY))


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_in_child)
