"""A fault of the framework itself: the node stops at once, the others and the clients notice and go on."""

import asyncio

import grpc
import grpc.aio
import pytest

from framework import BadRequest
from framework.com.events import Deliver, Submit, Tick
from framework.net.wire.orb_pb2 import InvokeRequest
from framework.net.wire.orb_pb2_grpc import GatewayStub
from objects.bank import Bank
from objects.counter import Counter
from tests.orb.cluster import cluster


class Fault(Exception):
    pass


def break_step(node, kind):
    """The com layer raises at the next event of this kind."""
    step = node.life._step

    def broken(event, now):
        if isinstance(event, kind):
            raise Fault("on purpose")
        return step(event, now)

    node.life._step = broken


def break_effect(node, kind):
    def broken(effect):
        raise Fault("on purpose")

    node.life._carry[kind] = broken


async def stopped(node):
    async with asyncio.timeout(60):
        await node.has_failed.wait()
        await node.stop()


def complaints(caplog):
    return [r for r in caplog.records if r.exc_info and r.exc_info[0] is Fault]


@pytest.mark.parametrize("kind", [Submit, Tick])
def test_a_step_that_raises_stops_the_node_and_clients_go_on_elsewhere(ports, tmp_path, caplog, kind):
    """n1 has no replica of the counter: nothing of the call has left when it fails."""

    async def run():
        async with cluster(ports(3), tmp_path, judged=False) as c, asyncio.timeout(60), c.client("n1", "n2") as orb:
            counter, n1 = orb.object(Counter, "counter"), c.nodes["n1"]
            await counter.increment(1)
            assert orb.home == "n1"
            break_step(n1, kind)
            await counter.increment(1)
            await stopped(n1)
            assert isinstance(n1.failed, Fault)
            assert await counter.show() == 2
            assert orb.home == "n2"
            for name in ("n2", "n3"):
                while c.nodes[name].peers.up("n1"):  # the peers notice
                    await asyncio.sleep(0.01)
                assert c.nodes[name].failed is None
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*c.config.address("n1").split(":"))
            assert [o.value for o in c.objects("counter")] == [2, 2]  # performed once

    asyncio.run(run())
    assert len(complaints(caplog)) == 1  # told once
    assert "the node stops at once" in complaints(caplog)[0].message


def test_an_effect_that_cannot_be_carried_out_stops_the_node(ports, tmp_path, caplog):
    async def run():
        async with cluster(ports(3), tmp_path, judged=False) as c, asyncio.timeout(60), c.client("n1") as orb:
            bank, n2 = orb.object(Bank, "bank"), c.nodes["n2"]
            break_effect(n2, Deliver)
            await bank.deposit("ann", 5)  # a majority is left
            await stopped(n2)
            assert isinstance(n2.failed, Fault)
            assert await bank.balance("ann") == 5
            assert not n2.object("bank@n2").accounts
            n2.feed("no event")  # the com layer hears nothing any more: else it would refuse this

    asyncio.run(run())
    assert len(complaints(caplog)) == 1
    assert '"event":"stop"' not in (tmp_path / "n2.jsonl").read_text().replace(" ", "")


def test_an_invoke_at_the_node_that_fails_is_told(ports, tmp_path):
    async def run():
        async with cluster(ports(3), tmp_path, judged=False) as c, asyncio.timeout(60):
            break_step(c.nodes["n1"], Submit)
            async with grpc.aio.insecure_channel(c.config.address("n1")) as channel:
                call = InvokeRequest(object="counter", method="increment", args_json="[1]")
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await GatewayStub(channel).Invoke(call, timeout=60)
                assert caught.value.code() is not grpc.StatusCode.DEADLINE_EXCEEDED
            await stopped(c.nodes["n1"])

    asyncio.run(run())


def test_an_error_on_purpose_stops_nothing(ports, tmp_path):
    async def run():
        async with cluster(ports(3), tmp_path) as c, asyncio.timeout(60), c.client("n1") as orb:
            with pytest.raises(BadRequest):
                await orb.object("counter").increment("x")
            with pytest.raises(BadRequest):
                c.nodes["n1"].feed("no event")
            await orb.object("counter").increment(1)
            assert c.nodes["n1"].failed is None

    asyncio.run(run())
