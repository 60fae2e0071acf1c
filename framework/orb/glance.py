"""One question to one node, whatever state it is in: also to one that is not a member, or takes no calls."""

import asyncio
from typing import Any
from uuid import uuid4

import grpc.aio
import msgspec

from framework.errors import BadMessage, Unavailable
from framework.net.security import Credentials, hint, refusal
from framework.net.wire.orb_pb2 import Packet
from framework.net.wire.orb_pb2_grpc import SessionStub
from framework.orb.messages import Bye, Change, Hello, Look, Refused, Told, encode, to_client
from framework.orb.outcome import named


async def ask(address: str, question: Look | Change, credentials: Credentials, timeout: float) -> Any:
    """What the node says; Unavailable if it says nothing in time, or the error with which it refuses."""
    try:
        return await _once(address, question, credentials, timeout)
    except _Broke:
        if not isinstance(question, Look):
            raise
    return await _once(address, question, credentials, timeout)  # it had just sent all its clients away


class _Broke(Unavailable):
    """The stream ended before there was an answer."""


async def _once(address: str, question: Look | Change, credentials: Credentials, timeout: float) -> Any:
    try:
        async with asyncio.timeout(timeout), credentials.channel(address) as channel:
            stream = SessionStub(channel).Open(metadata=credentials.metadata)
            await stream.write(Packet(messages=[encode(Hello(f"q-{uuid4().hex[:16]}")), encode(question)]))
            while (packet := await stream.read()) is not grpc.aio.EOF:
                for data in packet.messages:
                    said = to_client(data)
                    if isinstance(said, Refused):
                        raise named(said.error, said.text)
                    if isinstance(said, Told):
                        await stream.write(Packet(messages=[encode(Bye())]))
                        return msgspec.msgpack.decode(said.body) if said.body else None
            raise _Broke(f"{address}: the stream ended without an answer")
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
        details = error.details() if isinstance(error, grpc.aio.AioRpcError) else str(error)
        raise refusal(error) or _Broke(f"{address}: {details}{hint(str(details), credentials.tls)}") from None
    except TimeoutError:
        raise Unavailable(f"{address}: no answer within {timeout:g} s") from None
    except BadMessage as error:
        raise Unavailable(f"{address}: {error}") from None
