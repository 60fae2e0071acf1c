"""A durable object whose disk is slow: calls are performed one behind the other before the disk has them, they share
its syncs, and nothing of them is told before."""

import threading
import time

import pytest

from framework import Object, conflict_matrix, method
from framework.errors import RemoteError
from framework.store import Journal
from framework.testing import cluster
from objects.bank import Bank
from tests.cluster.accounts import Vault
from tests.cluster.test_durable import WAIT, restart_all, totals
from tests.cluster.test_membership import ready, until


@conflict_matrix(note="*", pay="*", pay_async="*", tell="*")
class Teller(Object):
    """Calls others, also when it only reads."""

    durable = True

    def __init__(self) -> None:
        self.notes = 0

    @method
    def note(self) -> None:
        self.notes += 1

    @method
    def pay(self, account: str) -> int:
        self.orb.object(Bank, "bank").deposit(account, self.notes)
        return self.notes

    @method
    async def pay_async(self, account: str) -> int:
        later = self.orb.object(Bank, "bank").deposit.submit(account, self.notes)
        await later
        return self.notes

    @method(readonly=True)
    def tell(self, account: str) -> int:
        self.orb.object(Bank, "bank").deposit(account, self.notes)
        return self.notes


class Gate:
    """Journals of these replicas are not synced while it is closed."""

    def __init__(self, monkeypatch, *replicas):
        self._open = threading.Event()
        self._open.set()
        self.syncs = 0
        sync = Journal.sync

        def slow(journal):
            if not replicas or journal.replica in replicas:
                assert self._open.wait(WAIT)
                self.syncs += 1
            sync(journal)

        monkeypatch.setattr(Journal, "sync", slow)

    def __enter__(self):
        self._open.clear()
        return self

    def __exit__(self, *error):
        self._open.set()


def test_conflicting_calls_share_a_sync_and_nobody_is_told_before(tmp_path, monkeypatch):
    gate = Gate(monkeypatch)
    with cluster({"vault": Vault}, 3, trace=tmp_path) as c:
        vault = c.connect(timeout=WAIT).object(Vault, "vault")
        vault.deposit("ann", 100)
        gate.syncs = 0
        with gate:
            later = [vault.withdraw.submit("ann", 1) for _ in range(30)]
            later.append(vault.withdraw.submit("ann", 1000))  # refused: that tells of the others, too
            until(lambda: vault.balance.with_(stale=True)("ann") == 70, "they wait for the disk")
            later.append(vault.balance.submit("ann"))
            time.sleep(0.3)
            assert not any(f.done() for f in later)
        assert [f.result() for f in later[:30]] == [None] * 30
        with pytest.raises(RemoteError, match="ann has 70"):
            later[30].result()
        assert later[31].result() == 70
        assert gate.syncs < 30, "three nodes: one or two each"
        c.verify(WAIT)


@pytest.mark.parametrize("how", ["pay", "pay_async", "tell"])
def test_what_it_sends_waits_until_what_it_follows_is_on_disk(tmp_path, monkeypatch, how):
    gate = Gate(monkeypatch, "teller@n1", "teller@n2")
    with cluster({"teller": Teller, "bank": Bank}, 2, trace=tmp_path) as c:
        orb = c.connect(timeout=WAIT)
        teller, bank = orb.object(Teller, "teller"), orb.object(Bank, "bank")
        teller.note()
        with gate:
            note = teller.note.submit()
            paid = getattr(teller, how).submit("ann")
            time.sleep(0.5)
            assert bank.balance("ann") == 0, "whoever sees it knows of the note, which can get lost"
            assert not note.done() and not paid.done()
        assert paid.result() == 2
        assert bank.balance("ann") == 2
        c.verify(WAIT)


def test_a_life_that_ends_before_the_disk_has_it_all(tmp_path, monkeypatch):
    """n3 is cut off while its disk is slow: what it holds has the calls, and their replies."""
    gate = Gate(monkeypatch, "vault@n3")
    with cluster({"vault": Vault}, 3, trace=tmp_path) as c:
        vault = c.connect("n1", "n2", timeout=WAIT).object(Vault, "vault")
        vault.deposit("ann", 100)
        with gate:
            for _ in range(5):
                vault.withdraw("ann", 1)
            look = c.connect("n3", timeout=WAIT).object(Vault, "vault").balance.with_(stale=True)
            until(lambda: look("ann") == 95, "n3 does not perform them")
            for other in ("n1", "n2"):
                c.cut("n3", other)
            until(lambda: ready(c, "n1", "n2"), "the majority does not go on alone")
            vault.withdraw("ann", 1)
        c.heal()
        until(lambda: ready(c, *c.nodes), "n3 is not back")
        assert totals(c) == [94] * 3
        for name in c.nodes:
            c.crash(name)
        restart_all(c, c.nodes)
        assert totals(c) == [94] * 3
        c.verify(WAIT)
