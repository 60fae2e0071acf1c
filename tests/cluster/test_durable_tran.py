"""All nodes are killed while clients transfer money between durable banks: what was committed is there, whole; what was
not is not, in no part. Each run ends with its traces before the oracle."""

import threading

import grpc
import pytest

from framework.errors import Aborted, OboError, OutcomeUnknown
from framework.net.wire.orb_pb2 import InvokeRequest, RequestId
from framework.net.wire.orb_pb2_grpc import GatewayStub
from framework.orb.client import ask_node
from framework.orb.messages import Change
from framework.testing import cluster
from objects.bank import Bank
from tests.cluster.accounts import Office, Vault
from tests.cluster.test_durable import WAIT, restart_all
from tests.cluster.test_membership import until
from tests.tiers import only_full

ALL = 100_000


class Transfers:
    """One client at each node. ``done`` were acknowledged, ``open`` may have happened or not."""

    def __init__(self, c, move):
        self._c = c
        self._move = move
        self.done, self.open = dict.fromkeys(c.nodes, 0), dict.fromkeys(c.nodes, 0)
        self.failed = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in c.nodes]

    def _run(self, home):
        orb = self._c.connect(home, timeout=WAIT)
        while not self._over.is_set():
            try:
                self._move(orb, home)
                self.done[home] += 1
            except Aborted:
                pass
            except OutcomeUnknown as error:
                self._ask(error, home)
            except OboError as error:
                self.failed.append(error)
                return

    def _ask(self, error, home):
        try:
            told = error.transaction.outcome()
            self.done[home] += told == "commit"
        except (OboError, AttributeError):
            self.open[home] += 1

    def more(self, count):
        wanted = sum(self.done.values()) + count
        until(lambda: sum(self.done.values()) >= wanted or self.failed, f"no {count} more transfers")
        assert not self.failed

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.more(20)
        return self

    def __exit__(self, *error):
        self._over.set()
        for thread in self._threads:
            thread.join(WAIT)


def in_a_block(orb, home):
    with orb.transaction(timeout=20.0):
        orb.object(Vault, "one").withdraw(home, 1)
        orb.object(Vault, "two").deposit(home, 1)


def by_a_method(orb, home):
    orb.object(Office, "office").move(home, 1)


@pytest.mark.parametrize(("move", "times"), [(in_a_block, 1), only_full(in_a_block, 3), only_full(by_a_method, 3)])
def test_all_are_killed(tmp_path, move, times):
    objects = {"one": Vault, "two": Vault, "office": Office, "beside": Bank}
    with cluster(objects, 3, processes=True, trace=tmp_path) as c:
        orb = c.connect(timeout=WAIT)
        for name in c.nodes:
            orb.object(Vault, "one").deposit(name, ALL)
        with Transfers(c, move) as load:
            for _ in range(times):
                for name in c.nodes:
                    c.crash(name)
                restart_all(c, c.nodes)
                load.more(20)
        assert not load.failed
        orb = c.connect(timeout=WAIT)
        for name in c.nodes:
            for one, two in zip(balances(orb, "one", name), balances(orb, "two", name), strict=True):
                assert one + two == ALL
                assert load.done[name] <= two <= load.done[name] + load.open[name]
        c.verify(WAIT)


def balances(orb, bank, account):
    replies = orb.crec(orb.mcast(orb.object(Vault, bank).audit.request()))
    return [r.value.get(account, 0) for r in replies]


class Plain:
    """Invokes with an id of its own, so that it can ask again for what became of a call."""

    def __init__(self, c, node):
        self._channel = grpc.insecure_channel(c.addresses[node])
        self.move = InvokeRequest(object="office", method="move", args_json='["ann", 1]', timeout_s=WAIT)
        self.move.id.CopyFrom(RequestId(client="plain", number=1, made_at=1000.0))

    def invoke(self):
        return GatewayStub(self._channel).Invoke.future(self.move, timeout=WAIT)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._channel.close()


def test_who_asks_after_a_crash_of_all_hears_that_it_was_aborted_too():
    """A method that is stopped, because others aborted its transaction, writes down how it ended."""
    with cluster({"one": Vault, "two": Vault, "office": Office}, 3) as c:
        orb = c.connect(timeout=WAIT)
        orb.object(Vault, "one").deposit("ann", ALL)
        with Plain(c, "n1") as client, orb.transaction(timeout=WAIT):
            orb.object(Vault, "one").withdraw("ann", 1)  # and holds its slot
            moving = client.invoke()
            until(lambda: "i-plain/1" in [t["name"] for t in transactions(c)], "it has called nobody")
            ask_node(c.addresses["n1"], Change(1, "abort", "i-plain/1"), WAIT)
            assert moving.code() is grpc.StatusCode.ABORTED
            assert "somebody asked for it" in moving.details()
        for name in c.nodes:
            c.crash(name)
        restart_all(c, c.nodes)
        with Plain(c, "n2") as client:
            again = client.invoke()
            assert again.code() is grpc.StatusCode.ABORTED, again.details()
            assert "Office.move: stopped" in again.details()
        assert balances(c.connect(timeout=WAIT), "two", "ann") == [0, 0, 0]


def transactions(c):
    return c.look("n1")["transactions"]
