"""Random programs of clients, each with a seed, and what must be true of the objects when they have ended.

Whatever happens to links and nodes meanwhile, every call is answered, and what was performed is what was called: once.
"""

import asyncio
import random
import threading
import time
from collections import Counter

import pytest

from framework import ALL, FIRST, RemoteError
from objects.bank import Bank
from objects.counter import Counter as CounterObject
from objects.travel import Car
from tests.cluster.things import Agent, Journal

OBJECTS = {"bank": Bank, "counter": CounterObject, "journal": Journal, "agent": Agent, "car": Car}
TIMEOUT = 60.0  # of one call: far more than any fault here lasts, on a machine that is busy
LEAST, MOST = 30, 200  # calls of one client


class Expected:
    """What one client knows that it has done."""

    def __init__(self) -> None:
        self.numbers: Counter[str] = Counter()
        self.lines: list[str] = []
        self.calls = 0


def threads_program(orb, tag: str, seed: int, enough: threading.Event) -> Expected:
    """Synchronous, submitted and one-way calls, mcast and pcast with every receipt, nested calls, calls that raise."""
    chance, done = random.Random(seed), Expected()
    bank, counter = orb.object(Bank, "bank"), orb.object(CounterObject, "counter")
    journal, agent, car = orb.object(Journal, "journal"), orb.object(Agent, "agent"), orb.object(Car, "car")

    def line() -> str:
        done.lines.append(f"{tag}-{done.calls}")
        return done.lines[-1]

    def deposit() -> None:
        bank.deposit(tag, 3)
        done.numbers["money"] += 3

    def withdraw() -> None:
        try:
            bank.withdraw(tag, 2)
            done.numbers["money"] -= 2
        except RemoteError as error:
            if "RefusedError" not in str(error):
                raise

    def write() -> None:
        journal.write.with_(receipt=chance.choice((ALL, FIRST)))(line())

    def fail() -> None:
        with pytest.raises(RemoteError, match="on purpose"):
            journal.fail(f"{tag}-failed")

    def at_once() -> None:
        later = [counter.increment.submit(2) for _ in range(5)]
        later.append(journal.write.submit(line()))
        for future in later:
            future.result(TIMEOUT)
        done.numbers["counter"] += 10

    def oneway() -> None:
        journal.count.oneway(tag)
        counter.decrement.oneway(1)
        done.numbers["count"] += 1
        done.numbers["counter"] -= 1

    def nested() -> None:
        agent.book(tag)
        done.numbers["count"] += 1
        done.numbers["money"] += 1
        done.numbers["booked"] += 1

    def nested_fail() -> None:
        """What it had called is undone with it."""
        with pytest.raises(RemoteError, match="on purpose"):
            agent.fail(tag)

    def mcast() -> None:
        sent = orb.mcast(journal.count.request(tag))
        orb.quorum(sent, 2) if chance.random() < 0.5 else orb.crec(sent)
        done.numbers["count"] += 1

    def pcast() -> None:
        day = str(chance.randrange(20))
        sent = orb.pcast(car.book.request(day), journal.count.request(tag), counter.increment.request(1))
        orb.crec(sent) if chance.random() < 0.5 else orb.drec(sent)
        done.numbers["count"] += 1
        done.numbers["counter"] += 1

    def look() -> None:
        assert bank.balance(tag) == done.numbers["money"], "a client sees what it has done"
        assert journal.tally(tag) == done.numbers["count"]
        assert agent.booked(tag) == done.numbers["booked"]

    acts = (deposit, withdraw, write, fail, at_once, oneway, nested, nested_fail, mcast, pcast, look)
    while done.calls < LEAST or (not enough.is_set() and done.calls < MOST):
        done.calls += 1
        chance.choice(acts)()
        time.sleep(chance.choice((0, 0.01, 0.04)))
    look()
    return done


async def async_program(orb, tag: str, seed: int, enough: threading.Event) -> Expected:
    chance, done = random.Random(seed), Expected()
    bank, journal, agent = orb.object(Bank, "bank"), orb.object(Journal, "journal"), orb.object(Agent, "agent")
    while done.calls < LEAST or (not enough.is_set() and done.calls < MOST):
        done.calls += 1
        wrote = f"{tag}-{done.calls}"
        some = [
            bank.deposit(tag, 1),
            journal.count(tag),
            agent.book(tag),
            journal.write_if(wrote, chance.random() < 0.5),
        ]
        results = await asyncio.gather(*some)
        if results[-1]:
            done.lines.append(wrote)
        done.numbers["money"] += 2
        done.numbers["count"] += 2
        done.numbers["booked"] += 1
        await asyncio.sleep(chance.choice((0, 0.02, 0.06)))
    assert await bank.balance(tag) == done.numbers["money"]
    return done


def run(c, seed: int, faults) -> list[Expected]:
    """Three clients in threads and one of coroutines, at different nodes, while ``faults()`` is carried out."""
    chance = random.Random(seed)
    enough = threading.Event()
    results: dict[str, Expected | BaseException] = {}

    def client(tag: str, number: int, home: str) -> None:
        try:
            with c.connect(home, timeout=TIMEOUT) as orb:
                results[tag] = threads_program(orb, tag, number, enough)
        except BaseException as error:
            results[tag] = error

    async def coroutines(number: int, home: str) -> Expected:
        async with c.async_orb(home, timeout=TIMEOUT) as orb:
            return await async_program(orb, "async", number, enough)

    def async_client(number: int, home: str) -> None:
        try:
            results["async"] = asyncio.run(coroutines(number, home))
        except BaseException as error:
            results["async"] = error

    work = [
        threading.Thread(target=client, args=(f"t{i}", chance.random(), chance.choice(c.nodes)), daemon=True)
        for i in range(3)
    ]
    work.append(threading.Thread(target=async_client, args=(chance.random(), chance.choice(c.nodes)), daemon=True))
    for thread in work:
        thread.start()
    try:
        faults()
    finally:
        enough.set()
    for thread in work:
        thread.join(2 * TIMEOUT)
        assert not thread.is_alive(), "a client did not end"
    for tag, result in results.items():
        if isinstance(result, BaseException):
            raise AssertionError(f"client {tag} failed (seed {seed})") from result
    return check(c, results)


def check(c, results: dict[str, Expected]) -> list[Expected]:
    """Every replica says the same, and that is what the clients have done."""
    assert c.settle(TIMEOUT), "something is still in flight"
    orb = c.connect(timeout=TIMEOUT)
    journal = orb.object(Journal, "journal")
    written = [reply.value for reply in orb.crec(orb.mcast(journal.lines.request()))]
    assert all(lines == written[0] for lines in written)
    for tag, done in results.items():
        mine = [line for line in written[0] if line.rpartition("-")[0] == tag]
        assert sorted(mine) == sorted(done.lines), "each line once, none lost"
        for name, of, number in (
            ("bank", "balance", "money"),
            ("journal", "tally", "count"),
            ("agent", "booked", "booked"),
        ):
            sent = orb.mcast(getattr(orb.object(name), of).request(tag))
            assert {r.value for r in orb.crec(sent)} == {done.numbers[number]}, (name, tag)
    total = sum(done.numbers["counter"] for done in results.values())
    assert {r.value for r in orb.crec(orb.mcast(orb.object("counter").show.request()))} == {total}
    return list(results.values())
