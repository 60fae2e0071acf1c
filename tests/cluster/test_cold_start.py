"""Durable objects after a crash of all: a replica that is not what the majority is does not count."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from framework.orb.durable import journaling
from framework.orb.replaced import DIFFERS
from framework.testing import cluster
from tests.cluster.accounts import Vault

WAIT = 120.0  # seconds; for hangs only
NODES = ("n1", "n2", "n3")


def until(what, said):
    end = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < end, said()
        time.sleep(0.02)


def test_a_vault_that_is_not_what_the_others_are(tmp_path, monkeypatch, caplog):
    """A fault of memory gets into its snapshot. It has more calls than n1, which was away, and as many as n2."""
    monkeypatch.setattr(journaling, "RECORDS", 5)
    with cluster({"vault": Vault}, 3, trace=tmp_path) as c:
        vault = c.connect("n2", timeout=WAIT).object(Vault, "vault")
        vault.deposit("ann", 100)
        assert c.settle(WAIT)
        c.crash("n1")
        spoil(c, "n3")
        for _ in range(12):
            vault.deposit("bob", 1)
        assert c.settle(WAIT)
        until(lambda: list((tmp_path / "data/n3/replicas/vault@n3").glob("*.snapshot")), lambda: "no snapshot")
        for node in ("n2", "n3"):
            c.crash(node)
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(c.restart, NODES))
        told = lambda: [c.look(node)["group"]["why"] for node in NODES]  # noqa: E731
        until(lambda: not any(told()), told)
        vault = c.connect("n1", timeout=WAIT).object(Vault, "vault")
        assert (vault.balance("ann"), vault.balance("bob")) == (100, 12)
        assert "vault@n3 DIFFERS from the 2 others, which agree" in caplog.text
        kept = {node: c.look(node)["kept"] for node in NODES}
        assert [(k["replica"], k["kind"]) for k in kept["n3"]] == [("vault@n3", DIFFERS)] and kept["n3"][0]["bytes"] > 0
        assert not kept["n1"] and not kept["n2"]


def spoil(c, node):
    """Its state alone; the framework does not see it."""
    target = c._members[node]._node.object(f"vault@{node}")

    async def change():
        target.accounts["ann"] = 1_000_000

    asyncio.run_coroutine_threadsafe(change(), c._background._loop).result(WAIT)
