"""The clients of the replicated database: coroutines in one process, each with a home of its own.

Clients of one home share a connection, as callers in one program do; ``insert_own`` gives each client its own. Each
statement is a call, but in the rows that are called shared: there what clients of one connection ask for at the same
time travels together (objects/sql/several.py). The levels of a read are those of docs/sql.md.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from framework import ALL, AsyncOrb
from framework.bench.closed import Call, closed
from framework.bench.echo import Echo
from framework.bench.load import Measured, Order
from framework.bench.processes import NODES
from framework.testing.background import Background
from framework.testing.sql_work import COUNT_ALL, HOT, INSERT, SELECT, UPDATE, Work

TIMEOUT = 60.0  # a machine that is busy with other things shall not end a measurement
PATIENCE = 80.0  # seconds that a row may take longer than it says
DATABASE = "db"
REPLICAS = tuple(f"{DATABASE}@{node}" for node in NODES)
MAJORITY = len(NODES) // 2 + 1

#: Makes one call.
Make = Callable[[Order, "Client"], Awaitable[Any]]


class Client:
    """A connection, with what is called through it."""

    def __init__(self, addresses: list[str], home: int, work: Work) -> None:
        self.work = work
        self.orb = AsyncOrb([*addresses[home:], *addresses[:home]], TIMEOUT)
        self.echo: Any = self.orb.object(Echo, f"echo{home + 1}")
        self.sql = _sql(self.orb)
        db = self.db = self.orb.object(_database(), DATABASE)
        self.execute: Any = db.execute
        self.query: Any = db.query
        self.stale: Any = self.query.with_(stale=True)
        self.ordered: Any = self.query.with_(to=REPLICAS)


def _sql(orb: AsyncOrb) -> Any:
    from objects.sql.async_client import AsyncSql

    return AsyncSql(orb, DATABASE)


def _database() -> Any:
    from objects.sql import Database

    return Database


async def insert(o: Order, c: Client) -> None:
    await c.execute(INSERT, c.work.insert(o.payload))
    c.work.done["insert"] += 1


async def insert_shared(o: Order, c: Client) -> None:
    await c.sql.execute(INSERT, c.work.insert(o.payload))
    c.work.done["insert"] += 1


async def update(o: Order, c: Client) -> None:
    await c.execute(UPDATE, c.work.thing())
    c.work.done["update"] += 1


async def update_shared(o: Order, c: Client) -> None:
    await c.sql.execute(UPDATE, c.work.thing())
    c.work.done["update"] += 1


async def hot(o: Order, c: Client) -> None:
    await c.execute(UPDATE, (HOT,))
    c.work.done["hot"] += 1


def read_any(o: Order, c: Client) -> Awaitable[Any]:
    found: Awaitable[Any] = c.stale(SELECT, c.work.thing())
    return found


def read_session(o: Order, c: Client) -> Awaitable[Any]:
    found: Awaitable[Any] = c.query(SELECT, c.work.thing())
    return found


def session_shared(o: Order, c: Client) -> Awaitable[Any]:
    found: Awaitable[Any] = c.sql.query(SELECT, c.work.thing())
    return found


def read_linearizable(o: Order, c: Client) -> Awaitable[Any]:
    found: Awaitable[Any] = c.ordered(SELECT, c.work.thing())
    return found


async def read_majority(o: Order, c: Client) -> Any:
    sent = await c.orb.mcast(c.query.request(SELECT, c.work.thing()))
    replies = await c.orb.quorum(sent, MAJORITY, TIMEOUT)
    first, *others = (reply.value for reply in replies)
    if any(other != first for other in others):
        raise AssertionError(f"replicas gave different answers: {[r.value for r in replies]}")
    return first


def mix(o: Order, c: Client) -> Awaitable[Any]:
    return update(o, c) if c.work.writes() else read_session(o, c)


def ucast(o: Order, c: Client) -> Awaitable[Any]:
    done: Awaitable[Any] = c.echo.echo(bytes(o.payload))
    return done


CALLS: dict[str, Make] = {
    "insert": insert,
    "update": update,
    "hot": hot,
    "any": read_any,
    "session": read_session,
    "linearizable": read_linearizable,
    "majority": read_majority,
    "mix": mix,
    "ucast": ucast,
}
SHARED: dict[str, Make] = {
    "insert_shared": insert_shared,
    "update_shared": update_shared,
    "session_shared": session_shared,
}
OWN = "insert_own"
ONE_NODE = "ucast_one_node"


class Load:
    def __init__(self, addresses: list[str]) -> None:
        self._addresses = addresses
        self._work = Work()
        self._shared: list[Client] = []

    async def open(self) -> None:
        self._shared = [await self._connected(i) for i in range(len(self._addresses))]

    async def _connected(self, home: int) -> Client:
        client = Client(self._addresses, home % len(self._addresses), self._work)
        await client.orb.__aenter__()
        return client

    async def row(self, order: Order, make: Make) -> Measured:
        return await self._row(order, make, self._shared)

    async def one_node(self, order: Order, make: Make) -> Measured:
        return await closed(_calls(order, make, self._shared[:1]), order.seconds)

    async def own(self, order: Order, make: Make) -> Measured:
        clients = [await self._connected(i) for i in range(order.clients)]
        try:
            return await self._row(order, make, clients)
        finally:
            for client in clients:
                await client.orb.__aexit__(None, None, None)

    async def _row(self, order: Order, make: Make, clients: list[Client]) -> Measured:
        before = dict(self._work.done)
        found = await closed(_calls(order, make, clients), order.seconds)
        await self._settled()
        found.changed = {name: done - before[name] for name, done in self._work.done.items()}
        return found

    async def _settled(self) -> None:
        """A majority has answered. The next row begins when all replicas have performed what they were sent."""
        await self._shared[0].ordered.with_(receipt=ALL)(COUNT_ALL)


def _calls(order: Order, make: Make, clients: list[Client]) -> list[Call]:
    chosen = [clients[i % len(clients)] for i in range(order.clients)]
    return [lambda c=c: make(order, c) for c in chosen]  # type: ignore[misc]  # a default for the loop's variable


def rows(addresses: str) -> dict[str, Callable[[Order], Measured]]:
    background = Background("load")
    load = Load(addresses.split(","))
    background.run(load.open(), TIMEOUT)

    def row(how: Callable[[Order, Make], Any], make: Make) -> Callable[[Order], Measured]:
        def run(order: Order) -> Measured:
            found: Measured = background.run(how(order, make), order.seconds + PATIENCE)
            return found

        return run

    return {
        **{name: row(load.row, make) for name, make in (CALLS | SHARED).items()},
        OWN: row(load.own, insert),
        ONE_NODE: row(load.one_node, ucast),
    }
