"""A process dies at a chosen point, under load, and comes back: no statement twice, none lost."""

import random
import time
from contextlib import ExitStack, contextmanager

import pytest

from framework.bench.back import wait_back
from framework.bench.soak_group import Plan
from framework.bench.soak_sql import SqlSoak
from framework.errors import Unavailable
from framework.testing import cluster
from framework.testing.postgres import servers
from tests.cluster.sql.doomed import Doomed, doom, doomed
from tests.tiers import only_full

WAIT = 240.0  # for machines that are busy: processes are started again and again
NODES = ("n1", "n2", "n3")


class Crashes:
    def __init__(self, c, databases, seed):
        self.c = c
        self.soak = SqlSoak(Plan(clients=8, seed=seed, nodes=3, call=WAIT), c, databases)
        self.random = random.Random(seed)

    def doom(self, node, place, most):
        doom(self.c.directory, node, place, self.random.randint(1, most))

    def spare(self, node):
        """It need not die any more; perhaps it just does."""
        doomed(self.c.directory, node).unlink(missing_ok=True)

    def ended(self, node):
        """Until it has died."""
        self.first_to_die(node)
        with pytest.raises(Unavailable, match="ended with -9"):
            self.c.wait_stopped(node)

    def first_to_die(self, *nodes):
        until = time.monotonic() + WAIT
        while not (died := [n for n in nodes if self.is_dead(n)]):
            assert time.monotonic() < until, f"none of {nodes} dies"
            time.sleep(0.02)
        return died[0]

    def is_dead(self, node):
        return self.c._members[node]._process.poll() is not None

    def end(self, node):
        """If it has not died by itself."""
        if self.is_dead(node):
            self.ended(node)
        else:
            self.c.crash(node)

    def start(self, node):
        """Returns at once."""
        self.c._members[node].restart()

    def back(self, *nodes):
        until = time.monotonic() + WAIT
        for node in nodes:
            self.c._members[node].wait_ready(until)
        for node in nodes:
            wait_back(self.c, node, (), WAIT)
        before = self.soak.calls
        while self.soak.calls < before + 20 and not self.soak.errors:
            assert time.monotonic() < until, "clients do not go on"
            time.sleep(0.02)


@contextmanager
def nodes(database, directory):
    """Processes with such databases; and the servers, if they have any."""
    with ExitStack() as ends:
        started, options = {}, None
        if database == "postgres":
            started = dict(zip(NODES, ends.enter_context(servers(len(NODES))), strict=True))
            options = {"db": {"urls": {node: server.create("doomed") for node, server in started.items()}}}
        made = cluster(
            {"db": Doomed},
            NODES,
            processes=True,
            trace=directory,
            traces=False,
            links=False,
            options=options,
            ready=WAIT,
        )
        yield ends.enter_context(made), started


COMMITS = ("n1", "after"), ("n3", "begin"), ("n2", "before"), ("n3", "after"), ("n2", "after")


@pytest.mark.parametrize(
    ("database", "every"), [("sqlite", False), only_full("sqlite", True), only_full("postgres", True)]
)
def test_nothing_is_lost_and_nothing_done_twice(tmp_path, database, every):
    with nodes(database, tmp_path) as (c, started):
        crashes = Crashes(c, started, seed=4)
        with crashes.soak.load():
            for node, place in COMMITS if every else COMMITS[:2]:
                at_a_commit(crashes, node, place)
            if every:
                while_a_state_is_taken(crashes)
                while_a_state_is_given(crashes)
                all_at_a_commit(crashes, "before")
            all_at_a_commit(crashes, "after")
        said = crashes.soak.report()
        assert said.problems == [] and min(said.rows.values()) > 0


def at_a_commit(crashes, node, place):
    """``after``: between the commit and the response."""
    crashes.doom(node, place, 30)
    crashes.ended(node)
    crashes.start(node)
    crashes.back(node)


def all_at_a_commit(crashes, place):
    """Nobody is left: what was acknowledged is on the disks of a majority."""
    for node in NODES:
        crashes.doom(node, place, 20)
    crashes.first_to_die(*NODES)
    time.sleep(crashes.random.choice((0.0, 0.1)))
    for node in NODES:  # without a majority the last one commits nothing more
        crashes.spare(node)
        crashes.end(node)
    for node in NODES:
        crashes.start(node)
    crashes.back(*NODES)


def while_a_state_is_taken(crashes):
    for place in ("taking", "taken"):
        crashes.c.crash("n3")
        crashes.doom("n3", place, 1)
        crashes.start("n3")
        crashes.ended("n3")
        crashes.start("n3")
        crashes.back("n3")


def while_a_state_is_given(crashes):
    """Two of three are away for a moment, or all: calls wait for them."""
    donors = ("n1", "n2")
    for node in donors:
        crashes.doom(node, "giving", 1)
    crashes.c.crash("n3")
    crashes.start("n3")
    crashes.first_to_die(*donors)
    for node in donors:
        crashes.spare(node)
    time.sleep(0.5)  # the other one may have died, too
    dead = [n for n in donors if crashes.is_dead(n)]
    for node in dead:
        crashes.ended(node)
        crashes.start(node)
    crashes.back(*dead, "n3")
