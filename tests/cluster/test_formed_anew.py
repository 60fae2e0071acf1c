"""All nodes are killed, nothing is on disk, and all are started again; clients live on."""

import threading
import time

import pytest

from framework import Aborted, OutcomeUnknown
from framework.testing import cluster
from objects.bank import Bank
from tests.cluster.things import Journal

TIMEOUT = 30.0
LINGER = 60.0  # a call that is not over when its node is killed


def kill_all_and_start_again(c):
    for name in c.nodes:
        c.crash(name)
    starting = [threading.Thread(target=c.restart, args=(name,)) for name in c.nodes]
    for thread in starting:  # none is ready before all are there
        thread.start()
    for thread in starting:
        thread.join(TIMEOUT)
        assert not thread.is_alive()


def test_clients_go_on_in_a_group_that_knows_nothing_of_the_one_before(caplog):
    """A session named requests to a replica that had not got them; in the new group nobody ever sends those."""
    with cluster({"bank": Bank, "journal": Journal}, 3, processes=True, traces=False) as c:
        orb = c.connect("n1", timeout=TIMEOUT)
        bank = orb.object(Bank, "bank")
        for _ in range(200):
            bank.deposit("ann", 1)
        assert orb.home == "n1"
        later = orb.object(Journal, "journal").linger.submit("slow", LINGER)
        until(lambda: c.look("n2")["running"])
        c.pause("n3")
        bank.deposit.oneway("ann", 1)
        until(lambda: "bank@n3" in str(orb._home._sessions))  # n3 has not got it: the session says that
        kill_all_and_start_again(c)
        assert bank.deposit("old", 1) is None
        with pytest.raises(OutcomeUnknown, match="formed anew"):
            later.result(TIMEOUT)
        fresh = [c.connect(name, timeout=TIMEOUT) for name in c.nodes]
        for number, other in enumerate(fresh, 1):
            other.object(Bank, "bank").deposit("ann", number)
        assert bank.balance("ann") == 6 and bank.balance("old") == 1
        assert "formed anew" in caplog.text


def test_a_transaction_does_not_go_on_in_another_life_of_its_home():
    """The node came back under the same name: what was done before was lost, and the rest was committed."""
    with cluster({"bank": Bank}, 1, processes=True, traces=False) as c:
        orb = c.connect("n1", timeout=TIMEOUT)
        bank = orb.object(Bank, "bank")

        def half_before_and_half_after():
            with orb.transaction(TIMEOUT):
                bank.deposit("ann", 1)
                c.crash("n1")
                c.restart("n1")
                until(lambda: orb.home == "n1")
                bank.deposit("bob", 1)

        with pytest.raises(Aborted, match="n1, where the transaction began, was lost"):
            half_before_and_half_after()
        assert bank.balance("ann") == bank.balance("bob") == 0


def until(happened):
    end = time.monotonic() + TIMEOUT
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)
