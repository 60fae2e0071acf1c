"""``obo health``: well, not well, not there; with the node's own certificate and no token."""

import pytest

from framework.testing import cluster
from objects.counter import Counter
from tests.cli.run_obo import obo_here


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "tls"])
def nodes(request):
    with cluster({"counter": Counter}, nodes=2, processes=True, tls=request.param) as c:
        yield c


@pytest.fixture
def health(nodes, monkeypatch, capsys):
    def ask(node, *words):
        config = nodes.directory / f"{node}.toml"
        return obo_here(monkeypatch, capsys, "health", "--node", node, "--config", config, *words)

    return ask


def last(done):
    """Before it there may be a warning: the certificates of tests end soon."""
    return done.stderr.splitlines()[-1]


def test_well_and_then_isolated_and_then_gone(nodes, health):
    done = health("n1")
    assert (done.returncode, done.stdout) == (0, "n1 is well\n"), done.stderr
    assert health("n1", "--calls").returncode == 0
    nodes.crash("n2")
    nodes.settle(3.0)  # of two, one alone is no majority
    done = health("n1")
    assert (done.returncode, last(done)) == (1, "obo: n1 takes no calls")
    done = health("n2", "--timeout", "1")
    assert done.returncode == 1 and last(done).startswith("obo: n2 does not answer on 127.0.0.1:"), done.stderr


def test_bad_input(health):
    done = health("n1", "--node", "n9")
    assert done.returncode == 2 and "no node 'n9'" in done.stderr
    done = health("n1", "--at", "nowhere")
    assert done.returncode == 2 and "'nowhere' is no address" in done.stderr
