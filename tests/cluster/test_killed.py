"""SIGKILL in the middle of calls: of clients, and of the home node of a client."""

import subprocess
import sys
import time

import pytest

from framework.testing import cluster
from objects.bank import Bank
from tests.cli.run_obo import surroundings
from tests.cluster.things import Agent, Journal
from tests.tiers import only_full

TIMEOUT = 60.0
LINGER = 5.0  # how long the call takes in whose middle the node is killed
PAUSE = 3.0  # shorter ones cannot be told from those of a busy machine


def doomed(c, tag):
    words = [sys.executable, "-m", "tests.cluster.doomed", ",".join(c.addresses.values()), tag]
    return subprocess.Popen(words, env=surroundings(), stdout=subprocess.PIPE, encoding="utf-8")


def test_clients_are_killed_in_the_middle_of_calls(tmp_path):
    """What they had called has happened everywhere or nowhere; what others call goes on."""
    objects = {"journal": Journal, "agent": Agent, "bank": Bank}
    with cluster(objects, 3, processes=True, on={"agent": ["n1", "n2"]}, trace=tmp_path) as c:
        orb = c.connect("n2", timeout=TIMEOUT)
        journal = orb.object(Journal, "journal")
        answered = []
        clients = [doomed(c, tag) for tag in ("a", "b", "c")]
        try:
            for round_, client in enumerate(clients):
                for _ in range(20 + 7 * round_):
                    answered.append(client.stdout.readline().rstrip())
                    journal.write(f"me-{len(answered)}")
                client.kill()
                answered += client.stdout.read().split()
                for after in range(10):
                    journal.write(f"me-{len(answered)}-{after}")
        finally:
            for client in clients:
                client.kill()
                client.wait(TIMEOUT)
                client.stdout.close()
        assert c.settle(TIMEOUT), "what a killed client has left must come to an end"
        replies = orb.crec(orb.mcast(journal.lines.request()))
        lines = replies[0].value
        assert all(reply.value == lines for reply in replies)
        assert len(set(lines)) == len(lines), "each line once"
        assert set(answered) - {""} <= set(lines), "what was answered has happened"
        for tag in ("a", "b", "c"):
            mine = [int(line.partition("-")[2]) for line in lines if line.startswith(f"{tag}-")]
            assert sorted(mine) == list(range(len(mine))), "and of the rest the first ones"
            booked = {r.value for r in orb.crec(orb.mcast(orb.object(Agent, "agent").booked.request(tag)))}
            money = {r.value for r in orb.crec(orb.mcast(orb.object(Bank, "bank").balance.request(tag)))}
            assert len(booked) == 1 and booked == money
        c.verify()


@pytest.mark.parametrize(("method", "calls"), [only_full("count", 1000), ("write", 300)])
def test_the_home_node_is_killed_during_many_calls(tmp_path, method, calls):
    """The client sees at most one pause and no error, and each call is performed once. The node has no replica of the
    object: with one, that needs membership. It is killed in the middle of a call that both replicas have got: one that
    only one of them has got needs membership, too (protocol.md §10.5)."""
    with cluster({"journal": Journal}, 3, processes=True, on={"journal": ["n2", "n3"]}, trace=tmp_path) as c:
        orb = c.connect("n1", timeout=TIMEOUT)
        journal = orb.object(Journal, "journal")
        assert orb.home == "n1"
        watchers = [c.connect("n2"), c.connect("n3")]
        call, took = getattr(journal, method), []
        for number in range(calls):
            if number == calls // 3:
                later = journal.linger.submit("slow", LINGER)
                for watcher in watchers:
                    until_it_performs(watcher)
                c.crash("n1")
                assert not later.done(), "the call was over before its home node was killed"
            start = time.monotonic()
            call(str(number) if method == "write" else "x")
            took.append(time.monotonic() - start)
        assert later.result(TIMEOUT) is None
        assert orb.home in ("n2", "n3")
        assert sum(t > PAUSE for t in took) <= 1, f"more than one pause: {sorted(took)[-5:]}"
        first, second = (reply.value for reply in orb.crec(orb.mcast(journal.lines.request())))
        wanted = [str(n) for n in range(calls)] if method == "write" else []
        assert first == second and [line for line in first if line != "slow"] == wanted
        assert first.count("slow") == 1
        tallies = [reply.value for reply in orb.crec(orb.mcast(journal.tally.request("x")))]
        assert tallies == [calls if method == "count" else 0] * 2
        c.verify()


def until_it_performs(orb):
    end = time.monotonic() + TIMEOUT
    while not orb.look("status")["running"]:
        assert time.monotonic() < end
        time.sleep(0.01)
