"""Bad input at the caller: a clear error before anything is sent. What no check has foreseen is not repeated."""

import asyncio
import logging

import msgspec
import pytest

from framework import ALL, AsyncOrb, BadRequest, NoSuchMethod, OutcomeUnknown, connect, quorum
from framework.com.receipt import Receipt
from framework.orb.messages import Ask
from framework.orb.proxy import Sent
from objects.bank import Bank
from objects.counter import Counter
from tests.orb.cluster import cluster

NAN, INF = float("nan"), float("inf")
TIMEOUTS = [-1, 0, NAN, INF, "x", True, 10**400, [1]]


class Silent:
    """An orb that nobody has connected: whatever it would send is a failure of the test."""

    def __init__(self):
        self.orb = AsyncOrb("127.0.0.1:1")
        self.orb._send = self.orb._now = self.orb._later = self.sent

    def sent(self, *what):
        raise AssertionError(f"it went out: {what}")


@pytest.fixture
def orb():
    return Silent().orb


@pytest.fixture
def bank(orb):
    return orb.object(Bank, "bank")


def refused(*words):
    return pytest.raises(BadRequest, match="(?s)" + ".*".join(words))


@pytest.mark.parametrize("timeout", TIMEOUTS)
def test_a_timeout_that_is_none(orb, bank, timeout):
    sent = Sent(1, (bank.balance.request("ann"),))
    with refused("bank.balance: timeout=", "seconds"):
        bank.balance.with_(timeout=timeout)
    for receive in (orb.srec, orb.drec, orb.crec, lambda s, timeout: orb.quorum(s, 1, timeout=timeout)):
        with refused("timeout=", "seconds"):
            receive(sent, timeout=timeout)
    with refused("connect: timeout="):
        connect("127.0.0.1:1", timeout=timeout)
    with refused("AsyncOrb: timeout="):
        AsyncOrb("127.0.0.1:1", timeout=timeout)


@pytest.mark.parametrize("receipt", ["all", 2, True, Receipt("many"), Receipt("quorum", "2"), Receipt("srec", 1, 5)])
def test_a_receipt_that_is_none(bank, receipt):
    with refused("receipt|quorum|replica"):
        bank.deposit.with_(receipt=receipt)


def test_a_receipt_is_named_in_the_error(bank):
    with refused("bank.deposit", "receipt='all'", "ALL, FIRST or quorum"):
        bank.deposit.with_(receipt="all")
    assert bank.deposit.with_(receipt=quorum(2))._options.receipt == Receipt("quorum", 2)


@pytest.mark.parametrize("r", [0, -1, "2", 1.0, True, None, 1 << 70])
def test_a_quorum_of_none(orb, bank, r):
    with refused("quorum", "1 or more"):
        quorum(r)
    with refused("quorum", "1 or more"):
        orb.quorum(None, r)


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("bank@n2", 'to=."bank@n2".'),
        (5, "to=5 is an int"),
        ({"bank@n1"}, "a set"),
        ([], "names no replica"),
        (["bank"], "'bank' is no replica of bank"),
        (["n2"], "bank@NODE"),
        (["counter@n2"], "'counter@n2' is no replica of bank"),
        (["bank@"], "no replica"),
        (["bank@n 2"], "not a name"),
        (["bank@\ud800"], "not a name"),
        ([5], "5 is an int"),
        (["bank@n1", "bank@n1"], "twice"),
    ],
)
def test_replicas_that_are_none(orb, bank, to, words):
    with refused(words):
        bank.balance.with_(to=to)
    with refused(words):
        orb.mcast(bank.balance.request("ann"), to=to)


def test_one_replica_is_one_name(orb, bank):
    request = bank.balance.request("ann")
    with refused("is a list, not the name of a replica"):
        orb.ucast(request, to=["bank@n1"])
    with refused("'' is no replica of bank"):
        orb.ucast(request, to="")
    sent = Sent(1, (request,))
    for source in (5, "n1", "counter@n1"):
        with refused("srec", "replica"):
            orb.srec(sent, source)


def test_what_is_no_request(orb, bank):
    async def run():
        for send in (orb.ucast, orb.mcast, orb.pcast):
            for wrong in (None, 5, asyncio.sleep(0), asyncio.Future(), bank.balance, bank):
                with refused("takes requests, not", r"use bank.balance.request\(...\)"):
                    send(wrong)
        for receive in (orb.srec, orb.drec, orb.crec, lambda s: orb.quorum(s, 1)):
            for wrong in (None, asyncio.Future(), bank.balance.request("ann")):
                with refused("takes what ucast, mcast or pcast gave", r"use bank.balance.request\(...\)"):
                    receive(wrong)
            with refused("awaited first"):
                receive(asyncio.sleep(0))

    asyncio.run(run())


def test_pcast_of_nothing_or_twice_the_same(orb, bank):
    with refused("pcast.. has no request"):
        orb.pcast()
    with refused("pcast has two requests for bank"):
        orb.pcast(bank.balance.request("ann"), show(orb), bank.balance.request("bob"))


def show(orb):
    return orb.object(Counter, "counter").show.request()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((Bank,), "which Bank"),
        ((Bank, 5), "an int 5"),
        ((Bank, ""), "not a name"),
        ((5,), r"object\(5\)"),
        ((None, "bank"), "give a class"),
        ((int, "bank"), "an Object"),
        ((Bank(), "bank"), "give a class"),
        (("bank", "x"), 'object."bank", .x'),
        (("",), "not a name"),
        (("bank@n1",), "its object is 'bank'"),
        (("\ud800",), "not a name"),
    ],
)
def test_an_object_that_is_none(orb, words, expected):
    with refused(expected):
        orb.object(*words)


def test_a_method_that_has_no_name(orb):
    for name in ("a b", "\ud800", ""):
        with pytest.raises(NoSuchMethod, match="is no name of a method"):
            getattr(orb.object("bank"), name)


@pytest.mark.parametrize("addresses", [5, None, [5], [None], "", [], "nowhere", {"127.0.0.1:1"}])
def test_addresses_that_are_none(addresses):
    with refused("connect|address"):
        connect(addresses)


# with nodes


def test_replicas_are_known_to_the_node(ports, tmp_path):
    async def run():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60), c.client("n1") as orb:
            counter = orb.object(Counter, "counter")  # on n2 and n3
            for to in (["counter@n9"], ["counter@n1"], ["counter@n2", "counter@n1"]):
                with refused("there is no replica counter@n", "counter@n2, counter@n3"):
                    await counter.show.with_(to=to)()
                with refused("there is no replica counter@n"):
                    await orb.crec(await orb.mcast(counter.show.request(), to=to))
            assert await counter.show.with_(to=["counter@n3"])() == 0

    asyncio.run(run())


def test_a_change_goes_to_all_replicas_unless_it_is_meant(ports, tmp_path):
    async def run():
        async with cluster(ports(3), tmp_path, judged=False) as c, asyncio.timeout(60), c.client("n1") as orb:
            counter = orb.object(Counter, "counter")
            some = counter.increment.with_(to=["counter@n2"])
            with refused("Counter.increment changes the object", "leaves out counter@n3", "ucast or mcast"):
                await some(1)
            with refused("leaves out counter@n3"):
                await some.submit(1)
            await some.oneway(1)  # refused, too: the client logs it
            await counter.increment.with_(to=["counter@n3", "counter@n2"], receipt=ALL)(1)
            assert [o.value for o in c.objects("counter")] == [1, 1]
            await orb.srec(await orb.ucast(counter.increment.request(1), to="counter@n2"))
            assert [o.value for o in c.objects("counter")] == [2, 1]
            await orb.crec(await orb.mcast(counter.increment.request(1), to=["counter@n3"]))
            assert [o.value for o in c.objects("counter")] == [2, 2]

    asyncio.run(run())


class Odd(msgspec.Struct, array_like=True, frozen=True):
    """An act as no checked caller makes one."""

    kind: str
    parts: tuple[Ask, ...]
    transmission: str | None = None
    receipt: object = None
    wait: bool = True
    timeout: float | None = 10.0
    stale: bool = False
    tran: object = None


SHOW = (Ask("counter", "show", b"\x90"),)


@pytest.mark.parametrize(
    "act",
    [Odd("sync", SHOW, receipt="all"), Odd("sync", SHOW, receipt=object()), Odd("\ud800", SHOW), Odd("late", SHOW)],
)
def test_what_no_node_can_read_is_not_repeated(ports, tmp_path, caplog, act):
    """The calls of the stream end, those after it go on; a call that nobody receives is not repeated either."""
    caplog.set_level(logging.INFO, "framework.orb.home")

    async def run():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60), c.client("n1", "n2", timeout=25) as orb:
            counter = orb.object(Counter, "counter")
            await counter.increment(1)
            number = orb._home.send(msgspec.structs.replace(act, wait=False))
            with pytest.raises(OutcomeUnknown, match="could not be read"):
                await orb._now(lambda settle: orb._begin(act, settle), lambda outcome: outcome)
            assert await counter.show() == 1
            with pytest.raises(OutcomeUnknown, match="could not be read"):
                await orb._now(lambda settle: orb._collect(number, None, None, settle), lambda outcome: outcome)
            assert sum("is lost" in r.message for r in caplog.records) == 1

    asyncio.run(run())


def test_a_threads_client_hears_of_it_at_once(ports, tmp_path):
    async def run():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60):
            await asyncio.to_thread(program, c.config.address("n1"))

    def program(address):
        with connect(address) as orb:
            bank = orb.object(Bank, "bank")
            with refused("use bank.balance.request"):
                orb.mcast(bank.balance("ann"))
            with refused("use bank.balance.request"):
                orb.pcast(bank.balance.submit("ann"))
            with refused("use bank.balance.request"):
                orb.crec(bank.balance.submit("ann"))

    asyncio.run(run())
