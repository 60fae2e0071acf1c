"""Random programs over real processes whose links break and whose processes stand still; judged by the definitions.

Nobody is suspected here: a call that needs a node behind a cut waits. So every fault ends, and then everything must go
on as if it had not been: all calls answered, all replicas equal. What happens when members leave is in
test_membership.py.
"""

import random
import time

import pytest

from framework.testing import cluster
from framework.trace.files import read
from tests.cli.run_obo import obo
from tests.cluster import program
from tests.tiers import only_full

PATIENT = 120.0  # seconds before anybody is suspected
THREE = {"counter": ["n2", "n3"], "agent": ["n1", "n2"], "car": ["n3"]}
FIVE = {"counter": ["n2", "n4"], "agent": ["n1", "n5"], "car": ["n3", "n4"], "bank": ["n1", "n2", "n3"]}


def cuts(c, chance, times=5):
    """Several times: two links at once are cut and come back."""
    for _ in range(times):
        pairs = [chance.sample(c.nodes, 2) for _ in range(2)]
        for a, b in pairs:
            c.cut(a, b)
        time.sleep(chance.uniform(0.05, 0.6))
        c.heal()
        time.sleep(chance.uniform(0.0, 0.3))


def silence(c, chance, times=3):
    """Nothing is closed, nothing comes through: shorter than any suspicion (keepalive takes 10 s)."""
    for _ in range(times):
        a, b = chance.sample(c.nodes, 2)
        c.cut(a, b, silently=True)
        time.sleep(chance.uniform(0.1, 1.2))
        c.heal(a, b)


def stand_still(c, chance):
    """SIGSTOP for two seconds, then SIGCONT; a cut meanwhile."""
    node, a, b = chance.sample(c.nodes, 3)
    c.pause(node)
    time.sleep(1.0)
    c.cut(a, b)
    time.sleep(1.0)
    c.resume(node)
    c.heal()


def everything(c, chance):
    c.slow(*chance.sample(c.nodes, 2), 0.02)
    cuts(c, chance, 2)
    silence(c, chance, 1)
    stand_still(c, chance)


def digests(c):
    """By object: the digests of its replicas' states, from the ends of the traces."""
    found = {}
    for name in c.nodes:
        for record in read(c.directory / f"{name}.jsonl").records:
            if record.event == "state":
                found.setdefault(record.replica.partition("@")[0], set()).add(record.digest)
    return found


def whole(tmp_path, nodes, on, faults, seed, tls=False):
    with cluster(program.OBJECTS, nodes, processes=True, on=on, tls=tls, trace=tmp_path, suspect_after=PATIENT) as c:
        program.run(c, seed, lambda: faults(c, random.Random(seed)))
        verdict = c.verify()
        assert verdict.delivered > 200 and verdict.ordered
        states = digests(c)
        assert set(states) == {*program.OBJECTS, "tran"}
        assert all(len(found) == 1 for found in states.values()), states


@pytest.mark.parametrize("faults", [only_full(cuts), only_full(silence), only_full(stand_still)])
def test_three_nodes(tmp_path, faults):
    whole(tmp_path, 3, THREE, faults, seed=1)


@pytest.mark.parametrize("faults", [only_full(cuts), everything])
def test_five_nodes(tmp_path, faults):
    whole(tmp_path, 5, FIVE, faults, seed=2)
    done = obo("verify", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no violation found" in done.stdout


@pytest.mark.full
def test_three_nodes_with_tls(tmp_path):
    whole(tmp_path, 3, THREE, cuts, 8, tls=True)
