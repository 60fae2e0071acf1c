"""The node's side of clients: who there is, and who is let in.

A client's session in the com layer outlives its stream for a while: a client that comes back goes on where it was, and
repeats what was not answered under the same numbers.
"""

import asyncio
import re
from typing import Any

import grpc
import grpc.aio

from framework.com.events import Accepted, Leave, Received
from framework.errors import BadMessage, BadRequest
from framework.net.wire.orb_pb2 import Packet
from framework.net.wire.orb_pb2_grpc import add_SessionServicer_to_server
from framework.orb.accepting import Acceptor
from framework.orb.guard import Guard
from framework.orb.host import Host
from framework.orb.limits import Limits, Total
from framework.orb.messages import Hello, to_node
from framework.orb.naming import Pick
from framework.orb.served import Served

FIRST_WORD = 10.0  # seconds in which a client must say Hello
_CLIENT = re.compile(r"[A-Za-z0-9_.:-]{1,100}\Z")


class Sessions:
    def __init__(self, host: Host, guard: Guard, limits: Limits) -> None:
        self.host = host
        self.feed = host.feed
        self.pick: Pick = host.pick
        self.naming = host.naming
        self.guard = guard
        self.limits = limits
        self.total = Total()
        self.parting = False  # nobody new is let in
        self.draining = False  # and no more calls are taken
        self._clients: dict[str, Served] = {}

    def leave_first(self) -> None:
        """Calls that wait for others leave before anything else happens to their clients."""
        if self.host.member is not None:
            self.host.member.convoys.flush()

    def serve_on(self, server: Any) -> None:
        add_SessionServicer_to_server(Acceptor(self), server)

    def received(self, effect: Received, why: str) -> None:
        client = self._clients.get(effect.client)
        if client is not None:
            client.received(effect, why)

    def early(self, effect: Received) -> bool:
        client = self._clients.get(effect.client)
        return client is None or client.early(effect)

    def accepted(self, effect: Accepted) -> None:
        client = self._clients.get(effect.client)
        if client is not None:
            client.accepted(effect)

    def counts(self) -> dict[str, int]:
        return {name: len(c.in_flight) for name, c in self._clients.items()}

    async def serve(self, context: Any) -> None:
        caller = await self.guard.admit(context)
        try:
            async with asyncio.timeout(FIRST_WORD):
                first = await context.read()
            if first is grpc.aio.EOF:
                return
            name = caller.client(_name(first))
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"no Hello within {FIRST_WORD:.0f} s")
        except BadMessage as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        if self.parting or self.draining:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"{self.host.name} is stopping")
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = Served(self, name)
        client.caller = caller
        await client.serve(context, first.messages[1:])

    def forget(self, client: "Served") -> None:
        if self._clients.get(client.name) is client:
            del self._clients[client.name]
            client.in_flight.clear()
            self.leave_first()
            try:
                self.feed(Leave(client.name))
            except BadRequest:
                pass  # it never made a call

    def forget_gone(self) -> None:
        """Clients that have found another home repeat there what is not answered: nothing is kept for them."""
        for client in [c for c in self._clients.values() if c.has_gone]:
            self.forget(client)

    def part(self) -> bool:
        """Clients shall find another home, and may take their time: calls are taken as before. Are some still here?"""
        self.parting = True
        here = [client.part(f"{self.host.name} is stopping") for client in self._clients.values()]
        return any(here)

    def close(self) -> None:
        self.send_away("")

    def send_away(self, why: str) -> None:
        """Every stream ends; clients go on elsewhere, or come back."""
        for client in self._clients.values():
            client.close(why)

    def drop(self, why: str) -> None:
        """The same, and their sessions are over: the com layer that had them is."""
        self.send_away(why)
        for client in self._clients.values():
            client.in_flight.clear()
        self._clients.clear()


def _name(first: Packet) -> str:
    hello = to_node(first.messages[0] if first.messages else b"")
    if not isinstance(hello, Hello) or not _CLIENT.match(hello.client):
        raise BadMessage("a session begins with Hello and a client's name")
    return hello.client
