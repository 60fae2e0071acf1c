"""Asking nodes for their traces (framework/orb/traces.py)."""

import asyncio
from collections.abc import Callable

import grpc.aio
import msgspec

from framework.errors import OboError, Unavailable
from framework.net.security import Credentials, hint, refusal
from framework.net.wire.trace_pb2 import ListTracesRequest, ReadTraceRequest
from framework.net.wire.trace_pb2_grpc import TracesStub

STALLED = 30.0  # seconds without a piece


class Told(msgspec.Struct, frozen=True):
    """What a node says of its traces: name and size of each; and the name of the token that asked."""

    node: str
    traced: bool
    traces: dict[str, int]
    caller: str = ""


async def list_traces(address: str, credentials: Credentials, timeout: float) -> Told:
    """Unavailable if the node cannot be asked, or the error with which it refuses."""
    try:
        async with asyncio.timeout(timeout), credentials.channel(address) as channel:
            said = await TracesStub(channel).ListTraces(ListTracesRequest(), metadata=credentials.metadata)
            return Told(said.node, said.traced, {t.name: t.size for t in said.traces}, said.caller)
    except grpc.aio.AioRpcError as error:
        raise _told(address, error, credentials) from None
    except TimeoutError:
        raise Unavailable(f"{address}: no answer within {timeout:g} s") from None


async def read_trace(
    address: str, credentials: Credentials, name: str, size: int, sink: Callable[[bytes], None]
) -> None:
    """The first ``size`` bytes of a trace go to ``sink``, piece by piece."""
    try:
        async with credentials.channel(address) as channel:
            stream = TracesStub(channel).ReadTrace(
                ReadTraceRequest(name=name, size=size), metadata=credentials.metadata
            )
            while True:
                async with asyncio.timeout(STALLED):
                    piece = await stream.read()
                if piece is grpc.aio.EOF:
                    return
                await asyncio.to_thread(sink, piece.data)
    except grpc.aio.AioRpcError as error:
        raise _told(address, error, credentials) from None
    except TimeoutError:
        raise Unavailable(f"{address}: {name}: nothing came for {STALLED:g} s") from None


def _told(address: str, error: grpc.aio.AioRpcError, credentials: Credentials) -> OboError:
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return Unavailable(f"{address}: this node is of a version that gives no traces")
    details = str(error.details())
    return refusal(error) or Unavailable(f"{address}: {details}{hint(details, credentials.tls)}")
