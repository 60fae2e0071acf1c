"""Three real processes: members crash, hang, leave, are evicted and come back, under the load of a client that notices
nothing but pauses. Each run ends with its traces before the oracle, which also says that nobody who has ended is still
a member, and that who came back has its state."""

import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

from framework import BadRequest, Unavailable, connect
from framework.orb.client import ask_node
from framework.orb.messages import Change
from framework.testing import cluster
from objects.bank import Bank
from tests.cli.run_obo import obo
from tests.cluster.processes import Process
from tests.orb.cluster import toml
from tests.tiers import only_full

TIMEOUT = 30.0  # of calls
WAIT = 60.0  # for anything that must happen in the end


def until(happened, what):
    end = time.monotonic() + WAIT
    while not happened():
        assert time.monotonic() < end, what
        time.sleep(0.02)


PAUSE = 0.01  # between two calls: however long a test takes, it has not much more to verify than where it is quick


class Load:
    """A client that deposits 1 again and again: what it was told, and the longest it had to wait."""

    def __init__(self, c, *nodes):
        self.orb = c.connect(*nodes, timeout=TIMEOUT)
        self.bank = self.orb.object(Bank, "bank")
        self.done, self.longest, self.errors = 0, 0.0, []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._over.is_set():
            start = time.monotonic()
            try:
                self.bank.deposit("load", 1)
            except Exception as error:
                self.errors.append(repr(error))
            else:
                self.done += 1
            self.longest = max(self.longest, time.monotonic() - start)
            self._over.wait(PAUSE)

    def pause(self):
        """The longest one since the last time."""
        longest, self.longest = self.longest, 0.0
        return longest

    def more(self, count=30):
        wanted = self.done + count
        until(lambda: self.done >= wanted or self.errors, f"no {count} more calls after {self.done}")
        assert not self.errors, self.errors

    def begin(self):
        self._thread.start()
        self.more()
        self.pause()

    def end(self):
        self._over.set()
        self._thread.join(WAIT)


@contextmanager
def loaded(c, *nodes):
    load = Load(c, *nodes)
    load.begin()
    try:
        yield load
        load.more()
    finally:
        load.end()
    assert not load.errors, load.errors


def balances(c, load, account="load"):
    return [r.value for r in load.orb.crec(load.orb.mcast(load.bank.balance.request(account)))]


def ready(c, *names):
    """Are these, and only these, members with all their states?"""
    try:
        told = [c.look(name) for name in names]
    except Unavailable:  # it sends everybody away, because it is out
        return False
    return all(t["members"] == sorted(names) and not t["transfers"]["unready"] for t in told)


def three(tmp_path):
    return cluster({"bank": Bank}, 3, processes=True, trace=tmp_path)


@pytest.mark.parametrize("victim", ["n1", only_full("n3")])
def test_a_member_is_killed_and_comes_back(tmp_path, victim):
    """n1 is the home of the client."""
    with three(tmp_path) as c:
        with loaded(c, "n1") as load:
            c.crash(victim)
            load.more()
            pause = load.pause()
            others = [n for n in c.nodes if n != victim]
            until(lambda: ready(c, *others), "the others do not go on alone")
            c.restart(victim)
            until(lambda: ready(c, *c.nodes), f"{victim} is not back")
            load.more()
        assert balances(c, load) == [load.done] * 3
        assert c.look(victim)["group"]["members"][victim] > 1, "it is a new life"
        verdict = c.verify(WAIT)
        assert verdict.crashed == 1 and verdict.adopted >= 1
        print(f"pause at the crash of {victim}: {pause:.2f} s, at its return {load.pause():.2f} s")


@pytest.mark.parametrize("victim", [only_full("n1"), "n2"])
def test_a_member_hangs_for_longer_than_the_suspicion_time(tmp_path, victim):
    with three(tmp_path) as c:
        with loaded(c, "n1") as load:
            others = [n for n in c.nodes if n != victim]
            c.pause(victim)
            until(lambda: ready(c, *others), "the others do not go on alone")
            time.sleep(1.0)
            c.resume(victim)
            until(lambda: ready(c, *c.nodes), f"{victim} is not back")
            load.more()
        assert balances(c, load) == [load.done] * 3
        assert "is not a member of the group any more" in (tmp_path / f"{victim}.log").read_text()
        c.verify(WAIT)
        print(f"longest pause: {load.pause():.2f} s")


def test_all_nodes_are_restarted_one_after_the_other(tmp_path):
    """SIGTERM: each leaves in order, nobody has to find out that it is gone."""
    with three(tmp_path) as c:
        with loaded(c, "n1") as load:
            for name in c.nodes:
                c.stop(name)
                load.more()
                c.restart(name)
                until(lambda: ready(c, *c.nodes), f"{name} is not back")
            load.more()
        assert balances(c, load) == [load.done] * 3
        assert all("leaves the group" in (tmp_path / f"{n}.log").read_text() for n in c.nodes)
        verdict = c.verify(WAIT)
        assert not verdict.crashed and verdict.adopted >= 3
        print(f"longest pause: {load.pause():.2f} s")


@pytest.mark.full
def test_of_two_replicas_both_are_a_majority(tmp_path):
    """While one of them is away, calls wait, also those under way when it was lost: no error, nothing twice."""
    with cluster({"bank": Bank}, 3, processes=True, on={"bank": ["n1", "n2"]}, trace=tmp_path) as c:
        with loaded(c, "n3") as load:
            c.crash("n2")
            until(lambda: ready(c, "n1", "n3"), "the others do not go on alone")
            stuck = load.done
            time.sleep(0.5)
            assert load.done <= stuck + 1, "one of two is no majority"
            c.restart("n2")
            load.more()
            c.stop("n1")
            c.restart("n1")
            load.more()
        assert balances(c, load) == [load.done] * 2
        c.verify(WAIT)


def test_a_node_that_waits_for_others_says_for_whom(ports, tmp_path):
    config = tmp_path / "cluster.toml"
    config.write_text(toml(ports(3)))
    process = Process("n2", config, tmp_path)
    try:
        process.hears("to be a member of the group: n1, n3 have not been heard")
        process.send(signal.SIGTERM)
        assert process.wait() == 0
    finally:
        process.process.kill()
        process.wait()


def test_a_member_is_evicted_and_another_leaves(tmp_path):
    with three(tmp_path) as c:
        config = ("--config", tmp_path / "n1.toml")
        with loaded(c, "n1") as load:
            done = obo("evict", "n2", "--yes", *config)
            assert done.returncode == 0 and "n2 was taken out" in done.stdout, done.stderr
            until(lambda: ready(c, *c.nodes), "n2 is not back by itself")
            assert c.look("n2")["group"]["members"]["n2"] > 1
            load.more()
            done = obo("leave", "n3", *config)  # nobody says yes
            assert done.returncode == 1 and ready(c, *c.nodes), "not without being asked"
            done = obo("leave", "n3", "--yes", *config)
            assert done.returncode == 0 and "n3 has left the group; members: n1, n2" in done.stdout, done.stderr
            c.wait_stopped("n3")
            for what, node in (("leave", "n1"), ("evict", "n2")):
                done = obo(what, node, "--yes", *config)
                assert done.returncode == 2 and "2 are needed" in done.stderr, "two of two must stay"
            done = obo("evict", "n3", "--yes", *config)
            assert done.returncode == 2 and "not a member" in done.stderr
            done = obo("evict", "n9", "--yes", *config)
            assert done.returncode == 2 and "no node 'n9'" in done.stderr
        assert balances(c, load) == [load.done] * 2
        done = obo("status", *config)
        assert "steady" in done.stdout and "n1 1, n2 " in done.stdout
        c.verify(WAIT)


def test_a_node_that_hears_too_few_refuses_calls_but_not_stale_reads(tmp_path):
    """On healing it is a member again, and clients of it alone are served again."""
    with three(tmp_path) as c, ExitStack() as exits:
        orb = c.connect("n1", timeout=TIMEOUT)
        orb.object(Bank, "bank").deposit("ann", 5)
        alone = exits.enter_context(connect(c.addresses["n3"], TIMEOUT))
        bank = alone.object(Bank, "bank")
        assert bank.balance("ann") == 5
        for other in ("n1", "n2"):
            c.cut("n3", other)
        until(lambda: c.look("n3")["group"]["state"] == "isolated", "n3 does not notice")
        assert "n3 hears only 1 of 3 members" in c.look("n3")["group"]["why"]
        with pytest.raises(Unavailable, match="hears only 1 of 3"):
            bank.deposit.with_(timeout=1.0)("ann", 1)
        assert bank.balance.with_(stale=True, timeout=TIMEOUT)("ann") == 5
        with pytest.raises(BadRequest, match="not declared readonly"):
            bank.deposit.with_(stale=True)("ann", 1)
        with pytest.raises(BadRequest, match="cannot leave in order"):
            ask_node(c.addresses["n3"], Change(1, "leave", "n3"), 5.0)
        orb.object(Bank, "bank").deposit("ann", 2)
        c.heal()
        until(lambda: ready(c, *c.nodes), "n3 is not back")
        bank.deposit("ann", 1)
        assert bank.balance("ann") == 8
        c.verify(WAIT)


def test_obo_join_tells_what_it_gets_and_forms_no_group_of_its_own(tmp_path):
    def joins(*, until_said, seconds=WAIT):
        """What ``obo join`` prints, until it says this or the time is over."""
        command = [sys.executable, "-m", "framework.cli.main", "join", "--node", "n3", "--config", tmp_path / "n3.toml"]
        with (tmp_path / "join.log").open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + seconds
            while until_said not in (said := (tmp_path / "join.log").read_text()) and time.monotonic() < end:
                time.sleep(0.05)
            return said
        finally:
            process.kill()
            process.wait()

    with three(tmp_path) as c:
        bank = c.connect("n1").object(Bank, "bank")
        bank.deposit("ann", 5)
        c.crash("n3")
        until(lambda: ready(c, "n1", "n2"), "n3 is still a member")
        said = joins(until_said="has all states")
        assert re.search(r"n3 has joined view \d+: n1, n2, n3", said), said
        assert re.search(r"n3 has all states after .* s: bank@n3 \([\d,]+ bytes\)", said), said
        for name in ("n1", "n2"):
            c.crash(name)
        said = joins(until_said="no group has let it in yet")
        assert "n3 waits" in said and "reached: nobody" in said and "ready" not in said
