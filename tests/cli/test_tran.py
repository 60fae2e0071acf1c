"""``obo tran``: who is in a transaction, what it holds and waits for; and an end to it by hand."""

import asyncio
import json

import pytest

from framework.cli import status, tran
from framework.cli.transactions import merged, table
from framework.errors import Aborted, BadRequest
from tests.orb.cluster import cluster, toml

OBJECTS = """
[objects.a]
class = "tests.orb.booking:Ledger"
[objects.b]
class = "tests.orb.booking:Ledger"
on = ["n1", "n2"]
"""


@pytest.fixture
def play(ports, tmp_path):
    def run(act):
        async def whole():
            at = ports(3)
            config = tmp_path / "cluster.toml"
            config.write_text(toml(at, OBJECTS))
            async with cluster(at, tmp_path, True, OBJECTS) as c, asyncio.timeout(60), c.client("n1") as orb:
                await act(c, orb, config)

        asyncio.run(whole())

    return run


def test_one_that_is_open_is_shown_and_can_be_aborted(play, capsys):
    async def act(c, orb, config):
        async def told(command, *words, **options):
            await asyncio.to_thread(command, *words, config=config, **options)
            return capsys.readouterr().out

        assert "no transaction is open" in await told(tran.ls)

        async def work():
            async with orb.transaction(timeout=30):
                await orb.object("a").put("k", 1)
                await orb.object("b").put("k", 1)
                name = f"{orb._home.client}/1"
                (one,) = [json.loads(line) for line in (await told(tran.ls, as_json=True)).splitlines()]
                assert (one["name"], one["state"]) == (name, "open")
                assert sorted(one["holds"]) == [f"{at} put(k:w)" for at in ("a@n1", "a@n2", "a@n3", "b@n1", "b@n2")]
                assert name in await told(tran.ls)
                assert "holds      b@n2 put(k:w)" in await told(tran.show, name)
                assert "aborted" in await told(tran.abort, name, yes=True)
                await asyncio.sleep(5)

        with pytest.raises(Aborted, match="somebody asked for it"):
            await work()
        assert await orb.object("a").get("k") == 0
        with pytest.raises(BadRequest, match="no transaction 'nobody/7' is open"):
            await told(tran.show, "nobody/7")

    play(act)


def test_what_is_over_is_not_aborted(play):
    async def act(c, orb, config):
        async with orb.transaction():
            await orb.object("a").put("k", 1)
        node = c.nodes["n1"]
        with pytest.raises(BadRequest, match="is over: it was committed"):
            node.change("abort", f"{orb._home.client}/1")
        with pytest.raises(BadRequest, match="knows of no transaction x/1"):
            node.change("abort", "x/1")
        with pytest.raises(BadRequest, match="is no call"):
            node.change("abort", "x")

    play(act)


def test_nodes_are_put_together():
    one = {"name": "c/1", "state": "has parts here", "held_for": 1.0, "holds": ["a@n1 put"], "waits_for": []}
    two = {"name": "c/1", "state": "open", "held_for": 3.0, "holds": ["a@n2 put"], "waits_for": ["d/1 at b@n2 put"]}
    (whole,) = merged([{"node": "n1", "transactions": [one]}, {"node": "n2", "transactions": [two]}])
    assert whole == {
        "name": "c/1",
        "state": "open",
        "held_for": 3.0,
        "nodes": ["n1", "n2"],
        "holds": ["a@n1 put", "a@n2 put"],
        "waits_for": ["d/1 at b@n2 put"],
    }
    assert table([]) == []
    assert status.transactions_table is table
