"""``framework.testing.cluster`` itself: what it starts, breaks, judges and cleans up."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from framework import BadRequest, Object, Unavailable, method
from framework.testing import cluster
from objects.bank import Bank
from objects.counter import Counter
from tests.cli.run_obo import surroundings
from tests.cluster.things import Chancy, Shy
from tests.tiers import only_full

TIMEOUT = 60.0


def links(c, node):
    with c.connect(node) as orb:
        assert orb.home == node
        return {peer: link["up"] for peer, link in orb.look("status")["links"].items()}


def until(condition):
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("processes", [False, True])
def test_the_life_of_a_cluster(tmp_path, processes):
    """Cuts of both kinds, a slow link, a node that stops, one that crashes; then the verdict."""
    objects = {"bank": Bank, "counter": "objects.counter:Counter"}
    with cluster(objects, 4, processes=processes, on={"counter": ["n1"], "bank": ["n1", "n2"]}, trace=tmp_path) as c:
        orb = c.connect("n2", timeout=TIMEOUT)
        assert orb.home == "n2"
        bank = orb.object(Bank, "bank")
        bank.deposit("ann", 1)
        until(lambda: all(links(c, "n1").values()))
        for silently in (False, True):
            c.cut("n2", "n1", silently=silently)
            if not silently:
                until(lambda: not links(c, "n1")["n2"])
                assert links(c, "n1")["n3"], "no other link is cut"
            later = [bank.deposit.submit("ann", 1) for _ in range(10)]
            time.sleep(0.2)
            assert not any(future.done() for future in later), "the other replica cannot be reached"
            c.heal("n1", "n2")
            for future in later:
                future.result(TIMEOUT)
        c.slow("n1", "n2", 0.2)
        start = time.monotonic()
        bank.deposit("ann", 1)
        assert time.monotonic() - start > 0.2
        c.heal()
        orb.object(Counter, "counter").increment.oneway(7)
        assert c.settle(TIMEOUT)
        assert orb.object(Counter, "counter").show() == 7
        assert bank.balance("ann") == 22
        c.stop("n4")
        c.crash("n3")
        for again in (c.stop, c.crash, c.pause):
            with pytest.raises(BadRequest, match="n3 has ended already"):
                again("n3")
        bank.deposit("ann", 1)
        # 26 calls, each at one replica at least: n1 and n2, cut off for long, may come back with a state instead
        # (protocol.md §11).
        assert c.verify().delivered >= 26
        with pytest.raises(Unavailable, match="no node of the cluster"):
            c.connect()


def test_coroutines_meet_nodes_of_the_same_process():
    async def run(c):
        async with c.async_orb("n3") as orb:
            assert orb.home == "n3"
            await asyncio.gather(*(orb.object("counter").increment(1) for _ in range(20)))
            return await orb.object("counter").show()

    with cluster({"counter": Counter}) as c:
        assert asyncio.run(run(c)) == 20
        directory = c.directory
        assert (directory / "n1.jsonl").exists()
    assert not directory.exists()


def test_a_node_that_stands_still_and_goes_on(tmp_path):
    with cluster({"counter": Counter}, 2, processes=True, trace=tmp_path) as c:
        counter = c.connect("n1", timeout=TIMEOUT).object(Counter, "counter")
        counter.increment(1)
        c.pause("n2")
        later = counter.increment.submit(1)
        time.sleep(0.3)
        assert not later.done()
        c.resume("n2")
        later.result(TIMEOUT)
        c.pause("n2")  # a verdict resumes it
        c.verify()


def test_replicas_that_differ_are_an_assertion(tmp_path):
    with cluster({"chancy": Chancy}, trace=tmp_path) as c:
        c.connect().object(Chancy, "chancy").roll()
        with pytest.raises(AssertionError, match=r"(?s)break the definitions.*A7"):
            c.verify()


class Here(Object):
    @method
    def hello(self) -> str:
        return "here"


def test_a_class_of_the_test_itself_serves_in_both_kinds_of_nodes():
    class Local(Object):
        @method
        def hello(self) -> str:
            return "local"

    with cluster({"here": Here, "local": Local}, nodes=["a", "b"]) as c:
        orb = c.connect()
        assert (orb.object(Local, "local").hello(), orb.object(Here, "here").hello()) == ("local", "here")
    with pytest.raises(BadRequest, match=r"Local is defined inside a function.*processes=False"):
        cluster({"local": Local}, processes=True).__enter__()
    with cluster({"here": Here}, nodes=1, processes=True) as c:
        assert c.connect().object(Here, "here").hello() == "here"


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"objects": {}}, "without objects"),
        ({"objects": {"a b": Bank}}, "object name 'a b'"),
        ({"objects": {"tran": Bank}}, "belongs to the framework"),
        ({"objects": {"bank": int}}, "is no Object class"),
        ({"objects": {"bank": "objects.bank:Bnk"}}, "no class 'Bnk'"),
        ({"nodes": 0}, "from 1 to 32"),
        ({"nodes": "n1"}, "give a number"),
        ({"nodes": ["a", "a"]}, "named twice"),
        ({"on": {"bnk": ["n1"]}}, "no object 'bnk'"),
        ({"on": {"bank": ["n9"]}}, "no node 'n9'"),
        ({"on": {"bank": "n1"}}, "give a list"),
        ({"on": {"bank": []}}, "give a list"),
        ({"on": {"bank": ["n1", "n1"]}}, "named twice"),
    ],
)
def test_mistakes_are_told_before_anything_starts(wrong, fault):
    with pytest.raises(BadRequest, match=fault):
        cluster(**{"objects": {"bank": Bank}, **wrong})


def test_mistakes_with_a_running_cluster():
    with cluster({"bank": Bank}, 2) as c:
        with pytest.raises(BadRequest, match=r"to pause it, use cluster\(\.\.\., processes=True\)"):
            c.pause("n1")
        with pytest.raises(BadRequest, match="no node 'n3'"):
            c.crash("n3")
        with pytest.raises(BadRequest, match="itself"):
            c.cut("n1", "n1")
        with pytest.raises(BadRequest, match="heal"):
            c.heal("n1")


def test_a_node_that_does_not_start_shows_its_log(tmp_path):
    with pytest.raises(Unavailable, match=r"(?s)ended with 2 before it was ready.*not in a process of its own"):
        cluster({"shy": Shy}, 1, processes=True, trace=tmp_path).__enter__()


KEEPER = """
import signal, time
from framework.testing import cluster
from tests.cluster.things import Journal

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, if the tests run in the background
with cluster({"journal": Journal}, 2, processes=True) as c:
    print(c.directory, *c.pids.values(), flush=True)
    c.pause("n2")
    print("paused", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, only_full(signal.SIGINT)])
def test_nothing_is_left_of_a_test_that_was_killed(number):
    words = [sys.executable, "-c", KEEPER]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=surroundings(), stdout=pipe, stderr=pipe, encoding="utf-8") as keeper:
        try:
            directory, *pids = keeper.stdout.readline().split()
            assert keeper.stdout.readline() == "paused\n"
            assert len(pids) == 2 and all(alive(int(pid)) for pid in pids)
            keeper.send_signal(number)
            keeper.wait(TIMEOUT)
            until(lambda: not any(alive(int(pid)) for pid in pids))
            if number == signal.SIGINT:
                assert not Path(directory).exists()
        finally:
            keeper.kill()


def alive(pid):
    """A process that has ended and that nobody has asked for yet is not alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not stat.parent.parent.exists()
