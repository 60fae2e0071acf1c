"""Pyro5 with msgpack. It knows no futures: many calls in flight are many threads, each with a proxy of its own."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import Pyro5.api
from Pyro5 import config

from framework.bench.load import Measured, Order, lone, threads

IN_FLIGHT = 4  # where it was fastest: with more threads calls/s fall
config.SERIALIZER = "msgpack"


@Pyro5.api.expose
@Pyro5.api.behavior(instance_mode="single")
class Echo:
    def echo(self, payload: bytes) -> bytes:
        return payload


def serve() -> tuple[str, Callable[[], Any]]:
    daemon = Pyro5.api.Daemon(host="127.0.0.1")
    uri = daemon.register(Echo)
    threading.Thread(target=daemon.requestLoop, daemon=True).start()
    return str(uri), daemon.shutdown


def rows(address: str) -> dict[str, Callable[[Order], Measured]]:
    proxy = Pyro5.api.Proxy(address)

    def many(o: Order) -> Measured:
        return threads([partial(_own_proxy(address), bytes(o.payload)) for _ in range(IN_FLIGHT)], o.seconds)

    return {"lone": lambda o: lone(partial(proxy.echo, bytes(o.payload)), o.seconds), "async": many}


def _own_proxy(address: str) -> Callable[[bytes], Any]:
    """A proxy belongs to the thread that first uses it."""
    made: list[Any] = []

    def call(payload: bytes) -> Any:
        if not made:
            made.append(Pyro5.api.Proxy(address))
        return made[0].echo(payload)

    return call
