"""Real processes are killed with SIGKILL, one, two, or all of them, while a client deposits; started again, they have
every deposit that was acknowledged, once. Each run ends with its traces before the oracle."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from framework.errors import OboError, Unavailable
from framework.orb.durable import journaling
from framework.store import Journal
from framework.testing import cluster
from tests.cluster.accounts import Caller, Notes, Vault
from tests.cluster.test_membership import ready, until
from tests.tiers import only_full

WAIT = 60.0
PAUSE = 0.005  # between two calls of a client: what happens to the nodes takes longer where they are slow


class Deposits:
    """Clients at different nodes, each of which deposits again and again, with fail-over; compatible deposits, so that
    replicas perform them in different orders."""

    def __init__(self, c):
        self._c = c
        self._counts = dict.fromkeys(c.nodes, 0)
        self.unknown = []  # a client has given up: it may have happened
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in c.nodes]

    @property
    def done(self):
        return sum(self._counts.values())

    def _run(self, home):
        vault = self._c.connect(home, timeout=WAIT).object(Vault, "vault")
        while not self._over.is_set():
            try:
                vault.deposit(f"a{self.done % 3}", 1)
            except OboError as error:
                self.unknown.append(error)
                return
            self._counts[home] += 1
            self._over.wait(PAUSE)

    def more(self, count=100):
        wanted = self.done + count
        until(lambda: self.done >= wanted or self.unknown, f"no {count} more deposits after {self.done}")
        assert not self.unknown

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.more()
        return self

    def __exit__(self, *error):
        self._over.set()
        for thread in self._threads:
            thread.join(WAIT)


def restart_all(c, names):
    """They wait for each other: nobody is ready before all are there."""
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(c.restart, names))
    until(lambda: ready(c, *c.nodes), "they are not back")


def totals(c):
    orb = c.connect(timeout=WAIT)
    replies = orb.crec(orb.mcast(orb.object(Vault, "vault").audit.request()))
    return [sum(r.value.values()) for r in replies]


@pytest.mark.parametrize("victims", [only_full(["n2"]), only_full(["n1", "n2"]), ["n1", "n2", "n3"]])
def test_nodes_are_killed_and_nothing_acknowledged_is_lost(tmp_path, victims):
    with cluster({"vault": Vault}, 3, processes=True, trace=tmp_path) as c:
        with Deposits(c) as load:
            for name in victims:
                c.crash(name)
            time.sleep(0.3)
            restart_all(c, victims)
            load.more()
        assert not load.unknown
        assert totals(c) == [load.done] * 3
        c.verify(WAIT)


@pytest.mark.full
def test_all_are_killed_again_and_again(tmp_path):
    with cluster({"vault": Vault}, 3, processes=True, trace=tmp_path) as c:
        with Deposits(c) as load:
            for _ in range(3):
                for name in c.nodes:
                    c.crash(name)
                restart_all(c, c.nodes)
                load.more(30)
        assert totals(c) == [load.done] * 3 and not load.unknown
        c.verify(WAIT)


def test_what_methods_were_told_is_on_disk(tmp_path):
    """Nested calls, calls that come back, random numbers: performed again they give the same."""
    objects = {"vault": Vault, "notes": Notes, "caller": Caller}
    with cluster(objects, 3, processes=True, trace=tmp_path) as c:
        orb = c.connect(timeout=WAIT)
        notes, vault = orb.object(Notes, "notes"), orb.object(Vault, "vault")
        notes.add("first")
        assert notes.twice("ann", 5) == 10
        vault.deposit("ann", 90)
        notes.chance()
        notes.back("came back")
        with pytest.raises(OboError):
            vault.withdraw("ann", 1000)
        assert notes.twice("ann", 1) == 102
        before = notes.all()
        assert before[3:7] == ["before", "came back", "after came back", "ann has 102"]
        for name in c.nodes:
            c.crash(name)
        restart_all(c, c.nodes)
        again = c.connect(timeout=WAIT)
        assert again.object(Notes, "notes").all() == before
        assert again.object(Vault, "vault").balance("ann") == 102
        c.verify(WAIT)


def damage(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def journal(tmp_path, node):
    return next((tmp_path / "data" / node / "replicas" / f"vault@{node}").glob("*.journal"))


def test_a_damaged_journal_is_refused_and_a_torn_one_is_cut(tmp_path):
    with cluster({"vault": Vault}, 3, processes=True, trace=tmp_path) as c:
        vault = c.connect("n1", timeout=WAIT).object(Vault, "vault")
        for _ in range(50):
            vault.deposit("ann", 1)
        for name in ("n2", "n3"):
            c.crash(name)
        torn, damaged = journal(tmp_path, "n2"), journal(tmp_path, "n3")
        torn.write_bytes(torn.read_bytes() + b"\xf1rec half of a record")
        damage(damaged, damaged.stat().st_size // 2)
        with pytest.raises(Unavailable, match=f"{damaged.name}, byte .*Move the directory .*vault@n3 away"):
            c.restart("n3")
        c._members["n3"].end()
        damaged.parent.rename(tmp_path / "away")
        c.crash("n1")
        restart_all(c, c.nodes)
        assert f"{torn}: cut at byte" in (tmp_path / "n2.log").read_text()
        assert totals(c) == [50] * 3
        c.verify(WAIT)


def test_a_durable_object_needs_a_directory(tmp_path):
    with cluster({"vault": Vault}, 1, processes=True, trace=tmp_path) as c:
        c.crash("n1")
        file = tmp_path / "n1.toml"
        file.write_text(file.read_text().replace("[serve]", "").replace('data = "data"', ""))
        with pytest.raises(Unavailable, match="vault@n1 is durable, and n1 is not told where to keep it"):
            c.restart("n1")


def test_a_journal_that_is_long_becomes_a_snapshot_under_load(tmp_path, monkeypatch):
    """Nodes in this process: they see the lower bound."""
    monkeypatch.setattr(journaling, "RECORDS", 100)
    with cluster({"vault": Vault}, 3, trace=tmp_path) as c:
        with Deposits(c) as load:
            load.more(500)
            for name in c.nodes:
                files = tmp_path / "data" / name / "replicas" / f"vault@{name}"
                until(lambda at=files: list(at.glob("*.snapshot")), f"no snapshot at {name}")
            for name in c.nodes:
                c.crash(name)
            restart_all(c, c.nodes)
            load.more()
        assert not load.unknown
        assert totals(c) == [load.done] * 3
        c.verify(WAIT)


def test_nobody_is_told_of_what_is_not_on_disk(tmp_path, monkeypatch):
    gate = threading.Event()
    gate.set()
    sync = Journal.sync

    def slow(journal):
        assert gate.wait(WAIT)
        sync(journal)

    monkeypatch.setattr(Journal, "sync", slow)
    with cluster({"vault": Vault}, 3, trace=tmp_path) as c:
        vault = c.connect(timeout=WAIT).object(Vault, "vault")
        vault.deposit("ann", 1)
        gate.clear()
        try:
            later = [vault.deposit.submit("ann", 1) for _ in range(5)]
            until(lambda: vault.balance.with_(stale=True)("ann") == 6, "compatible deposits are performed at once")
            balance = vault.balance.submit("ann")  # conflicts: it must not tell of them
            time.sleep(0.3)
            assert not any(f.done() for f in (*later, balance))
        finally:
            gate.set()
        assert [f.result() for f in later] == [None] * 5 and balance.result() == 6
        c.verify(WAIT)


def test_a_node_whose_disk_refuses_stops_and_the_others_go_on(tmp_path, monkeypatch):
    full = threading.Event()
    sync = Journal.sync

    def refuses(journal):
        if full.is_set() and journal.replica == "vault@n2":
            raise OSError(28, "No space left on device")
        sync(journal)

    monkeypatch.setattr(Journal, "sync", refuses)
    with cluster({"vault": Vault}, 3, trace=tmp_path) as c:
        with Deposits(c) as load:
            full.set()
            until(lambda: ready(c, "n1", "n3"), "the others do not go on")
            load.more()
            full.clear()
            c.crash("n2")
            c.restart("n2")
            until(lambda: ready(c, *c.nodes), "n2 is not back")
            load.more()
        assert not load.unknown
        assert totals(c) == [load.done] * 3
        c.verify(WAIT)


@pytest.mark.parametrize("homes", [only_full(["n2", "n3"]), ["n1", "n2", "n3"]])
def test_durable_replicas_that_were_cut_off_and_then_killed(tmp_path, homes):
    """What is held in memory and what is on disk are the same."""
    with cluster({"vault": Vault}, 3, on={"vault": homes}, trace=tmp_path) as c:
        with Deposits(c) as load:
            for other in ("n1", "n2"):
                c.cut("n3", other)
            until(lambda: ready(c, "n1", "n2"), "the majority does not go on alone")
            c.heal()
            until(lambda: ready(c, *c.nodes), "n3 is not back")
            load.more()
            for name in c.nodes:
                c.crash(name)
            restart_all(c, c.nodes)
            load.more()
        assert not load.unknown
        assert totals(c) == [load.done] * len(homes)
        c.verify(WAIT)


def test_what_the_most_advanced_one_lacks_is_sent_again(tmp_path, monkeypatch):
    """n3 has performed more than the others, but not a deposit that they acknowledged."""
    full = threading.Event()
    sync = Journal.sync

    def refuses(journal):
        if full.is_set() and journal.replica == "vault@n3":
            raise OSError(28, "No space left on device")
        sync(journal)

    monkeypatch.setattr(Journal, "sync", refuses)
    with cluster({"vault": Vault}, 3, trace=tmp_path, suspect_after=30.0) as c:
        orb = c.connect("n1", timeout=WAIT)
        vault = orb.object(Vault, "vault")
        for _ in range(3):
            orb.srec(orb.ucast(vault.deposit.request("bob", 1), to="vault@n3"))
        full.set()
        orb.quorum(orb.mcast(vault.deposit.request("ann", 1)), 2)
        for name in c.nodes:
            c.crash(name)
        full.clear()
        restart_all(c, c.nodes)
        look = c.connect(timeout=WAIT).object(Vault, "vault")
        until(lambda: look.balance("ann") == 1, "the deposit is lost")
        assert look.balance("bob") == 3, "n3 was the most advanced one"
        assert totals(c) == [4] * 3
