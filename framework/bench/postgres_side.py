"""The clients of plain PostgreSQL: coroutines, each with a connection of its own, one commit for each statement.

Beyond fsync, which is on, the server is as it comes. psycopg prepares a statement after it was used a few times.
"""

from collections.abc import Callable
from typing import Any

import psycopg

from framework.bench.closed import Call, closed
from framework.bench.load import Measured, Order
from framework.testing.background import Background
from framework.testing.sql_work import FILL, HOT, INSERT, MAKE, SELECT, UPDATE, Work, fill

PATIENCE = 80.0  # seconds that a row may take longer than it says


def rows(where: str) -> dict[str, Callable[[Order], Measured]]:
    """``where``: the url, and the bytes of a body."""
    url, _, payload = where.rpartition(",")
    with psycopg.connect(url) as connection:
        for text in MAKE:
            connection.execute(text)
        connection.cursor().executemany(_own(FILL), fill(int(payload)))
    background = Background("load")
    load = Load(url)

    def row(name: str) -> Callable[[Order], Measured]:
        return lambda order: background.run(load.row(name, order), order.seconds + PATIENCE)

    return {name: row(name) for name in ("insert", "update", "hot", "select", "mix")}


class Load:
    def __init__(self, url: str) -> None:
        self._url = url
        self._work = Work()
        self._connections: list[psycopg.AsyncConnection[Any]] = []

    async def row(self, name: str, order: Order) -> Measured:
        while len(self._connections) < order.clients:
            self._connections.append(await psycopg.AsyncConnection.connect(self._url, autocommit=True))
        return await closed([self._call(name, order, c) for c in self._connections[: order.clients]], order.seconds)

    def _call(self, name: str, order: Order, connection: "psycopg.AsyncConnection[Any]") -> Call:
        work, run = self._work, connection.execute
        insert, update, select = map(_own, (INSERT, UPDATE, SELECT))

        async def read() -> Any:
            return await (await run(select, work.thing())).fetchall()

        calls: dict[str, Call] = {
            "insert": lambda: run(insert, work.insert(order.payload)),
            "update": lambda: run(update, work.thing()),
            "hot": lambda: run(update, (HOT,)),
            "select": read,
            "mix": lambda: run(update, work.thing()) if work.writes() else read(),
        }
        return calls[name]


def _own(text: str) -> Any:
    """With the place-holders of psycopg."""
    return text.replace("?", "%s")
