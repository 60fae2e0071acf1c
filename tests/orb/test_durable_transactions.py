"""Durable objects take part in transactions, as callees and as roots: all or nothing, and it is on disk."""

import asyncio

import pytest

from framework.errors import RemoteError
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


async def both(orb):
    return [await orb.object(name).get("k") for name in ("a", "b")]


def test_a_client_s_transaction_changes_one_and_undoes_it(play):
    async def act(c, orb):
        async with orb.transaction():
            await orb.object("a").add("k", 5)
            await orb.object("b").add("k", 5)
            assert await orb.object("b").get("k") == 5
        assert await both(orb) == [5, 5]

        async def too_much(orb):
            await orb.object("b").add("k", 7)
            await orb.object("a").add("k", 1000)

        with pytest.raises(RemoteError, match="too much"):
            await orb.run_transaction(too_much)
        assert await both(orb) == [5, 5]

    play(act)


def test_a_method_that_fails_undoes_what_it_called(play):
    async def act(c, orb):
        await orb.object("agency").both("k", 5, 7)
        with pytest.raises(RemoteError, match="too much"):
            await orb.object("agency").both("k", 5, 1000)
        assert await both(orb) == [5, 7]
        with pytest.raises(RemoteError, match="on purpose"):
            await orb.object("agency").fails("k", 5)
        assert await both(orb) == [5, 12], "what is independent stays"

    play(act)


@pytest.mark.parametrize("root", ["chooser", "kept"])
@pytest.mark.parametrize("method", ["choose", "choose_async"])
def test_a_method_wants_all_or_nothing(play, method, root):
    async def act(c, orb):
        choose = getattr(orb.object(root), method)
        assert await choose("atomic", "k", 5, 6) == ["5", "6"]
        with pytest.raises(RemoteError, match="too much"):
            await choose("atomic", "k", 1, 1000)
        assert await choose("alternative", "k", 1000, 1) == ["b"]
        assert await choose("some", "k", 1000, 1) == ["b"]
        assert await both(orb) == [5, 8]

    play(act)


@pytest.mark.parametrize("control", ["centralized", "distributed"])
def test_a_client_wants_all_or_nothing(play, control):
    async def act(c, orb):
        def ask(one, two):
            return orb.object("a").add.request("k", one), orb.object("b").add.request("k", two)

        assert await orb.atomic(*ask(5, 6), control=control) == [5, 6]
        with pytest.raises(RemoteError, match="too much"):
            await orb.atomic(*ask(1, 1000), control=control)
        assert await both(orb) == [5, 6]

    play(act)
