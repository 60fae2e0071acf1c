"""A node that is out of the group keeps the states of its replicas in memory: an object that lives only on nodes that
were cut off has its state when they come back, and what was acknowledged is in it."""

import threading
import time

import pytest

from framework import Object, OboError, conflict_matrix, method
from framework.testing import cluster
from objects.bank import Bank
from tests.cluster.test_membership import ready, until

WAIT = 60.0


@conflict_matrix(begin="*", look="*")
class Slow(Object):
    """A method that is half way when its node is cut off. Nodes are in this process: they see the gate."""

    gate = threading.Event()

    def __init__(self) -> None:
        self.begun, self.done = 0, 0

    @method
    def begin(self) -> None:
        self.begun += 1
        self.gate.wait(WAIT)
        self.done += 1

    @method(readonly=True)
    def look(self) -> tuple[int, int]:
        return self.begun, self.done


def cut_off(c, *names):
    others = [n for n in c.nodes if n not in names]
    for name in names:
        for other in others:
            c.cut(name, other)
    until(lambda: ready(c, *others), "the majority does not go on alone")


def deposits(bank, told, over):
    while not over.is_set():
        try:
            bank.deposit.with_(timeout=WAIT)("ann", 1)
        except OboError as error:
            told.append(error)
        else:
            told.append(None)


@pytest.mark.parametrize("homes", [["n3"], ["n4", "n5"]])
def test_an_object_that_lives_only_on_nodes_that_were_cut_off_keeps_its_state(tmp_path, homes):
    count = 3 if homes == ["n3"] else 5
    with cluster({"bank": Bank}, count, on={"bank": homes}, trace=tmp_path) as c:
        bank = c.connect("n1", timeout=WAIT).object(Bank, "bank")
        told, over = [], threading.Event()
        load = threading.Thread(target=deposits, args=(bank, told, over), daemon=True)
        load.start()
        until(lambda: len(told) > 30, "no deposits")
        cut_off(c, *homes)
        time.sleep(0.5)
        c.heal()
        until(lambda: ready(c, *c.nodes), "they are not back")
        more = len(told) + 10
        until(lambda: len(told) > more, "no deposits after they came back")
        over.set()
        load.join(WAIT)
        assert told.count(None) == len(told), [e for e in told if e is not None]
        assert bank.balance("ann") == len(told)
        assert all(c.look(n)["group"]["members"][n] > 1 for n in homes), "they are new lives"
        assert not any(c.look(n)["transfers"]["held"] for n in c.nodes), "nobody holds what is not needed any more"
        verdict = c.verify(WAIT)
        assert verdict.adopted >= len(homes)


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_running_when_a_life_ends_is_not_in_the_state_that_is_kept(tmp_path, kept, caplog):
    """It is undone when it ends; if it does not end in time, nothing is kept."""
    with cluster({"slow": Slow}, 3, on={"slow": ["n3"]}, trace=tmp_path) as c:
        slow = c.connect("n1", timeout=WAIT).object(Slow, "slow")
        Slow.gate.set()
        slow.begin()
        Slow.gate.clear()
        waiting = slow.begin.submit()
        until(lambda: c.look("n3")["running"], "it has not begun")
        cut_off(c, "n3")
        c.heal()
        until(lambda: "n3 is not a member of the group any more" in caplog.text, "n3 has not noticed")
        if not kept:
            until(lambda: "is not kept: a method is still being performed" in caplog.text, "it waits for ever")
        Slow.gate.set()
        waiting.result()
        until(lambda: ready(c, *c.nodes), "n3 is not back")
        assert slow.look() == ((2, 2) if kept else (1, 1))
        assert ("THE STATE OF slow IS LOST" in caplog.text) != kept
        assert ("is not kept" in caplog.text) != kept
        c.verify(WAIT)
