"""What a call leaves behind goes at once; the collector of a node looks at what is new often, at everything seldom."""

import asyncio
import gc
import weakref

import pytest

from framework.orb.garbage import LEAST, WEIGH, Collector, size
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


class Ring:
    def __init__(self):
        self.me = self


@pytest.fixture
def collector():
    sizes = [1 << 30]
    found = Collector(lambda: sizes[0])
    found.sizes = sizes
    found.begin()
    yield found
    gc.enable()
    gc.unfreeze()


def test_what_is_new_and_in_a_cycle_goes_at_the_next_look(collector):
    ring = weakref.ref(Ring())
    assert ring() is not None and not gc.isenabled()
    collector.look()
    assert ring() is None


def test_what_became_garbage_later_goes_when_the_process_has_grown(collector):
    kept = Ring()
    ring = weakref.ref(kept)
    collector.look()
    kept = None
    for _ in range(2 * WEIGH):
        collector.look()
    assert ring() is not None
    collector.sizes[0] += (1 << 28) + 1
    for _ in range(WEIGH):
        collector.look()
    assert ring() is None


def test_after_that_it_has_to_grow_again(collector):
    looked = []
    gc.callbacks.append(lambda phase, info: looked.append(info["generation"]))
    try:
        collector.sizes[0] *= 2
        for _ in range(5 * WEIGH):
            collector.look()
    finally:
        gc.callbacks.pop()
    assert looked.count(2) == 2  # the start and the end of one


def test_a_small_process_may_grow_by_some_megabytes(collector):
    collector.sizes[0] = 1 << 20
    collector.begin()
    kept = Ring()
    ring = weakref.ref(kept)
    collector.look()
    kept = None
    collector.sizes[0] += LEAST - 1
    for _ in range(WEIGH):
        collector.look()
    assert ring() is not None


def test_the_size_of_this_process():
    before = size()
    block = bytearray(64 << 20)
    assert 32 << 20 < size() - before < 128 << 20, len(block)
