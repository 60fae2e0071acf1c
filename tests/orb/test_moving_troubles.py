"""Disks that are full, and peers that ask for what is not theirs."""

import asyncio
import errno
import os
import shutil
import subprocess

import grpc
import grpc.aio
import pytest

from framework.ids import Node
from framework.net.peers import SaysNo, hello
from framework.net.wire.com_pb2 import FetchWish
from framework.net.wire.com_pb2_grpc import LinkStub
from framework.orb.moving.captures import Held
from tests.orb.carrying import BYTES, N1, N2, N3, WAIT, Wire, fetched, fetcher, refused, run, three

# disks


@pytest.fixture
def tiny(tmp_path):
    """A disk of 8 MB."""
    where = tmp_path / "tiny"
    where.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    made = subprocess.run([mount, "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(where)], capture_output=True, timeout=20)
    if made.returncode:
        pytest.skip("no small disk here")
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True, timeout=20)


def fills_once(monkeypatch):
    """Of the first state, the disk takes 40 pieces."""
    real, left = os.pwrite, [40]

    def pwrite(fd, data, at):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data, at)

    monkeypatch.setattr(os, "pwrite", pwrite)


async def full_then_fetched(donor, c, directory, make_room):
    """The joiner's disk is full, says so, and goes on when there is room."""
    fetch = fetcher(Wire(c), directory=directory)
    task = asyncio.ensure_future(fetched(fetch, (N1,)))
    async with asyncio.timeout(WAIT):
        while not any("no space left" in one["fault"] for one in fetch.status()):
            await asyncio.sleep(0.01)
    assert all(one["bytes"] == 0 for one in fetch.status() if "no space left" in one["fault"])
    make_room()
    got = await task
    assert list(got.chunks()) == BYTES
    assert donor.taken == 1
    got.close()


def test_a_full_disk_is_told_and_waited_for(ports, monkeypatch, caplog, tmp_path):
    async def main():
        async with three(ports(3)) as (a, _, c):
            ready = asyncio.Event()
            a.state = lambda: Held(all_then(ready))
            stream = c.peers.fetch(N1, FetchWish(node=N3, life=1, replica="thing@n1"))
            async for _ in stream:  # the donor has it all on its disk: from now on only the joiner writes
                if ready.is_set():
                    break
            await stream.aclose()
            fills_once(monkeypatch)
            await full_then_fetched(a, c, tmp_path, lambda: None)

    run(main())
    assert f"no space left in {tmp_path} for a state" in caplog.text
    assert "make room, or give the node another directory" in caplog.text
    assert not list(tmp_path.iterdir())


def all_then(ready):
    yield from BYTES
    ready.set()


def test_a_disk_that_is_really_full(ports, tiny, caplog):
    async def main():
        async with three(ports(3)) as (a, _, c):
            grow = ["mount", "-o", "remount,size=64m", str(tiny)]
            await full_then_fetched(a, c, tiny, lambda: subprocess.run(grow, check=True, timeout=20))

    run(main())
    assert f"no space left in {tiny}" in caplog.text


def test_the_disk_of_the_donor_is_full(ports, tiny):
    async def main():
        async with three(ports(3), directory=tiny) as (a, b, c):
            b.donor._directory = None
            got = await fetched(fetcher(Wire(c)))
            assert got.donor == N2
            assert a.donor.status() == []

    run(main())


# who may ask


def test_a_stranger_gets_nothing(ports):
    async def main():
        async with three(ports(3)) as (a, b, c):
            async with grpc.aio.insecure_channel(a.addresses[N1]) as channel:
                for metadata, said in [
                    ((), "not a peer"),
                    (hello(Node("x")), "not a peer"),
                ]:
                    call = LinkStub(channel).Fetch(FetchWish(node="n3", replica="thing@n1"), metadata=metadata)
                    with pytest.raises(grpc.aio.AioRpcError) as caught:
                        await asyncio.wait_for(call.read(), WAIT)
                    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
                    assert said in caught.value.details()
            await refused(b.peers, FetchWish(node=N3, replica="thing@n1"), "in the name of 'n3'", SaysNo)
            await refused(c.peers, FetchWish(node=N3, replica="thing@n2"), "'thing@n2' is not at n1", SaysNo)
            assert not a.asked

    run(main())


def test_with_tls_a_node_gets_what_is_for_itself_alone(ports, tmp_path):
    async def main():
        async with three(ports(3), tmp_path) as (a, b, c):
            got = await fetched(fetcher(Wire(c)))
            assert list(got.chunks()) == BYTES
            a.asked.clear()
            b.peers.node = N3  # says so, and shows the certificate of n2
            await refused(b.peers, FetchWish(node=N3, replica="thing@n1"), "the certificate is not that of n3")
            assert not a.asked

    run(main())
