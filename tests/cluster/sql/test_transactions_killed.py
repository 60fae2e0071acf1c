"""Money goes between a database and a bank while nodes are killed with -9; and what a store says of what was open."""

import random
import threading
import time
from contextlib import contextmanager

import pytest

from framework import Aborted, OutcomeUnknown, RemoteError, performing
from framework.errors import DeadlineExceeded, OboError, Unavailable
from framework.orb.backed.recalled import recalled
from framework.testing import cluster
from objects.bank import Bank
from objects.sql import Database
from objects.sql.client import Sql
from tests.cluster.accounts import Vault
from tests.cluster.sql.group import NODES
from tests.cluster.test_durable import restart_all
from tests.cluster.test_membership import ready, until
from tests.objects.sql.replica import Request
from tests.tiers import only_full

WAIT = 60.0
ROWS, START = 6, 50
TOTAL = 2 * ROWS * START
TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n >= 0))"


class Mover:
    """A client that moves money, and looks at both sides in one transaction."""

    def __init__(self, c, node, seed):
        self.orb = c.connect(node, timeout=WAIT)
        self.bank, self.db = self.orb.object(Bank, "bank"), Sql(self.orb, "db", timeout=WAIT)
        self._random = random.Random(seed)
        self.moved, self.reads, self.errors = 0, 0, []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._over.is_set():
            try:
                self._one()
            except Exception as error:
                self.errors.append(error)
                return

    def _one(self):
        key, amount = self._random.randrange(ROWS), self._random.randint(1, 20)

        def to_bank(orb):
            self.db.execute("UPDATE t SET n = n - ? WHERE id = ?", [amount, key])
            self.bank.deposit(f"a{key}", amount)

        def to_database(orb):
            self.bank.withdraw(f"a{key}", amount)
            self.db.execute("UPDATE t SET n = n + ? WHERE id = ?", [amount, key])

        try:
            if self._random.random() < 0.2:
                assert self.orb.run_transaction(self.sum, timeout=WAIT) == TOTAL
                self.reads += 1
            else:
                self.orb.run_transaction(self._random.choice([to_bank, to_database]), timeout=WAIT)
                self.moved += 1
        except RemoteError as error:
            if "IntegrityError" not in str(error) and "RefusedError" not in str(error):
                raise
        except (Aborted, OutcomeUnknown, Unavailable, DeadlineExceeded):
            pass

    def sum(self, orb):
        return self.db.query("SELECT sum(n) FROM t").scalar() + sum(self.bank.audit().values())

    def stop(self):
        self._over.set()
        self._thread.join(WAIT)


def made(c):
    orb = c.connect("n1", timeout=WAIT)
    db = Sql(orb, "db", timeout=WAIT)
    db.execute(TABLE)
    db.executemany("INSERT INTO t VALUES (?, ?)", [(i, START) for i in range(ROWS)])
    for i in range(ROWS):
        orb.object(Bank, "bank").deposit(f"a{i}", START)
    assert db.digests().equal  # all have it
    return orb, db


@contextmanager
def moving(c):
    """Gives a function that waits until so much more was moved."""
    orb, db = made(c)
    movers = [Mover(c, node, i) for i, node in enumerate(NODES)]

    def more(count=15):
        wanted = sum(m.moved for m in movers) + count
        until(lambda: sum(m.moved for m in movers) >= wanted or any(m.errors for m in movers), "they do not go on")
        assert not [error for m in movers for error in m.errors]

    more()
    yield more
    more()
    for mover in movers:
        mover.stop()
    check(orb, db, movers)


def check(orb, db, movers):
    assert not [error for m in movers for error in m.errors]
    assert orb.run_transaction(movers[0].sum, timeout=WAIT) == TOTAL
    until(lambda: db.digests().equal and not db.digests().missing, "replicas differ")
    rows = db.query("SELECT id, n FROM t ORDER BY id", read="linearizable").rows
    banks = [r.value for r in orb.crec(orb.mcast(orb.object(Bank, "bank").audit.request()))]
    assert banks == [banks[0]] * 3
    assert [n + banks[0].get(f"a{i}", 0) for i, n in rows] == [2 * START] * ROWS
    assert sum(m.reads for m in movers) > 0


@pytest.mark.parametrize(
    ("dialect", "victims"),
    [("sqlite", ["n1"]), only_full("sqlite", ["n2", "n1", "n3"]), only_full("postgres", ["n2", "n1", "n3"])],
)
def test_nodes_are_killed_one_after_the_other(tmp_path, options, victims):
    with cluster({"bank": Bank, "db": Database}, NODES, processes=True, trace=tmp_path, options=options) as c:
        with moving(c) as more:
            for victim in victims:
                c.crash(victim)
                more()
                c.restart(victim)
                until(lambda: ready(c, *NODES), f"{victim} is not back")
                more()
        c.verify(WAIT)


@pytest.mark.parametrize(("dialect", "times"), [("postgres", 1), only_full("postgres", 3), only_full("sqlite", 3)])
def test_all_nodes_are_killed_at_once(tmp_path, options, times):
    """The bank is durable, too. What was prepared, and not decided anywhere, did not happen; what was, did."""
    with cluster({"bank": Vault, "db": Database}, NODES, processes=True, trace=tmp_path, options=options) as c:
        with moving(c) as more:
            for _ in range(times):
                for node in NODES:
                    c.crash(node)
                restart_all(c, NODES)
                more()
        c.verify(WAIT)


class Left:
    """What is left of a node in its store."""

    def __init__(self, stores, replica):
        self.replica, self.target = replica, Database()
        self.target.open(stores._places[replica])

    def held(self):
        return recalled(self.replica, self.target, 0)

    def rows(self):
        with performing(Request()):
            return [n for (n,) in self.target.query("SELECT n FROM t ORDER BY id").rows]


@pytest.fixture
def left(tmp_path, options):
    """A node is gone while two transactions are open; each has also done something that failed."""
    with cluster({"bank": Bank, "db": Database}, NODES, trace=tmp_path, options=options) as c:
        made(c)
        errors = []
        for key in (1, 2):
            threading.Thread(target=open_one, args=(c, key, errors), daemon=True).start()
        residents = [c._members[n]._node.life.residents[f"db@{n}"] for n in NODES]
        until(lambda: errors or all(len(r.held) == 4 and not r._unsafe for r in residents), "not all is prepared")
        assert not errors
        stores = c._members["n1"]._node.stores
        c.crash("n1")
        until(lambda: not stores._open, "it is still open")
        found = Left(stores, "db@n1")
        yield found
        found.target.close()


def open_one(c, key, errors):
    orb = c.connect("n2", timeout=WAIT)
    db = Sql(orb, "db", timeout=WAIT)
    try:
        with orb.transaction(timeout=WAIT):
            db.execute("UPDATE t SET n = n + 1 WHERE id = ?", [key])
            with pytest.raises(RemoteError):
                db.execute("UPDATE t SET n = -1 WHERE id = ?", [key])
            db.execute("UPDATE t SET n = n * 2 WHERE id = ? RETURNING n", [key])
            time.sleep(WAIT)
    except OboError as error:  # in the end its time is up, or its node is gone
        errors.append(error)


def test_what_is_in_doubt_is_not_in_the_state(left):
    held = left.held()
    assert len(held.doubt) == 4
    assert len({tran for _, tran in held.doubt}) == 2
    assert left.rows() == [START] * ROWS
    assert held.holding.performed == 2  # the table, and its rows


def test_what_is_kept_is_performed_and_the_rest_is_dropped(left):
    held = left.held()
    tran = held.doubt[0][1]
    keep = [i for i, name in held.doubt if name == tran]
    found = held.resolve(keep)
    assert sorted(left.rows()) == [START] * (ROWS - 1) + [2 * (START + 1)]
    assert (found.doubt, found.resolve) == ((), None)
    assert found.holding.performed == held.holding.performed + 2
    assert [r.invocation for r in found.done][-2:] == keep
    assert found.part != held.part
    again = left.held()  # it is in the store
    assert (again.doubt, again.holding, again.done) == ((), found.holding, found.done)


def test_a_state_that_was_replaced_stays_as_it_is(left):
    held = left.held()
    held.spool.close()
    with pytest.raises(Unavailable, match="another one has taken its place"):
        held.resolve([invocation for invocation, _ in held.doubt])
    assert left.rows() == [START] * ROWS


def test_nothing_is_kept(left):
    found = left.held().resolve(())
    assert left.rows() == [START] * ROWS
    assert (found.doubt, found.holding.performed) == ((), 2)
    assert left.held().doubt == ()
