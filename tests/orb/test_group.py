"""Nodes of one process that are not members yet, or not any more: what clients and people are told."""

import asyncio
import logging

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from framework import BadRequest, Unavailable
from framework.errors import PermissionDenied
from framework.net.security import OPEN
from framework.net.wire.orb_pb2 import InvokeRequest
from framework.net.wire.orb_pb2_grpc import GatewayStub
from framework.orb import glance
from framework.orb.client import AsyncOrb
from framework.orb.config import parse
from framework.orb.messages import Change, Look
from framework.orb.node import Node
from framework.orb.who import Caller
from objects.bank import Bank
from tests.orb.cluster import OBJECTS, toml

WAIT = 60.0


async def started(config, *names, trace=None):
    nodes = [Node(config, name, trace) for name in names]
    for node in nodes:
        await node.start()
    return nodes


async def until(happened):
    async with asyncio.timeout(WAIT):
        while not happened():
            await asyncio.sleep(0.01)


async def health(config, name):
    async with grpc.aio.insecure_channel(config.address(name)) as channel:
        asked = health_pb2.HealthCheckRequest(service="obo.orb.v1.Gateway")
        return (await health_pb2_grpc.HealthStub(channel).Check(asked)).status


def test_a_node_alone_in_its_configuration_is_a_group(ports):
    async def run():
        config = parse(toml(ports(1), '[objects.bank]\nclass = "objects.bank:Bank"\n'))
        (node,) = await started(config, "n1")
        assert node.joined.is_set(), "at once"
        async with AsyncOrb(config.address("n1")) as orb:
            await orb.object(Bank, "bank").deposit("ann", 5)
            assert await orb.object(Bank, "bank").balance.with_(stale=True)("ann") == 5
            with pytest.raises(BadRequest, match="cannot leave in order"):
                await glance.ask(config.address("n1"), Change(1, "leave", "n1"), OPEN, WAIT)
        assert not await node.leave()
        await node.stop()

    asyncio.run(run())


def test_health_is_what_the_node_is_at_this_moment(ports):
    """Out of the group, and back: no moment at which it says that it is well and has left, or lacks a state."""

    async def run():
        config = parse(toml(ports(3)))
        nodes = await started(config, "n1", "n2", "n3")
        await asyncio.gather(*(node.joined.wait() for node in nodes))
        n2 = nodes[1]
        ask = n2.gateway._health.Check

        async def says(service):
            return (await ask(health_pb2.HealthCheckRequest(service=service), None)).status

        serving, not_serving = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
        await until(lambda: not n2.unwell())
        assert [await says(s) for s in ("obo.orb.v1.Gateway", "obo.states")] == [serving, serving]
        n2.life.com.member.suspects |= {"n1", "n3"}
        assert "not sure" in n2.unwell()
        assert [await says(s) for s in ("obo.orb.v1.Gateway", "obo.states")] == [serving, not_serving]
        n2.life.com.member.suspects.clear()
        n2.out("a test wants it")
        assert [await says(s) for s in ("obo.orb.v1.Gateway", "obo.states")] == [not_serving, not_serving]
        n2.gateway.part()
        assert n2.unwell() == "n2 is stopping"
        for node in nodes:
            await node.stop()

    asyncio.run(run())


def test_without_all_nodes_no_group_begins_and_clients_wait(ports):
    async def run():
        config = parse(toml(ports(3)))
        n1, n2 = await started(config, "n1", "n2")
        await until(lambda: n1.peers.up("n2"))
        with pytest.raises(Unavailable, match="n1 is not a member of the group yet: n3 has not been heard"):
            async with AsyncOrb(config.address("n1"), timeout=0.5):
                pass
        told = await glance.ask(config.address("n1"), Look(1, "status"), OPEN, WAIT)
        assert told["group"]["state"] == "outsider" and "n3 has not been heard" in told["group"]["why"]
        assert await health(config, "n1") == health_pb2.HealthCheckResponse.NOT_SERVING
        async with grpc.aio.insecure_channel(config.address("n1")) as channel:
            with pytest.raises(grpc.aio.AioRpcError, match="n3 has not been heard") as caught:
                await GatewayStub(channel).Invoke(InvokeRequest(object="counter", method="show"))
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        connecting = asyncio.ensure_future(AsyncOrb(config.address("n1"), timeout=WAIT).__aenter__())
        await asyncio.sleep(0.1)
        assert not connecting.done()
        (n3,) = await started(config, "n3")
        orb = await connecting
        await orb.object(Bank, "bank").deposit("ann", 5)
        assert n1.life.com.view == n2.life.com.view == 1
        assert await health(config, "n1") == health_pb2.HealthCheckResponse.SERVING
        await orb.__aexit__(None, None, None)
        for node in (n1, n2, n3):
            await node.stop()

    asyncio.run(run())


def test_the_state_of_an_object_that_nobody_has_is_lost_and_that_is_told(ports, caplog):
    async def run():
        config = parse(toml(ports(3), OBJECTS + '[objects.single]\nclass = "objects.bank:Bank"\non = ["n3"]\n'))
        n1, n2, n3 = await started(config, "n1", "n2", "n3")
        async with AsyncOrb(config.address("n1"), timeout=WAIT) as orb:
            await orb.object(Bank, "single").deposit("ann", 5)
            await orb.object(Bank, "bank").deposit("ann", 5)
            await n3.stop()
            await until(lambda: n1.member.com.view == 2)
            (n3,) = await started(config, "n3")
            await until(lambda: n3.joined.is_set() and not n3.life.com.unready)
            assert await orb.object(Bank, "single").balance("ann") == 0
            assert await orb.object(Bank, "bank").balance.with_(to=["bank@n3"])("ann") == 5
            assert n3.object("bank@n3").accounts == n1.object("bank@n1").accounts
        for node in (n1, n2, n3):
            await node.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    lost = [r.getMessage() for r in caplog.records if "IS LOST" in r.getMessage()]
    assert len(lost) == 1 and "STATE OF single" in lost[0]


def test_who_is_evicted_drops_its_clients_and_instances_and_comes_back(ports, tmp_path):
    """A method that waits when its node is out is abandoned: its result goes nowhere, the new life does not wait."""

    async def run():
        config = parse(toml(ports(3)))
        nodes = await started(config, "n1", "n2", "n3", trace=tmp_path)
        n3, between = nodes[2], []
        n3.between_lives = lambda: between.append(n3.member)  # the collector of the process looks at everything
        await until(lambda: all(n.joined.is_set() for n in nodes))
        async with AsyncOrb([config.address("n3"), config.address("n1")], timeout=WAIT) as orb:
            slow = asyncio.ensure_future(orb.object("odd").slow(1.0))
            await until(lambda: n3.life.com.instances)
            await glance.ask(config.address("n1"), Change(1, "evict", "n3"), OPEN, WAIT)
            await until(lambda: n3.member is not None and n3.member.since > 1)
            await slow
            assert orb.home == "n1" and between == [None]
            await until(lambda: not n3.life.com.unready)
        with pytest.raises(BadRequest, match="not a member"):
            await glance.ask(config.address("n1"), Change(1, "evict", "n9"), OPEN, WAIT)
        with pytest.raises(BadRequest, match="ask n2 itself"):
            await glance.ask(config.address("n1"), Change(1, "leave", "n2"), OPEN, WAIT)
        for node in nodes:
            await node.stop()
        assert (tmp_path / f"n3.since{n3.life.since}.jsonl").exists()

    asyncio.run(run())


def test_only_administrators_change_the_group():
    with pytest.raises(PermissionDenied, match="obo evict needs a token with the role admin"):
        Caller("ann", "call").must_be_admin("obo evict")


@pytest.mark.parametrize(
    ("text", "fault"),
    [("0.1", "from 0.2 to 300"), ("301", "from 0.2 to 300"), ('"x"', "suspect_after"), ("nan", "from 0.2")],
)
def test_a_suspicion_time_that_is_none(text, fault):
    with pytest.raises(BadRequest, match=fault):
        parse(f'[nodes]\nn1 = "127.0.0.1:7401"\n[group]\nsuspect_after = {text}\n')


def test_stale_is_for_reads(ports):
    async def run():
        config = parse(toml(ports(1), '[objects.bank]\nclass = "objects.bank:Bank"\n'))
        (node,) = await started(config, "n1")
        async with AsyncOrb(config.address("n1")) as orb:
            for bank in (orb.object(Bank, "bank"), orb.object("bank")):
                with pytest.raises(BadRequest, match="not declared readonly"):
                    await bank.deposit.with_(stale=True)("ann", 1)
                with pytest.raises(BadRequest, match="True or False"):
                    bank.balance.with_(stale="yes")
            with pytest.raises(BadRequest, match="leave out to="):
                await orb.object("bank").balance.with_(stale=True, to=["bank@n1"])("ann")
        await node.stop()

    asyncio.run(run())
