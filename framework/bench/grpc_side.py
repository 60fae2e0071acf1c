"""Plain grpcio, as a user writes it: a unary method, a trivial handler in a pool of threads, a synchronous stub.

The payload goes as bare bytes, without a protobuf message around it: that is in favour of the baseline.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import grpc

from framework.bench.load import Measured, Order, lone, window

IN_FLIGHT = 64
SERVICE, METHOD = "obo.bench.Echo", "Echo"
WORKERS = 10  # what grpcio's own examples take


def serve() -> tuple[str, Callable[[], Any]]:
    """The address, and how to stop."""

    def echo(payload: bytes, _context: Any) -> bytes:
        return payload

    server = grpc.server(ThreadPoolExecutor(WORKERS))
    handlers = {METHOD: grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return f"127.0.0.1:{port}", lambda: server.stop(0).wait()


def rows(address: str) -> dict[str, Callable[[Order], Measured]]:
    channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
    echo = channel.unary_unary(f"/{SERVICE}/{METHOD}")
    return {
        "lone": lambda o: lone(partial(echo, bytes(o.payload)), o.seconds),
        "async": lambda o: window(partial(echo.future, bytes(o.payload)), IN_FLIGHT, o.seconds),
    }
