"""Who a client is, and what it may do. A client shows a token; its role decides.

| role | may |
| --- | --- |
| read-only | look, and call methods that are declared ``readonly`` |
| call | call every method |
| admin | also change the cluster, and read traces |

Sessions belong to the token that opened them: the token's name is part of the client's name in the com layer. So who
gives the name of another's client, at whatever node, speaks of a client of its own.
"""

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from framework.errors import Unauthenticated
from framework.net.security import TOKEN
from framework.net.tokens import Tokens
from framework.orb.who import ANYONE, Caller

#: Services that ask for no token: nodes show their certificates (net/peers.py), and health tells nothing.
FREE = ("/obo.com.v1.Link/", "/grpc.health.v1.Health/")


class Guard:
    """At the door of a node. ``tokens`` None: the door is open."""

    def __init__(self, tokens: Path | None = None) -> None:
        self._tokens = Tokens(tokens) if tokens is not None else None

    def caller(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> Caller:
        """Unauthenticated without a token that is known here."""
        if self._tokens is None:
            return ANYONE
        said = next((str(value) for key, value in metadata or () if key == TOKEN), "")
        kind, _, token = said.partition(" ")
        if not token or kind.lower() != "bearer":
            raise Unauthenticated("this cluster asks clients for a token: connect(..., token=), or OBO_TOKEN")
        known = self._tokens.find(token)
        if known is None:
            raise Unauthenticated("the token is not known here; obo token new makes one")
        return Caller(known.name, known.role)

    async def admit(self, context: Any) -> Caller:
        """Who makes this RPC; ends it if that is nobody we know."""
        try:
            return self.caller(context.invocation_metadata())
        except Unauthenticated as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
            raise

    def interceptors(self) -> tuple["_AtTheDoor", ...]:
        """For the server: every service asks for a token unless it is in FREE, also one that forgets to."""
        return (_AtTheDoor(self),) if self._tokens is not None else ()


class _AtTheDoor(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        if not details.method.startswith(FREE):
            try:
                self._guard.caller(details.invocation_metadata)
            except Unauthenticated as error:
                return _refuses(str(error))
        return await continuation(details)


def _refuses(why: str) -> Any:
    async def refuse(_: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, why)

    return grpc.stream_stream_rpc_method_handler(refuse)  # it reads nothing, so it fits every kind of method
