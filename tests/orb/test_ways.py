"""P1 §2.4: atomic, alternative and (n r) computation, by clients and by methods, over real nodes."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from framework.com.events import Response
from framework.errors import Aborted, BadRequest, Outdated, RemoteError
from framework.ids import Replica
from framework.orb.client import connect
from framework.orb.outcome import CANCELLED, Reply, failure
from framework.orb.proxy import Request
from framework.orb.racing import Race
from framework.orb.ways import judged
from tests.orb import booking
from tests.orb.cluster import cluster
from tests.orb.test_transactions import rows

OBJECTS = """
[objects.a]
class = "tests.orb.booking:Ledger"
[objects.b]
class = "tests.orb.booking:Ledger"
on = ["n1", "n2"]
[objects.c]
class = "tests.orb.booking:Ledger"
on = ["n3"]
[objects.chooser]
class = "tests.orb.booking:Chooser"
on = ["n2", "n3"]
"""
BAD = 700  # too much for a ledger


@pytest.fixture
def play(ports, tmp_path):
    def run(act):
        async def whole():
            made = cluster(ports(3), tmp_path, True, OBJECTS)
            async with made as c, asyncio.timeout(60), c.client("n1") as orb:
                await act(c, orb)

        asyncio.run(whole())

    return run


def adds(orb, *amounts):
    return [orb.object(name).add.request("k", amount) for name, amount in zip("abc", amounts, strict=False)]


def test_atomic_is_all_of_them_or_none(play):
    async def act(c, orb):
        assert await orb.atomic(*adds(orb, 1, 2, 3)) == [1, 2, 3]
        with pytest.raises(RemoteError, match="too much"):
            await orb.atomic(*adds(orb, 1, BAD, 3))
        for name, value in zip("abc", (1, 2, 3), strict=True):
            await rows(c, name, {"k": value})

    play(act)


def test_atomic_may_be_decided_by_the_objects_themselves(play):
    """P1 §2.4: distributed control. The same results, and the same when one fails."""

    async def act(c, orb):
        assert await orb.atomic(*adds(orb, 1, 2, 3), control="distributed") == [1, 2, 3]
        with pytest.raises(RemoteError, match="too much"):
            await orb.atomic(*adds(orb, 1, BAD, 3), control="distributed")
        for name, value in zip("abc", (1, 2, 3), strict=True):
            await rows(c, name, {"k": value})
        assert await orb.atomic(*adds(orb, 1), control="distributed") == [2]
        await rows(c, "a", {"k": 2})

        def work():
            with connect(c.config.address("n2")) as mine:
                assert mine.atomic(*adds(mine, 1, 2), control="distributed") == [3, 4]

        await asyncio.to_thread(work)

    play(act)


def test_a_conflict_makes_it_wait_and_not_fail(play):
    """Many that want the same keys, in any order of objects: all of them happen, however often one gives way."""

    async def act(c, orb):
        async def one(n):
            names = ("a", "b") if n % 2 else ("b", "a")
            await orb.atomic(*(orb.object(name).put.request("k", n) for name in names), control="distributed")

        await asyncio.gather(*(one(n) for n in range(20)))
        a, b = [await orb.object(name).get("k") for name in "ab"]
        assert a == b
        await rows(c, "a", {"k": a})

    play(act)


def test_alternative_is_the_first_that_succeeds_and_no_other(play):
    async def act(c, orb):
        assert await orb.alternative(*adds(orb, BAD, 2, 3)) == ("b", 2)
        await rows(c, "a", {})
        await rows(c, "b", {"k": 2})
        await rows(c, "c", {})
        with pytest.raises(RemoteError, match="too much") as caught:
            await orb.alternative(*adds(orb, BAD, BAD))
        assert "1 of 2 had to succeed; 2 have failed" in caught.value.__notes__
        await rows(c, "b", {"k": 2})

    play(act)


def test_alternatives_may_be_asked_at_once(play):
    """One wins, whoever is slow or fails; nothing is left of the others."""

    async def act(c, orb):
        async def settled(name):
            return await orb.object(name).get("k")

        won = [await orb.alternative(*adds(orb, BAD, 2, 3), at_once=True) for _ in range(20)]
        assert {one.object for one in won} <= {"b", "c"}
        b = 2 * sum(one.object == "b" for one in won)
        assert [await settled(name) for name in "abc"] == [0, b, 3 * sum(one.object == "c" for one in won)]
        with pytest.raises(RemoteError, match="too much") as caught:
            await orb.alternative(*adds(orb, BAD, BAD), at_once=True)
        assert "1 of 2 had to succeed; 2 have failed" in caught.value.__notes__
        async with orb.transaction():  # it keeps c busy, and nobody waits for that one
            await orb.object("c").put("k", 0)
            both = orb.object("c").add.request("k", 5), orb.object("b").add.request("k", 5)
            async with c.client("n2") as other, asyncio.timeout(60):
                assert (await other.alternative(*both, at_once=True)).object == "b"
            with pytest.raises(BadRequest, match="asked one after the other"):
                await orb.alternative(*both, at_once=True)
        assert [await settled(name) for name in "bc"] == [b + 5, 0]

        def work():
            with connect(c.config.address("n2")) as mine:
                assert mine.alternative(*adds(mine, BAD, 2), at_once=True).object == "b"

        await asyncio.to_thread(work)
        await rows(c, "b", {"k": b + 7})

    play(act)


class Deaf:
    """An orb whose calls are all answered, also if they are cancelled meanwhile."""

    def __init__(self):
        self.ended = []

    @asynccontextmanager
    async def transaction(self, timeout):
        try:
            yield
        except BaseException as error:
            self.ended.append(type(error).__name__)
            raise
        self.ended.append("committed")

    async def call(self, request, options):
        try:
            await asyncio.sleep(0.01 * int(request.object))
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()
        return request.object


def test_of_alternatives_that_are_all_answered_one_is_committed():
    orb = Deaf()
    asked = [SimpleNamespace(object=name) for name in "231"]
    won = asyncio.run(Race(orb, asked, 5.0).run())
    assert won.object == "1" and orb.ended == ["committed", "_Second", "_Second"]


def test_some_is_at_least_so_many_or_none(play):
    async def act(c, orb):
        assert await orb.some(2, *adds(orb, 1, BAD, 3)) == [("a", 1), ("c", 3)]
        with pytest.raises(RemoteError, match="too much"):
            await orb.some(2, *adds(orb, BAD, 1, BAD))
        await rows(c, "a", {"k": 1})
        await rows(c, "b", {})
        await rows(c, "c", {"k": 3})
        assert await orb.some(1, *adds(orb, 1, 1, 1), more=False) == [("a", 2)]
        assert await orb.some(1, *adds(orb, 1, 1, 1)) == [("a", 3), ("b", 1), ("c", 4)]

    play(act)


@pytest.mark.parametrize("method", ["choose", "choose_async"])
def test_a_method_does_so_as_a_part_of_itself(play, method):
    async def act(c, orb):
        choose = getattr(orb.object("chooser"), method)
        assert await choose("atomic", "k", 1, 2) == ["1", "2"]
        with pytest.raises(RemoteError, match="too much"):
            await choose("atomic", "k", 1, BAD)
        assert await choose("alternative", "k", BAD, 2) == ["b"]
        assert await choose("some", "k", 5, BAD) == ["a"]
        await rows(c, "a", {"k": 6})
        await rows(c, "b", {"k": 4})
        assert [o.asked for o in c.objects("chooser")] == [3, 3]

    play(act)


def test_in_a_block_of_a_client_they_are_part_of_that(play):
    async def act(c, orb):
        async def work(orb):
            await orb.alternative(*adds(orb, BAD, 2))
            await orb.atomic(*adds(orb, 1, 1))
            raise KeyError("on purpose")

        with pytest.raises(KeyError, match="on purpose"):
            await orb.run_transaction(work)
        await rows(c, "a", {})
        await rows(c, "b", {})

    play(act)


def test_threads_have_them_too(play):
    async def act(c, orb):
        def work():
            with connect(c.config.address("n2")) as mine:
                assert mine.atomic(*adds(mine, 1, 2)) == [1, 2]
                assert mine.alternative(*adds(mine, BAD, 2)).object == "b"
                with mine.transaction():
                    assert [one.object for one in mine.some(1, *adds(mine, BAD, 5))] == ["b"]

        await asyncio.to_thread(work)
        await rows(c, "a", {"k": 1})
        await rows(c, "b", {"k": 9})

    play(act)


def test_what_cannot_be_meant_is_refused(play):
    async def act(c, orb):
        for r in (0, 3, True, "two"):
            with pytest.raises(BadRequest, match="of 2 requests"):
                await orb.some(r, *adds(orb, 1, 2))
        with pytest.raises(BadRequest, match="takes requests"):
            await orb.atomic(booking.Ledger, 5)
        with pytest.raises(BadRequest, match="takes requests"):
            await orb.atomic(booking.Ledger, 5, control="distributed")
        with pytest.raises(BadRequest, match="control='none': 'centralized' or 'distributed'"):
            await orb.atomic(*adds(orb, 1, 2), control="none")
        with pytest.raises(BadRequest, match="the root of that decides"):
            async with orb.transaction():
                await orb.atomic(*adds(orb, 1, 2), control="distributed")
        with pytest.raises(RemoteError, match="the root of that decides"):
            await orb.object("chooser").choose("distributed", "k", 1, 2)

    play(act)


def test_a_replica_that_says_why_is_heard_before_one_that_did_not_come_to_its_turn():
    """It had heard of the abort before it began. Its word came last, and hid what had to be judged again."""
    ask = Request("db", "put", None, (), {})

    def reply(at, error):
        return Reply(Response(Replica(at), "error", failure(error)), None)

    why, late = reply("db@n1", Outdated("the schema has changed")), reply("db@n3", Aborted(CANCELLED))
    assert late.cancelled and not why.cancelled
    for replies in ([why, late], [late, why]):
        with pytest.raises(Outdated):
            judged(1, [ask], replies)
