"""What a call leaves behind goes at once: the garbage collector of a node looks seldom, and it would grow between."""

import asyncio
import gc

from objects.bank import Bank
from tests.orb.cluster import cluster
from tests.orb.things import Shop

CALLS = 200


def left_behind(call, ports, tmp_path):
    """Objects in cycles, for each call, that only the collector can free."""

    async def whole():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(40), c.client("n1") as orb:
            bank, shop = orb.object(Bank, "bank"), orb.object(Shop, "shop")
            await bank.deposit("ann", 1000)
            await asyncio.gather(*(call(bank, shop) for _ in range(20)))
            gc.collect()
            gc.disable()
            try:
                await asyncio.gather(*(call(bank, shop) for _ in range(CALLS)))
                return gc.collect() / CALLS
            finally:
                gc.enable()

    return asyncio.run(whole())


def test_a_call_leaves_no_cycles(ports, tmp_path):
    assert left_behind(lambda bank, shop: bank.deposit.submit("ann", 1), ports, tmp_path) < 5


def test_nor_does_one_that_calls_others(ports, tmp_path):
    assert left_behind(lambda bank, shop: shop.pay.submit("ann", 1), ports, tmp_path) < 5
