"""Real processes are killed with SIGKILL, one, two, or all of them, while a client deposits; started again, they have
every deposit that was acknowledged, once. Each run ends with its traces before the oracle."""

import threading
import time

import pytest

from framework.errors import OboError, Unavailable
from framework.testing import cluster
from tests.cluster.accounts import Caller, Notes, Vault
from tests.cluster.test_membership import ready, until

WAIT = 60.0


class Deposits:
    """A client that repeats each deposit until it is acknowledged; each goes to an account of its own number."""

    def __init__(self, c):
        self._c = c
        self.done = 0
        self.unknown = 0  # the client has given up: it may have happened
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        orb = self._c.connect(timeout=WAIT)
        vault = orb.object(Vault, "vault")
        while not self._over.is_set():
            try:
                vault.deposit.with_(timeout=WAIT)(f"a{self.done % 7}", 1)
            except OboError:
                self.unknown += 1
                time.sleep(0.1)
            else:
                self.done += 1

    def more(self, count=100):
        wanted = self.done + count
        until(lambda: self.done >= wanted, f"no {count} more deposits after {self.done}, {self.unknown} unknown")

    def __enter__(self):
        self._thread.start()
        self.more()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join(WAIT)


def restart_all(c, names):
    """They wait for each other: nobody is ready before all are there."""
    threads = [threading.Thread(target=c.restart, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    until(lambda: ready(c, *c.nodes), "they are not back")


def totals(c):
    orb = c.connect(timeout=WAIT)
    replies = orb.crec(orb.mcast(orb.object(Vault, "vault").audit.request()))
    return [sum(r.value.values()) for r in replies]


@pytest.mark.parametrize("victims", [["n2"], ["n1", "n2"], ["n1", "n2", "n3"]])
def test_nodes_are_killed_and_nothing_acknowledged_is_lost(tmp_path, victims):
    with cluster({"vault": Vault}, 3, processes=True, trace=tmp_path) as c:
        with Deposits(c) as load:
            for name in victims:
                c.crash(name)
            time.sleep(0.3)
            restart_all(c, victims)
            load.more()
        assert load.unknown == 0
        assert totals(c) == [load.done] * 3
        c.verify(WAIT)


def test_all_are_killed_again_and_again(tmp_path):
    with cluster({"vault": Vault}, 3, processes=True, trace=tmp_path) as c:
        with Deposits(c) as load:
            for _ in range(3):
                for name in c.nodes:
                    c.crash(name)
                restart_all(c, c.nodes)
                load.more(30)
        assert totals(c) == [load.done] * 3 and load.unknown == 0
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
