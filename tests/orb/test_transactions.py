"""Transactions over real nodes: all or nothing, isolated, whoever raises; and what a client is told."""

import asyncio

import pytest

from framework.errors import Aborted, BadRequest, RemoteError
from framework.orb.client import connect
from tests.orb import booking
from tests.orb.cluster import cluster

OBJECTS = """
[objects.a]
class = "tests.orb.booking:Ledger"
[objects.b]
class = "tests.orb.booking:Ledger"
on = ["n1", "n2"]
[objects.agency]
class = "tests.orb.booking:Agency"
on = ["n2", "n3"]
[objects.inner]
class = "tests.orb.booking:Agency"
on = ["n3"]
"""


@pytest.fixture
def play(ports, tmp_path):
    def run(act, *homes, judged=True):
        async def whole():
            made = cluster(ports(3), tmp_path, judged, OBJECTS)
            async with made as c, asyncio.timeout(60), c.client(*homes) as orb:
                await act(c, orb)

        asyncio.run(whole())

    return run


async def rows(c, name, expected):
    """All replicas come to this; the outcome reaches each of them in its own time."""
    for _ in range(3000):
        found = [o.rows for o in c.objects(name)]
        if all(f == expected for f in found):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{name}: {found}, not {expected}")


@pytest.mark.parametrize("method", ["both", "both_async"])
def test_what_a_method_did_to_others_is_undone_with_it(play, method):
    async def act(c, orb):
        both = getattr(orb.object("agency"), method)
        await both("k", 5, 7)
        await rows(c, "a", {"k": 5})
        await rows(c, "b", {"k": 7})
        with pytest.raises(RemoteError, match="too much"):
            await both("k", 5, 700)
        await rows(c, "a", {"k": 5})
        await rows(c, "b", {"k": 7})
        assert [o.booked for o in c.objects("agency")] == [1, 1]

    play(act, "n1")


def test_a_failure_that_is_caught_undoes_only_the_callee(play):
    async def act(c, orb):
        assert "too much" in await orb.object("agency").one_of("k", 5, 700)
        await rows(c, "a", {"k": 1})
        await rows(c, "b", {})
        assert [o.booked for o in c.objects("inner")] == [0]

    play(act, "n1")


def test_an_independent_call_stays_done(play):
    async def act(c, orb):
        with pytest.raises(RemoteError, match="on purpose"):
            await orb.object("agency").fails("k", 5)
        await rows(c, "a", {})
        await rows(c, "b", {"k": 5})

    play(act, "n1")


def test_a_transaction_of_a_client_is_whole(play):
    async def act(c, orb):
        a, b = orb.object("a"), orb.object("b")
        async with orb.transaction():
            assert await a.add("k", 5) == 5
            assert await a.add("k", 1) == 6  # it sees what it did itself
            assert await a.get("k") == 6
            await b.add("k", 7)
        await rows(c, "a", {"k": 6})
        await rows(c, "b", {"k": 7})

        async def changes_its_mind():
            async with orb.transaction():
                await a.add("k", 10)
                await b.put("k", 10)
                raise ValueError("changed my mind")

        with pytest.raises(ValueError, match="changed my mind"):
            await changes_its_mind()
        await rows(c, "a", {"k": 6})
        await rows(c, "b", {"k": 7})

    play(act, "n3")


def test_one_way_calls_of_a_method_leave_with_its_commit(play):
    async def act(c, orb):
        with pytest.raises(RemoteError, match="on purpose"):
            await orb.object("agency").announced("k", True)
        assert await orb.object("agency").announced("k", False) == 6
        assert await orb.object("a").get("k") == 99  # the next call of the caller comes after it
        await rows(c, "a", {"k": 99})

    play(act, "n1")


def test_one_way_calls_of_a_block_leave_with_its_commit(play):
    async def act(c, orb):
        a = orb.object("a")

        async def books(fails):
            async with orb.transaction() as t:
                await a.put("k", 5)
                await a.put.oneway("k", 99)
                await a.put.with_(independent=True).oneway("l", 1)
                assert await a.add("k", 1) == 6
                if fails:
                    raise ValueError("changed my mind")
            assert await t.outcome() == "commit"

        with pytest.raises(ValueError, match="changed my mind"):
            await books(True)
        assert await a.get("k") == 0
        assert await a.get("l") == 1
        await books(False)
        assert await a.get("k") == 99
        async with orb.transaction():
            await a.put.oneway("m", 1)
        assert await a.get("m") == 1
        await rows(c, "a", {"k": 99, "l": 1, "m": 1})

    play(act, "n1")


def test_others_neither_see_nor_disturb_what_is_not_committed(play):
    async def act(c, orb):
        async with c.client("n2") as other:
            async with orb.transaction():
                await orb.object("a").add("k", 5)
                await other.object("a").add("k", 1)  # compatible: it goes on
                seen = asyncio.ensure_future(other.object("a").get("k"))
                assert await other.object("a").get("x") == 0  # another key
                await asyncio.sleep(0.3)
                assert not seen.done()
            assert await seen == 6

    play(act, "n1")


def test_what_a_compatible_one_did_stays_when_the_other_is_undone(play):
    async def act(c, orb):
        async def fails(other):
            async with orb.transaction():
                await orb.object("a").add("k", 5)
                await other.object("a").add("k", 1)
                raise ValueError("no")

        async with c.client("n2") as other:
            with pytest.raises(ValueError, match="no"):
                await fails(other)
        await rows(c, "a", {"k": 1})

    play(act, "n1")


def test_a_transaction_ends_with_its_time(play):
    async def act(c, orb):
        async def dawdles():
            async with orb.transaction(timeout=0.5):
                await orb.object("a").add("k", 5)
                await asyncio.sleep(1.0)

        with pytest.raises(Aborted, match="time"):
            await dawdles()
        await rows(c, "a", {})
        assert await orb.object("a").get("k") == 0

    play(act, "n1")


def test_two_that_wait_for_each_other_and_the_younger_gives_way(play):
    async def act(c, orb):
        async with c.client("n2") as other:
            met = asyncio.Barrier(2)

            async def one(face, first, second):
                async with face.transaction(timeout=20.0):
                    await face.object(first).put("k", 1)
                    await met.wait()
                    await face.object(second).put("k", 1)

            began = asyncio.get_running_loop().time()
            done = await asyncio.gather(one(orb, "a", "b"), one(other, "b", "a"), return_exceptions=True)
            assert asyncio.get_running_loop().time() - began < 10
            (error,) = [d for d in done if d is not None]
            assert isinstance(error, Aborted)
            assert "deadlock" in str(error) and "waits for" in str(error) and "put" in str(error)
        await rows(c, "a", {"k": 1})
        await rows(c, "b", {"k": 1})

    play(act, "n1")


def test_methods_that_wait_for_each_other_are_run_again(play):
    async def act(c, orb):
        async with c.client("n2") as other:

            async def many(face, first, second):
                async def twice(o):
                    await o.object(first).put("k", 4)
                    await o.object(second).put("k", 4)

                for _ in range(5):
                    await face.run_transaction(twice, attempts=20, timeout=20.0)

            await asyncio.gather(many(orb, "a", "b"), many(other, "b", "a"))
        await rows(c, "a", {"k": 4})
        await rows(c, "b", {"k": 4})

    play(act, "n1")


def test_only_what_was_aborted_by_others_is_run_again(play):
    async def act(c, orb):
        tries = []

        async def fails(o):
            tries.append(1)
            await o.object("a").add("k", 500)

        with pytest.raises(RemoteError, match="too much"):
            await orb.run_transaction(fails)
        assert len(tries) == 1
        with pytest.raises(BadRequest, match="attempts"):
            await orb.run_transaction(fails, attempts=0)

    play(act, "n1")


def test_one_inside_of_another_is_refused(play):
    async def act(c, orb):
        async with orb.transaction():
            with pytest.raises(BadRequest, match="inside of another"):
                await orb.transaction().__aenter__()

    play(act, "n1")


def test_the_outcome_can_be_asked_for_later(play):
    async def act(c, orb):
        async with orb.transaction() as t:
            await orb.object("a").add("k", 5)
        assert await t.outcome() == "commit"
        t = orb.transaction()

        async def fails():
            async with t:
                await orb.object("a").add("k", 5)
                raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await fails()
        assert await t.outcome() == "abort"

    play(act, "n1")


def test_a_home_that_is_lost_aborts(play):
    async def act(c, orb):
        async def loses_its_home():
            async with orb.transaction(timeout=20.0):
                await orb.object("a").add("k", 5)
                await c.nodes.pop("n1").stop()
                await orb.object("a").add("k", 5)

        with pytest.raises(Aborted):
            await loses_its_home()
        await rows(c, "a", {})

    play(act, "n1", "n2", judged=False)


def test_who_has_no_home_at_that_moment_tries_again(play):
    """A home that was lost is found again a moment later. Nothing has happened: run_transaction goes on."""

    async def act(c, orb):
        home, tries = orb._home.node, []

        async def work(face):
            tries.append(1)
            face._home.node = "" if len(tries) < 3 else home
            await face.object("a").add("k", 5)

        await orb.run_transaction(work)
        assert len(tries) == 3
        await rows(c, "a", {"k": 5})

    play(act, "n1")


def test_threads_have_transactions_too(play):
    async def act(c, orb):
        def work():
            with connect(c.config.address("n2")) as mine:
                a, b = mine.object(booking.Ledger, "a"), mine.object(booking.Ledger, "b")
                with mine.transaction():
                    later = a.add.submit("k", 3)
                    b.add("k", 4)
                assert later.result() == 3
                mine.run_transaction(lambda o: (a.add("k", 1), b.add("k", 1)))

        await asyncio.to_thread(work)
        await rows(c, "a", {"k": 4})
        await rows(c, "b", {"k": 5})

    play(act, "n1")


def test_status_shows_what_is_held_and_by_whom(play):
    async def act(c, orb):
        async with orb.transaction():
            await orb.object("a").put("k", 5)
            (one,) = (await orb.look("status"))["transactions"]
            assert one.pop("held_for") < 5
            name = f"{orb._home.client}/1"
            assert one == {"name": name, "state": "open", "holds": ["a@n1 put(k:w)"], "waits_for": []}
        assert (await orb.look("status"))["transactions"] == []

    play(act, "n1")
