"""What a node tells about itself, while something waits."""

import asyncio

import pytest

from framework.orb import looking
from tests.orb import cluster as clusters
from tests.orb.cluster import cluster
from tests.orb.typed import Gate

OBJECTS = clusters.OBJECTS + '[objects.gate]\nclass = "tests.orb.typed:Gate"\n'


@pytest.fixture
def play(ports, tmp_path):
    def run(act):
        async def whole():
            Gate.opened = asyncio.Event()
            async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, asyncio.timeout(60), c.client("n1") as orb:
                try:
                    await act(c, orb)
                finally:
                    Gate.opened.set()

        asyncio.run(whole())

    return run


def test_status_says_what_waits_and_why(play):
    async def act(c, orb):
        calls = [orb.object("gate").pass_.submit() for _ in range(3)]  # they conflict: one runs, two wait
        told = await orb.look("status")
        while told["replicas"]["gate@n1"]["agreed"] < 2 or not told["running"]:
            await asyncio.sleep(0.01)
            told = await orb.look("status")
        assert (told["node"], told["view"], told["members"]) == ("n1", 1, ["n1", "n2", "n3"])
        assert told["replicas"]["gate@n1"] == {
            "announced": 0,
            "held": 0,
            "proposed": 0,
            "agreed": 2,
            "running": 1,
            "performed": 0,
            "convoys": 0,
            "begun": 1,
            "waited": 0,
            "kept": 1,
        }
        assert told["waiting_in_all"] == 2
        first = told["waiting"][0]
        assert (first["replica"], first["stage"]) == ("gate@n1", "agreed")
        assert first["request"].startswith("pass_") and "conflicts with" in first["why"]
        assert [r["replica"] for r in told["running"]] == ["gate@n1"]
        assert sum(told["clients"].values()) == 3
        assert [(call["by"], call["receipt"]) for call in told["calls"]] == [(calls_by(told), "quorum(2)")] * 3
        assert told["links"]["n2"] == {
            "up": True,
            "lost": 0,
            "member": True,
            "queued": 0,
            "unacked": told["links"]["n2"]["unacked"],
        }
        assert told["process"]["rss"] > 1 << 20 and told["process"]["threads"] >= 1
        Gate.opened.set()
        await asyncio.gather(*calls)
        told = await orb.look("status")
        assert not told["calls"] and sum(told["clients"].values()) == 0

    play(act)


def calls_by(told):
    (client,) = told["clients"]
    return client


def test_status_stays_small(play, monkeypatch):
    """However much waits: it is counted, and told in part."""
    monkeypatch.setattr(looking, "MOST", 5)
    monkeypatch.setattr(looking, "MOST_WAITING", 4)

    async def act(c, orb):
        calls = [orb.object("gate").pass_.submit() for _ in range(30)]
        told = await orb.look("status")
        while told["waiting_in_all"] < 29:
            await asyncio.sleep(0.01)
            told = await orb.look("status")
        assert len(told["waiting"]) == 4 and len(told["calls"]) == 5
        Gate.opened.set()
        await asyncio.gather(*calls)

    play(act)


def test_objects_are_described_in_full(play):
    async def act(c, orb):
        objects = {o["name"]: o for o in await orb.look("objects")}
        assert list(objects) == sorted(objects)
        bank = objects["bank"]
        assert bank["replicas"] == ["bank@n1", "bank@n2", "bank@n3"] and list(bank["nodes"]) == ["n1", "n2", "n3"]
        assert bank["methods"] == ["audit", "balance", "deposit", "transfer", "withdraw"]
        audit = bank["signatures"][0]
        assert audit["doc"] == "Every account; without a key, so it meets every key."
        assert {"first": "audit", "second": "deposit", "when": "always"} in bank["conflicts"]
        increment = next(m for m in objects["counter"]["signatures"] if m["name"] == "increment")
        assert increment["parameters"][0]["default"] == "1"
        assert objects["gate"]["doc"].startswith("Its instances wait")

    play(act)
