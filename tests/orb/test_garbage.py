"""What a call leaves behind goes at once; the collector of a node looks at what is new often, at everything seldom."""

import asyncio
import gc
import weakref

import pytest

from framework.orb.garbage import BYTES, FEW, OBJECTS, OLDER, REST, WEIGH, Collector, Size, memory
from objects.bank import Bank
from tests.orb.cluster import cluster
from tests.orb.things import Shop

CALLS = 200


def left_behind(call, ports, tmp_path):
    """Objects in cycles, for each call, that only the collector can free."""

    async def whole():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(100), c.client("n1", timeout=35.0) as orb:
            bank, shop = orb.object(Bank, "bank"), orb.object(Shop, "shop")
            await bank.deposit("ann", 1000)
            await asyncio.gather(*(call(bank, shop) for _ in range(20)))
            gc.collect()
            gc.disable()
            try:
                left = []
                while len(left) < 3 and min(left, default=5) >= 5:  # a broken link leaves much, once
                    await asyncio.gather(*(call(bank, shop) for _ in range(CALLS)))
                    left.append(gc.collect() / CALLS)
                return min(left)
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
    found = Collector(lambda: found.size)
    found.size = Size(10_000_000, 1 << 40)
    found.begin()
    yield found
    gc.enable()
    gc.unfreeze()


def look(collector, times=WEIGH):
    for _ in range(times):
        collector.look()


def test_what_is_new_and_in_a_cycle_goes_at_the_next_look(collector):
    ring = weakref.ref(Ring())
    assert ring() is not None and not gc.isenabled()
    collector.look()
    assert ring() is None


def test_what_became_garbage_a_little_later_goes_soon(collector):
    kept = Ring()
    ring = weakref.ref(kept)
    look(collector, OLDER - 2)
    kept = None
    collector.look()
    assert ring() is not None
    collector.look()
    assert ring() is None


def generations(collector, times):
    looked = []
    gc.callbacks.append(lambda phase, info: looked.append(info["generation"]) if phase == "start" else None)
    try:
        look(collector, times)
    finally:
        gc.callbacks.pop()
    return looked


def test_after_a_second_without_garbage_it_rests(collector):
    look(collector)
    ring = weakref.ref(Ring())
    assert generations(collector, REST * WEIGH) == []
    assert ring() is not None  # for once: the process has to grow
    assert generations(collector, WEIGH).count(0) == WEIGH - WEIGH // OLDER
    later = weakref.ref(Ring())
    look(collector, REST * WEIGH + 1)
    assert later() is not None
    collector.everything()
    assert ring() is None and later() is None


def test_where_there_is_garbage_it_goes_on(collector):
    for _ in range(3 * WEIGH):
        for _ in range(FEW // WEIGH + 1):
            ring = weakref.ref(Ring())
        collector.look()
        assert ring() is None


def test_it_looks_at_what_a_fraction_of_a_second_has_left_not_a_whole_one(collector):
    """That is more: all nodes stood still for 2 to 6 ms in each second."""
    assert generations(collector, WEIGH).count(1) == WEIGH // OLDER >= 5


@pytest.mark.parametrize("grown", [Size(20_000_000, 1 << 40), Size(10_000_000, 1 << 41)])
def test_what_became_garbage_later_goes_when_the_process_has_grown(collector, grown):
    kept = Ring()
    ring = weakref.ref(kept)
    look(collector)
    kept = None
    collector.size = Size(19_999_999, (1 << 41) - 1)
    look(collector, 2 * WEIGH)
    assert ring() is not None
    collector.size = grown
    look(collector)
    assert ring() is None


def test_after_that_it_has_to_grow_again(collector):
    looked = []
    gc.callbacks.append(lambda phase, info: looked.append(info["generation"]))
    try:
        collector.size = Size(20_000_000, 1 << 40)
        look(collector, 5 * WEIGH)
    finally:
        gc.callbacks.pop()
    assert looked.count(2) == 2  # the start and the end of one


def looks_at_everything(collector):
    return 2 in generations(collector, WEIGH)


def test_a_member_is_not_stopped_for_so_long_that_others_take_it_for_dead(caplog):
    found = Collector(lambda: found.size, silent=0.75)
    found.size = Size(100_000, 1 << 30)
    found.begin()
    try:
        kept = Ring()
        ring = weakref.ref(kept)
        look(found)
        kept = None
        found.size = Size(5_000_000, 1 << 31)
        with caplog.at_level("INFO", "framework.orb.garbage"):
            assert not looks_at_everything(found)
            assert not looks_at_everything(found)
        assert ring() is not None
        assert [r.message for r in caplog.records if "would stop the node" in r.message] == [
            "2048 MB are in use; the collector does not look at everything: that would stop the node for about 0.8 s. "
            "If there is garbage among it, it goes when the node leaves the group and comes back"
        ]
        found.everything()  # between two lives
        assert ring() is None
    finally:
        gc.enable()
        gc.unfreeze()


def test_how_long_it_takes_is_known_when_it_has_looked():
    found = Collector(lambda: found.size, silent=0.75)
    found.size = Size(10**15, 1 << 30)  # so each of them takes next to nothing
    found.begin()
    try:
        found.everything()
        found.size = Size(5_000_000, 1 << 31)  # by what is assumed before that it would be too much: see above
        assert looks_at_everything(found)
    finally:
        gc.enable()
        gc.unfreeze()


def test_a_small_process_may_grow_by_more(collector):
    collector.size = Size(1000, 1 << 20)
    collector.begin()
    kept = Ring()
    ring = weakref.ref(kept)
    look(collector)
    kept = None
    collector.size = Size(1000 + OBJECTS - 1, (1 << 20) + BYTES - 1)
    look(collector)
    assert ring() is not None


def test_the_memory_of_this_process():
    before = memory()
    block = bytearray(64 << 20)
    assert 32 << 20 < memory() - before < 128 << 20, len(block)
