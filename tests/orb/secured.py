"""A cluster with TLS and tokens, whose files obo certs init has made; and an object that takes and gives anything."""

import asyncio
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import msgspec

from framework import Object, method
from framework.cli import certs
from framework.net.security import OPEN
from framework.net.tokens import add
from framework.net.wire.orb_pb2 import Packet
from framework.net.wire.orb_pb2_grpc import SessionStub
from framework.orb.messages import Act, Ask, Call, Left, encode, to_client

SECURITY = """
[security]
ca = "certs/ca.pem"
cert = "certs/{node}.pem"
key = "certs/{node}.key"
tokens = "certs/tokens.toml"
client = "certs/client"
"""
TOKENS_ONLY = '[security]\ntokens = "certs/tokens.toml"\n'

THINGS = """
[objects.bank]
class = "objects.bank:Bank"
[objects.keeper]
class = "tests.orb.secured:Keeper"
"""

gate = asyncio.Event()  # a test sets its own


class _Older(Object):
    def below(self) -> str:
        return "not for everybody"

    @method(readonly=True)
    def open_below(self) -> str:
        return "for everybody"


class Keeper(_Older):
    def __init__(self) -> None:
        self.kept = 0

    def hidden(self) -> str:
        return "not for everybody"

    @method
    def keep(self, value: Any) -> int:
        self.kept += 1
        return self.kept

    @method
    def weigh(self, data: bytes) -> int:
        return len(data)

    @method(readonly=True)
    def give(self, size: int) -> bytes:
        return bytes(size)

    @method
    async def wait(self) -> None:
        await gate.wait()

    @method
    def fall(self) -> None:
        password = "swordfish-" + "in-a-local"
        self._fall(password)

    def _fall(self, word: str) -> None:
        raise ValueError(f"{len(word)} letters are wrong")


def make_certs(directory: Path, names=("n1", "n2", "n3"), days=30) -> Path:
    """certs/ as obo certs init makes it."""
    config = directory / "nodes.toml"
    config.write_text("[nodes]\n" + "".join(f'{n} = "127.0.0.1:{7401 + i}"\n' for i, n in enumerate(names)))
    certs.init(config, directory / "certs", days, False)
    return directory / "certs"


def token(directory: Path, name: str, role: str) -> str:
    return add(directory / "certs" / "tokens.toml", name, role)


def files(directory: Path) -> dict[str, Path]:
    """The client's certificate, without a token."""
    client = directory / "certs" / "client"
    return {"ca": client / "ca.pem", "cert": client / "cert.pem", "key": client / "key.pem"}


# a client that does as it likes: streams by hand


@asynccontextmanager
async def raw(address, credentials=OPEN):
    async with credentials.channel(address) as channel:
        stream = SessionStub(channel).Open(metadata=credentials.metadata)
        stream.heard = []
        yield stream
        stream.cancel()


async def say(stream, *messages):
    await stream.write(Packet(messages=[encode(m) for m in messages]))


async def hear(stream):
    """The next message that is no session to keep; an AioRpcError if the node has ended the stream."""
    while not stream.heard:
        packet = await stream.read()
        if packet is grpc.aio.EOF:
            raise AssertionError(f"the stream has ended: {await stream.code()} {await stream.details()}")
        stream.heard += [m for m in map(to_client, packet.messages) if not isinstance(m, Left)]
    return stream.heard.pop(0)


async def asked(stream, *messages):
    await say(stream, *messages)
    return await hear(stream)


def call(number, name, method, *args, packed=None):
    ask = Ask(name, method, msgspec.msgpack.encode(args) if packed is None else packed)
    now = time.time()
    return Call(number, Act("sync", (ask,), timeout=20.0), now, now + 20.0, number)
