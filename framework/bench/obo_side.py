"""The client of the nodes. ``here`` has one replica on the home node, ``everywhere`` one on each node."""

from collections.abc import Callable
from functools import partial
from typing import Any

from framework import ALL, connect
from framework.bench.echo import Echo
from framework.bench.load import Measured, Order, lone, oneway, window

IN_FLIGHT = 256
TIMEOUT = 60.0  # a machine that is busy with other things shall not end a measurement


def rows(addresses: str) -> dict[str, Callable[[Order], Measured]]:
    orb = connect(addresses, timeout=TIMEOUT)
    here, everywhere = orb.object(Echo, "here"), orb.object(Echo, "everywhere")

    def one(call: Callable[..., Any]) -> Callable[[Order], Measured]:
        return lambda o: lone(partial(call, bytes(o.payload)), o.seconds)

    def many(method: Any) -> Callable[[Order], Measured]:
        return lambda o: window(partial(method.submit, bytes(o.payload)), IN_FLIGHT, o.seconds, o.rate)

    def settled(row: Callable[[Order], Measured]) -> Callable[[Order], Measured]:
        """A majority has answered; the next row begins when all replicas have performed what they were sent."""

        def then_wait(order: Order) -> Measured:
            result = row(order)
            everywhere.strict.with_(receipt=ALL)(b"")
            return result

        return then_wait

    def notes(o: Order) -> Measured:
        return oneway(partial(here.note.oneway, bytes(o.payload)), here.count, o.seconds)

    return {
        "lone": one(here.echo),
        "async": many(here.echo),
        "oneway": notes,
        "mcast0_lone": settled(one(everywhere.echo)),
        "mcast0": settled(many(everywhere.echo)),
        "mcast100_lone": settled(one(everywhere.strict)),
        "mcast100": settled(many(everywhere.strict)),
    }
