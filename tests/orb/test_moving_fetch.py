"""States cross from a donor to a joiner over real gRPC servers on loopback, whatever happens to the streams."""

import asyncio
import logging

import pytest

from framework.errors import BadRequest, Unavailable
from framework.ids import Replica
from framework.net.peers import SaysNo
from framework.net.wire.com_pb2 import FetchWish
from framework.orb.moving import capture
from framework.orb.moving.captures import Held
from framework.orb.moving.forked import CaptureFailed
from framework.orb.moving.job import STRIKES
from framework.orb.performance import Resident
from framework.orb.workers import Workers
from tests.orb.carrying import AT, BYTES, N1, N2, N3, WAIT, Wire, cut, damage, fetched, fetcher, refused, run, three
from tests.orb.movable import Anything


def test_a_state_crosses_in_pieces_and_the_donor_forgets_it(ports):
    async def main():
        async with three(ports(3)) as (a, _, c):
            fetch = fetcher(Wire(c))
            got = await fetched(fetch)
            assert list(got.chunks()) == BYTES
            assert (got.donor, got.part, got.size) == (N1, b"part of n1", sum(map(len, BYTES)) + 4 * len(BYTES))
            assert got.ticket.startswith("thing@n1#")
            assert a.asked == [("thing@n1", N3, 1)]
            assert a.donor.status() == [] and fetch.status() == []
            got.close()

    run(main())


def test_a_stream_that_is_cut_twice_goes_on_where_it_was(ports):
    async def main():
        async with three(ports(3)) as (a, b, c):
            wire = Wire(c)

            async def restart(n, chunk):
                if n == 20:
                    await a.server.stop(0)
                    await a.serve()
                return chunk

            wire.spoil = [restart, cut(30)]
            got = await fetched(fetcher(wire))
            assert list(got.chunks()) == BYTES
            assert a.taken == 1 and b.taken == 0
            offsets = [offset for _, _, offset in wire.wishes]
            assert len(offsets) >= 3 and offsets[0] == 0 < offsets[1] < offsets[-1] and offsets == sorted(offsets)
            assert {ticket for _, ticket, _ in wire.wishes[1:]} == {got.ticket}

    run(main())


def test_a_server_that_dies_and_comes_back_with_nothing_gives_a_new_state(ports):
    """The ticket is not known any more: what had come of it is thrown away."""

    async def main():
        async with three(ports(3)) as (a, _, c):
            wire = Wire(c)

            async def lose(n, chunk):
                if n == 20:
                    a.donor.close()
                return chunk

            wire.spoil = [lose]
            got = await fetched(fetcher(wire))
            assert list(got.chunks()) == BYTES
            assert got.donor == N1 and a.taken == 2
            assert wire.wishes[1][1] not in ("", got.ticket)

    run(main())


def test_a_donor_that_dies_half_way_is_followed_by_another(ports):
    async def main():
        async with three(ports(3)) as (a, b, c):
            wire = Wire(c)

            async def kill(n, chunk):
                if n == 20:
                    await a.server.stop(0)
                return chunk

            wire.spoil = [kill]
            fetch = fetcher(wire)
            got = await fetched(fetch)
            assert list(got.chunks()) == BYTES
            assert (got.donor, got.part, b.taken) == (N2, b"part of n2", 1)
            tried = [donor for donor, _, _ in wire.wishes]
            assert tried == [N1] * (len(tried) - 1) + [N2] and len(tried) > STRIKES
            assert wire.wishes[-1] == (N2, "", 0)

    run(main())


def test_a_donor_that_says_no_is_not_asked_again_before_the_others(ports):
    async def main():
        async with three(ports(3), wait=0.2) as (a, _, c):
            a.state = lambda: None
            wire = Wire(c)
            got = await fetched(fetcher(wire))
            assert [donor for donor, _, _ in wire.wishes] == [N1, N2]
            assert got.donor == N2

    run(main())


def test_a_damaged_piece_is_refused_and_fetched_again(ports, caplog):
    async def main():
        async with three(ports(3)) as (a, _, c):
            wire = Wire(c)
            wire.spoil = [damage(5), damage(1), damage(7)]
            with caplog.at_level(logging.INFO):
                got = await fetched(fetcher(wire))
            assert list(got.chunks()) == BYTES
            assert a.taken == 1
            assert {donor for donor, _, _ in wire.wishes} == {N1} and len(wire.wishes) == 4
            assert "was damaged on its way" in caplog.text

    run(main())


def test_a_whole_that_is_not_what_the_donor_has_is_thrown_away(ports):
    async def main():
        async with three(ports(3)) as (a, _, c):
            wire = Wire(c)

            def lie(n, chunk):
                if chunk.HasField("end"):
                    chunk.end.digest = bytes(16)
                return chunk

            wire.spoil = [lie]
            got = await fetched(fetcher(wire))
            assert list(got.chunks()) == BYTES
            assert a.taken == 2
            assert wire.wishes[-1] == (N1, "", 0)

    run(main())


def test_nobody_has_it(ports):
    async def main():
        async with three(ports(3), wait=0.05) as (a, b, c):
            a.state = b.state = lambda: None
            fetch = fetcher(Wire(c), patience=0.5)
            with pytest.raises(Unavailable, match=r"thing@n3 cannot be fetched: n[12]: n[12] has found no moment"):
                await fetched(fetch)
            assert fetch.status() == []
            with pytest.raises(BadRequest, match="nobody is named"):
                await fetch.fetch(AT, [])

    run(main())


def test_a_capture_that_fails_is_told_and_another_donor_asked(ports):
    async def main():
        async with three(ports(3)) as (a, _, c):

            def broken():
                yield b"x" * 1_000_000
                raise CaptureFailed("Thing: self.lock cannot travel")

            a.state = lambda: Held(broken())
            wire = Wire(c)
            told = []
            wire.spoil = [lambda n, chunk: told.append(n) or chunk]
            got = await fetched(fetcher(wire))
            assert got.donor == N2 and a.donor.status() == []
            stream = c.peers.fetch(N1, FetchWish(node=N3, life=1, replica="thing@n1"))
            with pytest.raises(SaysNo, match=r"thing@n1 cannot be given: Thing: self\.lock cannot travel"):
                async for _ in stream:
                    pass

    run(main())


def test_progress_can_be_seen_on_both_sides(ports):
    async def main():
        async with three(ports(3)) as (a, _, c):
            wire = Wire(c)
            seen = []
            fetch = fetcher(wire)

            def look(n, chunk):
                if n == 30:
                    seen.extend([*fetch.status(), *a.donor.status()])
                return chunk

            wire.spoil = [look]
            got = await fetched(fetch)
            mine, theirs = seen
            assert mine["replica"] == AT and mine["from"] == N1 and 0 < mine["bytes"] < got.size
            assert theirs["to"] == N3 and theirs["bytes"] >= mine["bytes"]
            assert theirs["total"] in (None, got.size)

    run(main())


def test_a_joiner_that_is_slow_is_not_flooded(ports):
    """The donor reads from its file what the stream takes, and no more."""

    async def main():
        async with three(ports(3)) as (a, _, c):
            stream = c.peers.fetch(N1, FetchWish(node=N3, life=1, replica="thing@n1"))
            await anext(stream)
            before = -1
            async with asyncio.timeout(WAIT):
                while (now := a.donor.status()[0])["total"] is None or now["bytes"] != before:
                    before = now["bytes"]
                    await asyncio.sleep(0.2)
            assert 0 < before < now["total"] // 2
            await stream.aclose()

    run(main())


# lives, and what is kept


def test_a_new_life_gets_a_new_state_and_an_old_one_none(ports):
    async def main():
        async with three(ports(3)) as (a, _, c):

            async def header(life):
                async for chunk in c.peers.fetch(N1, FetchWish(node=N3, life=life, replica="thing@n1")):
                    return chunk.header

            first, again = await header(1), await header(1)
            assert first.ticket == again.ticket and a.taken == 1
            later = await header(5)
            assert later.ticket != first.ticket and a.taken == 2
            await refused(c.peers, FetchWish(node=N3, life=1, replica="thing@n1"), "has a later one by now", SaysNo)

    run(main())


def test_a_newer_offer_takes_the_place_of_the_old_one(ports):
    async def main():
        async with three(ports(3)) as (a, _, c):
            wire = Wire(c)

            async def replace(n, chunk):
                if n == 20:
                    a.donor.offer(Replica("thing@n1"), N3, b"newer", Held([b"new"]), ticket="mine#1#2")
                return chunk

            wire.spoil = [replace]
            got = await fetched(fetcher(wire), (N1,))
            assert (list(got.chunks()), got.part, got.ticket) == ([b"new"], b"newer", "mine#1#2")

    run(main())


def test_what_nobody_reads_is_dropped(ports, caplog):
    async def main():
        async with three(ports(3), keep=0.1) as (a, _, _):
            a.donor.offer(Replica("thing@n1"), N3, b"", Held(BYTES))
            async with asyncio.timeout(WAIT):
                while a.donor.status():
                    await asyncio.sleep(0.01)
            assert "n3 has not fetched the state of thing@n1" in caplog.text

    run(main())


# the whole way


def test_from_one_replica_to_another_while_the_first_goes_on(ports):
    """Forked in a process whose gRPC is busy; nothing hangs, the state is that of the cut."""

    async def main():
        async with three(ports(3)) as (a, _, c):
            donor, joiner = (Resident(Anything(), Workers(1, "w")) for _ in range(2))
            donor.object.value = {n: str(n) for n in range(100_000)}
            donor.object.waiting["x"] = (1, 2)

            def take():
                taken = capture(donor.object)
                donor.object.value.clear()
                return taken

            a.state = take
            got = await fetched(fetcher(Wire(c)))
            await asyncio.to_thread(joiner.adopt, got.chunks())
            assert joiner.object.value == {n: str(n) for n in range(100_000)}
            assert joiner.object.waiting == {"x": (1, 2)}
            assert donor.object.value == {}

    run(main())
