"""A transaction of a client is refused what it could not undo: changes of objects that take no part in it yet."""

import asyncio

import pytest

from framework.errors import BadRequest, RemoteError
from tests.orb.cluster import cluster

OBJECTS = """
[objects.a]
class = "tests.orb.booking:Ledger"
[objects.b]
class = "tests.orb.booking:Kept"
[objects.agency]
class = "tests.orb.booking:Agency"
on = ["n2", "n3"]
[objects.chooser]
class = "tests.orb.booking:Chooser"
on = ["n2", "n3"]
[objects.kept]
class = "tests.orb.booking:KeptChooser"
on = ["n1", "n2"]
[serve]
data = "{data}"
"""


@pytest.fixture
def play(ports, tmp_path):
    def run(act):
        async def whole():
            made = cluster(ports(3), tmp_path, True, OBJECTS.format(data=tmp_path / "data"))
            async with made as c, asyncio.timeout(60), c.client() as orb:
                await act(c, orb)

        asyncio.run(whole())

    return run


def test_a_change_of_a_durable_object_is_refused_and_all_is_undone(play):
    async def act(c, orb):
        async def move(orb):
            await orb.object("a").add("k", 5)
            await orb.object("b").add("k", 5)

        with pytest.raises(BadRequest, match=r"b, which is durable and takes no part.*before or after the block"):
            await orb.run_transaction(move)
        assert await orb.object("a").get("k") == 0
        assert await orb.object("b").get("k") == 0

    play(act)


def test_so_is_one_that_a_method_makes(play):
    async def act(c, orb):
        with pytest.raises(RemoteError, match="takes no part in transactions"):
            async with orb.transaction():
                await orb.object("agency").both("k", 5, 5)
        assert await orb.object("a").get("k") == 0
        assert await orb.object("b").get("k") == 0

    play(act)


def test_reading_it_is_not_nor_is_an_independent_call(play):
    async def act(c, orb):
        async with orb.transaction():
            await orb.object("a").add("k", 5)
            assert await orb.object("b").get("k") == 0
            await orb.object("b").add.with_(independent=True)("k", 7)
        assert await orb.object("a").get("k") == 5
        assert await orb.object("b").get("k") == 7

    play(act)


def test_outside_of_a_client_s_transaction_it_is_called_as_ever(play):
    """And what it did stays, also if its caller fails: docs/transactions.md says so."""

    async def act(c, orb):
        await orb.object("agency").both("k", 5, 7)
        with pytest.raises(RemoteError, match="on purpose"):
            await orb.object("agency").fails("k", 5)
        assert await orb.object("a").get("k") == 5
        assert await orb.object("b").get("k") == 12

    play(act)


@pytest.mark.parametrize("method", ["choose", "choose_async"])
def test_a_method_that_wants_all_or_nothing_is_refused_what_could_not_be_undone(play, method):
    async def act(c, orb):
        with pytest.raises(RemoteError, match="b, which is durable and takes no part"):
            await getattr(orb.object("chooser"), method)("atomic", "k", 5, 5)
        with pytest.raises(RemoteError, match="its object takes no part in transactions"):
            await getattr(orb.object("kept"), method)("atomic", "k", 5, 5)
        with pytest.raises(BadRequest, match="takes no part in transactions"):
            await orb.atomic(orb.object("a").add.request("k", 5), orb.object("b").add.request("k", 5))
        looks = orb.object("a").add.request("k", 5), orb.object("b").get.request("k")
        with pytest.raises(BadRequest, match="b takes no part in transactions, so it has no vote"):
            await orb.atomic(*looks, control="distributed")
        assert await orb.object("a").get("k") == 0
        assert await orb.object("b").get("k") == 0

    play(act)
