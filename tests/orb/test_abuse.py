"""Whoever misbehaves gets an error; a client beside it goes on working all the time."""

import asyncio
import os
import ssl
import traceback
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import msgspec
import pytest

from framework import ALL
from framework.errors import (
    BadRequest,
    NoSuchMethod,
    NoSuchObject,
    RemoteError,
    ResourceExhausted,
)
from framework.net.certs import Authority
from framework.net.peers import hello as peer_hello
from framework.net.security import Credentials, Tls, directory
from framework.net.wire.com_pb2_grpc import LinkStub
from framework.net.wire.orb_pb2 import Packet
from framework.orb import sessions
from framework.orb.messages import Answer, Hello, Refused, Welcome
from tests.orb import secured
from tests.orb.cluster import cluster
from tests.orb.secured import SECURITY, THINGS, Keeper, asked, call, hear, make_certs, raw, say

PATIENCE = 60
SMALL = "[serve]\nmax_message = 1048576\n"  # 1 MiB: so that too large is not large


@pytest.fixture
def play(ports, tmp_path, capsys):
    """Run a coroutine function with a cluster, beside a client that must not notice anything."""

    def run(act, more=""):
        if "[security]" in more:
            make_certs(tmp_path)

        async def whole():
            access = {"credentials": tmp_path / "certs/client"} if "[security]" in more else {}
            running = cluster(ports(3), tmp_path / "trace", objects=THINGS + more, base=tmp_path)
            async with running as c, asyncio.timeout(PATIENCE), undisturbed(c, access):
                await act(c)

        asyncio.run(whole())

    return run


@asynccontextmanager
async def undisturbed(c, access):
    """A client that calls one after the other. Each call succeeds, also after all is over."""
    done = 0

    async def calls(orb):
        nonlocal done
        while True:
            await orb.object("bank").deposit("ann", 1)
            done += 1
            await asyncio.sleep(0.01)

    async with c.client(timeout=40.0, **access) as orb:
        calling = asyncio.ensure_future(calls(orb))
        home = orb.home
        try:
            yield
            before = done
            while done < before + 3 and not calling.done():
                await asyncio.sleep(0.01)
            assert not calling.done(), calling.exception()
            assert orb.home == home
        finally:
            calling.cancel()
            await asyncio.wait((calling,))
        assert await orb.object("bank").balance("ann") >= done


async def _answer_to(port, data, secure=None):
    """What a port says to these bytes until it hangs up, or for a moment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=secure)
    try:
        writer.write(data)
        await writer.drain()
        async with asyncio.timeout(1.0):
            return await reader.read(1 << 16)
    except (TimeoutError, OSError):
        return b""
    finally:
        writer.close()


def _ports(c):
    return [int(a.rpartition(":")[2]) for a in c.config.addresses.values()]


@pytest.mark.parametrize("more", ["", SECURITY], ids=["plain", "tls"])
def test_garbage_on_the_port(play, more):
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    garbage = [os.urandom(4096), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"", preface + os.urandom(4096), b"\x16\x03\x01"]

    async def act(c):
        for port in _ports(c):
            await asyncio.gather(*(_answer_to(port, g) for g in garbage))

    play(act, more)


def test_a_tls_hello_to_a_plain_port(play):
    async def act(c):
        anything = ssl.create_default_context()
        anything.check_hostname, anything.verify_mode = False, ssl.CERT_NONE
        for port in _ports(c):
            with pytest.raises((ssl.SSLError, OSError)):
                async with asyncio.timeout(60):
                    await _answer_to(port, b"", anything)

    play(act)


def test_a_plain_hello_to_a_tls_port(play):
    async def act(c):
        for address in c.config.addresses.values():
            async with raw(address) as stream:
                with pytest.raises((grpc.aio.AioRpcError, asyncio.InvalidStateError)):
                    await asked(stream, Hello("c-1"))
                assert await stream.code() is grpc.StatusCode.UNAVAILABLE

    play(act, SECURITY)


@pytest.mark.parametrize(
    "messages",
    [[], [b""], [b"garbage"], [os.urandom(1000)], [msgspec.msgpack.encode([1, "no name"])], [b"\x91" * 100_000]],
    ids=["none", "empty", "text", "chance", "name", "deep"],
)
def test_a_first_message_that_is_no_hello(play, messages):
    async def act(c):
        async with raw(c.config.address("n1")) as stream:
            await stream.write(Packet(messages=messages))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await hear(stream)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    play(act)


def test_garbage_after_the_hello(play):
    async def act(c):
        async with raw(c.config.address("n1")) as stream:
            await say(stream, Hello("c-1"))
            assert isinstance(await hear(stream), Welcome)
            await stream.write(Packet(messages=[os.urandom(1000)]))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await hear(stream)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    play(act)


# what is not there, or not for everybody


def test_only_decorated_methods_are_reachable(play):
    async def act(c):
        async with raw(c.config.address("n1")) as stream:
            await say(stream, Hello("c-1"))
            await hear(stream)
            names = ["hidden", "below", "_fall", "__init__", "__class__", "__reduce__", "__dict__", "kept", "orb"]
            for number, name in enumerate([*names, "now", "", "keep ", "KEEP", "no\nname"], 1):
                await say(stream, call(number, "keeper", name))
                refused = await hear(stream)
                assert isinstance(refused, Refused) and refused.error == "NoSuchMethod", (name, refused)
            await say(stream, call(100, "keeper", "open_below"))  # inherited, and decorated
            answer = await hear(stream)
            assert isinstance(answer, Answer) and msgspec.msgpack.decode(answer.responses[-1].body) == "for everybody"

    play(act)


def test_wrong_names_and_types_are_errors_of_that_call_alone(play):
    async def act(c):
        async with c.client() as orb:
            bank, keeper = orb.object("bank"), orb.object("keeper")
            with pytest.raises(NoSuchObject):
                await orb.object("bnk").deposit("ann", 1)
            with pytest.raises(NoSuchMethod):
                await bank.depsit("ann", 1)
            with pytest.raises(BadRequest, match="amount"):
                await bank.deposit("ann", "much")
            with pytest.raises(BadRequest, match="missing"):
                await bank.deposit("ann")
            with pytest.raises(BadRequest, match="3 were given"):
                await bank.deposit("ann", 1, 2)
            assert await keeper.weigh(b"abc") == 3
        async with raw(c.config.address("n1")) as stream:
            await say(stream, Hello("c-1"))
            await hear(stream)
            for number, packed in enumerate([b"", b"\xc1", os.urandom(64), b"\x81\x01\x02", b"\x92\xa1a"], 1):
                await say(stream, call(number, "bank", "deposit", packed=packed))
                refused = await hear(stream)
                assert isinstance(refused, Refused) and refused.error == "BadRequest", (packed, refused)
            await say(stream, call(50, "keeper", "keep", 1))
            assert isinstance(await hear(stream), Answer)

    play(act)


# too much


def test_arguments_that_are_nested_too_deep(play):
    async def act(c):
        deep = {"a": 1}
        for _ in range(70):
            deep = [deep]
        fine = {"a": list(range(5000))}
        for _ in range(60):
            fine = [fine]
        async with c.client() as orb:
            with pytest.raises(BadRequest, match=r"Keeper\.keep: the arguments are nested deeper than 64"):
                await orb.object("keeper").keep(deep)
            with pytest.raises(BadRequest, match="nested deeper than 64"):
                await orb.object("keeper").keep(value=deep)
            assert await orb.object("keeper").keep(fine) == 1
            assert await orb.object("keeper").keep(list(range(0x80, 0x10000, 7))) == 2
        async with raw(c.config.address("n1")) as stream:
            await say(stream, Hello("c-1"))
            await hear(stream)
            await say(stream, call(1, "keeper", "keep", packed=b"\x91" * 500_000 + b"\x01"))
            refused = await hear(stream)
            assert refused.error == "BadRequest" and "nested deeper than 64" in refused.text

    play(act)


def test_a_gigabyte_is_refused_before_it_is_copied(play):
    async def act(c):
        huge = bytes(1 << 30)  # nothing but zero pages until somebody touches them
        async with c.client() as orb:
            for keeper in (orb.object("keeper"), orb.object(Keeper, "keeper")):
                with pytest.raises(
                    BadRequest, match=r"keeper\.weigh: an argument has 1,073,741,824 bytes, the limit is"
                ):
                    keeper.weigh.submit(huge)
                with pytest.raises(BadRequest, match="1,073,741,824 bytes"):
                    keeper.weigh.request(data=huge)
            assert await orb.object("keeper").weigh(b"abc") == 3

    play(act)


def test_an_argument_that_is_too_large_leaves_the_other_calls_alone(play):
    async def act(c):
        async with c.client() as orb:
            keeper = orb.object("keeper")
            beside = [keeper.weigh.submit(bytes(900_000)) for _ in range(5)]  # together more than one message
            said = (
                r"keeper\.weigh: the arguments have 1,048,5\d\d bytes, the limit is 983,040: .* \[serve\] max_message"
            )
            with pytest.raises(BadRequest, match=said):
                await keeper.weigh(bytes((1 << 20) - 10))
            with pytest.raises(BadRequest, match="the limit is 983,040"):
                await orb.mcast(keeper.weigh.request(bytes(1 << 20)))
            with pytest.raises(BadRequest, match="the limit is 983,040"):
                await orb.object("bank").deposit.oneway("x" * (1 << 20), 1)
            with pytest.raises(BadRequest, match="the limit is 983,040"):
                await orb.pcast(
                    keeper.weigh.request(bytes(600_000)), orb.object("bank").deposit.request("x" * 600_000, 1)
                )
            assert await asyncio.gather(*beside) == [900_000] * 5

    play(act, SMALL)


def test_links_carry_more_than_one_message_of_grpc_at_once(play):
    """What waits for a peer becomes one frame; were it too large for gRPC, the link would never get over it."""

    async def act(c):
        async with c.client("n1") as orb:
            weigh = orb.object("keeper").weigh.with_(receipt=ALL)
            assert await asyncio.gather(*(weigh.submit(bytes(700_000)) for _ in range(12))) == [700_000] * 12

    play(act, SMALL)


def test_a_message_that_is_too_large_ends_the_stream_of_who_sends_it(play):
    async def act(c):
        async with raw(c.config.address("n1")) as stream:
            await say(stream, Hello("c-1"))
            await hear(stream)
            with pytest.raises((grpc.aio.AioRpcError, asyncio.InvalidStateError)):
                await asked(stream, call(1, "keeper", "weigh", bytes(3 << 20)))
            assert await stream.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    play(act, SMALL)


def test_a_result_that_is_too_large_is_an_error_of_that_call_alone(play):
    async def act(c):
        async with c.client() as orb:
            keeper, home = orb.object("keeper"), orb.home
            with pytest.raises(RemoteError, match=r"the result has 2,\d+,\d+ bytes, the limit is 1,048,576"):
                await keeper.give(2 << 20)
            assert await keeper.give(3) == bytes(3)
            assert orb.home == home

    play(act, SMALL)


@pytest.mark.parametrize(
    ("limit", "said", "other"),
    [
        ("in_flight = 5", r"5 calls of c-\w+ are in flight", True),
        ("in_flight_node = 5", "5 calls are in flight", False),
    ],
    ids=["client", "node"],
)
def test_too_many_calls_at_once(ports, tmp_path, monkeypatch, limit, said, other):
    """Of one client: the other goes on. Of a node: nobody begins a new one until some are over."""

    async def act():
        monkeypatch.setattr(secured, "gate", asyncio.Event())
        running = cluster(ports(1), tmp_path, objects=f"{THINGS}[serve]\n{limit}\n")
        async with running as c, asyncio.timeout(PATIENCE), c.client() as one, c.client() as two:
            keeper = one.object("keeper")
            waiting = [keeper.wait.submit() for _ in range(5)]
            await in_flight(c, 5)
            with pytest.raises(ResourceExhausted, match=said):
                await keeper.weigh(b"")
            if other:
                await two.object("bank").deposit("ann", 1)
            else:
                with pytest.raises(ResourceExhausted, match=said):
                    await two.object("bank").deposit("ann", 1)
            secured.gate.set()
            await asyncio.gather(*waiting)
            assert await keeper.weigh(b"") == 0
            await two.object("bank").deposit("ann", 1)

    asyncio.run(act())


def test_calls_of_a_client_that_has_gone_do_not_count(ports, tmp_path, monkeypatch):
    async def act():
        monkeypatch.setattr(secured, "gate", asyncio.Event())
        running = cluster(ports(1), tmp_path, objects=f"{THINGS}[serve]\nin_flight_node = 5\n")
        async with running as c, asyncio.timeout(PATIENCE):
            async with c.client() as one:
                waiting = [one.object("keeper").wait.submit() for _ in range(5)]
                await in_flight(c, 5)
            async with c.client() as two:
                await two.object("bank").deposit("ann", 1)
            secured.gate.set()
            await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(act())


async def in_flight(c, count):
    while sum(c.nodes["n1"].sessions.counts().values()) < count:
        await asyncio.sleep(0.01)


# clients that stop half-way


def test_a_client_that_says_nothing_is_sent_away(play, monkeypatch):
    monkeypatch.setattr(sessions, "FIRST_WORD", 0.3)

    async def act(c):
        async with raw(c.config.address("n1")) as stream:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await hear(stream)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert "no Hello" in caught.value.details()

    play(act)


def test_connections_that_are_left_half_open(play):
    async def act(c):
        half = [await asyncio.open_connection("127.0.0.1", port) for port in _ports(c) for _ in range(20)]
        for index, (_, writer) in enumerate(half):
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[: index % 24])
        async with c.client() as orb:
            assert await orb.object("keeper").weigh(b"abc") == 3
        for _, writer in half:
            writer.close()

    play(act)


def test_a_client_that_never_reads_is_dropped(play):
    """Answers that nobody reads are kept up to a bound."""

    async def act(c):
        async with raw(c.config.address("n1")) as stream:
            await say(stream, Hello("c-1"))
            for number in range(1, 400):
                await say(stream, call(number, "keeper", "give", 500_000))
                if "c-1" in c.nodes["n1"].sessions.counts() and not c.nodes["n1"].sessions._clients["c-1"]._stream:
                    break
                await asyncio.sleep(0.01)
            else:
                raise AssertionError("it is still served")

    play(act, SMALL)


# what an error tells


def test_remote_tracebacks_have_no_local_variables(play):
    async def act(c):
        async with c.client() as orb:
            with pytest.raises(RemoteError, match="20 letters are wrong") as caught:
                await orb.object("keeper").fall()
        told = "".join(traceback.format_exception(caught.value))
        assert "in _fall" in told and "in fall" in told and "secured.py" in told  # where it was raised
        assert "swordfish-in-a-local" not in told

    play(act)


def test_a_secured_cluster_goes_on_while_strangers_knock(play, tmp_path):
    """Certificates of another CA, expired, of another node; no TLS; tokens that are wrong or missing."""
    foreign = Authority.new(30)

    async def act(c):
        certs = tmp_path / "certs"
        authority = Authority.read(certs / "ca.pem", certs / "ca.key")
        ca = authority.pair.cert
        strangers = [foreign.client("c", 30), authority.client("late", -1), foreign.node("n1", ["127.0.0.1"], 30)]
        at_the_handshake = [None, *(Tls(ca, pair.cert, pair.key) for pair in strangers)]
        mine = directory(certs / "client")
        for address in c.config.addresses.values():
            for tls in at_the_handshake:
                assert await refused(address, Credentials(tls, mine.token)) is grpc.StatusCode.UNAVAILABLE
            for token in ("", "wrong", mine.token[:-1]):
                assert await refused(address, Credentials(mine.tls, token)) is grpc.StatusCode.UNAUTHENTICATED
        other = Tls.read(certs / "ca.pem", certs / "n2.pem", certs / "n2.key")
        async with Credentials(other).channel(c.config.address("n3"), peer="n3") as channel:
            stream = LinkStub(channel).Exchange(metadata=peer_hello("n1"))
            with pytest.raises(grpc.aio.AioRpcError, match="the certificate is not that of n1"):
                await stream.read()

    play(act, SECURITY)


async def refused_once(address, credentials):
    async with raw(address, credentials) as stream:
        with pytest.raises((grpc.aio.AioRpcError, asyncio.InvalidStateError)):
            await asked(stream, Hello("c-1"))
        return await stream.code()


async def refused(address, credentials):
    """A stream that is refused while it is written to may end with INTERNAL: who is refused so tries again."""
    for _ in range(5):
        if (status := await refused_once(address, credentials)) is not grpc.StatusCode.INTERNAL:
            return status
    return status
