"""Every way to invoke, against three real nodes in one process; the oracle judges each run."""

import asyncio

import pytest

from framework.com.receipt import CREC
from framework.errors import (
    BadRequest,
    DeadlineExceeded,
    NoSuchMethod,
    NoSuchObject,
    RemoteError,
    Unavailable,
)
from framework.orb.client import AsyncOrb
from objects.bank import Bank
from objects.counter import Counter
from tests.orb.cluster import cluster


@pytest.fixture
def play(ports, tmp_path):
    """Run a coroutine function with a cluster and a client of it."""

    def run(act, *homes):
        async def whole():
            async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60), c.client(*homes) as orb:
                await act(c, orb)

        asyncio.run(whole())

    return run


def test_a_call_is_performed_at_every_replica(play):
    async def act(c, orb):
        bank = orb.object(Bank, "bank")
        await bank.deposit.with_(receipt=CREC)("ann", 5)
        await bank.transfer("ann", "bob", 2)
        assert await bank.balance("ann") == 3
        assert await bank.audit() == {"ann": 3, "bob": 2}
        await bank.deposit.with_(receipt=CREC)("ann", 1)
        assert [b.accounts for b in c.objects("bank")] == [{"ann": 4, "bob": 2}] * 3

    play(act)


def test_untyped_proxies_and_named_arguments(play):
    async def act(c, orb):
        bank = orb.object("bank")
        await bank.deposit(amount=7, account="ann")
        assert await bank.balance("ann") == 7
        counter = orb.object("counter")
        await counter.increment()
        await counter.increment(by=2)
        assert await counter.show() == 3

    play(act, "n1")


def test_many_calls_in_flight(play):
    async def act(c, orb):
        counter = orb.object(Counter, "counter")
        futures = [counter.increment.submit(1) for _ in range(300)]
        await asyncio.gather(*futures)
        assert await counter.show() == 300

    play(act, "n1")


def test_two_clients_conflict_and_do_not(play):
    async def act(c, orb):
        async with c.client("n3") as other:
            a, b = orb.object(Bank, "bank"), other.object(Bank, "bank")
            await a.deposit("ann", 1000)
            work = []
            for i in range(40):
                work += [a.withdraw.submit("ann", 1), b.withdraw.submit("ann", 2), b.deposit.submit(f"c{i}", 1)]
            await asyncio.gather(*work)
            assert await b.balance("ann") == 1000 - 40 * 3
            assert await a.balance("ann") == 1000 - 40 * 3

    play(act, "n1")


def test_one_way_calls_come_before_what_follows(play):
    async def act(c, orb):
        counter = orb.object(Counter, "counter")
        for _ in range(20):
            await counter.increment.oneway(1)
        assert await counter.show() == 20
        with pytest.raises(BadRequest, match="returns a value"):
            await counter.show.oneway()

    play(act, "n1")


def test_transmissions_and_receipts(play):
    async def act(c, orb):
        bank, counter = orb.object(Bank, "bank"), orb.object(Counter, "counter")
        sent = await orb.pcast(bank.deposit.request("ann", 5), counter.increment.request(3))
        first = await orb.drec(sent)
        assert first.ok and first.object in ("bank", "counter") and first.value is None
        sent = await orb.mcast(bank.balance.request("ann"))
        every = await orb.crec(sent)
        assert sorted(r.replica for r in every) == ["bank@n1", "bank@n2", "bank@n3"]
        assert [r.value for r in every] == [5, 5, 5]
        sent = await orb.mcast(bank.balance.request("ann"))
        assert len(await orb.quorum(sent, 2)) == 2
        sent = await orb.ucast(counter.show.request(), to="counter@n3")
        one = await orb.srec(sent)
        assert (one.replica, one.value) == ("counter@n3", 3)
        with pytest.raises(BadRequest, match="received already"):
            await orb.drec(sent)

    play(act)


def test_errors_say_whose_fault_it_was(play):
    async def act(c, orb):
        bank = orb.object(Bank, "bank")
        with pytest.raises(RemoteError, match="RefusedError: ann has 0, not 5") as caught:
            await bank.withdraw("ann", 5)
        assert caught.value.happened
        assert "objects/bank.py" in caught.value.__notes__[0] and "in _left" in caught.value.__notes__[0]
        with pytest.raises(NoSuchObject, match="no object 'bnk'"):
            await orb.object("bnk").deposit("ann", 1)
        with pytest.raises(NoSuchMethod, match="deposit"):
            await orb.object("bank").depost("ann", 1)
        with pytest.raises(NoSuchMethod):
            bank.depost  # noqa: B018
        with pytest.raises(NoSuchMethod):
            await orb.object("bank")._left("ann", 1)
        with pytest.raises(BadRequest, match="amount"):
            await orb.object("bank").deposit("ann", "much")
        with pytest.raises(BadRequest, match="amount"):
            bank.deposit("ann", "much")
        sent = await orb.mcast(bank.balance.request("ann"))
        with pytest.raises(BadRequest, match="quorum"):
            await orb.quorum(sent, 4)
        with pytest.raises(RemoteError, match="ZeroDivisionError") as caught:
            await orb.object("odd").wrong()
        assert "hidden" not in str(caught.value.__notes__).replace('secret = "hidden"', "")
        with pytest.raises(RemoteError, match="annotation"):
            await orb.object("odd").lies()
        with pytest.raises(RemoteError, match="SystemExit"):
            await orb.object("odd").leaves()
        with pytest.raises(RemoteError, match="CancelledError"):
            await orb.object("odd").gives_up()
        assert await orb.object("odd").read() == []

    play(act)


def test_deadlines_end_calls(play):
    async def act(c, orb):
        odd = orb.object("odd")
        with pytest.raises(DeadlineExceeded) as caught:
            await odd.slow.with_(timeout=0.2)(0.6)
        assert caught.value.happened is None
        assert await odd.read() == []

    play(act)


def test_nobody_there(ports):
    async def run():
        with pytest.raises(Unavailable, match="no node could be reached"):
            async with AsyncOrb(f"127.0.0.1:{ports(1)[0]}", timeout=0.5):
                pass

    asyncio.run(run())


def test_time_and_chance_are_the_same_everywhere(play):
    async def act(c, orb):
        odd = orb.object("odd")
        await odd.chance()
        await odd.chance.with_(receipt=CREC)()
        logs = [o.log for o in c.objects("odd")]
        assert len(logs[0]) == 6 and logs[0] == logs[1] == logs[2]
        assert logs[0][1] != logs[0][4]

    play(act)
