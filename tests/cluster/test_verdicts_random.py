"""Calls that end, go on, fail or are just over, at each node as chance will have it, under clients that give up, while
nodes hang and crash: what a client was told is true at all replicas, and these are equal."""

import random
import threading
import time

import pytest

from framework import DeadlineExceeded, OboError, RemoteError
from framework.testing import cluster
from tests.cluster.runaway import Runaway
from tests.cluster.test_membership import ready, until

WAIT = 120.0
NODES = ("n1", "n2", "n3")
MOODS = ("ends", "ends", "ends", "goes on", "goes on", "just over")


class World:
    def __init__(self, c, seed):
        self.c, self.chance = c, random.Random(seed)
        self.told = {}  # by name: True, False, or None where the client does not know
        self.over = threading.Event()

    def weather(self):
        """Nodes change their minds. Sometimes all of them fail: that is no reason to leave."""
        while not self.over.wait(self.chance.uniform(0.02, 0.4)):
            if self.chance.random() < 0.1:
                Runaway.how = dict.fromkeys(NODES, "fails")
            else:
                Runaway.how = {node: self.chance.choice(MOODS) for node in NODES}

    def client(self, number, seed):
        chance = random.Random(seed)
        orb = self.c.connect(NODES[number % 3], timeout=WAIT)
        shelf = orb.object(Runaway, "shelf")
        for n in range(12):
            name = f"{number}.{n}"
            sent = shelf.slow.with_(timeout=chance.choice([0.4, 1.0, 30.0, 60.0])).submit(name, 1)
            quick = shelf.add.submit("all", 1)
            try:
                if chance.random() < 0.2:
                    time.sleep(chance.random())
                    sent.cancel()
                    self.told[name] = None
                else:
                    sent.result(WAIT)
                    self.told[name] = True
            except RemoteError:
                self.told[name] = False
            except (DeadlineExceeded, OboError):
                self.told[name] = None
            quick.result(WAIT)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_what_is_told_is_true_everywhere(tmp_path, seed):
    Runaway.reset()
    Runaway.limits = dict.fromkeys(NODES, 0.6)
    with cluster({"shelf": Runaway}, 3, trace=tmp_path) as c:
        world = World(c, seed)
        threads = [threading.Thread(target=world.client, args=(n, seed * 100 + n), daemon=True) for n in range(4)]
        weather = threading.Thread(target=world.weather, daemon=True)
        for thread in (weather, *threads):
            thread.start()
        if seed % 2:
            time.sleep(1.0)
            c.crash("n3")
            time.sleep(1.0)
            c.restart("n3")
        for thread in threads:
            thread.join(WAIT)
            assert not thread.is_alive(), f"seed {seed}: a client waits for ever"
        world.over.set()
        weather.join(WAIT)
        Runaway.reset()
        until(lambda: ready(c, *c.nodes), f"seed {seed}: not all are there")
        assert c.settle(WAIT), f"seed {seed}: something goes on"
        orb = c.connect("n1", timeout=WAIT)
        found = [r.value for r in orb.crec(orb.mcast(orb.object(Runaway, "shelf").all.request()))]
        assert len(found) == 3 and found[0] == found[1] == found[2], f"seed {seed}: replicas differ: {found}"
        wrong = {n: told for n, told in world.told.items() if told is not None and (found[0].get(n) == 1) is not told}
        assert not wrong, f"seed {seed}: told {wrong}"
        assert found[0]["all"] == 48, f"seed {seed}"
        c.verify(WAIT)
