"""Objects that call objects: performed once however many replicas call, and without a trace if they raise."""

import asyncio

import pytest

from framework.com.receipt import CREC
from framework.errors import RemoteError
from tests.orb.test_calls import play  # noqa: F401


@pytest.mark.parametrize("method", ["pay", "pay_async"])
def test_a_nested_call_of_two_replicas_is_performed_once(play, method):  # noqa: F811
    async def act(c, orb):
        await orb.object("bank").deposit("ann", 100)
        pay = getattr(orb.object("shop"), method).with_(receipt=CREC)
        await pay("ann", 30)
        assert await orb.object("bank").balance("ann") == 70
        await asyncio.gather(*(pay("ann", 1) for _ in range(20)))
        assert await orb.object("bank").balance("ann") == 50
        assert [(s.sold, s.by) for s in c.objects("shop")] == [(50, {"ann": 50})] * 2

    play(act, "n3")


@pytest.mark.parametrize("method", ["pay", "pay_async"])
def test_an_error_of_a_nested_call_undoes_the_caller(play, method):  # noqa: F811
    async def act(c, orb):
        with pytest.raises(RemoteError, match="RefusedError"):
            await getattr(orb.object("shop"), method).with_(receipt=CREC)("ann", 30)
        assert [(s.sold, s.by) for s in c.objects("shop")] == [(0, {})] * 2

    play(act, "n3")


def test_one_that_raises_leaves_no_trace_beside_compatible_ones(play):  # noqa: F811
    async def act(c, orb):
        await orb.object("bank").deposit("ann", 100)
        shop = orb.object("shop")
        good = [shop.pay.with_(receipt=CREC).submit("ann", 1) for _ in range(15)]
        bad = [shop.fail_after.with_(receipt=CREC).submit("bob", 7) for _ in range(15)]
        await asyncio.gather(*good)
        for error in await asyncio.gather(*bad, return_exceptions=True):
            assert isinstance(error, RemoteError) and "on purpose" in str(error)
        assert [(s.sold, s.by, s.tags) for s in c.objects("shop")] == [(15, {"ann": 15}, set())] * 2

    play(act, "n3")


@pytest.mark.parametrize("method", ["spread", "spread_async"])
def test_submit_and_pcast_inside_a_method(play, method):  # noqa: F811
    async def act(c, orb):
        assert await getattr(orb.object("shop"), method)("ann") == 7
        assert await orb.object("counter").show() == 5

    play(act, "n3")


def test_a_call_back_joins(play):  # noqa: F811
    async def act(c, orb):
        assert await orb.object("odd").back.with_(receipt=CREC)(3) == 3
        assert [o.log for o in c.objects("odd")] == [["back 3", "back 2", "back 1", "back 0"]] * 3

    play(act)
