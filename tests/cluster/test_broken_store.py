"""A store that stops working under its replica, at any point: no client hears of it, and nothing is lost or doubled.

The rule: an instance that finds its store broken is not answered. The node leaves the group, clients repeat their calls
at another one, and the node comes back with a fresh state when the store works again.
"""

import pytest

from framework import ALL, Aborted
from framework.testing import cluster
from tests.cluster.brittle import Brittle
from tests.cluster.test_membership import ready, until

WAIT = 60.0


class Group:
    """Three nodes that tests of this file share; ``n1`` is the one whose store breaks, and the home of the client."""

    def __init__(self, c):
        self.c = c
        self.orb = c.connect("n1", timeout=WAIT)
        self.shelf = self.orb.object(Brittle, "shelf")
        self.added = 0
        self.used = 0

    @property
    def node(self):
        return self.c._members["n1"]._node

    def add(self, name="ann", **how):
        self.shelf.add.with_(**how)(name, 1)
        self.added += 1

    def home(self):
        """The client is at n1 again, and what is there now counts, whatever a test before this one has left."""
        until(lambda: ready(self.c, *self.c.nodes), "not all are there")
        if self.orb.home != "n1":
            self.orb.close()
            self.orb = self.c.connect("n1", timeout=WAIT)
            self.shelf = self.orb.object(Brittle, "shelf")
        assert self.orb.home == "n1"
        until(lambda: len({*self.totals()}) == 1, "replicas differ")
        self.added = self.totals()[0]

    def totals(self):
        replies = self.orb.crec(self.orb.mcast(self.shelf.all.request()))
        return [sum(r.value.values()) for r in replies]

    def breaks(self, point, act):
        """``act`` with a store of n1 that breaks at this point; what came of it. n1 leaves and comes back."""
        self.home()
        before, fired = self.node.member, len(Brittle.fired)
        Brittle.armed.add(("n1", point))
        try:
            found = act()
            until(lambda: len(Brittle.fired) > fired, f"nothing came to {point}")
            until(lambda: self.node.member not in (None, before), "n1 has not left and come back")
        finally:
            Brittle.armed.discard(("n1", point))
        until(lambda: ready(self.c, *self.c.nodes), "n1 is not back")
        until(lambda: self.totals() == [self.added] * 3, f"{self.totals()} instead of {self.added}")
        assert self.node.failed is None
        return found


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with cluster({"shelf": Brittle}, 3, trace=tmp_path_factory.mktemp("brittle")) as c:
        made = Group(c)
        made.add(receipt=ALL)
        yield made
        until(lambda: ready(c, *c.nodes), "not all are there")
        c.verify(WAIT)


READS = {
    "on the spot": lambda g: g.shelf.get("ann"),
    "in a thread": lambda g: g.shelf.all()["ann"],
    "on the loop": lambda g: g.shelf.patiently("ann"),
    "stale": lambda g: g.shelf.get.with_(stale=True)("ann"),
    "ordered": lambda g: g.shelf.get.with_(to=[f"shelf@{n}" for n in g.c.nodes])("ann"),
    "of all": lambda g: g.orb.crec(g.orb.mcast(g.shelf.get.request("ann")))[0].value,
    "submitted": lambda g: g.shelf.get.submit("ann").result(WAIT),
    "later": lambda g: g.orb.drec(g.orb.mcast(g.shelf.get.request("ann"))).value,
}


@pytest.mark.parametrize("how", READS)
def test_reads(shared, how):
    assert shared.breaks("read", lambda: READS[how](shared)) == shared.added


@pytest.mark.parametrize("how", ["on the spot", "in a thread", "ordered"])
def test_what_a_call_touches_cannot_be_told(shared, how):
    assert shared.breaks("touched", lambda: READS[how](shared)) == shared.added


def test_a_glance(shared):
    def act():  # the first read of a client that has just come goes the usual way
        until(lambda: shared.shelf.get("ann") == shared.added and ("n1", "glance") not in Brittle.armed, "no glance")

    shared.breaks("glance", act)


@pytest.mark.parametrize("point", ["begin", "write", "commit", "committed"])
@pytest.mark.parametrize("how", ["alone", "of all", "one-way", "together"])
def test_changes(shared, point, how):
    def oneway():
        shared.shelf.add.oneway("ann", 1)
        shared.added += 1

    def together():
        for sent in [shared.shelf.add.submit("ann", 1) for _ in range(50)]:
            sent.result(WAIT)
        shared.added += 50

    ways = {"alone": shared.add, "of all": lambda: shared.add(receipt=ALL), "one-way": oneway, "together": together}
    shared.breaks(point, ways[how])


def in_transaction(group):
    """Reads what it has written; again as a whole if it was aborted."""

    def act(orb):
        shelf = orb.object(Brittle, "shelf")
        before = shelf.get("ann")
        shelf.add("ann", 1)
        assert shelf.get("ann") == before + 1

    group.orb.run_transaction(act, attempts=20, timeout=WAIT)
    group.added += 1


@pytest.mark.parametrize(
    "point", ["touched", "read", "begin", "provisional", "write", "take back", "commit", "committed"]
)
def test_transactions(shared, point):
    shared.breaks(point, lambda: in_transaction(shared))


@pytest.fixture
def first(point):
    """n1 is the first to come to the point. Else the others may answer, and the transaction is committed."""
    Brittle.slow.add(point)
    yield
    Brittle.slow.discard(point)


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("point", ["read", "write"])
def test_a_transaction_that_is_not_repeated_is_aborted(shared, point):
    def once():
        with shared.orb.transaction():
            shared.shelf.add("ann", 1)
            shared.shelf.get("ann")

    def act():
        with pytest.raises(Aborted):
            once()

    shared.breaks(point, act)


@pytest.mark.parametrize("point", ["state asked for", "state half read"])
def test_a_donor(shared, point):
    """n3 comes back, and asks whoever has a state until it has it."""
    shared.home()
    Brittle.armed |= {("n1", point), ("n2", point)}
    fired = len(Brittle.fired)
    try:
        shared.c.crash("n3")
        shared.c.restart("n3")
        until(lambda: len(Brittle.fired) > fired, "nobody gave a state")
        until(lambda: ready(shared.c, *shared.c.nodes), "not all are there")
    finally:
        Brittle.armed.clear()
    until(lambda: shared.totals() == [shared.added] * 3, "not all have the same")


@pytest.mark.parametrize("point", ["state comes", "state half written", "open", "recall"])
def test_a_joiner(shared, point):
    shared.home()
    Brittle.armed.add(("n3", point))
    fired = len(Brittle.fired)
    shared.c.crash("n3")
    shared.c.restart("n3")
    until(lambda: len(Brittle.fired) > fired, f"nothing came to {point}")
    until(lambda: ready(shared.c, *shared.c.nodes), "n3 is not back")
    until(lambda: shared.totals() == [shared.added] * 3, "not all have the same")


def test_a_node_whose_store_is_broken_can_be_stopped(tmp_path):
    with cluster({"shelf": Brittle}, 3, trace=tmp_path) as c:
        c.connect("n1", timeout=WAIT).object(Brittle, "shelf").add("ann", 1)
        Brittle.armed.add(("n1", "fingerprint"))
        c.verify(WAIT)
        assert Brittle.fired[-1] == ("n1", "fingerprint")
        assert c._members["n1"]._node.failed is None
