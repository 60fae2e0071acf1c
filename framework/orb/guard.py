"""Who a client is, and what it may do. A client shows a token; its role decides.

| role | may |
| --- | --- |
| read-only | look, and call methods that are declared ``readonly`` |
| call | call every method |
| admin | also change the cluster, and read traces |

Sessions belong to the token that opened them: the token's name is part of the client's name in the com layer. So who
gives the name of another's client, at whatever node, speaks of a client of its own.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import msgspec

from framework.errors import NoSuchMethod, PermissionDenied, Unauthenticated
from framework.net.security import TOKEN
from framework.net.tokens import Role, Tokens
from framework.orb.messages import Act
from framework.orb.naming import Naming
from framework.orb.own import PREFIX

#: Services that ask for no token: nodes show their certificates (net/peers.py), and health tells nothing.
FREE = ("/obo.com.v1.Link/", "/grpc.health.v1.Health/")

_CLIENT = re.compile(r"[A-Za-z0-9_-]{1,32}\Z")


class Caller(msgspec.Struct, frozen=True):
    """Who calls: a token's name and role. Without tokens everybody is nobody in particular and may do everything."""

    name: str = ""
    role: Role = "admin"

    def client(self, name: str) -> str:
        """The name of a client of this caller, for the com layer."""
        if not self.name:
            return name
        if not _CLIENT.match(name):  # '.' parts token and client, and the com layer takes 63 letters
            name = hashlib.sha256(name.encode()).hexdigest()[:32]
        return f"{self.name}.{name}"

    def check(self, act: Act, naming: Naming) -> None:
        """PermissionDenied if this is not for this caller, NoSuchMethod if it is for the framework alone."""
        for ask in act.parts:
            if ask.method.startswith(PREFIX) and self is not FRAMEWORK:
                raise NoSuchMethod(f"{ask.object} has no method {ask.method!r}")
        if self.role != "read-only":
            return
        for ask in act.parts:
            method = naming.method(ask.object, ask.method)
            if not method.readonly:
                raise PermissionDenied(f"token {self.name} is read-only, and {method.where} is not declared readonly")

    def must_be_admin(self, what: str) -> None:
        if self.role != "admin":
            raise PermissionDenied(f"{what} needs a token with the role admin; {self.name} has {self.role}")


ANYONE = Caller()
FRAMEWORK = Caller()  # the node itself


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
