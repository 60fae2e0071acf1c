"""The loop performs what is short by itself; threads perform the rest."""

import asyncio
import threading
import time
from queue import SimpleQueue

import pytest

from framework import Object, method
from framework.declare import declaration
from framework.declare.environment import current
from framework.orb import short
from framework.orb.short import LONG, MEMORY, MUCH_TOO_LONG, Short, Shorts, looks_short, prepare
from objects.bank import Bank
from objects.counter import Counter
from tests.orb.cluster import cluster

QUEUE: SimpleQueue[int] = SimpleQueue()


def check(amount: int) -> None:
    if amount < 0:
        raise ValueError("less than nothing")


def nap() -> None:
    time.sleep(0.0)


class Asks:
    """In the state of an object; its length is told by another object."""

    def __len__(self) -> int:
        found: int = current("orb").orb.object("inner").where()
        return found


class Short1(Object):
    def __init__(self) -> None:
        self.n = 0
        self.seen: dict[str, int] = {}

    def put(self, name: str, amount: int) -> None:
        check(amount)
        self.seen[name] = self.seen.get(name, 0) + amount
        self.n += self._more(amount)

    def _more(self, amount: int) -> int:
        return max(amount, len(self.seen), int(self.now()))

    # each of these may take long, or wait

    def loops(self, times: int) -> None:
        for _ in range(times):
            self.n += 1

    def spins(self) -> None:
        while self.n:
            self.n -= 1

    def compares(self) -> int:
        return sum(n * n for n in self.seen.values())

    def calls(self) -> int:
        found: int = self.orb.object("inner").where()
        return found

    def sleeps(self) -> None:
        time.sleep(0.01)

    def naps(self) -> None:
        nap()

    def waits(self) -> int:
        return QUEUE.get()

    def around(self) -> int:
        return self.around()

    def local(self) -> None:
        len = nap
        len()

    @property
    def slow(self) -> int:
        nap()
        return 1

    def by_property(self) -> int:
        return self.slow

    def inside(self) -> None:
        def deeper() -> None:
            nap()

        deeper()


@pytest.mark.parametrize(
    ("cls", "names"),
    [(Short1, ["put"]), (Bank, ["deposit", "withdraw", "transfer", "balance"]), (Counter, ["increment"])],
)
def test_what_cannot_wait_is_short(cls: type, names: list[str]) -> None:
    for name in names:
        assert looks_short(getattr(cls, name), cls), name


LONG_ONES = [
    "loops",
    "spins",
    "compares",
    "calls",
    "sleeps",
    "naps",
    "waits",
    "around",
    "local",
    "by_property",
    "inside",
]


@pytest.mark.parametrize("name", LONG_ONES)
def test_what_may_wait_or_go_on_is_not(name: str) -> None:
    assert not looks_short(getattr(Short1, name), Short1)


def test_what_has_no_source_is_not() -> None:
    scope: dict[str, object] = {}
    exec("def f(self): return 1", scope)
    assert not looks_short(scope["f"], Short1)


def test_one_run_that_took_long_proves_nothing() -> None:
    short = Short(True)
    for _ in range(100):
        short.took(LONG * 20)
        for _ in range(2 * MEMORY):
            short.took(LONG / 100)
    assert short.ok


def test_what_takes_long_again_and_again_goes_to_threads() -> None:
    short = Short(True)
    for _ in range(MEMORY):
        short.took(LONG * 20)
    assert not short.ok
    short.took(0.0)
    assert not short.ok


def test_what_takes_much_too_long_goes_to_threads_at_once() -> None:
    short = Short(True)
    short.took(MUCH_TOO_LONG * 2)
    assert not short.ok


class Thread:
    """Its text is the name of the thread that asks for it: a look that counts as short."""

    def __repr__(self) -> str:
        return threading.current_thread().name


HERE = Thread()


class Where(Object):
    """Its methods tell which thread performs them."""

    def __init__(self) -> None:
        self.asks = Asks()
        self.n = 0

    @method
    def short(self) -> str:
        self.n += 1
        return repr(HERE)

    @method
    def long(self) -> str:
        nap()
        return repr(HERE)

    @method
    def sly(self) -> tuple[int, str]:
        self.n += 1
        return len(self.asks) + self.n, repr(HERE)

    @method(readonly=True)
    def look(self) -> str:
        return repr(HERE)

    @method(readonly=True)
    def count(self) -> int:
        return self.n


class Inner(Object):
    @method(readonly=True)
    def where(self) -> int:
        return 100


OBJECTS = """
[objects.outer]
class = "tests.orb.test_short:Where"
on = ["n1"]
[objects.inner]
class = "tests.orb.test_short:Inner"
on = ["n2"]
"""


def run(ports, tmp_path, act):
    """``act(outer)`` on a loop in this thread."""

    async def all_of_it():
        async with cluster(ports(2), tmp_path, objects=OBJECTS) as c, asyncio.timeout(60), c.client("n1") as orb:
            await act(orb.object("outer"))

    asyncio.run(all_of_it())


def test_the_loop_performs_what_is_short_and_a_thread_what_is_not(ports, tmp_path):
    loop = threading.current_thread().name

    async def act(outer):
        assert await outer.short() == loop
        assert await outer.look() == loop
        assert await outer.long() != loop

    run(ports, tmp_path, act)


def test_what_calls_others_in_secret_is_performed_anew_by_a_thread(ports, tmp_path):
    loop = threading.current_thread().name

    async def act(outer):
        for n in (1, 2):
            value, thread = await outer.sly()
            assert (value, thread != loop) == (100 + n, True)  # once, although it was begun twice
        assert await outer.count() == 2

    run(ports, tmp_path, act)


def test_many_short_and_long_ones_in_one_line(ports, tmp_path):
    async def act(outer):
        calls = [(outer.long if i % 7 == 0 else outer.short).submit() for i in range(300)]
        for call in calls:
            await call
        assert await outer.count() == sum(i % 7 != 0 for i in range(300))

    run(ports, tmp_path, act)


def test_what_was_prepared_is_not_read_again_by_the_first_call(monkeypatch):
    class Ready(Bank):
        pass

    prepare([Ready])
    monkeypatch.setattr(short.inspect, "getsource", lambda function: pytest.fail("the loop would wait for this"))
    for life in (Shorts(), Shorts()):
        found = {name: life[Ready, method].ok for name, method in declaration(Ready).methods.items()}
        assert found["deposit"]


def test_a_node_prepares_its_classes_before_it_is_a_member(ports, tmp_path, monkeypatch):
    async def whole():
        async with cluster(ports(3), tmp_path) as c:
            monkeypatch.setattr(
                short.inspect, "getsource", lambda function: pytest.fail("the loop would wait for this")
            )
            async with asyncio.timeout(60), c.client("n1") as orb:
                await orb.object(Bank, "bank").deposit("ann", 5)
                assert await orb.object(Bank, "bank").balance("ann") == 5

    short._read.clear()
    asyncio.run(whole())
