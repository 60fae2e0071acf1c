"""The door for sessions of clients, as gRPC knows it. Not compiled: what inherits from gRPC's classes must not be."""

from collections.abc import Awaitable
from typing import Any, Protocol

from framework.net.wire.orb_pb2_grpc import SessionServicer


class Serves(Protocol):
    def serve(self, context: Any) -> Awaitable[None]: ...


class Acceptor(SessionServicer):
    def __init__(self, sessions: Serves) -> None:
        self._sessions = sessions

    async def Open(self, request_iterator: Any, context: Any) -> None:  # noqa: N802  # the name is in orb.proto
        await self._sessions.serve(context)
