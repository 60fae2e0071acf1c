"""An ``obo serve`` whose framework has a fault: exit code 70, one line, and the others go on."""

import pytest

from framework import OutcomeUnknown, connect
from objects.counter import Counter
from tests.cluster.processes import processes
from tests.orb.cluster import OBJECTS

SABOTEUR = """
[objects.saboteur]
class = "tests.orb.saboteur:Saboteur"
on = ["n1"]
"""


def test_a_node_with_a_fault_ends_and_its_client_goes_on(ports, tmp_path):
    with processes(ports(3), tmp_path, OBJECTS + SABOTEUR) as run:
        n1 = run.nodes["n1"]
        with connect(run.at("n1", "n2"), timeout=30) as orb:
            counter = orb.object(Counter, "counter")
            counter.increment(1)
            assert orb.home == "n1"
            with pytest.raises(OutcomeUnknown, match="too few of the replicas"):  # only n1 could have answered
                orb.object("saboteur").spoil.with_(timeout=2)()
            counter.increment(1)
            assert counter.show() == 2
            assert orb.home == "n2"
        assert n1.wait() == 70
        n1.hears("n1 has failed and stopped: KeyError: 'spoiled'")
        assert sum("Traceback" in line for line in n1.log) == 1, n1.log
        run.nodes["n2"].hears("n1 is lost")
