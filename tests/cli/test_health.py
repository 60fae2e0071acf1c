"""``obo health``: well, not well, not there; with the node's own certificate and no token."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from framework.errors import BadRequest
from framework.orb.client import ask_node
from framework.orb.health import unwell
from framework.orb.messages import Change
from framework.testing import cluster
from objects.counter import Counter
from tests.cli.run_obo import obo_here

WAIT = 60.0


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
    nodes.crash("n2")  # of two, one alone is no majority
    end = time.monotonic() + WAIT
    while (done := health("n1")).returncode == 0 or last(done) != "obo: n1 takes no calls":  # it learns of it in steps
        assert time.monotonic() < end, done
    assert done.returncode == 1
    done = health("n2", "--timeout", "1")
    assert done.returncode == 1 and last(done).startswith("obo: n2 does not answer on 127.0.0.1:"), done.stderr


def test_bad_input(health):
    done = health("n1", "--node", "n9")
    assert done.returncode == 2 and "no node 'n9'" in done.stderr
    done = health("n1", "--at", "nowhere")
    assert done.returncode == 2 and "'nowhere' is no address" in done.stderr


class Slow(Counter):
    """Its state arrives when ``go`` is set."""

    go = threading.Event()

    def get_state(self):
        rest = list(super().get_state())  # now; the rest of this is read in a thread
        yield b"head"
        assert self.go.wait(WAIT)
        yield from rest

    def set_state(self, chunks):
        _, *rest = chunks
        super().set_state(rest)


@pytest.fixture
def go():
    Slow.go.clear()
    yield Slow.go
    Slow.go.set()


def until(happened):
    end = time.monotonic() + WAIT
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_node_without_its_states_takes_calls_but_is_not_well(go):
    """So that nobody stops the next one."""
    with cluster({"counter": Slow}, nodes=3) as c:
        c.connect("n1").object(Slow, "counter").increment()
        c.stop("n3")
        c.restart("n3")
        assert unwell(c.addresses["n3"], "n3", None, states=False, timeout=WAIT) == ""
        lacks = unwell(c.addresses["n3"], "n3", None, states=True, timeout=WAIT)
        assert lacks == "n3 takes calls, but is not well: obo status says why"
        assert c.look("n3")["group"]["why"].startswith("n3 waits for the states of counter@n3")
        go.set()
        until(lambda: not unwell(c.addresses["n3"], "n3", None, states=True, timeout=WAIT))


def test_a_node_does_not_leave_with_a_state_that_others_wait_for(go):
    """Told to stop a moment too early, it goes when n3 has the state; and obo leave is refused until then."""
    with cluster({"counter": Slow}, nodes=3, on={"counter": ["n1", "n3"]}) as c, ThreadPoolExecutor(1) as pool:
        c.connect("n2").object(Slow, "counter").increment()
        c.stop("n3")
        c.restart("n3")
        assert c.look("n3")["transfers"]["unready"]
        with pytest.raises(BadRequest, match="no other member has the state of counter yet"):
            ask_node(c.addresses["n1"], Change(1, "leave", "n1"), WAIT)
        stopped = pool.submit(c.stop, "n1")
        until(lambda: stopped.done() or c._members["n1"]._node.gateway.draining)
        go.set()
        stopped.result(WAIT)
        assert c.connect("n2").object(Slow, "counter").show() == 1
