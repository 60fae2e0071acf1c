"""A node gives its traces to whoever may have them: its own, of all its lives, and nothing else."""

import asyncio
import errno

import pytest

from framework import Unavailable
from framework.errors import PermissionDenied, Unauthenticated
from framework.net.security import OPEN, Credentials
from framework.net.tokens import add
from framework.orb.client import in_background
from framework.orb.trace_client import Told, list_traces, read_trace
from framework.orb.tracing import Tracing
from framework.testing import cluster
from framework.trace.files import read
from objects.counter import Counter


def asked(address: str, credentials: Credentials = OPEN) -> Told:
    return in_background(list_traces(address, credentials, 5.0))


def given(address: str, name: str, size: int = 0, credentials: Credentials = OPEN) -> bytes:
    pieces: list[bytes] = []
    in_background(read_trace(address, credentials, name, size, pieces.append))
    return b"".join(pieces)


@pytest.fixture(scope="module")
def counters(tmp_path_factory):
    with cluster({"counter": Counter}, 2, trace=tmp_path_factory.mktemp("counters")) as c:
        counter = c.connect().object(Counter, "counter")
        for _ in range(20):
            counter.increment()
        assert c.settle()
        yield c


def test_all_lives_of_the_node_and_nothing_of_others(counters):
    (counters.directory / "n1.since4.jsonl").write_bytes(b"{}\n")
    for name in ("n1.toml", "n11.jsonl", "n1.sinceX.jsonl", "n1.since4.jsonl.bak"):
        (counters.directory / name).write_bytes(b"not for everybody\n")
    told = asked(counters.addresses["n1"])
    assert (told.node, told.traced, told.caller) == ("n1", True, "")
    assert set(told.traces) == {"n1.jsonl", "n1.since4.jsonl"}
    assert set(asked(counters.addresses["n2"]).traces) == {"n2.jsonl"}
    (counters.directory / "n1.since4.jsonl").unlink()


def test_a_trace_as_it_is_in_the_file(counters):
    address = counters.addresses["n1"]
    size = asked(address).traces["n1.jsonl"]
    file = counters.directory / "n1.jsonl"
    assert given(address, "n1.jsonl", size) == file.read_bytes()[:size]
    assert given(address, "n1.jsonl") == file.read_bytes()
    assert given(address, "n1.jsonl", 100) == file.read_bytes()[:100]


@pytest.mark.parametrize("name", ["n2.jsonl", "../n1.jsonl", "n1.toml", "", "/etc/passwd", "n1.jsonl\0"])
def test_nothing_else_is_given(counters, name):
    with pytest.raises(Unavailable, match=r"n1 has no trace"):
        given(counters.addresses["n1"], name)


def test_a_node_that_does_not_trace_says_so(ports):
    from framework.orb.config import parse
    from framework.orb.node import Node

    async def run() -> Told:
        address = f"127.0.0.1:{ports(1)[0]}"
        node = Node(parse(f'[nodes]\nn1 = "{address}"\n[objects.counter]\nclass = "objects.counter:Counter"\n'), "n1")
        await node.start()
        try:
            return await list_traces(address, OPEN, 5.0)
        finally:
            await node.stop()

    assert asyncio.run(run()) == Told("n1", False, {})


def test_only_an_admin_may_read(tmp_path):
    with cluster({"counter": Counter}, 1, tls=True, trace=tmp_path) as c:
        from framework.net.security import directory

        caller = directory(tmp_path / "certs" / "client")
        tokens = tmp_path / "certs" / "tokens.toml"
        address = c.addresses["n1"]
        with pytest.raises(PermissionDenied, match="reading traces needs a token with the role admin; client has call"):
            asked(address, caller)
        with pytest.raises(PermissionDenied):
            given(address, "n1.jsonl", 0, caller)
        with pytest.raises(Unauthenticated):
            asked(address, Credentials(caller.tls))
        admin = Credentials(caller.tls, add(tokens, "boss", "admin"))
        assert asked(address, admin).caller == "boss"
        assert given(address, "n1.jsonl", 0, admin).startswith(b'{"trace":"obo"')


def test_a_node_that_is_gone_is_told(ports):
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:"):
        asked(f"127.0.0.1:{ports(1)[0]}")


# writing


class Nearly:
    """A file on a disk that is nearly full: it takes half of each piece, and then nothing."""

    closed = False

    def __init__(self, file, room: int) -> None:
        self.file, self.room = file, room

    def write(self, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        some = data[: min(self.room, max(1, len(data) // 2))]
        self.room -= len(some)
        return self.file.write(some)

    def close(self) -> None:
        self.file.close()


@pytest.fixture
def tracing(tmp_path):
    from framework.com.view import Directory, View
    from framework.ids import Node

    made = Tracing(Node("n1"), Directory(View(1, (Node("n1"),)), []), tmp_path)
    yield made
    made.close()


def test_a_line_that_is_taken_in_pieces_is_whole(tracing, tmp_path):
    tracing._file = Nearly(tracing._file, 10_000)
    for _ in range(5):
        tracing._recorder.stop(1.0, ())
    assert [r.event for r in read(tmp_path / "n1.jsonl").records] == ["stop"] * 5


def test_no_room_for_a_record_is_an_error(tracing):
    tracing._file = Nearly(tracing._file, 30)
    with pytest.raises(OSError, match="No space left"):
        tracing._recorder.stop(1.0, ())
