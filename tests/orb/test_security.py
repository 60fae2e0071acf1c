"""TLS and tokens: who gets in, who is kept out and told why, and what each may do."""

import asyncio
import shutil
import time

import grpc
import grpc.aio
import msgspec
import pytest

from framework import connect
from framework.errors import (
    BadRequest,
    DeadlineExceeded,
    OutcomeUnknown,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from framework.ids import check_name, object_of
from framework.net.certs import Authority, node_host
from framework.net.peers import hello
from framework.net.security import Credentials, Tls, distrust, listen
from framework.net.wire.com_pb2 import Question
from framework.net.wire.com_pb2_grpc import LinkStub
from framework.orb.client import AsyncOrb
from framework.orb.config import parse
from framework.orb.messages import Hello, Welcome
from framework.orb.node import Node
from framework.orb.who import Caller
from tests.orb.cluster import cluster, toml
from tests.orb.secured import SECURITY, THINGS, TOKENS_ONLY, call, files, hear, make_certs, raw, say, token

PATIENCE = 60


@pytest.fixture
def play(ports, tmp_path, capsys):
    """Run a coroutine function with a secured cluster."""
    make_certs(tmp_path)

    def run(act, security=SECURITY):
        async def whole():
            objects = THINGS + security
            async with cluster(ports(3), tmp_path / "trace", objects=objects, base=tmp_path) as c:
                async with asyncio.timeout(PATIENCE):
                    await act(c)

        asyncio.run(whole())

    return run


async def _until_it_fails(read):
    while True:
        await read("ann")


async def works(c, **access):
    async with c.client(**access) as orb:
        bank = orb.object("bank")
        await bank.deposit("ann", 5)
        return await bank.balance("ann")


def test_a_client_with_certificate_and_token_gets_in(play, tmp_path):
    async def act(c):
        assert await works(c, credentials=tmp_path / "certs/client") == 5
        assert await works(c, token=token(tmp_path, "ann", "call"), **files(tmp_path)) == 10
        assert all(n.peers.up(p) for n in c.nodes.values() for p in n.peers.lines)

    play(act)


@pytest.mark.parametrize("security", [SECURITY, TOKENS_ONLY])
@pytest.mark.parametrize(("given", "said"), [("wrong", "is not known here"), (None, "asks clients for a token")])
def test_a_wrong_token_is_told_at_once(play, tmp_path, security, given, said):
    async def act(c):
        access = files(tmp_path) if security == SECURITY else {}
        access |= {"token": given} if given else {}
        began = time.monotonic()
        with pytest.raises(Unauthenticated, match=said):
            async with c.client(timeout=25.0, **access):
                pass
        assert time.monotonic() - began < 20.0  # not at the time-out
        with pytest.raises(Unauthenticated, match=said):  # the same for threads
            await asyncio.to_thread(connect, list(c.config.addresses.values()), 25.0, **access)

    play(act, security)


def test_every_service_asks_for_a_token_also_one_that_forgets_to(play, tmp_path):
    async def act(c):
        mine = Credentials(Tls.read(*files(tmp_path).values()))
        async with mine.channel(c.config.address("n1")) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await channel.unary_unary("/some.Service/Method")(b"", timeout=PATIENCE)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED

    play(act)


def test_a_read_only_token_looks_and_reads(play, tmp_path):
    async def act(c):
        await works(c, credentials=tmp_path / "certs/client")
        async with c.client(token=token(tmp_path, "eve", "read-only"), **files(tmp_path)) as orb:
            bank, keeper = orb.object("bank"), orb.object("keeper")
            assert await bank.balance("ann") == 5
            assert len(await orb.look("objects")) == 2
            with pytest.raises(PermissionDenied, match=r"token eve is read-only, and Bank\.deposit"):
                await bank.deposit("ann", 1)
            with pytest.raises(PermissionDenied):
                await orb.crec(await orb.pcast(bank.balance.request("ann"), keeper.keep.request(1)))
            await bank.deposit.oneway("ann", 1)  # nobody is told, and nothing happens
            assert await bank.balance("ann") == 5

    play(act)


def test_sessions_belong_to_the_token_that_opened_them(play, tmp_path):
    """Two tokens that name the same client have one each, at every node."""

    async def act(c):
        ann, eve = (Credentials(None, token(tmp_path, name, "call")) for name in ("ann", "eve"))
        async with raw(c.config.address("n1"), ann) as mine:
            await say(mine, Hello("c-1"), call(1, "bank", "deposit", "ann", 5))
            assert isinstance(await hear(mine), Welcome)
            assert (await hear(mine)).complete
            for home in ("n1", "n2"):
                async with raw(c.config.address(home), eve) as theirs:
                    await say(theirs, Hello("c-1"), call(1, "keeper", "keep", "x"))
                    assert isinstance(await hear(theirs), Welcome)
                    reply = await hear(theirs)
                    assert {object_of(r.replica) for r in reply.responses} == {"keeper"}  # not an answer of ann's
            await say(mine, call(2, "bank", "balance", "ann"))  # nobody took this stream's place
            assert (await hear(mine)).responses[-1].body == msgspec.msgpack.encode(5)
        assert {"ann.c-1", "eve.c-1"} <= {name for n in c.nodes.values() for name in n.sessions.counts()}

    play(act, TOKENS_ONLY)


def test_no_name_of_a_client_reaches_into_another_token():
    ann, eve = Caller("ann", "call"), Caller("eve", "call")
    names = ["c-1", "ann.c-1", ".c-1", "x" * 100, "x" * 99, "i:1", ""]
    made = [caller.client(name) for caller in (ann, eve) for name in names]
    assert len(set(made)) == len(made)
    for name in made:
        check_name(name, "client")
        assert name.partition(".")[0] in ("ann", "eve")
    longest = Caller("t" * 30, "call").client("c" * 32)
    assert check_name(longest, "client") == longest
    assert Caller().client("c-1") == "c-1"


def test_only_admins_change_the_cluster():
    Caller("root", "admin").must_be_admin("adding a node")
    Caller().must_be_admin("adding a node")  # without tokens everybody may
    with pytest.raises(PermissionDenied, match="adding a node needs a token with the role admin; ann has call"):
        Caller("ann", "call").must_be_admin("adding a node")


def test_tokens_come_and_go_while_nodes_run(play, tmp_path):
    async def act(c):
        new = token(tmp_path, "ann", "call")
        async with c.client(token=new) as orb:
            await orb.object("bank").deposit("ann", 5)
        (tmp_path / "certs/tokens.toml").write_text("")
        with pytest.raises(Unauthenticated):
            await works(c, token=new)
        (tmp_path / "certs/tokens.toml").write_text("not = toml [")
        with pytest.raises(Unauthenticated):  # it stays as it was
            await works(c, token=new)

    play(act, TOKENS_ONLY)


def test_a_client_whose_token_is_taken_back_is_told_when_its_node_is_lost(play, tmp_path):
    async def act(c):
        async with c.client("n2", "n3", token=token(tmp_path, "ann", "call")) as orb:
            await orb.object("bank").deposit("ann", 5)
            (tmp_path / "certs/tokens.toml").write_text("")
            c.nodes["n2"].sessions.close()
            with pytest.raises((Unauthenticated, OutcomeUnknown)):  # which one depends on whether it was sent
                await _until_it_fails(orb.object("bank").balance)
            with pytest.raises(Unauthenticated):
                await orb.object("bank").balance("ann")

    play(act, TOKENS_ONLY)


# certificates


def test_a_ca_that_did_not_sign_the_node_is_told_at_once(play, tmp_path):
    (tmp_path / "other").mkdir()
    make_certs(tmp_path / "other")

    async def act(c):
        with pytest.raises(Unauthenticated, match="is not from the CA that is trusted here"):
            await works(c, timeout=25.0, credentials=tmp_path / "other/certs/client")
        assert await works(c, credentials=tmp_path / "certs/client") == 5

    play(act)


def test_a_client_without_the_clusters_certificate_gets_no_further_than_the_handshake(play, tmp_path):
    (tmp_path / "other").mkdir()
    make_certs(tmp_path / "other")
    known = token(tmp_path, "ann", "call")

    async def act(c):
        with pytest.raises(Unavailable, match="does it ask for TLS"):
            await works(c, timeout=1.0, token=known)
        theirs, mine = files(tmp_path / "other"), files(tmp_path)
        stranger = Tls(mine["ca"].read_bytes(), theirs["cert"].read_bytes(), theirs["key"].read_bytes())
        orb = c.client(timeout=1.0)
        orb._credentials = Credentials(stranger, known)
        with pytest.raises(Unavailable, match="does it know the CA of our certificate"):
            async with orb:
                pass
        assert await works(c, token=known, **mine) == 5

    play(act)


def test_files_that_do_not_fit_are_told_before_anything_is_sent(tmp_path, capsys):
    (tmp_path / "other").mkdir()
    make_certs(tmp_path)
    make_certs(tmp_path / "other")
    mine, theirs = files(tmp_path), files(tmp_path / "other")
    place = "127.0.0.1:9"
    with pytest.raises(BadRequest, match=r"cert\.pem was not signed by"):
        connect(place, **{**theirs, "ca": mine["ca"]})
    with pytest.raises(BadRequest, match=r"cert\.pem does not belong to"):
        connect(place, **{**mine, "key": theirs["key"]})
    with pytest.raises(BadRequest, match="with ca alone there is no TLS"):
        connect(place, ca=mine["ca"])
    with pytest.raises(BadRequest, match="nowhere: no such directory"):
        connect(place, credentials=tmp_path / "nowhere")
    with pytest.raises(BadRequest, match="not a token"):
        connect(place, token="two words")
    with pytest.raises(BadRequest, match=r"cross the network to 10\.0\.0\.1:9 in the clear"):
        connect("10.0.0.1:9", token="secret")


@pytest.mark.parametrize("who", ["n2", "client"])
def test_a_node_cannot_say_that_it_is_another(play, tmp_path, who):
    """Neither with the certificate of another node nor with that of a client."""
    certs = tmp_path / "certs"
    pair = (certs / "n2.pem", certs / "n2.key") if who == "n2" else tuple(files(tmp_path).values())[1:]
    tls = Tls.read(certs / "ca.pem", *pair)

    async def act(c):
        async with Credentials(tls).channel(c.config.address("n3"), peer="n3") as channel:
            stream = LinkStub(channel).Exchange(metadata=hello("n1"))
            with pytest.raises(grpc.aio.AioRpcError, match="the certificate is not that of n1"):
                await stream.read()
            with pytest.raises(grpc.aio.AioRpcError, match="the certificate is not that of n1"):
                await LinkStub(channel).Explain(Question(data=b"\x90"), metadata=hello("n1"))
        assert await works(c, credentials=tmp_path / "certs/client") == 5

    play(act)


def test_whoever_dials_a_node_finds_that_one_or_nobody(play, tmp_path):
    certs = tmp_path / "certs"
    tls = Tls.read(certs / "ca.pem", certs / "n1.pem", certs / "n1.key", "n1")

    async def act(c):
        async with Credentials(tls).channel(c.config.address("n3"), peer="n2") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await LinkStub(channel).Exchange(metadata=hello("n1")).read()
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "certificate is that of somebody else" in distrust(caught.value.details())

    play(act)


def test_a_node_does_not_start_with_the_certificate_of_another(tmp_path, capsys):
    certs = make_certs(tmp_path)
    shutil.copy(certs / "n2.pem", certs / "n1.pem")
    shutil.copy(certs / "n2.key", certs / "n1.key")
    config = parse(toml([1, 2, 3], THINGS + SECURITY), tmp_path)
    with pytest.raises(BadRequest, match=r"n1\.pem does not name node n1: it names n2\.node"):
        Node(config, "n1")


def test_certificates_that_have_expired(tmp_path, ports):
    """Our own is told before anything is sent; a node's by the handshake."""
    authority = Authority.new(30)
    paths = [tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem")]

    def write(pair):
        for path, data in zip(paths, (authority.pair.cert, pair.cert, pair.key), strict=True):
            path.write_bytes(data)

    write(authority.client("late", -2))
    with pytest.raises(BadRequest, match=r"cert\.pem expired on"):
        connect("127.0.0.1:9", credentials=tmp_path)
    write(authority.client("fine", 2))

    async def act():
        server = grpc.aio.server()
        late = authority.node("n1", [], -2)
        port = listen(server, "127.0.0.1:0", Tls(authority.pair.cert, late.cert, late.key))
        await server.start()
        try:
            with pytest.raises(Unauthenticated, match="its certificate has expired"):
                async with AsyncOrb(f"127.0.0.1:{port}", timeout=25.0, credentials=tmp_path):
                    pass
        finally:
            await server.stop(0)

    asyncio.run(act())


def test_nodes_have_host_names_of_their_own():
    names = ["n1", "n2", "N1", "n_1", "n.1", "x-" + "0" * 40, "n" * 63, "n1.node"]
    hosts = [node_host(name) for name in names]
    assert len({h.lower() for h in hosts}) == len(names)
    assert all(len(label) <= 63 for h in hosts for label in h.split("."))


def test_leaving_loopback_without_tls_is_wanted_or_refused(caplog):
    config = parse(toml([1, 2, 3], THINGS + '[serve]\nbind = "0.0.0.0"\n'))
    with pytest.raises(BadRequest, match="obo certs init"):
        Node(config, "n1")
    Node(config, "n1", insecure=True)
    assert len([r for r in caplog.records if "INSECURE" in r.getMessage()]) == 1


def test_nodes_with_tls_tell_each_other_why_a_call_is_late(play, tmp_path, monkeypatch):
    async def act(c):
        gate = asyncio.Event()
        monkeypatch.setattr("tests.orb.secured.gate", gate)
        async with c.client("n1", credentials=tmp_path / "certs/client") as orb:
            late = orb.object("keeper").wait.with_(timeout=1.0)
            with pytest.raises(DeadlineExceeded, match=r"keeper\.wait of \S+ at .*keeper@n3 is being performed since"):
                await late()
            gate.set()

    play(act)
