"""Calls that no replica, or not each replica, brings to an end: one verdict everywhere (framework.orb.backed.verdicts).

The rule: what one replica has performed all perform, and none is hindered by a limit then; what none has performed
within the limit is performed by none, and its caller is told why. No node leaves for that. ``Runaway`` says at which
node a call ends.
"""

import threading

import pytest

from framework import ALL, Aborted, DeadlineExceeded, RemoteError
from framework.orb.backed import verdicts
from framework.testing import cluster
from tests.cluster.runaway import Runaway
from tests.cluster.test_membership import ready, until

WAIT = 60.0
LIMIT = 0.3


class Group:
    """Three nodes that the tests of this file share; the client is at n1."""

    def __init__(self, c):
        self.c = c
        self.orb = c.connect("n1", timeout=WAIT)
        self.shelf = self.orb.object(Runaway, "shelf")

    @property
    def lives(self):
        return [self.c._members[n]._node.member for n in self.c.nodes]

    def totals(self):
        replies = self.orb.crec(self.orb.mcast(self.shelf.all.request()))
        return [r.value for r in replies]

    def begun(self, *nodes):
        until(lambda: set(Runaway.begun) >= set(nodes), f"it was begun at {Runaway.begun}")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    Runaway.limits = {}
    Runaway.reset()
    with cluster({"shelf": Runaway}, 3, trace=tmp_path_factory.mktemp("runaway")) as c:
        group = Group(c)
        group.shelf.add.with_(receipt=ALL)("ann", 1)
        yield group
        until(lambda: ready(c, *c.nodes), "not all are there")
        c.verify(WAIT)


@pytest.fixture
def group(shared):
    """Nobody may leave while a test goes on, and in the end all replicas are equal."""
    Runaway.reset()
    Runaway.limits = dict.fromkeys(shared.c.nodes, LIMIT)
    lives = shared.lives
    before = shared.totals()[0]
    yield shared
    Runaway.reset()
    until(lambda: not any(shared.c.look(n)["running"] for n in shared.c.nodes), "something goes on")
    Runaway.limits = {}
    until(lambda: len({str(t) for t in shared.totals()}) == 1, "replicas differ")
    assert shared.lives == lives, "a node has left"
    assert shared.totals()[0].keys() >= before.keys()


def test_what_ends_nowhere_is_performed_nowhere(group):
    """What others do meanwhile, in the same batch and after it, is not touched by that."""
    Runaway.reset(n1="goes on", n2="goes on", n3="goes on")
    count = group.shelf.get("ann")
    before = [group.shelf.add.submit("ann", 1) for _ in range(20)]
    slow = group.shelf.slow.submit("never", 1)
    after = [group.shelf.add.submit("ann", 1) for _ in range(20)]
    with pytest.raises(RemoteError, match=r"TimeoutError: it was not over after 0.3 s at shelf@n., the limit there"):
        slow.result(WAIT)
    for each in (*before, *after):
        each.result(WAIT)
    assert all(t["ann"] == count + 40 and "never" not in t for t in group.totals())


def test_one_of_many_that_leave_together(group):
    """Each call of a convoy has its own verdict."""
    Runaway.reset(n1="goes on", n2="goes on", n3="goes on")
    sent = [group.shelf.slow.submit(f"never {n}", 1) for n in range(3)]
    for each in sent:
        with pytest.raises(RemoteError, match="TimeoutError"):
            each.result(WAIT)
    assert not any(name.startswith("never") for t in group.totals() for name in t)


@pytest.mark.parametrize("slow", ["n1", "n2", "n2 n3", "n1 n2"])
def test_what_has_ended_somewhere_ends_everywhere(group, slow):
    """A replica that takes longer goes on for as long as it takes."""
    Runaway.reset(**dict.fromkeys(slow.split(), "goes on"))
    sent = group.shelf.slow.submit(slow, 1)
    group.begun(*group.c.nodes)
    works = [life.dispatch for life in group.lives if life.node.name in slow.split()]
    until(
        lambda: all(any(getattr(p, "unlimited", False) for p in d._running.values()) for d in works),
        "they do not know that it will end",
    )
    Runaway.reset()
    sent.result(WAIT)
    until(lambda: [t.get(slow) for t in group.totals()] == [1, 1, 1], f"{group.totals()}")


def test_one_that_was_just_over_when_others_had_promised(group):
    """n3 finds that it has performed the call only after the others have taken it back: they perform it again."""
    Runaway.reset(n1="goes on", n2="goes on", n3="just over")
    Runaway.limits["n3"] = 0.0
    sent = group.shelf.slow.submit("just over", 1)
    until(lambda: Runaway.begun.count("n1") > 1 and Runaway.begun.count("n2") > 1, "they do not try again")
    Runaway.reset()
    sent.result(WAIT)
    until(lambda: [t.get("just over") for t in group.totals()] == [1, 1, 1], f"{group.totals()}")


def test_a_fault_that_all_replicas_have_is_that_of_the_call(group):
    """It used to make all of them leave, and come back, and leave again."""
    Runaway.reset(n1="fails", n2="fails", n3="fails")
    with pytest.raises(RemoteError, match="TimeoutError: no replica can perform it: no room, on purpose"):
        group.shelf.slow("no room", 1)
    assert not any("no room" in t for t in group.totals())


def test_a_fault_here_and_no_end_there(group):
    Runaway.reset(n1="fails", n2="goes on", n3="goes on")
    with pytest.raises(RemoteError, match="TimeoutError"):
        group.shelf.slow("neither", 1)
    assert not any("neither" in t for t in group.totals())


def test_a_deadline(group):
    """No limit, but nobody waits for it any more."""
    Runaway.reset(n1="goes on", n2="goes on", n3="goes on")
    Runaway.limits = {}
    with pytest.raises(DeadlineExceeded):
        group.shelf.slow.with_(timeout=1.0)("late", 1)
    group.shelf.swap("late", "other")  # it conflicts with that, and is performed when that is over
    assert group.shelf.get("late") == 0


def test_a_caller_that_cancels(group):
    Runaway.reset(n1="goes on", n2="goes on", n3="goes on")
    Runaway.limits = {}
    sent = group.shelf.slow.submit("cancelled", 1)
    group.begun(*group.c.nodes)
    assert sent.cancel()
    group.shelf.swap("cancelled", "other")
    assert group.shelf.get("cancelled") == 0


def test_a_transaction_that_is_aborted_while_it_is_in_such_a_call(group):
    Runaway.reset(n1="goes on", n2="goes on", n3="goes on")
    Runaway.limits = {}
    said = []

    def work():
        try:
            with group.orb.transaction(timeout=WAIT):
                group.shelf.slow("aborted", 1)
        except Exception as error:
            said.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    group.begun(*group.c.nodes)
    node = group.c._members["n1"]._node
    (name,) = [t["name"] for t in group.c.look("n1")["transactions"]]
    group.c._background._loop.call_soon_threadsafe(node.change, "abort", name)
    thread.join(WAIT)
    assert [type(error) for error in said] == [Aborted], said
    group.shelf.swap("aborted", "other")
    assert group.shelf.get("aborted") == 0


@pytest.mark.parametrize("level", ["at home", "stale", "everywhere"])
def test_reads_have_a_limit_too(group, level):
    """They hold nobody for longer, and no replica leaves."""
    how = {"at home": {}, "stale": {"stale": True}, "everywhere": {"to": [f"shelf@{n}" for n in group.c.nodes]}}
    with pytest.raises(RemoteError, match="TimeoutError: ended"):
        group.shelf.look.with_(**how[level])()


def test_a_replica_that_dies_meanwhile(tmp_path):
    """Those that are left decide; who comes back knows what they have decided."""
    Runaway.reset(n1="goes on", n2="goes on", n3="goes on")
    Runaway.limits = dict.fromkeys(("n1", "n2", "n3"), 5.0)
    with cluster({"shelf": Runaway}, 3, trace=tmp_path) as c:
        group = Group(c)
        sent = group.shelf.slow.submit("dies", 1)
        group.begun(*c.nodes)
        c.crash("n3")
        with pytest.raises(RemoteError, match="TimeoutError"):
            sent.result(WAIT)
        c.restart("n3")
        until(lambda: ready(c, *c.nodes), "n3 is not back")
        assert [t.get("dies") for t in group.totals()] == [None] * 3
        c.verify(WAIT)


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_node_stops_in_the_middle(tmp_path, node):
    """It does not wait for the call, and its client is told of no failure: another node carries the call through."""
    Runaway.reset(n1="goes on", n2="goes on", n3="goes on")
    Runaway.limits = {}
    with cluster({"shelf": Runaway}, 3, trace=tmp_path) as c:
        group = Group(c)
        sent = group.shelf.slow.submit("stopped", 1)
        group.begun(*c.nodes)
        c.stop(node)
        Runaway.reset()
        sent.result(WAIT)
        c.restart(node)
        until(lambda: ready(c, *c.nodes), "it is not back")
        until(lambda: [t.get("stopped") for t in group.totals()] == [1] * 3, "replicas differ")
        c.verify(WAIT)


def test_a_node_that_alone_has_promised_too_little_decides_nothing():
    """The arithmetic: so many that no answer can have had its majority."""
    assert verdicts.enough("abc", "abc")
    assert verdicts.enough("abc", "ab")
    assert not verdicts.enough("abc", "a")
    assert verdicts.enough("abc", "a", "b")  # b has had no state since the call was sent
    assert not verdicts.enough("abcde", "ab")  # the others may have answered
    assert verdicts.enough("abcde", "abc")  # c had promised before it left
    assert verdicts.enough("a", "a")
